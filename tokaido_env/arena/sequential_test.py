"""Sequential test of a match: stop it as soon as the better agent is known.

A 95 % interval is right 95 times of 100 for one look at the results. A test that is repeated after
every hundred games, until it decides, is wrong far more often. A bet may be watched all the time:
the test bets on every pair, at odds that are fair if the agents are equal. By chance the capital
then ever grows to 1 / error with a probability of at most `error` (Ville's inequality). This holds
for any scores within [0, 1].

Waudby-Smith and Ramdas 2023, "Estimating means of bounded random variables by betting": the hedged
capital process with aGRAPA bets. Their predictable plug-in bets, designed for narrow intervals,
need two to three times as many pairs to separate close agents.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

# The interim looks: chosen by hand. They do not affect the error, only the games after a decision.
FIRST_LOOK, STEP = 50, 10  # pairs
GROWTH = 1.25  # from look to look
TRUNCATION = 0.75  # c of the paper (1/2 or 3/4): the largest share of the capital to bet
NULL_MEAN = 0.5  # m of the paper: the mean score of equal agents


def better_agent(scores: Floats, error: float) -> Literal["a", "b"] | None:
    """Return the better agent by a betting test, None if the pairs so far do not decide.

    Args:
        scores: of `a` in each pair in the order played, float64 (pairs,) within [0, 1].
        error: maximum probability of naming an agent that is not better, in (0, 1).
    """
    for name, capital in zip("ab", capital_processes(scores), strict=True):
        if capital.max(initial=0.0) >= 1 / error:
            return name  # type: ignore[return-value]
    return None


def capital_processes(scores: Floats) -> tuple[Floats, Floats]:
    """Return the capital of both betting tests after each pair (Waudby-Smith and Ramdas 2023).

    Each starts at 0.5: the first bets on `a`, the second on `b`.

    Args:
        scores: of `a` in each pair in the order played, float64 (pairs,) within [0, 1].

    Returns:
        float64 (pairs,) each.
    """
    n = np.arange(1, len(scores) + 1)
    means = (NULL_MEAN + np.cumsum(scores)) / (n + 1)
    variances = (0.25 + np.cumsum((scores - means) ** 2)) / (n + 1)
    # A bet depends on earlier pairs only.
    margins = np.concatenate([[NULL_MEAN], means])[: len(scores)] - NULL_MEAN
    earlier_variances = np.concatenate([[0.25], variances])[: len(scores)]
    bets = margins / (earlier_variances + margins**2)
    largest = TRUNCATION / NULL_MEAN
    log_a = np.cumsum(np.log1p(np.clip(bets, 0, largest) * (scores - NULL_MEAN)))
    log_b = np.cumsum(np.log1p(np.clip(bets, -largest, 0) * (scores - NULL_MEAN)))
    # A float holds exp(700).
    return 0.5 * np.exp(np.minimum(log_a, 700.0)), 0.5 * np.exp(np.minimum(log_b, 700.0))


def interim_looks(pairs: int) -> Iterator[int]:
    """Yield the numbers of pairs after which to test: from 50 by a quarter more, last `pairs`."""
    played = FIRST_LOOK
    while played < pairs:
        yield played
        played = -(-int(played * GROWTH) // STEP) * STEP
    yield pairs


def check_error_rate(error: float) -> float:
    """Return an error rate unchanged, or raise `ValueError` if it is not in (0, 1)."""
    if not 1e-9 <= error <= 0.5:
        raise ValueError(f"error: expected a rate from 1e-9 to 0.5, got {error}")
    return error
