"""The VecEnv: every transition is one of the learner's own, checked against games played alone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from positions import shikoku_data, write_board
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3.common.vec_env import VecMonitor

from tokaido_env import Game, SeedError
from tokaido_env.actions import N_ACTIONS
from tokaido_env.agents import Agent, make
from tokaido_env.luck import agent_keys, episode_seed
from tokaido_env.observation import FEATURES, N_FEATURES, encode_game
from tokaido_env.sb3 import TokaidoVecEnv

Actions = npt.NDArray[np.int64]

SEAT = next(feature.start for feature in FEATURES if feature.name == "seat")


class Alone:
    """The game of one environment played alone: the learner's actions, the opponent's answers."""

    def __init__(self, seed: int, seat: int, opponent: Agent) -> None:
        self.game = Game(seed=seed)
        self.seed, self.seat, self.opponent = seed, seat, opponent
        self.decisions = 0
        self.answer()

    def play(self, action: int) -> None:
        assert self.game.player == self.seat
        self.game.play(action)
        self.decisions += 1
        self.answer()

    def answer(self) -> None:
        key = np.empty(1, np.uint64)
        while self.game.player == 1 - self.seat:
            seats, numbers = np.array([1 - self.seat], np.int8), np.array([self.decisions])
            agent_keys(np.array([self.seed]), seats, numbers, key)
            legal = np.array([self.game.legal_mask], np.uint64)
            self.game.play(int(self.opponent.act(self.game.boards, self.game.state, legal, key)[0]))
            self.decisions += 1

    def observation(self) -> list[float]:
        seen = np.empty(N_FEATURES, np.float32)
        encode_game(self.game.boards, self.game.states, 0, self.seat, seen)
        return seen.tolist()


class Recorder:
    """Plays like another agent and counts what it was asked."""

    spec = "recorder"

    def __init__(self, agent: str = "random") -> None:
        self.agent = make(agent)
        self.asked = 0

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> Actions:
        self.asked += len(states)
        return self.agent.act(boards, states, legal, keys)


def random_legal(env: Any, rng: np.random.Generator) -> Actions:
    masks = env.action_masks()
    return np.where(masks, rng.random(masks.shape), -1.0).argmax(axis=1)


def walk(env: Any, steps: int, seed: int = 0) -> Iterator[tuple[Any, ...]]:
    """Play at random; yield actions, observations, rewards, dones, infos of each step."""
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        actions = random_legal(env, rng)
        yield (actions, *env.step(actions))


# Transitions


@pytest.mark.parametrize("reward", ["win", "margin"])
def test_every_transition_is_the_learners_own(reward: Any) -> None:
    """Seats, rewards, observations, masks and ends, over several episodes of five games."""
    n, base = 5, 40
    opponents = [make("random"), make("greedy")]
    env = TokaidoVecEnv(n, opponents, base, reward=reward)
    episodes = [0] * n
    alone = [Alone(base + i, i % 2, opponents[i % 2]) for i in range(n)]
    assert env.reset().tolist() == [a.observation() for a in alone]
    twice = 0
    for actions, observations, rewards, dones, infos in walk(env, 450):
        for i in range(n):
            before = alone[i].decisions
            alone[i].play(int(actions[i]))
            twice += alone[i].decisions == before + 1  # no decision of the opponent between
            assert dones[i] == alone[i].game.is_over
            if not dones[i]:
                assert (rewards[i], infos[i]) == (0.0, {})
            else:
                check_end(alone[i], rewards[i], infos[i], reward)
                episodes[i] += 1
                seed = int(episode_seed(base + i, episodes[i]))
                alone[i] = Alone(seed, (i + episodes[i]) % 2, opponents[i % 2])
            assert observations[i].tolist() == alone[i].observation()
            assert np.flatnonzero(env.action_masks()[i]).tolist() == alone[i].game.legal_actions()
    assert min(episodes) >= 2
    assert twice > 100


def check_end(alone: Alone, reward: float, info: dict[str, Any], kind: str) -> None:
    totals = [score["total"] for score in alone.game.scores()]
    winner = alone.game.winner()
    expected = {None: 0.0, alone.seat: 1.0}.get(winner, -1.0)
    if kind == "margin":
        expected = (totals[alone.seat] - totals[1 - alone.seat]) / 100
    assert reward == pytest.approx(expected)
    assert info["terminal_observation"].tolist() == alone.observation()
    assert info["TimeLimit.truncated"] is False
    assert info["seed"] == alone.seed
    assert info["episode"]["r"] == pytest.approx(expected)


def test_the_learner_sits_at_alternating_seats() -> None:
    env = TokaidoVecEnv(4, [make("random")], 0)
    seats = [env.reset()[:, SEAT].tolist()]
    assert seats == [[0.0, 1.0, 0.0, 1.0]]
    changes = 0
    for _, observations, _, dones, _ in walk(env, 400):
        seats.append(observations[:, SEAT].tolist())
        assert env.seats.tolist() == seats[-1]
        moved = [before != after for before, after in zip(seats[-2], seats[-1], strict=True)]
        assert moved == dones.tolist()
        changes += sum(moved)
    assert changes > 4


def test_the_length_of_an_episode_is_what_the_learner_decided() -> None:
    env = TokaidoVecEnv(3, [make("greedy")], 0)
    env.reset()
    lengths, told = [0, 0, 0], 0
    for _, _, _, dones, infos in walk(env, 300):
        for i in range(3):
            lengths[i] += 1
            if dones[i]:
                assert infos[i]["episode"]["l"] == lengths[i]
                lengths[i] = 0
                told += 1
    assert told > 3


def test_the_cap_truncates_and_pays_nobody(tmp_path: Path) -> None:
    board = write_board(tmp_path / "short.toml", shikoku_data() | {"max_rounds": 1})
    env = TokaidoVecEnv(4, [make("random")], 0, board, reward="margin")
    env.reset()
    ends = 0
    for _, _, rewards, dones, infos in walk(env, 40):
        assert not rewards.any()
        assert all(infos[i]["TimeLimit.truncated"] is True for i in np.flatnonzero(dones))
        ends += dones.sum()
    assert ends > 8


def test_games_that_end_at_once_are_told_apart(tmp_path: Path) -> None:
    board = write_board(tmp_path / "short.toml", shikoku_data() | {"max_rounds": 1})
    env = TokaidoVecEnv(30, [make("random")], 0, board)
    env.reset()
    seats, most = env.seats, 0
    for _, _, _, dones, infos in walk(env, 10):
        ended = np.flatnonzero(dones)
        last = [infos[i]["terminal_observation"] for i in ended]
        assert [seen[SEAT] for seen in last] == seats[ended].tolist()
        assert len({seen.tobytes() for seen in last}) == len(ended)
        seats, most = env.seats, max(most, len(ended))
    assert most > 5


def test_resetting_begins_the_first_episodes_again() -> None:
    env = TokaidoVecEnv(3, [make("greedy")], 7)
    first = env.reset()
    steps = [tuple(x.tolist() for x in step[:4]) for step in walk(env, 200)]
    assert np.array_equal(env.reset(), first)
    assert [tuple(x.tolist() for x in step[:4]) for step in walk(env, 200)] == steps


# Opponents


def test_opponents_can_be_replaced_while_games_run() -> None:
    first, second, third = (Recorder() for _ in range(3))
    env = TokaidoVecEnv(4, [first, second], 0)
    env.reset()
    for _ in walk(env, 20):
        pass
    asked = first.asked
    assert asked > 0
    env.opponents[0] = third
    for _ in walk(env, 20):
        pass
    assert first.asked == asked
    assert third.asked > 0
    assert second.asked > asked / 2


def test_another_opponent_answers_otherwise() -> None:
    observed = []
    for opponent in ("random", "greedy"):
        env = TokaidoVecEnv(4, [make("random")], 0)
        env.reset()
        env.opponents[0] = make(opponent)
        observed.append([step[1].tolist() for step in walk(env, 10)])
    assert observed[0] != observed[1]


# Snapshots


def test_a_snapshot_continues_identically() -> None:
    env = TokaidoVecEnv(4, [make("random"), make("greedy")], 3)
    env.reset()
    for _ in walk(env, 150):
        pass
    snapshot, now = env.snapshot(), env.observe()
    assert all(isinstance(array, np.ndarray) for array in snapshot.values())
    other = TokaidoVecEnv(4, [make("random"), make("greedy")], 3)
    told = []
    for each in (env, env, other):
        each.restore(snapshot)
        assert np.array_equal(each.observe(), now)
        told.append([])
        for _, observations, rewards, dones, infos in walk(each, 250, seed=1):
            ends = [(info.get("seed"), info.get("episode", {}).get("l")) for info in infos]
            told[-1].append([observations.tolist(), rewards.tolist(), dones.tolist(), ends])
    assert told[0] == told[1] == told[2]


# What SB3 asks


def test_masks_are_found_where_maskable_learners_look() -> None:
    env = TokaidoVecEnv(5, [make("random")], 0)
    env.reset()
    assert is_masking_supported(env)
    masks = get_action_masks(env)
    assert (masks.shape, masks.dtype) == ((5, N_ACTIONS), np.bool_)
    assert np.array_equal(masks, env.action_masks())
    some = env.env_method("action_masks", indices=[3, 1])
    assert np.array_equal(some, masks[[3, 1]])
    assert np.array_equal(get_action_masks(VecMonitor(env)), masks)


def test_spaces_contain_what_is_observed() -> None:
    env = TokaidoVecEnv(3, [make("random")], 0)
    for observation in env.reset():
        assert env.observation_space.contains(observation)
    for _, observations, rewards, dones, _ in walk(env, 150):
        assert all(env.observation_space.contains(observation) for observation in observations)
        assert (rewards.dtype, dones.dtype) == (np.float32, np.bool_)


def test_what_was_returned_does_not_change_afterwards() -> None:
    env = TokaidoVecEnv(3, [make("random")], 0)
    first = env.reset()
    kept = [(first, first.tolist())]
    for _, observations, rewards, dones, _ in walk(env, 30):
        kept += [(array, array.tolist()) for array in (observations, rewards, dones)]
    assert all(array.tolist() == before for array, before in kept)


def test_an_unknown_method_is_refused() -> None:
    env = TokaidoVecEnv(1, [make("random")], 0)
    with pytest.raises(AttributeError, match="expected 'action_masks', got 'fly'"):
        env.env_method("fly")


def test_wrong_arguments_are_refused() -> None:
    random = make("random")
    with pytest.raises(ValueError, match="one game or more"):
        TokaidoVecEnv(0, [random], 0)
    with pytest.raises(ValueError, match="opponents"):
        TokaidoVecEnv(1, [], 0)
    with pytest.raises(SeedError):
        TokaidoVecEnv(1, [random], -1)
    with pytest.raises(SeedError):
        TokaidoVecEnv(3, [random], 2**53 - 2)
    with pytest.raises(ValueError, match="expected one of 'win', 'margin', got 'points'"):
        TokaidoVecEnv(1, [random], 0, reward="points")  # type: ignore[arg-type]
