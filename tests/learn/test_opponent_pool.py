"""The pool: who is met how often, which games count, and what is kept."""

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest

from tokaido_env.learn.opponent_pool import FORGET, LATEST, PRIOR_GAMES, OpponentPool, draw
from tokaido_env.learn.settings import PpoSettings

WIN, LOSS, DRAW = 1.0, -1.0, 0.0


def pool(**values: Any) -> OpponentPool:
    defaults: dict[str, Any] = {"games": 8, "opponent_slots": 4, "n_steps": 8, "minibatch_size": 64}
    defaults["value_games"] = "all"  # in which any shares may be 0
    return OpponentPool(PpoSettings(**defaults | values))


def only(opponent: str) -> dict[str, float]:
    """Shares such that the learner meets one kind of opponent."""
    kinds = ("share_latest", "share_past", "share_agents")
    return {kind: float(kind == f"share_{opponent}") for kind in kinds}


def play(one: OpponentPool, name: str, rewards: list[float]) -> None:
    """Let games end against one opponent, who sits in every slot."""
    one.seated = [name] * len(one.seated)
    for reward in rewards:
        one.whole[:] = True
        one.count(np.array([0]), np.array([reward]))


# How often


def test_chances_follow_the_shares() -> None:
    one = pool(share_latest=0.5, share_past=0.3, share_agents=0.2, agents="greedy heuristic")
    for steps in (0, 100, 200):
        one.add(steps)
    chances = one.chances()
    assert chances[LATEST] == 0.5
    assert chances["greedy"] == chances["heuristic"] == pytest.approx(0.1)
    assert [chances[name] for name in one.snapshots] == pytest.approx([0.1] * 3)
    assert sum(chances.values()) == pytest.approx(1)


def test_hard_snapshots_are_met_by_the_square_of_what_is_lost() -> None:
    """By hand: with 90 games and ten of the prior, p = 5 / 100, 50 / 100 and 95 / 100."""
    one = pool(**only("past"))
    for steps in (1, 2, 3):
        one.add(steps)
    play(one, "000000001", [LOSS] * 90)
    play(one, "000000002", [WIN, LOSS] * 45)
    play(one, "000000003", [WIN] * 90)
    expected = np.array([0.95**2, 0.5**2, 0.05**2])
    chances = [one.chances()[name] for name in one.snapshots]
    assert PRIOR_GAMES == 10
    assert chances == pytest.approx(expected / expected.sum())


def test_a_draw_is_half_a_win() -> None:
    one = pool()
    play(one, LATEST, [DRAW] * 30)
    assert one.win_rate(LATEST) == 0.5
    assert one.win_rates()[LATEST] == 0.5


def test_drawn_numbers_are_the_chances_rounded_and_exact_on_average() -> None:
    chances = {"a": 0.55, "b": 0.0, "c": 0.31, "d": 0.14}
    rng = np.random.default_rng(0)
    total: Counter[str] = Counter()
    for _ in range(4000):
        drawn = Counter(draw(chances, 8, rng))
        assert all(abs(drawn[name] - 8 * chance) < 1 for name, chance in chances.items())
        total += drawn
    for name, chance in chances.items():
        assert total[name] / 32000 == pytest.approx(chance, abs=0.005)


def test_rounded_chances_never_draw_past_the_end() -> None:
    class Last:
        def random(self) -> float:
            return 1 - 2**-53

    chances = {"a": 0.3333333, "b": 0.3333333, "c": 0.3333333, "never": 0.0}
    assert draw(chances, 3, Last()) == ["b", "c", "c"]  # type: ignore[arg-type]


@pytest.mark.parametrize("opponent", ["latest", "past", "agents"])
def test_one_kind_alone(opponent: str) -> None:
    one = pool(**only(opponent), agents="greedy")
    one.add(0)
    one.seat(np.random.default_rng(0))
    names = {"latest": LATEST, "past": "000000000", "agents": "greedy"}
    assert one.seated == [names[opponent]] * 4


# Which games count


