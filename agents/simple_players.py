"""Players who do nothing sensible, to test a measure: no good measure gives them points.

tokaido evaluate python:agents.simple_players:Decliner heuristic --games 1000
"""

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tokaido_env import ACTIONS

Ids = npt.NDArray[np.int64]

_BITS = np.arange(len(ACTIONS), dtype=np.uint64)
_IDS = list(range(len(ACTIONS)))
_PASS = ACTIONS.index("pass")
_TAKE = [ACTIONS.index(f"take:{character}") for character in ("pilgrim", "merchant", "artist")]
_DRAW = [ACTIONS.index(label) for label in ("draw", "paint", "draw:wave", "paint:wave")]


class LowestId:
    """Plays the first legal action of a fixed order of ids: here the lowest id."""

    order: ClassVar[list[int]] = _IDS

    def act(self, boards: Any, states: Any, legal: npt.NDArray[np.uint64], keys: Any) -> Ids:
        """Return actions, int64 (n,).

        Args:
            boards: not read.
            states: not read.
            legal: uint64 (n,), the legal actions as bits.
            keys: not read.
        """
        order = np.array([*self.order, *(each for each in _IDS if each not in self.order)])
        masks = legal[:, None] >> _BITS[order] & np.uint64(1)
        chosen: Ids = order[masks.argmax(axis=1)]
        return chosen


class HighestId(LowestId):
    """Plays the highest legal id."""

    order = _IDS[::-1]


class Decliner(LowestId):
    """Declines every effect, and else plays the lowest id: it never ends a game by a trigger."""

    order: ClassVar[list[int]] = [_PASS]


class Traveller(LowestId):
    """Declines every effect, and else plays the highest id, so that all characters move."""

    order: ClassVar[list[int]] = [_PASS, *_IDS[::-1]]


class Collector(LowestId):
    """Takes every wave tile, and declines all other effects."""

    order: ClassVar[list[int]] = [*_TAKE, _PASS]


class Gatherer(LowestId):
    """Draws wares and reveals paintings, and never sells or gives any."""

    order: ClassVar[list[int]] = [*_DRAW, _PASS, *_IDS[::-1]]


class Wanderer:
    """Declines every effect, and else plays at random."""

    def act(
        self, boards: Any, states: Any, legal: npt.NDArray[np.uint64], keys: npt.NDArray[np.uint64]
    ) -> Ids:
        """Return actions, as `LowestId.act`; `keys`, uint64 (n,), are the random numbers."""
        masks = (legal[:, None] >> _BITS & np.uint64(1)).astype(np.int64)
        masks[masks[:, _PASS] > 0] = _BITS == _PASS
        chosen = (keys >> np.uint64(11)).astype(np.int64) % masks.sum(axis=1)
        played: Ids = np.argmax(masks.cumsum(axis=1) > chosen[:, None], axis=1)
        return played
