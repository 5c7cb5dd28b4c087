"""An agent in a few lines: its pilgrim goes where it may visit a temple or a garden.

In the root of the checkout:

    tokaido evaluate python:agents.temple_bot:TempleBot random --games 1000
"""

import numpy as np

from tokaido_env import Game


class TempleBot:
    """Visits whenever it may; moves the pilgrim where it may visit; else plays at random."""

    def choose(self, game: Game, rng: np.random.Generator) -> str:
        """Return the label of a legal action.

        Args:
            game: a copy of the game, to try actions with; its luck is not that of the match.
            rng: the agent's only luck, so that the same seed gives the same game.
        """
        labels = game.legal_labels()
        if "visit" in labels:
            return "visit"
        good = [label for label in labels if _visits(game, label)]
        return str(rng.choice(good or labels))


def _visits(game: Game, label: str) -> bool:
    """Return whether the pilgrim may visit after a move."""
    after = game.copy()
    if label.startswith("pilgrim"):
        after.play(label)
    return label.startswith("pilgrim") and "visit" in after.legal_labels()
