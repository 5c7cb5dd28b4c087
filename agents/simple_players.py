"""Players who do nothing sensible, to test a measure: no good measure gives them points.

tokaido evaluate python:agents.simple_players:Decliner heuristic --games 1000
"""

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tokaido_env import ACTIONS

_IDS = list(range(len(ACTIONS)))
_HIGHEST_FIRST = _IDS[::-1]
_PASS = ACTIONS.index("pass")
_TAKES = [action for action in _IDS if ACTIONS[action].startswith("take")]
_DRAWS = [action for action in _IDS if ACTIONS[action].startswith(("draw", "paint"))]
_ARTIST = [action for action in _IDS if ACTIONS[action].startswith("artist")]


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

    order = _HIGHEST_FIRST


class Decliner(LowestId):
    """Declines every effect, and else plays the lowest id: it never triggers the end."""

    order: ClassVar[list[int]] = [_PASS]


class Traveller(LowestId):
    """Declines every effect, and else plays the highest id, so that all characters move."""

    order: ClassVar[list[int]] = [_PASS, *_HIGHEST_FIRST]


class Collector(LowestId):
    """Takes every wave tile, and declines all other effects."""

    order: ClassVar[list[int]] = [*_TAKES, _PASS]


class Gatherer(LowestId):
    """Draws wares and reveals paintings, and never sells or gives any."""

    order: ClassVar[list[int]] = [*_DRAWS, _PASS, *_HIGHEST_FIRST]


class Artist(LowestId):
    """Takes the artist's die first, and declines every effect."""

    order: ClassVar[list[int]] = [*_ARTIST, _PASS]
