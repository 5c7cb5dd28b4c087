"""An agent's advice about a position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tokaido_env.agent import Agent, AgentError
from tokaido_env.core.actions import LABELS
from tokaido_env.core.arguments import IllegalMove, str_short
from tokaido_env.core.rng import arena_seed
from tokaido_env.core.state import copy_rows
from tokaido_env.game import Game
from tokaido_env.study.review import CHANCE_SAMPLES, interval_half_width, values_after_actions


class MoveSuggestion(NamedTuple):
    """An action that an agent suggests.

    Attributes:
        label: of the action.
        preference: the agent's policy probability for the action, 0 to 1.
        win_probability: of the player to move after the action, ties counted half, estimated over
            chance samples that all suggestions share; None if the agent gives no values.
        error: half the width of the 95 % interval; None if the agent gives no values.
    """

    label: str
    preference: float
    win_probability: float | None
    error: float | None

    def describe(self) -> str:
        """Return the suggestion as a line of text, with its figures in percent."""
        wins = ""
        if self.win_probability is not None and self.error is not None:
            wins = f"wins {100 * self.win_probability:.1f} % ± {100 * self.error:.1f} %, "
        return f"{self.label}: {wins}preference {100 * self.preference:.0f} %"


def advice_on(game: Game, judge: Agent, keys: npt.NDArray[np.uint64]) -> list[MoveSuggestion]:
    """Return an agent's three best actions, best first; `keys` is its random bits, uint64 (1,)."""
    judge.prepare([game.board])
    legal = np.array([game.legal_mask], np.uint64)
    preferences, values = judge.judge(game.boards, game.state, legal, keys)
    best = sorted(game.legal_actions(), key=lambda action: -preferences[0, action])[:3]
    means: list[float | None] = [None] * len(best)
    errors = means
    if values is not None:
        samples = _sampled_wins(judge, game, best, int(keys[0]))
        means, errors = samples.mean(axis=1).tolist(), interval_half_width(samples).tolist()
    return [
        MoveSuggestion(LABELS[action], float(preferences[0, action]), mean, error)
        for action, mean, error in zip(best, means, errors, strict=True)
    ]


def _sampled_wins(
    judge: Agent, game: Game, actions: Sequence[int], key: int
) -> npt.NDArray[np.float64]:
    """Return the mover's win probabilities after actions, (actions, chance samples).

    All actions share the samples of chance, which follow from `key`.
    """
    seeds = [arena_seed(key >> 2, draw) for draw in range(CHANCE_SAMPLES)]
    states = copy_rows(game.state, np.zeros(len(actions), np.int64))
    shared = np.tile(np.array(seeds, np.int64), (len(actions), 1))
    chosen = np.array(actions, np.int64)
    values = values_after_actions(judge, game.board, states, chosen, shared)
    wins: npt.NDArray[np.float64] = (1 + (1 - 2 * (game.player or 0)) * values) / 2
    return wins


def failure_text(agent: str, error: BaseException) -> str:
    """Return in one line, with the name of the agent, what went wrong in its decision."""
    text = str_short(str(error), 200)
    is_named = isinstance(error, AgentError | IllegalMove)
    return text if is_named else f"{agent}: {type(error).__name__}: {text}".removesuffix(": ")
