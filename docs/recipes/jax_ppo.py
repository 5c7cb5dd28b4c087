"""PPO by self-play with JAX, over `Batch`.

    pip install jax optax
    python docs/recipes/jax_ppo.py --updates 50 --seed 1

The games run in `Batch`; JAX compiles two functions, one to decide and one to learn from a rollout.
Observations go to it without a copy. One network plays both seats, so a value counts with the other
sign where the other player decides next (`agents/one_file_ppo.py` has the same in
PyTorch).
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

GAMES, STEPS = 1024, 64  # a rollout
EPOCHS, MINIBATCHES, WIDTH = 4, 16, 256
LEARNING_RATE, ENTROPY, CLIP, LAMBDA, MAX_NORM = 1e-3, 0.01, 0.2, 0.95, 0.5

Weights = dict[str, tuple[jax.Array, jax.Array]]


def begin(key: jax.Array) -> Weights:
    """Return the weights of two hidden layers, of a head for actions and of one for values."""
    he, first = jax.nn.initializers.he_uniform(), jax.nn.initializers.orthogonal(0.01)
    sizes = {
        "below": (he, N_FEATURES, WIDTH),
        "above": (he, WIDTH, WIDTH),
        "policy": (first, WIDTH, N_ACTIONS),
        "value": (first, WIDTH, 1),
    }
    keys = jax.random.split(key, len(sizes))
    return {
        name: (made(key, (wide, high)), jnp.zeros(high))
        for key, (name, (made, wide, high)) in zip(keys, sizes.items(), strict=True)
    }


def network(weights: Weights, seen: jax.Array, mask: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return log-probabilities (n, 49), of illegal actions about -1e9, and values (n,)."""
    inner = seen
    for layer in ("below", "above"):
        inner = jax.nn.relu(inner @ weights[layer][0] + weights[layer][1])
    logits = inner @ weights["policy"][0] + weights["policy"][1]
    value = jnp.tanh(inner @ weights["value"][0] + weights["value"][1])[:, 0]
    return jax.nn.log_softmax(jnp.where(mask, logits, -1e9)), value


@jax.jit
def decide(weights: Weights, seen: jax.Array, mask: jax.Array, key: jax.Array) -> tuple[Any, ...]:
    """Return actions that are drawn, their log-probabilities, and values, each (n,)."""
    log_probs, value = network(weights, seen, mask)
    action = jax.random.categorical(key, log_probs)
    return action, jnp.take_along_axis(log_probs, action[:, None], 1)[:, 0], value


def optimizer(updates: int) -> optax.GradientTransformation:
    """Return Adam with a rate that falls to nothing."""
    rate = optax.linear_schedule(LEARNING_RATE, 0.0, updates * EPOCHS * MINIBATCHES)
    return optax.chain(optax.clip_by_global_norm(MAX_NORM), optax.adam(rate, eps=1e-5))


def loss(weights: Weights, some: dict[str, jax.Array]) -> jax.Array:
    """Return what PPO minimises; decisions without a choice teach values alone."""
    log_probs, value = network(weights, some["seen"], some["mask"])
    log_prob = jnp.take_along_axis(log_probs, some["action"][:, None], 1)[:, 0]
    free = some["mask"].sum(axis=1) > 1
    mean = partial(jnp.mean, where=free)
    advantage = (some["advantage"] - mean(some["advantage"])) / (
        jnp.std(some["advantage"], where=free) + 1e-8
    )
    ratio = jnp.exp(log_prob - some["log_prob"])
    clipped = jnp.minimum(ratio * advantage, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * advantage)
    entropy = -(jnp.exp(log_probs) * jnp.maximum(log_probs, -50)).sum(axis=1)
    error = jnp.square(value - some["target"]).mean()
    return -mean(clipped + ENTROPY * entropy) + 0.5 * error


def advantages(rollout: dict[str, jax.Array], last: jax.Array) -> jax.Array:
    """Return generalised advantages of who decided; `last`: values behind the last step."""

    def back(carried: tuple[Any, Any], at: tuple[Any, ...]) -> tuple[tuple[Any, Any], Any]:
        after, advantage = carried
        reward, sign, value = at
        advantage = reward + sign * after - value + LAMBDA * sign * advantage
        return (value, advantage), advantage

    steps = rollout["reward"], rollout["sign"], rollout["value"]
    return jax.lax.scan(back, (last, jnp.zeros_like(last)), steps, reverse=True)[1]


