"""`tokaido text-play` and `text-positions`: measure a language model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import field
from typing import Annotated, Any

import numpy as np
from cyclopts import Parameter
from msgspec.structs import replace

from tokaido_env.agents import make
from tokaido_env.agents.content import files_of_agents
from tokaido_env.agents.registry import policy_path_of
from tokaido_env.arena.match_series import MatchResult
from tokaido_env.arena.records import RecordFile, finished_game
from tokaido_env.arena.result import Result
from tokaido_env.arena.tournament import MatchState
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.cli import command as cli
from tokaido_env.cli.cli_options import (
    match_state_bar,
    matches_result,
    print_result,
    print_stop,
    print_stopped,
)
from tokaido_env.cli.command import write_json
from tokaido_env.cli.language_model import MODEL, Asking, Model, ModelError
from tokaido_env.core.actions import IDS, NO_ACTION
from tokaido_env.files import check_outputs
from tokaido_env.game import Game
from tokaido_env.position import to_dict
from tokaido_env.report.tables import Table, print_table
from tokaido_env.study.regret import (
    AgentChoices,
    choose_actions,
    regret_difference,
    regret_measures,
    set_entry,
)
from tokaido_env.study.regret_set import SHIPPED, RegretSet
from tokaido_env.text import (
    REFUSED,
    Exchange,
    TextError,
    TextFormat,
    TextPlayer,
    Transcript,
    ask_player,
    play_by_text,
)


@cli.options
class TextPlay(Asking):
    """Options of `tokaido text-play`."""

    opponent: cli.AgentSpec = "heuristic"
    """agent to play against; tokaido agents lists all"""
    games: int = 20
    """games, even"""
    history: Annotated[int, Parameter(group=MODEL)] = TextFormat().history
    """last events in a prompt"""
    board: cli.Board = "shikoku"
    """a built-in board or a board file"""
    records: cli.Records = None


@cli.command("text-play", ModelError)
def play(options: TextPlay) -> int:
    """Play paired games of a language model against an agent.

    The model is one of OpenAI, or of a server with OpenAI's interface. It needs the package openai
    (extra llm), which reads the key from the environment variable OPENAI_API_KEY. A game has about
    75 decisions of the model. With --records, the same command resumes after a failure of the
    server or Ctrl-C: the file keeps the finished games, and FILE.answers the answers of the game in
    progress.

    Examples:
        tokaido text-play --base-url http://localhost:11434/v1 --model llama3.2
        tokaido text-play --model NAME --records games.jsonl
    """
    saved = options.records and options.records.resolve()
    kept = saved and saved.with_name(f"{saved.name}.answers")
    read = [options.board, policy_path_of(options.opponent)]
    check_outputs(options.json, saved, kept, read=read)
    model = Model(options, kept)
    player, opponent = _player_of(options, model), make(options.opponent)
    pool = BoardPool.load(options.board)
    state = MatchState(player.spec, opponent.spec, options.games, options.seed, pool)
    state.with_luck = True
    records = RecordFile(options.records, [state]) if options.records is not None else None
    transcripts: list[Transcript] = []
    stopped: BaseException | None = None
    try:
        with match_state_bar(state, "1/1") as progress:
            for number in np.flatnonzero(~state.finished).tolist():
                game = state.games[number]
                seats = (opponent, player) if game["seat_of_a"] else (player, opponent)
                transcript = play_by_text(seats, int(game["seed"]), pool[int(game["board"])])
                finished = finished_game(state, number, transcript.record)
                state.add(finished)
                transcripts.append(transcript)
                if records is not None:
                    records.append(state, finished)
                model.kept.clear()
                progress(1)
    except (ModelError, KeyboardInterrupt) as error:
        stopped = error
        if unfinished := getattr(error, "transcript", None):
            transcripts.append(unfinished)
    _save_games(options, model, state, transcripts)
    if stopped is not None:
        return print_stopped(stopped, [state], options.records)
    return 0


def _save_games(
    options: TextPlay,
    model: Model,
    state: MatchState,
    transcripts: Sequence[Transcript],
) -> None:
    """Print and write the results of the match, and the answers of the games of this run."""
    match = state.to_match()
    exchanges = [one for transcript in transcripts for one in transcript.exchanges]
    decisions = sum(len({one.event for one in each.exchanges}) for each in transcripts)
    forfeits = sum(transcript.forfeit is not None for transcript in transcripts)
    answers = _answers(options, model, exchanges, decisions, forfeits)
    games = [
        {
            "seed": one.record.seed,
            "players": one.record.players,
            "answers": [{"event": e.event, "text": e.answer, **e.parsed._asdict()} for e in said],
        }
        for one, said in ((transcript, transcript.exchanges) for transcript in transcripts)
    ]
    data: dict[str, Any] = {"result": None, "answers": answers, "games": games}
    if len(match.games):
        played = [MatchResult(match, None)]
        result = matches_result(played, state.pool, options.seed, "", luck=True)
        result = replace(result, files=state.files)
        print_result(result)
        data["result"] = result.to_dict()
    write_json(options.json, data)


@cli.options
class TextPositions(Asking):
    """Options of `tokaido text-positions`."""

    positions: int = 100
    """positions to ask, at most"""
    compare: Annotated[tuple[cli.AgentSpec, ...], cli.Several, Parameter("--baselines")] = (
        *("champion", "greedy"),
    )
    """agents to measure in the same positions"""
    set: cli.Positions = SHIPPED
    answers: cli.File | None = None
    """write the answers to this file as they come, and resume from it"""
    history: int = field(init=False, default=0)


@cli.command("text-positions", ModelError)
def positions(options: TextPositions) -> int:
    """Ask a language model for its actions in positions of the regret set.

    Its regret per decision needs fewer answers than games do. A position without a legal answer
    counts as a lost game. Agents are measured in the same positions. Drawing the boards of the
    prompts takes a minute. If the server fails or Ctrl-C comes, --answers keeps the answers, and
    the same command resumes.

    Examples:
        tokaido text-positions --model NAME --answers answers.json
    """
    read = [options.set, *map(policy_path_of, options.compare)]
    check_outputs(options.json, options.answers, read=read)
    model = Model(options, options.answers)
    agents = [make(spec) for spec in options.compare]
    player, whole = _player_of(options, model), RegretSet.load(options.set)
    some = whole.sample(options.positions, options.seed)
    asked: list[list[Exchange]] = []
    try:
        for number in range(len(some)):
            asked.append(_ask(player, some, number))
    except (ModelError, KeyboardInterrupt) as error:
        done = f"{len(asked):,} of {len(some):,} positions are answered"
        return print_stop(error, done, options.answers)
    choices = np.array([_action_of(exchanges) for exchanges in asked])
    own = AgentChoices(player.spec, choices, model.seconds / len(some))
    result = _regret_of(some, [own, *(choose_actions(agent, some) for agent in agents)])
    exchanges = [one for each in asked for one in each]
    forfeits = int((choices == NO_ACTION).sum())
    answers = _answers(options, model, exchanges, len(some), forfeits)
    result = replace(result, seed=options.seed, files=files_of_agents(agents))
    write_json(options.json, {"result": result.to_dict(), "answers": answers})
    return 0


def _regret_of(some: RegretSet, measured: Sequence[AgentChoices]) -> Result:
    """Print the regret of agents, and of the first less that of each other; return them."""
    measures = [measure for one in measured for measure in regret_measures(some, one)]
    measures += [regret_difference(some, measured[0], other) for other in measured[1:]]
    result = Result.made(
        "regret",
        agents=tuple(one.agent for one in measured),
        boards=(set_entry(some),),
        seed=None,
        estimates=tuple(measures),
    )
    print_result(result)
    return result


def _ask(player: TextPlayer, some: RegretSet, number: int) -> list[Exchange]:
    """Return a player's answers in a position, the last of them legal or all refused."""
    board = some.boards[int(some.board[number])]
    game = Game.from_dict(to_dict(board, some.states[number]), board=board, seed=0)
    exchanges: list[Exchange] = []
    with suppress(TextError):
        ask_player(player, game, exchanges)
    return exchanges


