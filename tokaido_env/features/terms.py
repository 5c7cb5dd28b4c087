"""The terms of the hand-written evaluation and their weights."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Term(NamedTuple):
    """A term of one player; the evaluation weighs how far player_0 is ahead in it.

    Attributes:
        name: its name.
        opening: its weight in the opening, in log-odds of winning for each unit.
        ending: its weight in the ending, likewise.
        meaning: what it counts.
    """

    name: str
    opening: float
    ending: float
    meaning: str


# "Now" counts the dice left in the round, times the share of them that the player will pick, in
# sixths. "Next" counts the next roll, in faces of the die. The weights were made by self-play with
# the program in commit 0f305ed:
#     python benchmarks/tune_heuristic.py --zero --rounds 10 --games 2048 --sims 100 --seed 0
TERMS = (
    Term("faith", 0.0266, 0.2190, "points of faith"),
    Term("commerce", -0.1003, 0.2642, "points of commerce"),
    Term("culture", -0.0259, 0.3159, "points of culture"),
    Term("temple", 0.3394, 0.1462, "temple peg: progress to an end trigger"),
    Term("garden", 0.4775, 0.2234, "garden peg: progress to an end trigger"),
    Term("gold", 1.2334, 0.0164, "slabs: progress to an end trigger"),
    Term("gifted", 0.7083, -0.1631, "paintings given: progress to an end trigger"),
    Term("coins", 0.0549, 0.1667, "coins towards the next slab"),
    Term("wares", 0.0928, 0.0833, "coins that the wares held would bring at the best boutiques"),
    Term("held", -0.1582, -0.2214, "wares held, which take the room of others"),
    Term("easel", 0.1448, 0.0862, "revealed paintings that wait to be given"),
    Term("temple_now", 0.0146, 0.0112, "points of a temple that the pilgrim reaches now"),
    Term("garden_now", 0.0283, 0.0129, "points of a garden that the pilgrim reaches now"),
    Term("seashore_now", 0.1096, -0.0581, "a seashore that the pilgrim reaches now"),
    Term("spring_now", -0.0088, 0.0684, "a hot spring that the pilgrim reaches now"),
    Term("sale_now", -0.0046, 0.0125, "coins of the best sale that the merchant reaches now"),
    Term("draw_now", 0.0129, -0.0378, "wares of the best draw that the merchant reaches now"),
    Term("draw_next", 0.0090, -0.0225, "wares of the best draw that the merchant reaches next"),
    Term(
        "gift_now",
        0.0024,
        0.0305,
        "points of the front painting, if the artist reaches its icon now",
    ),
    Term(
        "gift_next",
        0.0046,
        0.0115,
        "points of the front painting, if the artist reaches its icon next",
    ),
    Term(
        "second_next",
        0.0054,
        0.0078,
        "points of the second painting, if the artist reaches its icon next",
    ),
    Term("paint_now", 0.0125, -0.0225, "paintings that the artist can reveal now"),
    Term("tranquil", 0.7520, 0.2371, "this wave is held"),
    Term("hasty", 1.1453, 0.4500, "this wave is held"),
    Term("crafty", 0.9226, 0.2520, "this wave is held"),
    Term("robust", 0.6460, 0.1028, "this wave is held"),
    Term("proficient", 0.2478, 0.0269, "this wave is held"),
    Term("inspired", 0.5208, 0.0083, "this wave is held"),
    Term("hot_spring", 0.0818, 0.7913, "the hot spring token is held"),
    Term(
        "picks",
        -0.0027,
        0.2649,
        "picks left in the round, or in the next one if it is about to begin: tempo",
    ),
    Term("drawing", 0.0920, -0.0566, "wares about to be drawn"),
    Term("revealing", 0.1006, 0.1050, "paintings about to be revealed"),
)
N_TERMS = len(TERMS)

LOG_ODDS = np.array([(each.opening, each.ending) for each in TERMS], np.float32).T.copy()
"""The shipped weights, float32 (2, N_TERMS): opening, ending."""
LOG_ODDS.flags.writeable = False

WEIGHT_UNIT = 1 / 4096
"""Kernels read weights as whole multiples of this log-odds, at most 7.99."""


class Style(NamedTuple):
    """Changes of the shipped weights.

    Attributes:
        factors: of the weights of some terms, by name.
        factor: of all other weights; below 1 where others grow, or expected results saturate.
        pairs: new weights, opening and ending, of some terms by name.
    """

    factors: dict[str, float]
    factor: float
    pairs: dict[str, tuple[float, float]]


STYLES = {
    "heuristic": Style({}, 1.0, {}),
    "rusher": Style(
        dict(gift_now=2.4, gift_next=2.4, second_next=2.4, easel=1.5, paint_now=1.8)
        | dict(revealing=1.2, proficient=1.8, inspired=1.2),
        *(0.6, {"gifted": (0.72, 0.72)}),
    ),
    "hoarder": Style(
        dict(coins=0.91, wares=0.91, crafty=1.4, robust=1.4, draw_now=1.4, draw_next=1.4)
        | dict(temple=0.35, garden=0.35, gifted=0.28),
        *(0.7, {"gold": (1.4, 1.05)}),
    ),
}
"""Agents by name that play by these weights; tuned by hand to differ in style."""


@functools.cache
def weights_of(style: str) -> npt.NDArray[np.int16]:
    """Return the weights of one of `STYLES`, int16 (2, N_TERMS): opening, ending.

    They are in `WEIGHT_UNIT`, read-only.
    """
    factors, factor, pairs = STYLES[style]
    weights = LOG_ODDS * np.array([factors.get(t.name, factor) for t in TERMS], np.float32)
    for k, term in enumerate(TERMS):
        if term.name in pairs:
            weights[:, k] = pairs[term.name]
    whole = np.asarray(np.rint(weights / WEIGHT_UNIT), np.int16)
    whole.flags.writeable = False
    return whole


WEIGHTS = weights_of("heuristic")
"""The shipped weights for kernels."""
