"""Tests of `tokaido_env.sb3`: the Stable-Baselines3 VecEnv."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from learner_games import CountingAgent, Ints, LearnerGame, drawn_seat, random_legal_actions
from positions import game_at
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecMonitor, VecNormalize

from tokaido_env import IllegalMove
from tokaido_env.agents import make
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.rng import episode_seed, game_seed
from tokaido_env.gym import TokaidoDuoVectorEnv
from tokaido_env.sb3 import TokaidoVecEnv


def walk(env: Any, steps: int, seed: int = 0) -> Iterator[tuple[Ints, Any, Any, Any, Any]]:
    """Play random actions; yield actions, observations, rewards, dones and infos of each step."""
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        actions = random_legal_actions(get_action_masks(env), rng)
        yield (actions, *env.step(actions))


# Transitions


@pytest.mark.parametrize(("seat", "observation"), [(0, "float32"), ("random", "uint8")])
def test_vec_env__equals_the_gymnasium_vector_env(short: Path, seat: Any, observation: Any) -> None:
    """Same seed and actions give the same observations, masks, rewards and ends."""
    options: dict[str, Any] = {"board": [short, "shikoku"], "seat": seat, "reward": "margin"}
    opponents = ["greedy", CountingAgent("random"), "random"]
    env = TokaidoVecEnv(6, opponents, 9, observation=observation, **options)
    envs = TokaidoDuoVectorEnv(6, opponents, observation=observation, **options)
    assert (env.observation_space, env.action_space) == (
        envs.single_observation_space,
        envs.single_action_space,
    )
    seen, _ = envs.reset(seed=9)
    assert (env.reset().tolist(), env.observation_space.dtype) == (seen.tolist(), seen.dtype)
    ends = 0
    for actions, observations, rewards, dones, infos in walk(env, 200):
        seen, paid, terminations, _, info = envs.step(actions)
        assert (observations.dtype, rewards.dtype) == (seen.dtype, np.float32)
        assert observations.tolist() == seen.tolist()
        assert rewards.tolist() == paid.tolist()
        assert dones.tolist() == terminations.tolist()
        assert np.array_equal(env.action_masks(), info["action_mask"])
        for i in np.flatnonzero(dones):
            final = {key: info["final_info"][key][i] for key in ("seed", "seat", "board")}
            assert infos[i].items() >= (final | {"TimeLimit.truncated": False}).items()
            assert infos[i]["terminal_observation"].tolist() == info["final_obs"][i].tolist()
            ends += 1
    assert ends > 50


def test_step__refuses_illegal_actions_but_does_not_blame_the_learner_for_an_opponent() -> None:
    env = TokaidoVecEnv(3, [make("greedy")], 7)
    seen = env.reset()
    actions = random_legal_actions(env.action_masks(), np.random.default_rng(0))
    actions[1] = N_ACTIONS
    with pytest.raises(IllegalMove, match=r"game 1: illegal action 49 .*: .*; .* use MaskablePPO"):
        env.step(actions)
    assert np.array_equal(env.observe(), seen)

    class Wrong(CountingAgent):
        def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> Ints:
            return super().act(boards, states, legal, keys) * 0 - 1

    env = TokaidoVecEnv(2, Wrong(), 7, seat=0)
    env.reset()
    with pytest.raises(IllegalMove, match=r"^agent 'recorder': game \d: (?!.*MaskablePPO)"):
        list(walk(env, 40))


# SB3 conventions


def test_set_opponents__passes_games_and_time_on(short: Path) -> None:
    """The next game by default, and by `set_attr`; at once on request."""
    first, second, third = (CountingAgent() for _ in range(3))
    env = TokaidoVecEnv(4, [first, second], 0, short)
    env.reset()
    env.set_opponents(third, [0, 2], "now")
    assert env.get_attr("opponent") == [third, second, third, second]
    env.set_opponents(first, [0])
    env.set_attr("opponent", first, 3)
    assert env.get_attr("opponent") == [third, second, third, second]
    done = np.zeros(4, bool)
    while not done.all():
        done |= next(walk(env, 1))[3]
    assert env.get_attr("opponent") == [first, second, third, first]


def without_time(info: dict[str, Any]) -> dict[str, Any]:
    if "episode" not in info:
        return info
    statistics = {key: value for key, value in info["episode"].items() if key != "t"}
    last = info["terminal_observation"].tolist()
    return info | {"episode": statistics, "terminal_observation": last}


def test_infos__have_the_statistics_of_vec_monitor(short: Path) -> None:
    """For complete and short games; the wrapper replaces this environment's statistics."""
    boards = ["shikoku", short]
    env, other = (TokaidoVecEnv(4, ["greedy", "random"], 1, boards) for _ in range(2))
    with pytest.warns(UserWarning, match="statistics will beoverwritten"):
        monitored = VecMonitor(other)
    assert np.array_equal(env.reset(), monitored.reset())
    ends = 0
    for actions, *_, infos in walk(env, 300):
        *_, theirs = monitored.step(actions)
        assert [*map(without_time, infos)] == [*map(without_time, theirs)]
        ends += sum(map(bool, infos))
    assert ends > 10


