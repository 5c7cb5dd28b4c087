"""Players who do nothing sensible, or learn nothing, to test a measure: see what it gives them.

tokaido evaluate python:agents.simple_players:Decliner heuristic --games 1000
"""

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tokaido_env import ACTIONS
from tokaido_env.features.terms import N_TERMS
from tokaido_env.observers import masks, observe

_IDS = list(range(len(ACTIONS)))


class LowestId:
    """Plays the first legal action of a fixed order of ids: here the lowest id."""

    order: ClassVar[list[int]] = _IDS

    def act(self, boards: Any, states: Any, legal: npt.NDArray[np.uint64], keys: Any) -> Any:
        """Return actions, int64 (n,); `legal`, uint64 (n,), has the legal actions as bits."""
        order = np.array([*self.order, *(each for each in _IDS if each not in self.order)])
        masks = legal[:, None] >> order.astype(np.uint64) & np.uint64(1)
        return order[masks.argmax(axis=1)]


class HighestId(LowestId):
    """Plays the highest legal id."""

    order = _IDS[::-1]


class Decliner(LowestId):
    """Declines every effect, and else plays the lowest id: it never triggers the end."""

    order: ClassVar[list[int]] = [ACTIONS.index("pass")]


class TermSum:
    """Plays the action with the highest sum of the terms in the observation "afterstates"."""

    def act(self, boards: Any, states: Any, legal: npt.NDArray[np.uint64], keys: Any) -> Any:
        """Return actions, int64 (n,), as `LowestId.act`."""
        observation: Any = observe(boards, states, observation="afterstates")
        sums = observation["actions"][:, :, :N_TERMS].sum(axis=2)
        return np.where(masks(legal), sums, -np.inf).argmax(axis=1)
