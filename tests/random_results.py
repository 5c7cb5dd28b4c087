"""Random results of every kind, and those of their intervals that exclude their value.

Results are extreme on purpose: one pair, one board that decides, all won, all drawn, cycles.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
from matches import Floats, match_of_results
from regrets import drawn_sums, small_set, truth_of

from tokaido_env.arena.ratings import goodness_of_fit, rate_against, rate_matches
from tokaido_env.arena.result import BoardsEntry, Measure, Result, Score
from tokaido_env.arena.tournament import MatchState
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.cli.cli_options import matches_result
from tokaido_env.study.generalise import HAND_MADE, GeneralisationTest, _pool_of
from tokaido_env.study.regret import (
    AgentChoices,
    regret_difference,
    regret_measures,
)
from tokaido_env.study.regret_set import RegretSet
from tokaido_env.study.value_error import value_measures

Interval = tuple[str, float, float, float]
"""A measure, its value, and the ends of its interval."""


def pair_shares(rng: np.random.Generator) -> Floats:
    """Return the probabilities of 0 to 4 half points in a pair of games."""
    p = rng.beta(0.1, 0.1) if rng.random() < 0.5 else rng.random()
    kinds = [
        *np.eye(5)[[0, 2, 4]],
        np.array([0.5, 0, 0, 0, 0.5]),
        rng.dirichlet(np.full(5, 0.2)),
        np.array([(1 - p) ** 2, 0, 2 * p * (1 - p), 0, p**2]),
    ]
    return np.asarray(kinds[rng.integers(len(kinds))])


def pair_results(rng: np.random.Generator, boards: int, pairs: int) -> Floats:
    """Return results (boards * pairs, 2), of one distribution or of one for each board."""
    shared = pair_shares(rng) if rng.random() < 0.5 else None
    each = [
        rng.choice(5, pairs, p=pair_shares(rng) if shared is None else shared)
        for _ in range(boards)
    ]
    half_points = np.concatenate(each)
    first = np.minimum((half_points + 1) // 2, 2)
    return np.asarray(np.stack([first, half_points - first], axis=1) / 2)


# Results


def of_matches(rng: np.random.Generator) -> Iterator[Result]:
    agents = [f"a{i}" for i in range(rng.integers(2, 5))]
    matches = []
    for number, (a, b) in enumerate(combinations(agents, 2)):
        results = pair_results(rng, 1, int(rng.choice([1, 2, 12, 60, 500])))
        match = match_of_results(results, 1000 * number * rng.integers(2), a, b)
        match.games["luck"] = rng.normal(0, 0.3, results.shape) + rng.random() * (results - 0.5)
        matches.append(match)
    yield matches_result(matches, BoardPool.load(), 0, "", luck=True, whole=False)


def of_ladder(rng: np.random.Generator) -> Iterator[Result]:
    names = [f"a{i}" for i in range(rng.choice([2, 3, 5, 12]))]
    most = int(rng.choice([1, 2, 20]))  # places apart

    def score(a: str, b: str) -> Score:
        pairs = rng.multinomial(rng.choice([1, 2, 10, 30, 500]), pair_shares(rng))
        return Score.of_pairs(a, b, "shikoku", 0, pairs)

    chosen = [(i, j) for i, j in combinations(range(len(names)), 2) if j - i <= most]
    known = [score(names[i], names[j]) for i, j in chosen]
    pool, anchor = BoardPool.load(), names[rng.integers(len(names))]
    about: dict[str, Any] = {"boards": (BoardsEntry.of(pool),), "seed": 0, "anchor": anchor}
    ratings = (*rate_matches(known, anchor=anchor, resamples=300), *goodness_of_fit(known))
    rated = tuple(one.rounded(2) for one in ratings)
    ladder = Result.made("ladder", agents=tuple(names), scores=known, estimates=rated, **about)
    yield ladder
    own = [score("x", name) for name in rng.choice(names, rng.integers(1, 4))]
    own = list({one.b: one for one in own}.values())
    placed = rate_against("x", own, known, anchor=anchor, resamples=300)
    yield Result.made("rate", agents=("x",), scores=own, estimates=(placed.rounded(2),), **about)


@cache
def pool_of(split: str, boards: int) -> BoardPool:
    return _pool_of(split, boards)


def of_generalise(rng: np.random.Generator) -> Iterator[Result]:
    sizes = 2, 3, 5, 12, 30
    handmade = rng.random() < 0.3
    test = pool_of(HAND_MADE, 6) if handmade else pool_of("test", int(rng.choice(sizes)))
    train = None if rng.random() < 0.2 else pool_of("train", int(rng.choice(sizes)))
    pairs = rng.choice([1, 2, 3, 10, 40], 2).tolist()
    opponents = ("y", "z")[: rng.integers(1, 3)]
    found = []
    for _ in range(rng.integers(1, 4)):
        drawn = bool(rng.integers(2))
        asked = GeneralisationTest("x", opponents, 0, None, test, pairs[0], train, pairs[1], drawn)
        states = asked.matches()
        for state in states:
            _fill(state, rng)
        found.append(asked.result(states))
    yield from found


def _fill(state: MatchState, rng: np.random.Generator) -> None:
    boards = len(state.pool)
    state.games["result"] = pair_results(rng, boards, len(state) // (2 * boards)).reshape(-1)
    state.games["decisions"] = 1


@cache
def regret_set() -> RegretSet:
    return small_set(most=5)


def of_regret(rng: np.random.Generator) -> Iterator[Result]:
    bare = regret_set()
    truth = truth_of(bare, rng, float(rng.choice([0.0, 0.01, 0.3])))
    positions = replace(bare, sums=drawn_sums(bare, truth, rng, int(rng.choice([0, 2]))))
    estimates: list[Measure] = []
    chosen = []
    for name in ("a", "b"):
        rows = positions.starts[:-1] + rng.integers(np.diff(positions.starts))
        actions = positions.actions[rows].astype(np.int64)
        chosen.append(AgentChoices(name, actions, 0.1))
        estimates += regret_measures(positions, chosen[-1])
        estimates += value_measures(positions, name, truth + rng.choice([0, 0.5]) * rng.random())
    estimates.append(regret_difference(positions, *chosen))
    boards = (BoardsEntry("small", "", len(positions), drawn=True),)
    yield Result.made("regret", agents=("a", "b"), boards=boards, seed=0, estimates=estimates)
    exact = replace(bare, card={**bare.card, "policies": []}, sums=truth[:, None, None])
    estimates = regret_measures(exact, chosen[0])
    yield Result.made("regret", agents=("a",), boards=boards, seed=0, estimates=estimates)


KINDS = of_matches, of_ladder, of_generalise, of_regret


# Intervals


def intervals_of(result: Result) -> Iterator[Interval]:
    """Yield all intervals of a result."""
    for score in result.scores:
        yield "score", score.value, score.low, score.high
    for one in result.estimates:
        yield one.measure, one.value, one.low, one.high


def wrong_intervals(count: int, seed: int = 0) -> tuple[Counter[str], list[Interval]]:
    """Return the number of intervals by measure, and those without their value."""
    counts: Counter[str] = Counter()
    wrong: list[Interval] = []
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        for result in KINDS[number % len(KINDS)](rng):
            for one in intervals_of(result):
                name, value, low, high = one
                counts[name] += 1
                if not low <= value <= high:
                    wrong.append(one)
    return counts, wrong
