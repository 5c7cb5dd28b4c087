"""Comparison of methods by their results of `generalise` on the same boards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from tokaido_env.arena.generalisation import FIGURES, improvement, over_seeds
from tokaido_env.arena.intervals import mean_over_seeds
from tokaido_env.arena.result import Measure, Result, Score
from tokaido_env.core.arguments import escape_text
from tokaido_env.record import entry_of
from tokaido_env.report.result_tables import share
from tokaido_env.report.tables import Table

Methods = Sequence[Sequence[Result]]
"""The results of the training seeds of each method."""


def methods_of(results: Mapping[str, Result], seeds: int) -> Methods:
    """Return results by method: each run of `seeds` results, in the order of files, is a method.

    Raises:
        ValueError: if they do not share opponent, boards, pairs and seed, or their number is no
            multiple of the number of seeds.
    """
    if seeds < 1 or len(results) % seeds:
        raise ValueError(
            f"--runs: expected a divisor of {len(results)}, the number of files, got {seeds}"
        )
    each = {name: _protocol(name, result) for name, result in results.items()}
    first = next(iter(each))
    for name, protocol in each.items():
        if protocol != each[first]:
            raise ValueError(
                f"{name}: expected the protocol of {first}, {each[first]}; got {protocol}"
            )
    found = list(results.values())
    return [found[first : first + seeds] for first in range(0, len(found), seeds)]


def _protocol(name: str, result: Result) -> str:
    if result.protocol != "generalise" or not test_scores(result):
        raise ValueError(f"{name}: expected a result of generalise, got one of {result.protocol}")
    boards, scores = result.boards[0], test_scores(result)
    pairs = f"{boards.count} boards of hash {boards.hash}, {sum(scores[0].pairs)} pairs on each"
    files = "".join(f" with SHA-256 {one}" for one in entry_of(result.files, scores[0].b).values())
    return escape_text(f"against {scores[0].b}{files}, {pairs}, seed {result.seed}", 1000)


def test_scores(result: Result) -> list[Score]:
    """Return the scores of a generalisation test against the first opponent, one a test board."""
    scores = result.scores_of(result.boards[0].name) if result.boards else []
    return [score for score in scores if score.b == scores[0].b]


def method_name(runs: Sequence[Result]) -> str:
    """Return as text the spec of a method's first agent, and the number of its training seeds."""
    return runs[0].agents[0] if len(runs) == 1 else f"{runs[0].agents[0]}, {len(runs)} seeds"


def comparison_table(methods: Methods) -> Table:
    """Return the results of methods side by side, in the order given.

    The last columns are the worst opponent's score, if all have the same several opponents, and the
    probability that the method scores higher than the first one on a board.
    """
    first, scores = methods[0][0], test_scores(methods[0][0])
    headers = ["agent", "trained on", "score on test", *FIGURES[1:], "score on train", "gap"]
    worst = [[worst_opponent(one) for one in runs] for runs in methods]
    met = {_opponents(one) for runs in methods for one in runs}
    has_worst = len(met) == 1 and all(one is not None for each in worst for one in each)
    headers += ["worst opponent"] * has_worst
    headers += [f"better than {first.agents[0]}"] * (len(methods) > 1)
    rows = []
    for runs, lowest in zip(methods, worst, strict=True):
        cells = _cells(runs)
        if has_worst:
            cells.append(share(over_seeds([one for one in lowest if one is not None])))
        if len(methods) > 1:
            better = improvement(_by_board(runs), _by_board(methods[0]))
            cells.append("" if runs is methods[0] else share(better))
        rows.append((method_name(runs), runs[0].trained_on or "", *cells))
    pairs = f"{len(scores)} boards, {sum(scores[0].pairs)} pairs on each"
    title = f"Against {scores[0].b} on {first.boards[0].name}: {pairs}"
    return Table(title, tuple(headers), rows)


def _opponents(result: Result) -> frozenset[tuple[str | None, ...]]:
    """Return the names of all opponents, with the SHA-256 of those with files."""
    names = [one.other for one in result.estimates_of("mean score")]
    return frozenset((name, *entry_of(result.files, name).values()) for name in names)


def _cells(runs: Sequence[Result]) -> list[str]:
    """Return the figures on the unseen boards, the score on the others, and the gap."""
    opponent = test_scores(runs[0])[0].b
    tests = [{"other": opponent, "group": run.boards[0].name} for run in runs]
    cells = [
        share(over_seeds([run.estimate(name, **at) for run, at in zip(runs, tests, strict=True)]))
        for name in FIGURES
    ]
    if len(runs) > 1:
        cells[0] = share(mean_over_seeds(_by_board(runs))[0])
    gaps = [one for run in runs for one in run.estimates_of("gap")]
    train = [
        run.estimate("mean score", other=opponent, group=run.boards[1].name)
        for run in runs
        if len(run.boards) > 1
    ]
    cells.append(share(over_seeds(train)) if len(train) == len(runs) else "")
    cells.append(share(over_seeds(gaps, -1), "+.1f") if len(gaps) == len(runs) else "")
    return cells


def worst_opponent(result: Result) -> Measure | None:
    """Return the lowest of the mean scores against several opponents; None if there is only one."""
    test = result.boards[0].name
    found = [x for x in result.estimates_of("mean score") if x.group == test and x.other]
    return min(found, key=lambda one: one.value) if len(found) > 1 else None


def _by_board(runs: Sequence[Result]) -> npt.NDArray[np.float64]:
    """Return the scores on each board, (runs, boards)."""
    return np.array([[score.value for score in test_scores(run)] for run in runs])
