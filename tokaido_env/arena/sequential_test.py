"""When a match may stop: a test that may be asked again and again.

An interval of 95 % holds the truth 95 times of 100 if it is looked at once; who looks after every
hundred games and stops when it pleases errs far more often. A bet may be watched all the time: the
test bets on every pair, at odds that are fair if neither agent is better, so that the capital grows
to 1 / error by chance with a probability of at most `error`, however often it is looked at
(Ville's inequality). It holds for any scores within [0, 1].

Waudby-Smith and Ramdas 2023, "Estimating means of bounded random variables by betting": the hedged
capital process, with the bets that they call aGRAPA. Their other predictable plug-in, made for
narrow intervals, needs two to three times as many pairs to tell close agents apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

FIRST_LOOK, STEP = 50, 10  # pairs
GROWTH = 1.25
CAUTION = 0.75  # the largest share of the capital that one pair can cost
EVEN = 0.5


def better_agent(scores: Floats, error: float) -> Literal["a", "b"] | None:
    """Return which agent is the better one, None if the pairs so far do not tell.

    Args:
        scores: of `a` in each pair in the order played, float64 (pairs,) within [0, 1].
        error: the greatest allowed probability to name one if both are equal, or the worse one.
    """
    for name, capital in zip("ab", capital_processes(scores), strict=True):
        if capital.max(initial=0.0) >= 1 / error:
            return name  # type: ignore[return-value]
    return None


def capital_processes(scores: Floats) -> tuple[Floats, Floats]:
    """Return the capital after each pair of half a coin bet on `a` and of half a coin bet on `b`.

    Args:
        scores: as for `better`.
    """
    n = np.arange(1, len(scores) + 1)
    means = (EVEN + np.cumsum(scores)) / (n + 1)
    variances = (0.25 + np.cumsum((scores - means) ** 2)) / (n + 1)
    # A bet knows the past only.
    margins = np.concatenate([[EVEN], means])[: len(scores)] - EVEN
    spreads = np.concatenate([[0.25], variances])[: len(scores)]
    bets = margins / (spreads + margins**2)
    most = CAUTION / EVEN
    for_a = np.cumsum(np.log1p(np.clip(bets, 0, most) * (scores - EVEN)))
    for_b = np.cumsum(np.log1p(np.clip(bets, -most, 0) * (scores - EVEN)))
    # No more than a float holds.
    return EVEN * np.exp(np.minimum(for_a, 700.0)), EVEN * np.exp(np.minimum(for_b, 700.0))


def interim_looks(pairs: int) -> Iterator[int]:
    """Yield after how many pairs to look, up to the last: always the same, whoever plays them."""
    look = FIRST_LOOK
    while look < pairs:
        yield look
        look = -(-int(look * GROWTH) // STEP) * STEP
    yield pairs


def check_error_rate(error: float) -> float:
    """Return an error rate that can be asked for, or raise `ValueError`."""
    if not 1e-9 <= error <= 0.5:
        raise ValueError(f"error: expected a rate from 1e-9 to 0.5, got {error}")
    return error
