"""Agreement of the two policies that play the rollouts of a regret set."""

from __future__ import annotations

from typing import Any

import numpy as np

from tokaido_env.study.regret import (
    Floats,
    Rows,
    best_rows,
    best_rows_without_each_block,
    block_means,
    stratified_means,
)
from tokaido_env.study.regret_set import RegretSet


def agreement(regret_set: RegretSet) -> dict[str, Any]:
    """Return the agreement of the first two policies of a set, as plain JSON types.

    Both play with the same luck, so one block never both chooses and values an action.

    - "correlation": of the values of all actions with all blocks, less the mean of their position;
      "correlation_without_noise": the same, corrected for the noise of rollouts;
    - "same_best": the share of positions with the same best action in all rollouts;
    - "lost_by_POLICY": the loss of the other policy's best action by the rollouts of this policy;
    - "higher": the value of the first policy's best action by its rollouts, less that of the
      second's by its own.
    """
    first, second = (block_means(regret_set, policy) for policy in (0, 1))
    full = np.asarray(~np.isnan(first).any(axis=1))
    a, b = (_centred(values[full], regret_set.action_positions[full]) for values in (first, second))
    # (n, blocks) each
    best = [best_rows_without_each_block(regret_set, values) for values in (first, second)]
    whole = [best_rows(regret_set, values) for values in (first, second)]
    values_of_best = [
        [np.take_along_axis(v, rows, axis=0) for rows in best] for v in (first, second)
    ]
    names = regret_set.card["policies"]
    columns = {
        "same_best": (whole[0] == whole[1]).astype(float),
        f"lost_by_{names[0]}": (values_of_best[0][0] - values_of_best[0][1]).mean(axis=1),
        f"lost_by_{names[1]}": (values_of_best[1][1] - values_of_best[1][0]).mean(axis=1),
        "higher": (values_of_best[0][0] - values_of_best[1][0]).mean(axis=1),
    }
    means = a.mean(axis=1), b.mean(axis=1)
    noisy = np.corrcoef(*means)[0, 1]
    clean = _product(a, b) / np.sqrt(max(_product(a, a) * _product(b, b), 1e-12))
    return {
        "correlation": round(float(noisy), 4),
        "correlation_without_noise": round(float(clean), 4),
        **stratified_means(columns, regret_set),
    }


def _centred(values: Floats, positions: Rows) -> Floats:
    """Return block means less the mean over the actions of the position."""
    counts = np.bincount(positions)
    sums = np.stack([np.bincount(positions, column) for column in values.T], axis=1)
    return values - (sums / np.maximum(counts, 1)[:, None])[positions]


def _product(a: Floats, b: Floats) -> float:
    """Return the mean product of values (m, blocks) of one action in different blocks."""
    blocks = a.shape[1]
    same = (a * b).sum(axis=1)
    return float(((a.sum(axis=1) * b.sum(axis=1) - same) / (blocks * (blocks - 1))).mean())
