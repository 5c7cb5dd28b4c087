"""PPO by self-play with JAX, over `Batch`.

    pip install jax optax
    python docs/recipes/jax_ppo.py --updates 50 --seed 1

The games run in `Batch`. JAX compiles two functions: one chooses actions, one learns from a
rollout. JAX reads observations without a copy. One network plays both seats, so a value changes its
sign where the other player decides next (`agents/one_file_ppo.py` does the same in PyTorch).
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import optax

from tokaido_env import Batch
from tokaido_env.agent import Agent
from tokaido_env.agents.registry import make
from tokaido_env.arena.tournament import play_match
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.observation import N_FEATURES
from tokaido_env.observers import masks, observe

GAMES, STEPS = 1024, 64  # of a rollout
EPOCHS, MINIBATCHES, WIDTH = 4, 16, 256
LEARNING_RATE, ENTROPY, CLIP, LAMBDA, MAX_NORM = 1e-3, 0.01, 0.2, 0.95, 0.5

Weights = dict[str, tuple[jax.Array, jax.Array]]


def initial_weights(key: jax.Array) -> Weights:
    """Return weights of two hidden layers, a policy head and a value head."""
    he_init, head_init = jax.nn.initializers.he_uniform(), jax.nn.initializers.orthogonal(0.01)
    sizes = {
        "hidden_1": (he_init, N_FEATURES, WIDTH),
        "hidden_2": (he_init, WIDTH, WIDTH),
        "policy": (head_init, WIDTH, N_ACTIONS),
        "value": (head_init, WIDTH, 1),
    }
    keys = jax.random.split(key, len(sizes))
    return {
        name: (init(key, (inputs, outputs)), jnp.zeros(outputs))
        for key, (name, (init, inputs, outputs)) in zip(keys, sizes.items(), strict=True)
    }


def network(
    weights: Weights, observation: jax.Array, mask: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return log-probabilities (n, 49), about -1e9 if illegal, and values (n,)."""
    hidden = observation
    for layer in ("hidden_1", "hidden_2"):
        hidden = jax.nn.relu(hidden @ weights[layer][0] + weights[layer][1])
    logits = hidden @ weights["policy"][0] + weights["policy"][1]
    value = jnp.tanh(hidden @ weights["value"][0] + weights["value"][1])[:, 0]
    return jax.nn.log_softmax(jnp.where(mask, logits, -1e9)), value


@jax.jit
def decide(
    weights: Weights, observation: jax.Array, mask: jax.Array, key: jax.Array
) -> tuple[Any, ...]:
    """Return sampled actions, their log-probabilities, and values, each (n,)."""
    log_probs, value = network(weights, observation, mask)
    action = jax.random.categorical(key, log_probs)
    return action, jnp.take_along_axis(log_probs, action[:, None], 1)[:, 0], value


def optimizer(updates: int) -> optax.GradientTransformation:
    """Return Adam with a learning rate that decays to 0."""
    rate = optax.linear_schedule(LEARNING_RATE, 0.0, updates * EPOCHS * MINIBATCHES)
    return optax.chain(optax.clip_by_global_norm(MAX_NORM), optax.adam(rate, eps=1e-5))


def loss(weights: Weights, minibatch: dict[str, jax.Array]) -> jax.Array:
    """Return the PPO loss; forced moves contribute to the value loss only."""
    log_probs, value = network(weights, minibatch["observation"], minibatch["mask"])
    log_prob = jnp.take_along_axis(log_probs, minibatch["action"][:, None], 1)[:, 0]
    has_choice = minibatch["mask"].sum(axis=1) > 1
    mean = partial(jnp.mean, where=has_choice)
    advantage = (minibatch["advantage"] - mean(minibatch["advantage"])) / (
        jnp.std(minibatch["advantage"], where=has_choice) + 1e-8
    )
    ratio = jnp.exp(log_prob - minibatch["log_prob"])
    clipped = jnp.minimum(ratio * advantage, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * advantage)
    entropy = -(jnp.exp(log_probs) * jnp.maximum(log_probs, -50)).sum(axis=1)
    error = jnp.square(value - minibatch["target"]).mean()
    return -mean(clipped + ENTROPY * entropy) + 0.5 * error


def advantages(rollout: dict[str, jax.Array], last: jax.Array) -> jax.Array:
    """Return generalised advantage estimates (STEPS, GAMES), from the deciding player's view.

    `last` holds the values (GAMES,) of the positions after the last step.
    """

    def step_back(carried: tuple[Any, Any], step: tuple[Any, ...]) -> tuple[tuple[Any, Any], Any]:
        next_value, advantage = carried
        reward, sign, value = step
        advantage = reward + sign * next_value - value + LAMBDA * sign * advantage
        return (value, advantage), advantage

    steps = rollout["reward"], rollout["sign"], rollout["value"]
    return jax.lax.scan(step_back, (last, jnp.zeros_like(last)), steps, reverse=True)[1]


