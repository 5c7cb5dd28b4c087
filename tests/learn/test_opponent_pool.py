"""The opponent pool: draws, results, and the snapshots it keeps."""

from collections import Counter
from typing import Any

import msgspec
import numpy as np
import pytest

from tokaido_env.learn.opponent_pool import (
    DECAY,
    LATEST,
    PRIOR_GAMES,
    OpponentPool,
    PoolState,
    draw,
)
from tokaido_env.learn.settings import PpoSettings

WIN, LOSS, DRAW = 1.0, -1.0, 0.0


def new_pool(**values: Any) -> OpponentPool:
    defaults: dict[str, Any] = {"games": 8, "opponent_slots": 4, "n_steps": 8, "minibatch_size": 64}
    return OpponentPool(PpoSettings(**defaults | values))


def only(opponent: str) -> dict[str, float]:
    """Shares that give the learner one kind of opponent."""
    kinds = ("share_latest", "share_past", "share_agents")
    return {kind: float(kind == f"share_{opponent}") for kind in kinds}


def play(pool: OpponentPool, name: str, rewards: list[float]) -> None:
    """Record games against one opponent."""
    pool.slot_opponents = [name] * len(pool.slot_opponents)
    for reward in rewards:
        pool.same_opponent[:] = True
        pool.count(np.array([0]), np.array([reward]))


# Draws


def test_probabilities__follow_the_shares() -> None:
    pool = new_pool(share_latest=0.5, share_past=0.3, share_agents=0.2, agents="greedy heuristic")
    for steps in (0, 100, 200):
        pool.add(steps)
    found = pool.probabilities()
    assert found[LATEST] == 0.5
    assert found["greedy"] == found["heuristic"] == pytest.approx(0.1)
    assert [found[name] for name in pool.snapshots] == pytest.approx([0.1] * 3)
    assert sum(found.values()) == pytest.approx(1)


def test_probabilities__prefer_snapshots_that_win() -> None:
    """By hand: with 90 games and ten of the prior, p = 5 / 100, 50 / 100 and 95 / 100."""
    pool = new_pool(**only("past"))
    for steps in (1, 2, 3):
        pool.add(steps)
    play(pool, "000000001", [LOSS] * 90)
    play(pool, "000000002", [WIN, LOSS] * 30 + [DRAW] * 30)
    play(pool, "000000003", [WIN] * 90)
    expected = np.array([0.95**2, 0.5**2, 0.05**2])
    found = [pool.probabilities()[name] for name in pool.snapshots]
    assert PRIOR_GAMES == 10
    assert found == pytest.approx(expected / expected.sum())


def test_draw__rounds_each_count_and_is_exact_on_average() -> None:
    probabilities = {"a": 0.55, "b": 0.0, "c": 0.31, "d": 0.14}
    rng = np.random.default_rng(0)
    total: Counter[str] = Counter()
    for _ in range(4000):
        drawn = Counter(draw(probabilities, 8, rng))
        assert all(abs(drawn[name] - 8 * p) < 1 for name, p in probabilities.items())
        total += drawn
    for name, p in probabilities.items():
        assert total[name] / 32000 == pytest.approx(p, abs=0.005)


def test_draw__stays_in_range_if_probabilities_are_rounded() -> None:
    class Last:
        def random(self) -> float:
            return 1 - 2**-53

    probabilities = {"a": 0.3333333, "b": 0.3333333, "c": 0.3333333, "never": 0.0}
    assert draw(probabilities, 3, Last()) == ["b", "c", "c"]  # type: ignore[arg-type]


def test_resample__keeps_the_slots_of_opponents_that_stay() -> None:
    pool = new_pool(share_latest=0.5, share_past=0.0, share_agents=0.5, agents="greedy")
    pool.slot_opponents = before = ["greedy", LATEST, "greedy", LATEST]
    for seed in range(20):
        pool.resample(np.random.default_rng(seed))
        assert pool.slot_opponents == before
    assert pool.same_opponent.all()


# Results


def test_count__ignores_games_that_changed_opponents() -> None:
    pool = new_pool(**only("agents"), agents="greedy")
    pool.slot_opponents = ["greedy", LATEST, "greedy", LATEST]
    pool.resample(np.random.default_rng(0))
    assert pool.same_opponent.tolist() == [True, False] * 4
    pool.count(np.array([1, 3]), np.array([WIN, WIN]))
    assert pool.win_rates() == {}
    pool.count(np.array([0, 1, 5]), np.array([WIN, LOSS, WIN]))  # game 5 for the first time
    assert pool.win_rates() == {"greedy": 0.5, "agents": 0.5}


def test_count__gives_game_i_to_slot_i_modulo_slots() -> None:
    pool = new_pool()
    pool.slot_opponents = ["a", "b", "c", "d"]
    pool.count(np.arange(8), np.array([WIN, WIN, LOSS, DRAW] * 2))
    rates = {name: pool.win_rates()[name] for name in "abcd"}
    assert rates == {"a": 1.0, "b": 1.0, "c": 0.0, "d": 0.5}


def test_resample__decays_results() -> None:
    pool = new_pool(**only("latest"))
    play(pool, LATEST, [WIN] * 20)
    for draws in range(1, 30):
        pool.resample(np.random.default_rng(0))
        games = 20 * DECAY**draws
        assert pool.win_rate(LATEST) == pytest.approx((games + 5) / (games + 10))
        assert pool.win_rates()[LATEST] == pytest.approx(1)


def test_win_rates__sum_up_snapshots_and_agents() -> None:
    pool = new_pool(agents="greedy heuristic")
    pool.add(0)
    pool.add(100)
    play(pool, "000000000", [WIN] * 3)
    play(pool, "000000100", [LOSS])
    play(pool, "heuristic", [LOSS, WIN])
    rates = pool.win_rates()
    assert (rates["past"], rates["agents"]) == (0.75, 0.5)
    assert LATEST not in rates


# Snapshots and state


def test_add__keeps_snapshots_spread_over_training() -> None:
    pool = new_pool(pool_size=5)
    for steps in range(0, 6401, 100):
        pool.add(steps)
        kept = [int(name) for name in pool.snapshots]
        assert len(kept) == min(steps // 100 + 1, 5)
        assert (kept[0], kept[-1]) == (0, steps)
    gaps = np.diff([int(name) for name in pool.snapshots])
    assert gaps[:-1].max() <= 2 * gaps[:-1].min()


def test_resample__deletes_results_of_dropped_snapshots() -> None:
    pool = new_pool(pool_size=2, **only("latest"))
    pool.add(0)
    pool.add(100)
    play(pool, "000000100", [WIN])
    pool.add(200)
    assert pool.snapshots == ["000000000", "000000200"]
    assert pool.state().results.keys() == {"000000100"}
    pool.resample(np.random.default_rng(0))
    assert pool.state().results == {}


def test_restore__continues_like_the_original() -> None:
    pool, other = new_pool(pool_size=3), new_pool(pool_size=3)
    rng = np.random.default_rng(1)
    for steps in range(0, 1000, 100):
        pool.add(steps)
        pool.resample(rng)
        pool.count(np.arange(8), rng.choice([WIN, LOSS, DRAW], 8))
    state = pool.state()
    other.restore(msgspec.convert(state.to_dict(), PoolState))
    other.same_opponent[:] = pool.same_opponent
    assert other.state() == state
    for each in (pool, other):
        each.resample(np.random.default_rng(2))
        each.count(np.arange(8), np.ones(8))
    assert pool.state() == other.state()
