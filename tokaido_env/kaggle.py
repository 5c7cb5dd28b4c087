"""Tokaido Duo for harnesses of language models in the manner of Kaggle's game arena.

    from tokaido_env.kaggle import generate_prompt, get_legal_moves, parse_response

Such a harness asks three functions: which moves are legal in an observation, what to ask a model,
and what its answer means; calling the model and asking again are the harness's own. An observation
is that of Kaggle's environments of OpenSpiel games: this needs neither of both, for the
"observationString" of our OpenSpiel game is the position, which `Game.from_dict` reads.
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

_MOST_THOUGHT = 20_000  # characters of an answer that are handed on


class ParseResult(NamedTuple):
    """What an answer means, with the names that Kaggle's harness reads.

    Attributes:
        legal_action: the legal label; None if there is none.
        raw_action: what the answer said; None if no block of JSON said anything.
        submission: always None: the actions are listed.
        thoughts: the end of the answer.
    """

    legal_action: str | None
    raw_action: str | None
    submission: None = None
    thoughts: str | None = None


class TextHarness:
    """The three functions, with a format and a board of one's own.

    Args:
        form: what a prompt holds. Who is asked knows the position alone and its own moves, of
            which the last `history` are told; tries are counted by the harness, not by `retries`.
        board: as for `Game`; needed for a board that is neither built in nor of the family.
    """

    def __init__(self, form: TextFormat | None = None, board: Boards | None = None) -> None:
        self.form = form or TextFormat()
        self._board = board

    def get_legal_moves(self, observation: Mapping[str, Any]) -> dict[int, str]:
        """Return the legal actions, as id to label; none where nobody or the other decides.

        Raises:
            PositionError: if the observation holds something else than a position.
        """
        if observation.get("observationString") is None:  # Kaggle's, before a game has begun
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
        """Return what to ask.

        Args:
            observation: of who decides.
            move_history: labels of the moves it has made, the last last.
            previous_response: an answer that was refused.
            previous_action: ignored: the answer is read again.

        Raises:
            PositionError: if the observation holds no position.
            ValueError: if nobody is to decide.
        """
        game = self._game(observation)
        error = ""
        if previous_response is not None:
            error = parse_answer(previous_response, game.legal_labels()).error
        asked = make_prompt(game, replace(self.form, history=0), error)
        last = list(move_history)[-self.form.history :] if self.form.history else []
        return f"Your last moves: {', '.join(last)}\n\n{asked}" if last else asked

    make_prompt = generate_prompt  # as the harness's own protocol calls it

    def parse_response(
        self,
        response: object,
        legal_action_strings: Sequence[str] | None,
        *,
        observation: Mapping[str, Any] | None = None,
    ) -> ParseResult:
        """Read an answer, as `text.parse_answer` does.

        Args:
            response: of the model.
            legal_action_strings: the legal labels; None takes them from the observation.
            observation: of who decides; needed without labels.
        """
        if legal_action_strings is None:
            legal_action_strings = list(self.get_legal_moves(observation or {}).values())
        parsed = parse_answer(response, legal_action_strings)
        thoughts = response[-_MOST_THOUGHT:] if isinstance(response, str) else None
        return ParseResult(parsed.label, parsed.said, thoughts=thoughts)

    def _game(self, observation: Mapping[str, Any]) -> Game:
        text = observation.get("observationString")
        try:
            position = json.loads(text)  # type: ignore[arg-type]  # what is no text is refused
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
