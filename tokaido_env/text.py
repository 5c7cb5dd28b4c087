"""Tokaido Duo as text: for language models, and for people who read.

    from tokaido_env.text import TextPlayer, play_by_text

    transcript = play_by_text([TextPlayer(respond), "greedy"], seed=7)  # respond: str -> str
    print(transcript.record.winner, transcript.forfeit)

A prompt holds the rules in short, the position as drawn, what has happened last, and what is asked;
an answer ends in a block of JSON, `{"action": "merchant:C3"}`. No network is known here: whoever
calls brings the function that answers. An answer is data and nothing in it is executed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokaido_env.agent import Agent, AgentError, as_agent
from tokaido_env.boards.board import Board
from tokaido_env.boards.board_pool import Boards
from tokaido_env.core.actions import IDS
from tokaido_env.core.arguments import as_integer, check_choice, repr_short, str_short
from tokaido_env.core.bitmask import actions_of
from tokaido_env.core.state import Phase
from tokaido_env.game import Game
from tokaido_env.position import to_dict
from tokaido_env.record import FORFEIT, MOST_DETAIL, Forfeit, Record
from tokaido_env.render.narration import log_entries
from tokaido_env.render.scene import SEATS, scenes_of

Respond = Callable[[str], str]
"""Answers a prompt."""

RULES = """\
Tokaido Duo, for two players. Each has a pilgrim, a merchant and an artist. A round is three dice,
one for each kind of character: the leading player takes a die and moves that character of theirs by
exactly what it shows, then the other player does, then the leader takes the last; the lead changes
each round. After a move the player may use the place or pass.
- The pilgrim walks clockwise along the coast, past stations that others hold. A temple or a garden
  moves its peg on by one; faith is the temple slot's number times the garden slot's. A coastal town
  gives the price of its boutique in coins.
- The merchant travels the trade routes. A mountain town gives as many wares, drawn from the bag, as
  it says, and five may be kept; in a coastal town wares of the boutique's kind are sold, each for
  its price. Ten coins become a slab of gold at once; commerce grows with the slabs.
- The artist crosses neighbouring areas. It paints, revealing as many paintings as other characters
  are there, or gives the front painting away where the area shows its icon; culture grows with
  those given.
