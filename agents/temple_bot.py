"""A hand-written agent: it moves its pilgrim to stations with something to visit.

tokaido evaluate python:agents.temple_bot:TempleBot random --games 1000
"""

import numpy as np

from tokaido_env import Game


class TempleBot:
    """Visits if it can, else moves the pilgrim to a station to visit, else plays at random."""

    def choose(self, game: Game, rng: np.random.Generator) -> str:
        """Return the label of a legal action; the game is a copy, and `rng` is the agent's own."""
        labels = game.legal_labels()
        if "visit" in labels:
            return "visit"
        moves = [label for label in labels if label.startswith("pilgrim")]
        good = [label for label in moves if _can_visit_after(game, label)]
        return str(rng.choice(good or labels))


def _can_visit_after(game: Game, label: str) -> bool:
    after = game.copy()
    after.play(label)
    return "visit" in after.legal_labels()
