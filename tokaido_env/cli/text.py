"""Measure a language model of OpenAI, or of a server with OpenAI's interface.

tokaido text play --base-url http://localhost:11434/v1 --model llama3.2 --records games.jsonl
tokaido text positions --model NAME

It needs the package openai (extra llm), which reads the key from the environment variable
OPENAI_API_KEY. A subcommand (play, positions) has its own --help.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import numpy as np
from msgspec import Meta
from msgspec.structs import replace

from tokaido_env.agents import make
from tokaido_env.agents.registry import policy_path_of
from tokaido_env.arena.match_series import MatchResult
from tokaido_env.arena.records import RecordFile, finished_game
from tokaido_env.arena.result import Result
from tokaido_env.arena.tournament import MatchState
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.cli.cli_options import (
    add_shared,
    match_state_bar,
    matches_result,
    print_result,
    print_stop,
    print_stopped,
)
from tokaido_env.cli.command import CommandParser, program, reports_errors, write_json
from tokaido_env.core.actions import IDS, NO_ACTION
from tokaido_env.core.arguments import repr_short, str_short, unknown_name
from tokaido_env.core.optional_deps import require_extra
from tokaido_env.decoding import Source, Struct
from tokaido_env.files import check_outputs, parse_json
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

KEY = "OPENAI_API_KEY"
RETRIES = 5  # of a request, if the server is busy, late or out of reach
VERSION = 1  # of the answers of `positions`


class ModelError(RuntimeError):
    """A server gave no answer; the message has its address and the reason."""


@reports_errors("text", ModelError)
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if arguments and arguments[0] in SUBCOMMANDS:
        return SUBCOMMANDS[arguments[0]](arguments[1:])
    parser = CommandParser("text", __doc__)
    parser.add_argument("subcommand", help="play or positions")
    name = parser.parse_args(arguments).subcommand
    remedy = f"{program('text')} --help lists all"
    raise ValueError(f"{unknown_name('subcommand', name, SUBCOMMANDS)}; {remedy}")


def play(arguments: Sequence[str]) -> int:
    """Play paired games of a language model against an agent.

    A game has about 75 decisions of the model. If the server fails or Ctrl-C comes, the finished
    games are kept: with --records, the same command resumes.
    """
    options = _play_options(arguments)
    model = _model_of(options)
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
                progress(1)
    except (ModelError, KeyboardInterrupt) as error:
        stopped = error
    _save_games(options, model, state, transcripts)
    if stopped is not None:
        return print_stopped(stopped, [state], options.records, "text")
    return 0


def _save_games(
    options: argparse.Namespace,
    model: _Model,
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
        print_result(result)
        data["result"] = result.to_dict()
    write_json(options.json, data)


def positions(arguments: Sequence[str]) -> int:
    """Ask a language model for its actions in positions of the regret set.

    Its regret per decision needs fewer answers than games do. A position without a legal answer
    counts as a lost game. Agents are measured in the same positions. Drawing the boards of the
    prompts takes a minute. If the server fails or Ctrl-C comes, --answers keeps the answers, and
    the same command resumes.
    """
    options = _positions_options(arguments)
    model, agents = _model_of(options), [make(spec) for spec in options.compare]
    player, whole = _player_of(options, model), RegretSet.load(options.set or SHIPPED)
    some = whole.sample(options.positions, options.seed)
    task = {"set": whole.hash, "positions": len(some), "seed": options.seed, "player": player.spec}
    request = json.dumps(options.request, sort_keys=True)
    task |= {"retries": options.retries, "request": request}
    file = _read_answers(options.answers, task, some)
    resumed = len(file.answers)
    try:
        for number in range(resumed, len(some)):
            file.answers.append(_ask(player, some, number))
            write_json(options.answers, file.to_dict())
    except (ModelError, KeyboardInterrupt) as error:
        done = f"{len(file.answers):,} of {len(some):,} positions are answered"
        return print_stop("text", error, done, options.answers)
    choices = np.array([_action_of(answers) for answers in file.answers])
    own = AgentChoices(player.spec, choices, model.seconds / max(1, len(some) - resumed))
    result = _regret_of(some, [own, *(choose_actions(agent, some) for agent in agents)])
    exchanges = [one for answers in file.answers[resumed:] for one in answers]
    forfeits = int((choices[resumed:] == NO_ACTION).sum())
    answers = _answers(options, model, exchanges, len(some) - resumed, forfeits)
    result = replace(result, seed=options.seed)
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


def _action_of(answers: list[Exchange]) -> int:
    """Return the action of the last answer; NO_ACTION if it is not legal."""
    label = answers[-1].parsed.label
    return NO_ACTION if label is None else IDS[label]


class _AnswerFile(Struct, frozen=True):
    """Answers of a player in the first positions of a sample, `--answers`."""

    version: int
    task: dict[str, str | int]
    answers: list[Annotated[list[Exchange], Meta(min_length=1)]]


def _read_answers(path: Path | None, task: dict[str, Any], some: RegretSet) -> _AnswerFile:
    """Return the file that an earlier run of the same task wrote, or one without answers.

    Raises:
        ValueError: naming the first fault.
    """
    if path is None or not path.exists():
        return _AnswerFile(VERSION, task, [])
    source = Source.json(path, "answers", ValueError)
    source.check_versions(version=VERSION)
    file = source.decode(_AnswerFile)
    remedy = "give the options of the run that wrote it, or name another file"
    for key, value in task.items():
        own = file.task.get(key)
        source.expect(own == value, f"task.{key}", repr(value), own, remedy)
    source.expect(
        len(file.answers) <= len(some), "answers", f"{len(some)} or fewer", len(file.answers)
    )
    for number, answers in enumerate(file.answers):
        label = answers[-1].parsed.label
        legal = some.actions[some.starts[number] : some.starts[number + 1]]
        right = label is None or IDS.get(label) in legal
        source.expect(right, f"answers[{number}]", "a legal action", label)
    return file


SUBCOMMANDS: dict[str, Callable[[Sequence[str]], int]] = {"play": play, "positions": positions}


def _answers(
    options: argparse.Namespace,
    model: _Model,
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


# Options


def _parser(name: str, run: Callable[[Sequence[str]], int]) -> CommandParser:
    """Return a parser with the options of both subcommands."""
    parser, form = CommandParser(f"text {name}", run.__doc__), TextFormat()
    add = parser.add_argument
    address = "address of the server's interface, such as http://localhost:11434/v1"
    default = "the environment variable OPENAI_BASE_URL, else OpenAI's server"
    add("--base-url", type=_address, metavar="URL", help=f"{address} (default: {default})")
    add("--model", required=True, help="name of the model on the server (default: none)")
    request = 'more keys of each request, as JSON, such as {"temperature": 0}'
    add("--request", metavar="JSON", default="{}", help=request)
    add("--timeout", type=float, default=120.0, metavar="S", help="seconds to wait for the server")
    legal = "whether prompts list the legal actions, which makes the game easier"
    add("--legal", choices=("unlisted", "listed"), default=form.legal, help=legal)
    retries = "further tries after an answer without a legal action"
    add("--retries", type=int, default=form.retries, metavar="N", help=retries)
    add_shared(parser, "--seed", "--json")
    return parser


def _play_options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = _parser("play", play)
    add = parser.add_argument
    opponent = f"opponent; {program('evaluate')} --list lists all agents"
    add("--opponent", metavar="SPEC", default="heuristic", help=opponent)
    add("--games", type=int, default=20, help="number of games, even")
    history = "number of last events in a prompt"
    add("--history", type=int, default=TextFormat().history, metavar="N", help=history)
    add_shared(parser, "--board", "--records")
    options = parser.parse_args(arguments)
    check_outputs(
        *(options.json, options.records and options.records.resolve()),
        read=[options.board, policy_path_of(options.opponent)],
    )
    return options


def _positions_options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = _parser("positions", positions)
    add = parser.add_argument
    add("--positions", type=int, default=100, help="maximum number of positions to ask")
    compare = "agents to measure in the same positions"
    add("--compare", nargs="*", default=["champion", "greedy"], metavar="AGENT", help=compare)
    regret_set = "file of rolled-out positions (default: the regret set of the package)"
    add("--set", type="input", metavar="FILE", help=regret_set)
    answers = "write the answers to this file as they come, and resume from it (default: none)"
    add("--answers", type="file", metavar="FILE", help=answers)
    options = parser.parse_args(arguments)
    options.history = 0
    read = [options.set, *map(policy_path_of, options.compare)]
    check_outputs(options.json, options.answers, read=read)
    return options


def _address(text: str) -> str:
    """Return the address of a server."""
    with suppress(ValueError):  # of a wrong port
        parts = urlsplit(text)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return text
    expected = "expected an address with http or https, such as http://localhost:11434/v1"
    raise argparse.ArgumentTypeError(f"{expected}, got {repr_short(text)}")


def _model_of(options: argparse.Namespace) -> _Model:
    try:
        options.request = parse_json(options.request)
    except ValueError as error:
        raise ValueError(f"--request: {error}") from None
    if not isinstance(options.request, dict) or {"model", "messages"} & options.request.keys():
        raise ValueError("--request: expected an object of JSON without model and messages")
    if not options.timeout > 0:
        raise ValueError(f"--timeout: expected seconds above 0, got {options.timeout:g}")
    return _Model(options)


def _player_of(options: argparse.Namespace, model: _Model) -> TextPlayer:
    form = TextFormat(options.legal, history=options.history, retries=options.retries)
    return TextPlayer(model.respond, form, options.model)


# The model


class _Model:
    """A model that the package openai asks, with the costs so far.

    Attributes:
        prompt_tokens, answer_tokens: as the server counts them; 0 if it does not.
        seconds: duration of all requests, with their further tries.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        require_extra("asking a language model needs", "llm", "openai")
        import openai

        self._name, self._request, self._errors = options.model, options.request, openai.OpenAIError
        self.prompt_tokens = self.answer_tokens = 0
        self.seconds = 0.0
        without = "none" if options.base_url else None  # a local server needs no key
        try:
            self._client = openai.OpenAI(
                base_url=options.base_url,
                api_key=os.environ.get(KEY) or without,
                timeout=options.timeout,
                max_retries=RETRIES,
            )
        except openai.OpenAIError as error:
            raise ModelError(str_short(error, 200)) from None

    def respond(self, prompt: str) -> str:
        """Return the model's answer to a prompt, "" for an empty one.

        Raises:
            ModelError: if the server gives none, also not to further tries.
        """
        message, began = {"role": "user", "content": prompt}, time.monotonic()
        try:
            completion = self._client.chat.completions.create(
                model=self._name, messages=[message], extra_body=self._request
            )
        except (self._errors, ValueError) as error:  # ValueError: broken JSON
            raise self._error(f"{error} {error.__cause__ or ''}") from None
        try:  # openai does not check the types of a reply
            answer, usage = completion.choices[0].message.content or "", completion.usage
            if usage is not None:
                self.prompt_tokens += usage.prompt_tokens or 0
                self.answer_tokens += usage.completion_tokens or 0
        except (AttributeError, LookupError, TypeError):
            raise self._error("a reply that is no chat completion") from None
        self.seconds += time.monotonic() - began
        return str(answer)

    def _error(self, got: str) -> ModelError:
        expected = f"an answer of the model {repr_short(self._name)}"
        got = str_short(got.strip(), 200)
        return ModelError(f"{self._client.base_url}: expected {expected}, got {got}")