@partial(jax.jit, static_argnums=0)
def learn(
    adam: optax.GradientTransformation,
    weights: Weights,
    state: optax.OptState,
    rollout: dict[str, jax.Array],
    last: jax.Array,
    key: jax.Array,
) -> tuple[Weights, optax.OptState]:
    """Return weights and the optimizer's state after all steps of a rollout."""
    advantage = advantages(rollout, last)
    target = jnp.clip(advantage + rollout["value"], -1, 1)
    flat = {
        name: told.reshape(GAMES * STEPS, *told.shape[2:])
        for name, told in (rollout | {"advantage": advantage, "target": target}).items()
    }

    def step(carried: tuple[Any, Any], some: jax.Array) -> tuple[tuple[Any, Any], None]:
        weights, state = carried
        slope = jax.grad(loss)(weights, {name: told[some] for name, told in flat.items()})
        change, state = adam.update(slope, state)
        return (optax.apply_updates(weights, change), state), None

    keys = jax.random.split(key, EPOCHS)
    orders = jnp.stack([jax.random.permutation(one, GAMES * STEPS) for one in keys])
    return jax.lax.scan(step, (weights, state), orders.reshape(EPOCHS * MINIBATCHES, -1))[0]


def shared(batch: Batch, turn: Any) -> tuple[jax.Array, jax.Array]:
    """Return observation and mask as JAX sees the buffers of `Batch(copy=False)`."""
    seen = jax.dlpack.from_dlpack(turn.observation, copy=False)
    return seen, jax.dlpack.from_dlpack(batch.padded_mask, copy=False)[:, :N_ACTIONS] > 0


def collect(
    weights: Weights, batch: Batch, turn: Any, key: jax.Array
) -> tuple[dict[str, npt.NDArray[Any]], Any]:
    """Play on by the network; return what was seen and done, (STEPS, GAMES, …), and the turn."""
    steps = []
    for one in jax.random.split(key, STEPS):
        told = {"seen": turn.observation.copy(), "mask": turn.mask > 0}
        # All is there before the batch plays on: the next step overwrites what was shared.
        action, log_prob, value = jax.block_until_ready(decide(weights, *shared(batch, turn), one))
        turn = batch.step(np.asarray(action, np.int64))
        same, over = turn.next_player == turn.player, turn.next_player < 0
        sign = np.where(over, 0.0, np.where(same, 1.0, -1.0)).astype(np.float32)
        own = turn.reward[batch.all_games, turn.player].astype(np.float32)
        told |= {"action": action, "log_prob": log_prob, "value": value}
        steps.append(told | {"reward": own, "sign": sign})
    return {name: np.stack([np.asarray(one[name]) for one in steps]) for name in steps[0]}, turn


def train(updates: int, seed: int) -> Weights:
    """Train a network, telling now and then how far it is."""
    key, chance = jax.random.split(jax.random.key(seed))
    weights, adam = begin(key), optimizer(updates)
    state, batch, since = adam.init(weights), Batch(GAMES, copy=False), time.monotonic()
    turn = batch.reset(seed=seed)
    for update in range(1, updates + 1):
        chance, of_play, of_order = jax.random.split(chance, 3)
        rollout, turn = collect(weights, batch, turn, of_play)
        last = jax.block_until_ready(network(weights, *shared(batch, turn))[1])
        weights, state = learn(adam, weights, state, rollout, last, of_order)
        if update % 10 == 0 or update == updates:
            decisions, spent = update * STEPS * GAMES, time.monotonic() - since
            print(f"{decisions:>10,} decisions {decisions / spent:>7,.0f}/s", flush=True)
    return weights


class JaxAgent(Agent):
    """Plays the action that the network likes best."""

    spec = "jax_ppo"

    def __init__(self, weights: Weights) -> None:
        self.weights, self.network = weights, jax.jit(network)

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
        """Return actions, as `Agent.act`."""
        n = len(legal)
        # A match thins out, and every shape would be compiled: only powers of two are.
        rows = ((0, (1 << (n - 1).bit_length()) - n), (0, 0))
        seen, allowed = np.pad(observe(boards, states), rows), np.pad(masks(legal), rows)
        log_probs, _ = self.network(self.weights, seen, allowed)
        return np.asarray(log_probs[:n].argmax(axis=1), np.int64)


def main() -> None:
    """Train, and play a match."""
    parser = argparse.ArgumentParser(description="PPO by self-play with JAX.")
    parser.add_argument("--updates", type=int, default=50, help=f"of {STEPS * GAMES:,} decisions")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--games", type=int, default=4000, help="of the match at the end, even")
    options = parser.parse_args()
    weights = train(options.updates, options.seed)
    match = play_match(JaxAgent(weights), make("greedy"), options.games, options.seed)
    low, high = match.interval
    print(f"against greedy: {match.score:.1%} ({low:.1%} - {high:.1%}, {options.games:,} games)")


if __name__ == "__main__":
    main()
