"""A rollout through every library.

Each function plays games with random legal actions through a library, checks the results against
this package, and returns the speed.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from library_check import Check

import tokaido_env

STEPS = 3000


def speed(steps: int, since: float) -> str:
    """Return the rate of steps since a `time.process_time`, as text."""
    return f"{steps / (time.process_time() - since):,.0f} steps/CPU-s"


def random_action(mask: Any, rng: np.random.Generator) -> int:
    """Return a random legal action of a mask."""
    return int(rng.choice(np.flatnonzero(mask)))


def sb3_learns() -> str:
    """Train MaskablePPO for some rollouts."""
    from sb3_contrib import MaskablePPO

    from tokaido_env.sb3 import TokaidoVecEnv

    env = TokaidoVecEnv(64, ["greedy"], seed=1)
    model = MaskablePPO("MlpPolicy", env, n_steps=32, batch_size=512, seed=1, device="cpu")
    since = time.process_time()
    model.learn(3 * 64 * 32)
    _require(model.num_timesteps == 3 * 64 * 32, "the requested number of steps")
    return speed(model.num_timesteps, since)


def shimmy_plays() -> str:
    """Play the OpenSpiel game through Shimmy's PettingZoo environment."""
    from shimmy.openspiel_compatibility import OpenSpielCompatibilityV0

    import tokaido_env.openspiel

    env = OpenSpielCompatibilityV0(game_name=tokaido_env.openspiel.SHORT_NAME)
    env.reset(seed=1)
    rng, steps, since = np.random.default_rng(1), 0, time.process_time()
    for _ in env.agent_iter():
        _, _, terminated, truncated, info = env.last()
        if over := terminated or truncated:
            _require(len(env.agents) < 2 or sum(env.rewards.values()) == 0, "a sum of zero")
        env.step(None if over else random_action(info["action_mask"], rng))
        steps += not over
    return speed(steps, since)


def tianshou_collects() -> str:
    """Let Tianshou's collector play both seats with its masked random agent."""
    from tianshou.algorithm.multiagent.marl import MultiAgentPolicy
    from tianshou.algorithm.random import MARLRandomDiscreteMaskedOffPolicyAlgorithm
    from tianshou.data import Collector, VectorReplayBuffer
    from tianshou.env import DummyVectorEnv, PettingZooEnv

    def make() -> Any:
        return PettingZooEnv(tokaido_env.env())

    envs = DummyVectorEnv([make for _ in range(4)])
    space = make().action_space
    policies = {
        agent: MARLRandomDiscreteMaskedOffPolicyAlgorithm(space).policy
        for agent in ("player_0", "player_1")
    }
    buffer = VectorReplayBuffer(20_000, 4)
    collector = Collector(MultiAgentPolicy(policies), envs, buffer)
    collector.reset()
    since = time.process_time()
    result = collector.collect(n_episode=8)
    data = buffer.sample(0)[0]
    chosen = data.obs.mask[np.arange(len(data)), data.act]
    _require(bool(chosen.all()), "only legal actions")
    _require(bool((data.rew[data.done].sum(axis=1) == 0).all()), "rewards that sum to zero")
    return speed(int(result.n_collected_steps), since)


def agilerl_learns() -> str:
    """Train AgileRL's DQN with masks in the vector environment."""
    import gymnasium
    from agilerl.algorithms.dqn import DQN
    from agilerl.components.replay_buffer import ReplayBuffer
    from tensordict import TensorDict

    envs = gymnasium.make_vec("tokaido_env:TokaidoDuo-v0", num_envs=16, opponent="random")
    agent = DQN(envs.single_observation_space, envs.single_action_space, batch_size=64)
    memory = ReplayBuffer(max_size=4096)
    seen, infos = envs.reset(seed=1)
    since = time.process_time()
    for step in range(100):
        mask = infos["action_mask"]
        actions = np.asarray(agent.get_action(seen, epsilon=0.5, action_mask=mask))
        _require(bool(mask[np.arange(16), actions].all()), "only legal actions")
        after, rewards, terminated, truncated, infos = envs.step(actions)
        kept = {"obs": seen, "action": actions, "reward": rewards.astype(np.float32)[:, None]}
        kept |= {"next_obs": after, "done": (terminated | truncated).astype(np.float32)[:, None]}
        memory.add(TensorDict(kept, batch_size=[16]))
        if step % 10 == 9:
            agent.learn(memory.sample(64))
        seen = after
    return speed(1600, since)


def skrl_wraps() -> str:
    """Play the environment through skrl's wrapper, with tensors."""
    import gymnasium
    import torch
    from skrl.envs.wrappers.torch import wrap_env

    env = wrap_env(gymnasium.make("tokaido_env:TokaidoDuo-v0", opponent="random"))
    _, info = env.reset()
    rng, since = np.random.default_rng(1), time.process_time()
    for _ in range(STEPS):
        action = random_action(info["action_mask"], rng)
        _, reward, terminated, truncated, info = env.step(torch.tensor([[action]]))
        _require(tuple(reward.shape) == (1, 1), "a reward of the shape (1, 1)")
        if bool(terminated) or bool(truncated):
            _, info = env.reset()
    return speed(STEPS, since)


def textarena_plays() -> str:
    """Play TextArena's loop with a fake model that adds prose to its answers."""
    import textarena

    from tokaido_env.text import TextFormat

    sys.path.append(str(Path(__file__).resolve().parents[2] / "docs" / "recipes"))
    import textarena_env

    env = textarena.make(textarena_env.NAME, form=TextFormat("listed"))
    rng, steps, since = np.random.default_rng(1), 0, time.process_time()
    for seed in range(1):
        env.reset(num_players=2, seed=seed)
        done = False
        while not done:
            _, prompt = env.get_observation()
            legal = prompt.rpartition("Legal actions: ")[2].splitlines()[0].split(", ")
            done, _ = env.step(f'I think: {{"action": "{rng.choice(legal)}"}}')
            steps += 1
        rewards, infos = env.close()
        _require(sum(rewards.values()) == 0, "rewards that sum to zero")
        _require(not any(one["invalid_move"] for one in infos.values()), "legal answers")
    return speed(steps, since)


def _require(holds: bool, expected: str) -> None:
    if not holds:
        raise AssertionError(f"expected {expected}")


ROLLOUTS = (
    Check("sb3_contrib", "MaskablePPO learns", sb3_learns),
    Check("tianshou", "its collector plays both seats", tianshou_collects),
    Check("agilerl", "its DQN plays and learns with masks", agilerl_learns, needs=("peft",)),
    Check("skrl", "its wrapper plays", skrl_wraps),
    Check("shimmy", "plays the OpenSpiel game", shimmy_plays, needs=("open_spiel",)),
    Check("textarena", "its loop by a stand-in", textarena_plays),
)
