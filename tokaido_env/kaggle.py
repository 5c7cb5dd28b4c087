"""Prompts and answers for language model harnesses like Kaggle's Game Arena.

    from tokaido_env.kaggle import generate_prompt, get_legal_moves, parse_response

A harness calls three functions: for the legal moves of an observation, for the prompt, and for the
meaning of the answer. The harness itself calls the model and asks again. Observations are those of
Kaggle's environments for OpenSpiel games: the "observationString" of our OpenSpiel game is the
position as JSON, which `Game.from_dict` reads. Neither Kaggle's package nor OpenSpiel is needed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from tokaido_env.boards.board_pool import Boards
from tokaido_env.core.arguments import repr_short
from tokaido_env.game import Game
from tokaido_env.position import PositionError
from tokaido_env.text import TextFormat, make_prompt, parse_answer

_MAX_THOUGHTS = 20_000  # characters of an answer in `ParseResult.thoughts`


class ParseResult(NamedTuple):
    """The meaning of an answer, with the field names of Kaggle's harness.

    Attributes:
        legal_action: label of the legal action; None if the answer has none.
        raw_action: the action in the answer; None if it is unreadable.
        submission: always None, because a legal action has a label.
        thoughts: the end of the answer.
    """

    legal_action: str | None
    raw_action: str | None
    submission: None = None
    thoughts: str | None = None


class TextHarness:
    """The three functions of a harness, with a prompt format and a board.

    Args:
        form: contents of prompts. `history` counts the player's own moves, since an observation
            has no others. The harness counts the tries: give the format its number less one as
            `retries`, which prompts name; None: one retry, the harness's default.
        board: as for `Game`; required for a board that is neither built in nor of the family.
    """

    def __init__(self, form: TextFormat | None = None, board: Boards | None = None) -> None:
        self.form = form or TextFormat(retries=1)
        self._board = board

    def get_legal_moves(self, observation: Mapping[str, Any]) -> dict[int, str]:
        """Return the legal actions as a dict from id to label; empty if the player cannot act.

        Raises:
            PositionError: for an observation without a valid position.
        """
        if (
            observation.get("observationString") is None
        ):  # Kaggle's observation before a game starts
            return {}
        game = self._game(observation)
        if game.player is None or observation.get("playerId", game.player) != game.player:
            return {}
        return dict(zip(game.legal_actions(), game.legal_labels(), strict=True))

    def generate_prompt(
        self,
        observation: Mapping[str, Any],
        move_history: Sequence[str] = (),
        previous_response: str | None = None,
        previous_action: str | None = None,
    ) -> str:
        """Return the prompt of a decision.

        Args:
            observation: observation of the player to decide.
            move_history: labels of the player's moves so far, oldest first.
            previous_response: the last answer, if it was refused.
            previous_action: ignored; the last answer is parsed again.

        Raises:
            PositionError: for an observation without a valid position.
            ValueError: if nobody is to decide.
        """
        form = replace(self.form, history=0)
        prompt = make_prompt(self._game(observation), form, previous_response)
        last = list(move_history)[-self.form.history :] if self.form.history else []
        return f"Your last moves: {', '.join(last)}\n\n{prompt}" if last else prompt

    make_prompt = generate_prompt  # its name in the harness's protocol

    def parse_response(
        self,
        response: object,
        legal_action_strings: Sequence[str] | None,
        *,
        observation: Mapping[str, Any] | None = None,
    ) -> ParseResult:
        """Parse an answer; see `text.parse_answer`.

        Args:
            response: the model's answer.
            legal_action_strings: the legal labels; None takes them from the observation.
            observation: observation of the player to decide; required without labels.
        """
        if legal_action_strings is None:
            legal_action_strings = list(self.get_legal_moves(observation or {}).values())
        parsed = parse_answer(response, legal_action_strings)
        thoughts = response[-_MAX_THOUGHTS:] if isinstance(response, str) else None
        return ParseResult(parsed.label, parsed.raw_action, thoughts=thoughts)

    def _game(self, observation: Mapping[str, Any]) -> Game:
        text = observation.get("observationString")
        try:
            position = json.loads(text)  # type: ignore[arg-type]  # a wrong type is caught below
        except (TypeError, ValueError, RecursionError):
            position = None
        if not isinstance(position, dict):
            raise PositionError(
                "observation: observationString: expected a position as JSON, "
                f"got {repr_short(text)}"
            )
        return Game.from_dict(position, board=self._board, seed=0)


_harness = TextHarness()
get_legal_moves = _harness.get_legal_moves
generate_prompt = _harness.generate_prompt
parse_response = _harness.parse_response
