"""How far the policies that play the rollouts of a regret set agree."""

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


def agreement(told: RegretSet) -> dict[str, Any]:
    """Return how far the first two policies of a set agree, as plain JSON types.

    Both play with the same luck, so what is chosen or compared is always of different blocks.

    - "correlation" of what they say each action is worth, less the mean of its position, over all
      actions that were rolled out in full; and the same without the noise of rollouts;
    - "same_best": in which share of positions they name the same best action, as far as these
      rollouts tell;
    - "lost_by_POLICY": what the best action of the other loses by its rollouts;
    - "higher": by how much the first says more of its best action for who decides.
    """
    first, second = (block_means(told, policy) for policy in (0, 1))
    full = np.asarray(~np.isnan(first).any(axis=1))
    a, b = (_centred(values[full], told.action_positions[full]) for values in (first, second))
    # (n, blocks) each
    best = [best_rows_without_each_block(told, values) for values in (first, second)]
    whole = [best_rows(told, values) for values in (first, second)]
    worth = [[np.take_along_axis(v, rows, axis=0) for rows in best] for v in (first, second)]
    names = told.card["policies"]
    columns = {
        "same_best": (whole[0] == whole[1]).astype(float),
        f"lost_by_{names[0]}": (worth[0][0] - worth[0][1]).mean(axis=1),
        f"lost_by_{names[1]}": (worth[1][1] - worth[1][0]).mean(axis=1),
        "higher": (worth[0][0] - worth[1][0]).mean(axis=1),
    }
    means = a.mean(axis=1), b.mean(axis=1)
    noisy = np.corrcoef(*means)[0, 1]
    clean = _product(a, b) / np.sqrt(max(_product(a, a) * _product(b, b), 1e-12))
    return {
        "correlation": round(float(noisy), 4),
        "correlation_without_noise": round(float(clean), 4),
        **stratified_means(columns, told),
    }


def _centred(values: Floats, owners: Rows) -> Floats:
    """Return block values less the mean over the actions of the same position."""
    counts = np.bincount(owners)
    sums = np.stack([np.bincount(owners, column) for column in values.T], axis=1)
    return values - (sums / np.maximum(counts, 1)[:, None])[owners]


def _product(a: Floats, b: Floats) -> float:
    """Return the mean product of two values of each action, (m, blocks), of different blocks."""
    blocks = a.shape[1]
    same = (a * b).sum(axis=1)
    return float(((a.sum(axis=1) * b.sum(axis=1) - same) / (blocks * (blocks - 1))).mean())