def test_a_game_counts_for_whom_it_met_from_its_beginning() -> None:
    one = pool(**only("agents"), agents="greedy")
    one.seat(np.random.default_rng(0))  # greedy instead of the latest self: running games are mixed
    one.count(np.array([0, 1]), np.array([WIN, WIN]))
    assert one.win_rates() == {}
    one.count(np.array([0, 1, 2]), np.array([WIN, LOSS, WIN]))  # game 2 for the first time
    assert one.win_rates() == {"greedy": 0.5, "agents": 0.5}


def test_games_go_on_where_the_opponent_stays() -> None:
    one = pool(share_latest=0.5, share_past=0.0, share_agents=0.5, agents="greedy")
    one.seated = ["greedy", LATEST, "greedy", LATEST]
    before = list(one.seated)
    for seed in range(20):
        one.seat(np.random.default_rng(seed))
        assert one.seated == before
    assert one.whole.all()


def test_only_games_of_changed_slots_are_mixed() -> None:
    one = pool(**only("agents"), agents="greedy")
    one.seated = ["greedy", LATEST, "greedy", LATEST]
    one.seat(np.random.default_rng(0))
    assert one.whole.tolist() == [True, False] * 4


def test_game_i_belongs_to_slot_i_modulo_slots() -> None:
    one = pool()
    one.seated = ["a", "b", "c", "d"]
    one.count(np.arange(8), np.array([WIN, WIN, LOSS, DRAW] * 2))
    rates = {name: one.win_rates()[name] for name in "abcd"}
    assert rates == {"a": 1.0, "b": 1.0, "c": 0.0, "d": 0.5}


def test_results_are_forgotten_by_and_by() -> None:
    one = pool(**only("latest"))
    play(one, LATEST, [WIN] * 20)
    for seating in range(1, 30):
        one.seat(np.random.default_rng(0))
        kept = 20 * FORGET**seating
        assert one.win_rate(LATEST) == pytest.approx((kept + 5) / (kept + 10))
        assert one.win_rates()[LATEST] == pytest.approx(1)


def test_groups_sum_up_their_opponents() -> None:
    one = pool(agents="greedy heuristic")
    one.add(0)
    one.add(100)
    play(one, "000000000", [WIN] * 3)
    play(one, "000000100", [LOSS])
    play(one, "heuristic", [LOSS, WIN])
    rates = one.win_rates()
    assert (rates["past"], rates["agents"]) == (0.75, 0.5)
    assert LATEST not in rates


# What is kept


def test_the_pool_stays_spread_over_training() -> None:
    one = pool(pool_size=5)
    for steps in range(0, 6401, 100):
        one.add(steps)
        kept = [int(name) for name in one.snapshots]
        assert len(kept) == min(steps // 100 + 1, 5)
        assert (kept[0], kept[-1]) == (0, steps)
    gaps = np.diff([int(name) for name in one.snapshots])
    assert gaps[:-1].max() <= 2 * gaps[:-1].min()


def test_results_of_a_dropped_snapshot_go_when_it_stands_up() -> None:
    one = pool(pool_size=2, **only("latest"))
    one.add(0)
    one.add(100)
    play(one, "000000100", [WIN])
    one.add(200)
    assert one.snapshots == ["000000000", "000000200"]
    assert one.to_dict()["results"].keys() == {"000000100"}
    one.seat(np.random.default_rng(0))
    assert one.to_dict()["results"] == {}


def test_a_pool_goes_on_from_what_it_told() -> None:
    one = pool(pool_size=3)
    rng = np.random.default_rng(1)
    for steps in range(0, 1000, 100):
        one.add(steps)
        one.seat(rng)
        one.count(np.arange(8), rng.choice([WIN, LOSS, DRAW], 8))
    told = one.to_dict()
    other = pool(pool_size=3)
    other.restore(json.loads(json.dumps(told)))
    other.whole[:] = one.whole
    assert other.to_dict() == told
    for each in (one, other):
        each.seat(np.random.default_rng(2))
        each.count(np.arange(8), np.ones(8))
    assert one.to_dict() == other.to_dict()
