"""Play a game of two language models in Kaggle's harness, as in its Game Arena.

    pip install kaggle_environments==1.33.2 '.[openspiel]'
    python docs/recipes/kaggle_harness.py openai/NAME gemini/NAME

A model is named as in LiteLLM, which reads its key from the environment. The harness calls the
model and asks again after a refused answer; the three functions of `TextHarness` are all that it
needs of a game. Its observations are those of Kaggle's environments for OpenSpiel games.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from tokaido_env import Game
from tokaido_env.text import TextFormat, make_prompt, parse_answer

TRIES = 3  # of a decision


class ParseResult(NamedTuple):
    """The meaning of an answer, with the field names of the harness."""

    legal_action: str | None
    raw_action: str | None
    submission: None = None
    thoughts: str | None = None


class TextHarness:
    """The three functions of a harness.

    Args:
        form: contents of prompts. `history` counts the player's own moves, since an observation
            has no others; prompts state `retries`, so give it the harness's tries less one.
    """

    def __init__(self, form: TextFormat) -> None:
        self.form = form

    def get_legal_moves(self, observation: Mapping[str, Any]) -> dict[int, str]:
        """Return the legal actions as a dict from id to label; empty if the player cannot act."""
        if observation.get("observationString") is None:  # before the game starts
            return {}
        game = game_of(observation)
        if game.player is None or observation.get("playerId", game.player) != game.player:
            return {}
        return dict(zip(game.legal_actions(), game.legal_labels(), strict=True))

    def make_prompt(
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
        """
        form = replace(self.form, history=0)
        prompt = make_prompt(game_of(observation), form, previous_response)
        last = list(move_history)[-self.form.history :] if self.form.history else []
        return f"Your last moves: {', '.join(last)}\n\n{prompt}" if last else prompt

    def parse_response(
        self, response: str, legal_action_strings: Sequence[str], **observation: object
    ) -> ParseResult:
        """Parse an answer; see `text.parse_answer`."""
        parsed = parse_answer(response, legal_action_strings)
        return ParseResult(parsed.label, parsed.raw_action, thoughts=response[-20_000:])


def game_of(observation: Mapping[str, Any]) -> Game:
    """Return the game at the position of an observation."""
    return Game.from_dict(json.loads(observation["observationString"]), seed=0)


def play(models: Sequence[str], form: TextFormat, seed: int) -> Any:
    """Play a game; return Kaggle's environment with its steps."""
    import kaggle_environments
    from kaggle_environments.core_harness import create_agent_fn
    from kaggle_environments.envs.open_spiel_env.open_spiel_env import _build_env

    import tokaido_env.openspiel  # noqa: F401  registers the game

    made = _build_env("tokaido_duo")
    kaggle_environments.register(made["specification"]["name"], made)
    env = kaggle_environments.make(made["specification"]["name"], configuration={"seed": seed})
    harness, tries = TextHarness(form), form.retries + 1
    env.run([create_agent_fn(harness, max_retries=tries, model_override=(m, {})) for m in models])
    return env


def main() -> None:
    """Play a game and print the rewards."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs=2, help="names of LiteLLM")
    parser.add_argument("--legal", choices=("unlisted", "listed"), default="unlisted")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    env = play(options.models, TextFormat(options.legal, retries=TRIES - 1), options.seed)
    for model, seat in zip(options.models, env.steps[-1], strict=True):
        print(f"{model}: reward {seat.reward}, {seat.status.lower()}, {len(env.steps)} steps")


if __name__ == "__main__":
    main()