Who holds the hot spring token may use a die twice; the seashore's waves help one character each.
The last temple or garden slot, the sixth slab or the tenth painting given make the round the last.
Most points win."""

_ASKS = {
    Phase.MOVE: "Take a die and move its character.",
    Phase.EFFECT: "Use what is at this place, or pass.",
    Phase.DISCARD: "You hold too many wares: return one to the bag.",
    Phase.REPEAT: "You hold the hot spring token: use the place again, or pass.",
}
_FORM = 'Answer with a block of JSON as the last thing: {"action": "LABEL"}.'
_MOST_READ = 20_000  # characters of an answer, from its end
_MOST_BLOCKS = 200  # that are tried, from the last
_KEPT = 1_000  # characters of an answer in a transcript


@dataclass(frozen=True)
class TextFormat:
    """What a prompt holds, and how often a player may try.

    Attributes:
        legal: "listed": with the labels of all legal actions; "unlisted": without.
        rules: begin with the rules in short.
        history: how many of the last events are told.
        retries: further tries after an answer that is no legal action; then the game is forfeited.
    """

    legal: str = "listed"
    rules: bool = True
    history: int = 12
    retries: int = 2

    def __post_init__(self) -> None:
        check_choice("legal", self.legal, ("listed", "unlisted"))
        for name in ("history", "retries"):
            if as_integer(getattr(self, name)) is None or getattr(self, name) < 0:
                raise ValueError(f"{name}: expected an integer from 0, got {getattr(self, name)!r}")


class ParsedAnswer(NamedTuple):
    """What an answer was understood as: a legal label, or None and what was wrong; what it said."""

    label: str | None
    error: str = ""
    said: str | None = None


class Exchange(NamedTuple):
    """A try: who was asked, at which event, the end of the answer, and how it was read."""

    seat: int
    event: int
    answer: str
    parsed: ParsedAnswer


@dataclass(frozen=True)
class Transcript:
    """A game by text.

    Attributes:
        record: of the game.
        exchanges: all tries of players by text.
    """

    record: Record
    exchanges: list[Exchange] = field(default_factory=list)

    @property
    def forfeit(self) -> Forfeit | None:
        """How it was forfeited, if it was."""
        return self.record.forfeit

    def refused(self, seat: int) -> int:
        """Return how many answers of a seat were no legal action."""
        mine = (one for one in self.exchanges if one.seat == seat)
        return sum(one.parsed.label is None for one in mine)


@dataclass(frozen=True)
class TextPlayer:
    """Who answers prompts, and what they hold.

    Attributes:
        respond: takes a prompt, returns an answer.
        form: of its prompts.
        name: of the player.
    """

    respond: Respond
    form: TextFormat = TextFormat()
    name: str = "text"

    def __post_init__(self) -> None:
        if not callable(self.respond):
            raise TypeError(
                f"respond: expected a function of a prompt, got {repr_short(self.respond)}"
            )
        if not isinstance(self.form, TextFormat):
            raise TypeError(f"form: expected a TextFormat, got {repr_short(self.form)}")

    @property
    def spec(self) -> str:
        """What records and tables call it: who is told the legal actions plays another game."""
        return f"{self.name}:legal={self.form.legal}"


def make_prompt(game: Game, form: TextFormat | None = None, error: str = "") -> str:
    """Return what to ask who decides.

    Args:
        game: at a decision.
        form: what the prompt holds.
        error: what was wrong with the last answer.

    Raises:
        ValueError: if nobody is to decide.
    """
    form = form or TextFormat()
    if game.player is None:
        raise ValueError(f"game: expected one at a decision, it is at {game.phase.name}")
    parts = [RULES] if form.rules else []
    parts.append(str(game))
    if told := history_lines(game, form.history):
        parts.append("What has happened last:\n" + "\n".join(f"- {one}" for one in told))
    parts.append(f"You are {SEATS[game.player]}. {_ASKS[game.phase]}")
    if form.legal == "listed":
        parts.append("Legal actions: " + ", ".join(game.legal_labels()))
    if error:
        parts.append(f"Your last answer was refused: {error}")
    return "\n\n".join([*parts, _FORM])


def history_lines(game: Game, most: int) -> list[str]:
    """Return the last events in words, at most so many, the last last."""
    if not most:
        return []
    played = game.trajectory()
    count = len(played.states)
    rows = np.arange(count) >= count - 1 - most
    scenes = list(scenes_of(played.board, played.states, played.events, rows))
    return [one.sentence for one in log_entries(scenes, played.labels()[-most:])]


def parse_answer(answer: object, legal: Sequence[str]) -> ParsedAnswer:
    """Read an answer: the label in its last block of JSON, matched with the legal ones.

    The last block that is an object with a text under "action" counts, whatever stands around it.
    It is matched without regard to case, spaces, underscores and quotes; then as the beginning of
    one legal label alone. The last 20,000 characters are read.

    Args:
        answer: whatever was answered.
        legal: labels of the legal actions.
    """
    if not isinstance(answer, str):
        return ParsedAnswer(None, f"expected text, got {type(answer).__name__}")
    said = _last_action(answer[-_MOST_READ:])
    if said is None:
        return ParsedAnswer(None, 'expected a block of JSON, {"action": "LABEL"}, and found none')
    plain = {_plain(label): label for label in legal}
    key = _plain(said)
    begin = [label for name, label in plain.items() if key and name.startswith(key)]
    if key in plain or len(begin) == 1:
        return ParsedAnswer(plain.get(key, begin[0]), said=said)
    why = "begins several legal labels" if begin else "is no legal action"
    return ParsedAnswer(None, f"{str_short(said, 60)} {why}", said)


class TextError(ValueError):
    """A player by text has not decided: the message says how its last answer was wrong."""


def ask_player(player: TextPlayer, game: Game, exchanges: list[Exchange]) -> str:
    """Return the label that a player by text decides on.

    Args:
        player: who is asked.
        game: at a decision.
        exchanges: to note all tries in.

    Raises:
        TextError: after too many refused answers.
    """
    error, seat = "", game.player or 0
    for _ in range(player.form.retries + 1):
        answer = player.respond(make_prompt(game, player.form, error))
        parsed = parse_answer(answer, game.legal_labels())
        kept = answer[-_KEPT:] if isinstance(answer, str) else ""
        exchanges.append(Exchange(seat, len(game.events()), kept, parsed))
        if parsed.label is not None:
            return parsed.label
        error = parsed.error
    raise TextError(error)


def play_by_text(
    players: Sequence[TextPlayer | str | Agent], seed: int, board: Boards = "shikoku"
) -> Transcript:
    """Play a game; decisions without a choice are made, and a player who fails to decide forfeits.

    Args:
        players: two, by text or agents or their specs.
        seed: of the luck, and of what agents draw.
        board: as for `Game`.
    """
    if not isinstance(players, list | tuple):
        raise TypeError(f"players: expected a list of two, got {repr_short(players)}")
    if len(players) != 2:
        raise ValueError(f"players: expected two, got {len(players)}")
    seated = [one if isinstance(one, TextPlayer) else as_agent(one) for one in players]
    names = tuple(one.spec for one in seated)
    game, exchanges = Game(board, seed), list[Exchange]()
    rng = np.random.default_rng(seed)
    while game.player is not None:
        player, legal = seated[game.player], game.legal_labels()
        if len(legal) == 1:
            game.play(legal[0])
        elif isinstance(player, TextPlayer):
            try:
                game.play(ask_player(player, game, exchanges))
            except TextError as error:
                why = str_short(str(error), MOST_DETAIL - 40)[:MOST_DETAIL]
                lost = Forfeit(game.player, "illegal", why)
                record = replace(
                    game.record(names), winner=1 - game.player, end=FORFEIT, forfeit=lost
                )
                return Transcript(record, exchanges)
        else:
            game.play(player.choose(game, rng))
    return Transcript(game.record(names), exchanges)


class TextAgent(Agent):
    """A player by text as an agent; a class of it in a module plays as `python:MODULE:CLASS`.

    It is asked about positions alone, so its prompts tell no history. What it answers is not kept.

    Args:
        player: by text.

    Raises:
        TextError: by `act`, after too many answers that are no legal action.
        AgentError: by `act`, on a board that `prepare` was not told of.
    """

    def __init__(self, player: TextPlayer) -> None:
        self.player = replace(player, form=replace(player.form, history=0))
        self.spec = player.spec
        self._boards: dict[bytes, Board] = {}

    def prepare(self, boards: Sequence[Board]) -> None:
        """Know the boards that will be played on."""
        self._boards |= {board.record.tobytes(): board for board in boards}

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
        """Return actions, as `Agent.act`."""
        which = range(len(states)) if len(boards) > 1 else [0] * len(states)
        chosen = [
            self._decide(boards[at], states[row], int(legal[row])) for row, at in enumerate(which)
        ]
        return np.array(chosen, np.int64)

    def _decide(self, record: np.void, state: np.void, legal: int) -> int:
        only, *others = actions_of(legal)
        if not others:
            return only
        board = self._boards.get(record.tobytes())
        if board is None:
            raise AgentError(f"agent {self.spec!r}: unknown board: call prepare([board]) first")
        game = Game.from_dict(to_dict(board, state), board=board, seed=0)
        return IDS[ask_player(self.player, game, [])]


def _last_action(text: str) -> str | None:
    """Return what stands under "action" in the last block of JSON that has it."""
    decoder = json.JSONDecoder()
    starts = [match.start() for match in re.finditer(r"\{", text)][-_MOST_BLOCKS:]
    said, end = None, 0
    for start in starts:
        if start < end:  # inside of the block that was found
            continue
        try:
            found, stop = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict) and isinstance(found.get("action"), str):
            said, end = found["action"], stop
    return said


def _plain(label: str) -> str:
    return re.sub(r"[\s_\"'`]", "", label).casefold()
