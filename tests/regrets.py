"""Small regret sets for tests: positions of played games with simulated rollout results."""

from typing import Any

import numpy as np
import numpy.typing as npt
from networks import decisions

from tokaido_env import Board
from tokaido_env.core.bitmask import actions_of
from tokaido_env.core.state import Phase
from tokaido_env.study.regret_set import BLOCK, NOT_ROLLED, PHASES, RegretSet

BOARDS = ("shikoku", "family:2000003")


def small_set(blocks: int = 4, most: int = 8) -> RegretSet:
    """Positions on two boards in all phases, with zero sums."""
    records, states, legal = decisions(BOARDS, games=12, moves=60, most=2 * most)
    several = np.flatnonzero(legal & (legal - np.uint64(1)))
    boards = [Board.load(name) for name in BOARDS]
    known = [board.record[0].tobytes() for board in boards]
    which = np.array([known.index(records[i].tobytes()) for i in several])
    strata = np.array(
        [
            len(PHASES) * board + PHASES.index(Phase(states["phase"][i]).name)
            for board, i in zip(which, several, strict=True)
        ]
    )
    rows = np.concatenate([np.flatnonzero(strata == k)[:most] for k in range(2 * len(PHASES))])
    rows = rows[np.bincount(strata[rows], minlength=2 * len(PHASES))[strata[rows]] > 1]
    counts = np.bincount(strata[rows], minlength=2 * len(PHASES))
    actions = [actions_of(int(legal[several[row]])) for row in rows]
    starts = np.cumsum([0, *map(len, actions)]).astype(np.int32)
    card: dict[str, Any] = {
        "name": "small",
        "seed": 5,
        "boards": [[board.name, board.hash] for board in boards],
        "strata": [
            {"boards": BOARDS[k // 4], "phase": PHASES[k % 4], "rounds": "1–", "share": share}
            for k, share in enumerate((counts / counts.sum()).tolist())
        ],
        "policies": ["champion", "heuristic"],
        "hash": "",
    }
    return RegretSet(
        card,
        states[several[rows]],
        which[rows].astype(np.int16),
        strata[rows].astype(np.int16),
        starts,
        np.concatenate(actions).astype(np.int8),
        np.zeros((int(starts[-1]), 2, blocks), np.int8),
    )


def truth_of(
    regret_set: RegretSet, rng: np.random.Generator, spread: float
) -> npt.NDArray[np.float64]:
    """Random true values of the actions, float64 (m,), with this standard deviation."""
    return np.asarray(np.clip(rng.normal(0.0, spread, len(regret_set.actions)), -0.9, 0.9))


def drawn_sums(
    regret_set: RegretSet, truth: npt.NDArray[np.float64], rng: np.random.Generator, few: int = 0
) -> npt.NDArray[np.int8]:
    """Random sums of rollouts with these true values; each game is won or lost.

    Args:
        regret_set: the set.
        truth: (m,).
        rng: of the results.
        few: if not 0, the number of blocks of the third and later actions of each position.
    """
    odds = (1 + truth[:, None, None]) / 2
    sums = (2 * rng.binomial(BLOCK, odds, regret_set.sums.shape) - BLOCK).astype(np.int8)
    if few:
        others = np.arange(len(truth)) - regret_set.starts[regret_set.action_positions] >= 2
        sums[others, :, few:] = NOT_ROLLED
    return sums