def _action_of(exchanges: list[Exchange]) -> int:
    """Return the action of the last answer; NO_ACTION if it is not legal."""
    label = exchanges[-1].parsed.label
    return NO_ACTION if label is None else IDS[label]


def _answers(
    options: TextPlay | TextPositions,
    model: Model,
    exchanges: Sequence[Exchange],
    decisions: int,
    forfeits: int,
) -> dict[str, Any]:
    """Print the answers by kind and the costs of a decision; return them as plain JSON types."""
    kinds, each = Counter(one.parsed.kind for one in exchanges), max(decisions, 1)
    row = {
        "model": options.model,
        "decisions": decisions,
        **{kind: kinds[kind] for kind in REFUSED},
        "forfeits": forfeits,
        "prompt tokens": round(model.prompt_tokens / each, 1),
        "answer tokens": round(model.answer_tokens / each, 1),
        "seconds": round(model.seconds / each, 3),
    }
    title = "Refused answers, and tokens and seconds per decision, of this run"
    if exchanges:
        print_table(Table(title, tuple(row), [tuple(map(str, row.values()))]))
    settings = ("legal", "history", "retries", "request")
    return row | {name: getattr(options, name) for name in settings}


def _player_of(options: TextPlay | TextPositions, model: Model) -> TextPlayer:
    form = TextFormat(options.legal, history=options.history, retries=options.retries)
    return TextPlayer(model.respond, form, options.model)