@partial(jax.jit, static_argnums=0)
def learn(
    adam: optax.GradientTransformation,
    weights: Weights,
    state: optax.OptState,
    rollout: dict[str, jax.Array],
    last: jax.Array,
    key: jax.Array,
) -> tuple[Weights, optax.OptState]:
    """Return weights and optimizer state after all updates of a rollout."""
    advantage = advantages(rollout, last)
    target = jnp.clip(advantage + rollout["value"], -1, 1)
    flat = {
        name: array.reshape(GAMES * STEPS, *array.shape[2:])
        for name, array in (rollout | {"advantage": advantage, "target": target}).items()
    }

    def step(carried: tuple[Any, Any], minibatch: jax.Array) -> tuple[tuple[Any, Any], None]:
        weights, state = carried
        batch = {name: array[minibatch] for name, array in flat.items()}
        change, state = adam.update(jax.grad(loss)(weights, batch), state)
        return (optax.apply_updates(weights, change), state), None

    keys = jax.random.split(key, EPOCHS)
    orders = jnp.stack([jax.random.permutation(one, GAMES * STEPS) for one in keys])
    return jax.lax.scan(step, (weights, state), orders.reshape(EPOCHS * MINIBATCHES, -1))[0]


def shared_buffers(batch: Batch, timestep: Any) -> tuple[jax.Array, jax.Array]:
    """Return observation and mask as JAX views of the buffers of `Batch(copy=False)`."""
    observation = jax.dlpack.from_dlpack(timestep.observation, copy=False)
    return observation, jax.dlpack.from_dlpack(batch.padded_mask, copy=False)[:, :N_ACTIONS] > 0


def collect(
    weights: Weights, batch: Batch, timestep: Any, key: jax.Array
) -> tuple[dict[str, npt.NDArray[Any]], Any]:
    """Play with the network; return the rollout, (STEPS, GAMES, …), and the last time step."""
    steps = []
    for one in jax.random.split(key, STEPS):
        data = {"observation": timestep.observation.copy(), "mask": timestep.mask > 0}
        # Wait for the results, because the next step overwrites the shared buffers.
        action, log_prob, value = jax.block_until_ready(
            decide(weights, *shared_buffers(batch, timestep), one)
        )
        timestep = batch.step(np.asarray(action, np.int64))
        same, over = timestep.next_player == timestep.player, timestep.next_player < 0
        sign = np.where(over, 0.0, np.where(same, 1.0, -1.0)).astype(np.float32)
        reward = timestep.reward[batch.all_games, timestep.player].astype(np.float32)
        data |= {"action": action, "log_prob": log_prob, "value": value}
        steps.append(data | {"reward": reward, "sign": sign})
    return {name: np.stack([np.asarray(one[name]) for one in steps]) for name in steps[0]}, timestep


def train(updates: int, seed: int) -> Weights:
    """Train a network and print progress."""
    key, chance = jax.random.split(jax.random.key(seed))
    weights, adam = initial_weights(key), optimizer(updates)
    state, batch, since = adam.init(weights), Batch(GAMES, copy=False), time.monotonic()
    timestep = batch.reset(seed=seed)
    for update in range(1, updates + 1):
        chance, play_key, order_key = jax.random.split(chance, 3)
        rollout, timestep = collect(weights, batch, timestep, play_key)
        last = jax.block_until_ready(network(weights, *shared_buffers(batch, timestep))[1])
        weights, state = learn(adam, weights, state, rollout, last, order_key)
        if update % 10 == 0 or update == updates:
            decisions, spent = update * STEPS * GAMES, time.monotonic() - since
            print(f"{decisions:>10,} decisions {decisions / spent:>7,.0f}/s", flush=True)
    return weights


class JaxAgent(Agent):
    """Plays the network's most probable action."""

    spec = "jax_ppo"

    def __init__(self, weights: Weights) -> None:
        self.weights, self.network = weights, jax.jit(network)

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
        """Return actions; see `Agent.act`."""
        n = len(legal)
        # JAX compiles each shape, so pad to powers of two while games of a match end.
        rows = ((0, (1 << (n - 1).bit_length()) - n), (0, 0))
        observation, allowed = np.pad(observe(boards, states), rows), np.pad(masks(legal), rows)
        log_probs, _ = self.network(self.weights, observation, allowed)
        return np.asarray(log_probs[:n].argmax(axis=1), np.int64)


def main() -> None:
    """Train and play a match."""
    parser = argparse.ArgumentParser(description="PPO by self-play with JAX.")
    parser.add_argument(
        "--updates",
        type=int,
        default=50,
        help=f"updates of {STEPS * GAMES:,} decisions each (default: 50)",
    )
    parser.add_argument("--seed", type=int, default=1, help="random seed (default: 1)")
    parser.add_argument(
        "--games", type=int, default=4000, help="games of the match, even (default: %(default)s)"
    )
    options = parser.parse_args()
    weights = train(options.updates, options.seed)
    match = play_match(JaxAgent(weights), make("greedy"), options.games, options.seed)
    low, high = match.interval
    print(f"against greedy: {match.score:.1%} ({low:.1%} - {high:.1%}, {options.games:,} games)")


if __name__ == "__main__":
    main()