def test_masks__are_found_by_sb3_contrib() -> None:
    env = TokaidoVecEnv(5, "random", 0)
    env.reset()
    assert is_masking_supported(env)
    masks = get_action_masks(env)
    assert (masks.shape, masks.dtype) == ((5, N_ACTIONS), np.bool_)
    assert np.array_equal(masks, env.action_masks())
    assert np.array_equal(env.env_method("action_masks", indices=[3, 1]), masks[[3, 1]])
    assert np.array_equal(get_action_masks(VecNormalize(env)), masks)


def test_attributes__are_read_and_set_per_game() -> None:
    env = TokaidoVecEnv(3, ["random", "greedy"], 0, seat=1)
    env.reset()
    assert [agent.spec for agent in env.get_attr("opponent", [1, 2])] == ["greedy", "random"]
    assert env.get_attr("seat", 2) == [1]
    assert env.get_attr("render_mode") == [None] * 3
    assert [env.has_attr(name) for name in ("opponent", "seat", "action_masks", "weather")] == [
        *[True, True, True, False]
    ]
    with pytest.raises(AttributeError, match="attr_name: seats cannot be set"):
        env.set_attr("seat", 0, [0])
    with pytest.raises(AttributeError, match="attr_name: unknown 'opponents'"):
        env.set_attr("opponents", "random")
    assert env.env_is_wrapped(Monitor, [0, 2]) == [True] * 2
    assert env.env_is_wrapped(gymnasium.Wrapper) == [False] * 3


def test_render__shows_the_games() -> None:
    pytest.importorskip("resvg_py")
    env = TokaidoVecEnv(2, "random", 7, seat=0, render_mode="rgb_array")
    env.reset()
    height, width, _ = env.get_images()[0].shape
    assert env.render().shape == (2 * height, width, 3)


def test_seed__applies_from_the_next_reset_and_later_resets_continue() -> None:
    env = TokaidoVecEnv(3, "greedy", 7)
    first = env.reset()
    assert env.seed() == [game_seed(7, i) for i in range(3)]
    seeds = [game_seed(20, i) for i in range(3)]
    assert env.seed(20) == seeds
    assert np.array_equal(env.observe(), first)
    for episode in range(3):
        own = [int(episode_seed(seed, episode)) for seed in seeds]
        now = [LearnerGame(seed, drawn_seat(seed), make("greedy")) for seed in own]
        assert env.reset().tolist() == [alone.observation() for alone in now]
        assert env.seed() == seeds


def test_set_options__starts_from_a_position_once() -> None:
    game = game_at(left=["artist"], lead=1, round=7, mine={"coins": 5})
    env = TokaidoVecEnv(2, "random", 7, seat=1)
    env.set_options({"state": game.to_dict()})
    env.reset()
    legal = [np.flatnonzero(mask).tolist() for mask in env.action_masks()]
    assert legal == [game.legal_actions()] * 2
    env.reset()
    assert env.games.batch.states["round"].tolist() == [1, 1]
    env.set_options([{"state": game.to_dict()}, {}])
    with pytest.raises(ValueError, match=r"set_options: expected .* the same for all games"):
        env.reset()


# Learning


@pytest.mark.slow
def test_algorithms_without_masks__end_in_an_error_with_the_remedy() -> None:
    env = TokaidoVecEnv(4, "random", 0)
    model = PPO("MlpPolicy", env, device="cpu", seed=0)
    with pytest.raises(IllegalMove, match=r"use MaskablePPO.*pass action_masks=.* to predict"):
        model.learn(400)
    with pytest.raises(IllegalMove, match="evaluate_policy of sb3_contrib"):
        evaluate_policy(model, env, 4)
    mask = env.action_masks()[1]
    assert mask[env.action_space.sample(mask.astype("int8"))]
