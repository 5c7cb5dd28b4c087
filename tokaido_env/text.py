"""Games by prompts and answers, for language models.

    from tokaido_env.arena.tournament import play_match
    from tokaido_env.text import TextAgent

    # respond: str -> str
    print(play_match(TextAgent(respond), "greedy", games=2, seed=7).score)

A prompt contains the rules, the position, the last events and the question. An answer ends in a
JSON block, `{"action": "merchant:C3"}`. This module calls no model: the caller passes a function
that answers prompts. An answer is never executed, and an ambiguous one is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tokaido_env.core.actions import LABELS
from tokaido_env.core.arguments import as_integer, check_choice, escape_text, str_short
from tokaido_env.core.state import Phase
from tokaido_env.game import Game
from tokaido_env.render.narration import log_entries
from tokaido_env.render.scene import SEATS, scenes_of
from tokaido_env.text_rules import rules_text

Respond = Callable[[str], str]
"""A function that answers a prompt."""

_QUESTIONS = {
    Phase.MOVE: "Take a die that is left and move its character.",
    Phase.EFFECT: "Use this place, or pass.",
    Phase.DISCARD: "You hold too many wares: return one to the bag.",
    Phase.REPEAT: "You hold the hot spring token: use the same die again, or pass.",
}
_MOVES = (
    "pilgrim; with its wave tile also pilgrim:wave",
    "merchant:TOWN, such as merchant:M2",
    "artist:AREA, such as artist:A3",
)
_STAYS = ("", "; merchant:stay if it has no full move", "; artist:stay if it has no full move")
_EFFECTS = (
    "visit; at a seashore take:CHARACTER, such as take:artist",
    "draw; sell:NUMBER, such as sell:2; with its wave tile also draw:wave, sell:2:wave",
    "paint; gift; with its wave tile also paint:wave",
)
_BLOCK = '{"action": "LABEL"}'  # not legal: a copy of the prompt plays nothing
_MAX_ANSWER = 20_000  # characters parsed, from the end of an answer
_MAX_SHOWN = 300  # characters of an unreadable answer in the next prompt
_QUOTE = "[\"'`\u2018\u2019\u201c\u201d\u201e\u201f]"  # typographic ones too
_NO_QUOTE = _QUOTE.replace("[", "[^\n{}")
# The key "action" within a block, and the text under it, if it is one.
_ACTION = re.compile(
    rf"(?i)[{{,]\s*{_QUOTE}?action{_QUOTE}?\s*:"
    rf"(?:\s*{_QUOTE}({_NO_QUOTE}*){_QUOTE}(?=\s*(?:[,}}`]|\Z)))?"
)
# Reasoning in answers of public models: <think>, <seed:think>, [THINK], <|END_THINKING|>.
_REASONING = r"(?:\w+[:_])?(?:think(?:ing)?|thoughts?|reason(?:ing)?|reflection)\b"
_REASONING_START = re.compile(rf"(?i)[<\[◁](?:\|(?:start|begin)_(?:of_)?)?{_REASONING}")
_REASONING_END = re.compile(rf"(?i)[<\[◁](?:/|\|end_(?:of_)?){_REASONING}[|\s]*[>\]▷]")


@dataclass(frozen=True)
class TextFormat:
    """Contents of prompts and number of retries.

    Attributes:
        legal: "unlisted": prompts have the forms of labels only; "listed": the labels of all legal
            actions too.
        rules: start with the rules and the tables of the board.
        history: number of last events in the prompt; in matches, which pass positions, none.
        retries: further tries after an answer without a legal action, before a forfeit.
    """

    legal: str = "unlisted"
    rules: bool = True
    history: int = 12
    retries: int = 2

    def __post_init__(self) -> None:
        check_choice("legal", self.legal, ("unlisted", "listed"))
        for name in ("history", "retries"):
            if as_integer(getattr(self, name)) is None or getattr(self, name) < 0:
                raise ValueError(f"{name}: expected an integer from 0, got {getattr(self, name)!r}")


class ParsedAnswer(NamedTuple):
    """The meaning of an answer.

    Attributes:
        label: the legal label in it; None without one.
        error: why there is none; "" otherwise.
        raw_action: the action that it names, legal or not; None if it names none.
    """

    label: str | None
    error: str = ""
    raw_action: str | None = None

    @property
    def kind(self) -> str:
        """One of "legal", "illegal" (it names another action) and "unreadable" (it names none)."""
        if self.label is not None:
            return "legal"
        return "unreadable" if self.raw_action is None else "illegal"


def make_prompt(game: Game, form: TextFormat | None = None, refused: str | None = None) -> str:
    """Return the prompt for the player to decide.

    Args:
        game: a game at a decision.
        form: contents of the prompt.
        refused: the last answer, if it had no legal action.

    Raises:
        ValueError: if nobody is to decide.
    """
    form = form or TextFormat()
    if game.player is None:
        raise ValueError(f"game: expected a game at a decision, got one at {game.phase.name}")
    parts = [rules_text(game.board, form.retries)] if form.rules else []
    parts.append(str(game))
    if lines := history_lines(game, form.history):
        parts.append("Last events:\n" + "\n".join(f"- {line}" for line in lines))
    parts.append(f"You are {SEATS[game.player]}. {_QUESTIONS[game.phase]}")
    parts.append("Labels of actions:\n" + "\n".join(f"- {line}" for line in _label_forms(game)))
    if form.legal == "listed":
        parts.append("Legal actions: " + ", ".join(game.legal_labels()))
    if refused is not None:
        parts.append(_retry(refused, game.legal_labels()))
    parts.append(f"You may reason first. End with one block of JSON, {_BLOCK}, and write no other.")
    return "\n\n".join(parts)


def _label_forms(game: Game) -> list[str]:
    """Return the forms of the labels of a phase: of the dice left, or of the selected die."""
    if game.phase == Phase.MOVE:
        left = int(game.states["dice_left"][0])
        return [f"{_MOVES[i]}{_STAYS[i]}" for i in range(len(_MOVES)) if left >> i & 1]
    if game.phase == Phase.DISCARD:
        return ["discard:WARE, such as discard:fan"]
    forms = _EFFECTS if game.phase == Phase.EFFECT else _MOVES
    return [forms[int(game.states["die"][0])], "pass"]


def _retry(refused: str, legal: Sequence[str]) -> str:
    """Return the part of a prompt about the last answer, which was refused."""
    parsed = parse_answer(refused, legal)
    if parsed.kind == "illegal":
        return f"Your last answer was refused: {parsed.error} here. Choose another action."
    return (
        f"Your last answer was refused: {parsed.error}. It ended in:\n"
        f"{escape_text(refused[-_MAX_SHOWN:], 10 * _MAX_SHOWN) or '(nothing)'}\n"
        f"The last part of an answer must be a block like {_BLOCK}"
    )


def history_lines(game: Game, most: int) -> list[str]:
    """Return a sentence about each of the last `most` events of a game, oldest first."""
    if not most:
        return []
    played = game.trajectory()
    count = len(played.states)
    rows = np.arange(count) >= count - 1 - most
    scenes = list(scenes_of(played.board, played.states, played.events, rows))
    return [one.sentence for one in log_entries(scenes, played.labels()[-most:])]


def parse_answer(answer: object, legal: Sequence[str]) -> ParsedAnswer:
    """Return the legal action of an answer: the last text under "action" in a JSON block.

    Text up to the end of reasoning, such as `</think>`, does not count, nor what precedes the last
    20,000 characters. Single or typographic quotes, a key without quotes, a comma too many and a
    missing last brace do not matter. A label matches regardless of case, spaces and underscores,
    or as the beginning of exactly one legal label, with its first word at least.

    Unreadable are reasoning without an end, and an answer with blocks of different actions.

    Args:
        answer: the answer, of any type.
        legal: labels of the legal actions.
    """
    if not isinstance(answer, str):
        return ParsedAnswer(None, f"expected text, got {type(answer).__name__}")
    whole = _REASONING_END.split(answer)[-1]
    actions = _ACTION.findall(whole[-_MAX_ANSWER:])
    error = ""
    if _REASONING_START.search(whole):
        error = "reasoning without an end"
    elif not actions:
        error = f"none in its last {_MAX_ANSWER:,} characters"
    elif not actions[-1]:
        error = "an action that is not one text"
    elif other := _other_meaning(actions, legal):
        error = f"several actions, {other} too"
    if error:
        return ParsedAnswer(None, f"expected a JSON block, {_BLOCK}, got {error}")
    matches = _matches(actions[-1], legal)
    if len(matches) == 1:
        return ParsedAnswer(matches[0], raw_action=actions[-1])
    reason = "begins several legal labels" if matches else "is no legal action"
    return ParsedAnswer(None, f"{str_short(actions[-1], 60)} {reason}", actions[-1])


class TextError(ValueError):
    """No answer had a legal action; the message is the error of the last one."""


class TextAgent:
    """An agent that asks a function for its actions; a subclass plays as `python:MODULE:CLASS`.

    In matches it gets positions only, so its prompts have no events.

    Args:
        respond: function from a prompt to an answer.
        form: contents of its prompts.
        name: of the player.
    """

    batched = True  # so that matches play it in this process

    def __init__(
        self, respond: Respond, form: TextFormat | None = None, name: str = "text"
    ) -> None:
        self.respond, self.form = respond, form or TextFormat()
        # `legal` changes the difficulty, so the name in records and tables has it.
        self.spec = f"{name}:legal={self.form.legal}"

    def choose(self, game: Game, rng: np.random.Generator) -> str:
        """Return the label of an action; forced moves need no prompt.

        Args:
            game: a game at a decision.
            rng: not used.

        Raises:
            TextError: if no answer has a legal action, after the last retry.
        """
        labels = game.legal_labels()
        if len(labels) == 1:
            return labels[0]
        refused, error = None, ""
        for _ in range(self.form.retries + 1):
            refused = self.respond(make_prompt(game, self.form, refused))
            label, error, _ = parse_answer(refused, labels)
            if label is not None:
                return label
        raise TextError(error)


def _other_meaning(actions: list[str], legal: Sequence[str]) -> str:
    """Return an action of the game that an answer names besides its last one; "" without any."""
    meant = _matches(actions[-1], legal)
    for action in filter(None, actions):
        if _matches(action, LABELS) and _matches(action, legal) != meant:
            return action
    return ""


def _matches(action: str, legal: Sequence[str]) -> list[str]:
    """Return the legal labels that an action may mean."""
    key = _normalise(action)
    found = [one for one in legal if _normalise(one).startswith(key)]
    found = [one for one in found if key.startswith(one.partition(":")[0])]
    return [one for one in found if _normalise(one) == key] or found


def _normalise(label: str) -> str:
    return re.sub(rf"\s|_|{_QUOTE}", "", label).casefold()
