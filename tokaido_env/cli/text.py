"""`tokaido text-play` and `text-positions`: measure a language model."""

from __future__ import annotations

import json
import os
import re
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import numpy as np
from cyclopts import Group, Parameter
from msgspec import Meta
from msgspec.structs import replace

from tokaido_env.agents import make
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
from tokaido_env.core.actions import IDS, NO_ACTION
from tokaido_env.core.arguments import repr_short, str_short
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
_BUSY_CODES = ("408", "409", "429", "500", "502", "503", "504")
_BUSY = re.compile(
    r"(?i)busy|overload|capacity|rate.?limit|too many requests|unavailable|timed? ?out"
)
VERSION = 1  # of the answers of `positions`


class ModelError(RuntimeError):
    """A server gave no answer; the message has its address and the reason."""


def _address(text: str) -> str:
    """Return the address of a server."""
    with suppress(ValueError):  # of a wrong port
        parts = urlsplit(text)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return text
    expected = "expected an address with http or https, such as http://localhost:11434/v1"
    raise ValueError(f"{expected}, got {repr_short(text)}")


def _request(text: str) -> dict[str, Any]:
    """Return the keys of a request."""
    request = parse_json(text)
    if not isinstance(request, dict) or {"model", "messages"} & request.keys():
        raise ValueError("expected an object of JSON without model and messages")
    return request


MODEL = Group("Language model", sort_key=2)


@cli.options
class Asking:
    """Options of the commands that ask a language model."""

    base_url: Annotated[str | None, cli.text_option(_address, "URL"), Parameter(group=MODEL)] = None
    """address of the server's interface, such as http://localhost:11434/v1 [default: the
    environment variable OPENAI_BASE_URL, else OpenAI's server]"""
    model: Annotated[str, Parameter(metavar="NAME", group=MODEL)]
    """name of the model on the server"""
    request: Annotated[Any, cli.text_option(_request, "JSON"), Parameter(group=MODEL)] = field(
        default_factory=dict
    )
    """more keys of each request, as JSON, such as {"temperature": 0}"""
    timeout: Annotated[float, Parameter(metavar="SECONDS", group=MODEL)] = 120.0
    """seconds to wait for the server"""
    legal: Annotated[Literal["unlisted", "listed"], Parameter(group=MODEL)] = "unlisted"
    """whether prompts list the legal actions, which makes the game easier"""
    retries: Annotated[int, Parameter(group=MODEL)] = TextFormat().retries
    """further tries after an answer without a legal action"""
    seed: cli.SeedOption = 0
    json: cli.Json = None


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
    75 decisions of the model. If the server fails or Ctrl-C comes, the finished games are kept:
    with --records, the same command resumes.

    Examples:
        tokaido text-play --base-url http://localhost:11434/v1 --model llama3.2
        tokaido text-play --model NAME --records games.jsonl
    """
    check_outputs(
        *(options.json, options.records and options.records.resolve()),
        read=[options.board, policy_path_of(options.opponent)],
    )
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
        return print_stopped(stopped, [state], options.records)
    return 0


def _save_games(
    options: TextPlay,
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
    model, agents = _model_of(options), [make(spec) for spec in options.compare]
    player, whole = _player_of(options, model), RegretSet.load(options.set)
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
        return print_stop(error, done, options.answers)
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


def _answers(
    options: TextPlay | TextPositions,
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


def _model_of(options: Asking) -> _Model:
    if not options.timeout > 0:
        raise ValueError(f"--timeout: expected seconds above 0, got {options.timeout:g}")
    return _Model(options)


def _player_of(options: TextPlay | TextPositions, model: _Model) -> TextPlayer:
    form = TextFormat(options.legal, history=options.history, retries=options.retries)
    return TextPlayer(model.respond, form, options.model)


# The model


class _Model:
    """A model that the package openai asks, with the costs so far.

    Attributes:
        prompt_tokens: as the server counts them; 0 if it does not.
        answer_tokens: likewise.
        seconds: duration of all requests, with their further tries.
        pause: seconds before the first further try after an error under status 200.
    """

    pause = 1.0

    def __init__(self, options: Asking) -> None:
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
        """Return the model's answer to a prompt, "" for one that cannot be read.

        Raises:
            ModelError: if the server gives none, also not to further tries.
        """
        began, tries = time.monotonic(), 0
        completion = self._complete(prompt)
        while error := getattr(completion, "error", None):
            if tries == RETRIES or not _is_busy(error):
                raise self._error(str(error))
            time.sleep(self.pause * 2**tries)
            tries += 1
            completion = self._complete(prompt)
        if not hasattr(completion, "choices"):
            raise self._error("a reply that is no chat completion")
        usage = getattr(completion, "usage", None)
        self.prompt_tokens += _count(usage, "prompt_tokens")
        self.answer_tokens += _count(usage, "completion_tokens")
        self.seconds += time.monotonic() - began
        return _text_of(completion)

    def _complete(self, prompt: str) -> Any:
        """Return the reply to a prompt; openai does not check its types."""
        message = {"role": "user", "content": prompt}
        try:
            return self._client.chat.completions.create(
                model=self._name, messages=[message], extra_body=self._request
            )
        except (self._errors, ValueError) as error:  # ValueError: broken JSON
            raise self._error(f"{error} {error.__cause__ or ''}") from None

    def _error(self, got: str) -> ModelError:
        expected = f"an answer of the model {repr_short(self._name)}"
        got = str_short(got.strip(), 200)
        return ModelError(f"{self._client.base_url}: expected {expected}, got {got}")


def _text_of(completion: Any) -> str:
    """Return the text of a reply, also in parts; "" if there is none: it counts as refused."""
    try:
        content = completion.choices[0].message.content
    except (AttributeError, LookupError, TypeError):
        return ""
    parts = content if isinstance(content, list) else [{"text": content}]
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return "".join(text for text in texts if isinstance(text, str))


def _count(usage: Any, name: str) -> int:
    """Return a number of tokens; 0 if the server gives none, or something else."""
    count = getattr(usage, name, None)
    return count if isinstance(count, int) and count > 0 else 0


def _is_busy(error: Any) -> bool:
    """Return whether an error under status 200 says that the server is busy."""
    known = error if isinstance(error, dict) else {}
    code = str(known.get("code") or known.get("status") or "")
    return code in _BUSY_CODES or _BUSY.search(str(error)) is not None
