"""Networks that tests play with: random ones, and one whose outputs are known by hand."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env import Batch
from tokaido_env.agents.eval_tables import N_TERMS, eval_tables_of, load_weights
from tokaido_env.agents.network_inputs import TERM_SCALES, encode_positions
from tokaido_env.agents.policy import LayerSizes, Policy, tensor_shapes
from tokaido_env.core.observation import N_FEATURES
from tokaido_env.core.state import STATE

SMALL = LayerSizes(24, 10, 6, 16, 8)

Arrays = tuple[npt.NDArray[np.void], npt.NDArray[np.void], npt.NDArray[np.uint64]]


def random_policy(
    sizes: LayerSizes = SMALL, seed: int = 0, *, uses_board_features: bool = False
) -> Policy:
    """A policy of random weights and biases, all of them in use."""
    rng = np.random.default_rng(seed)
    tensors = {
        name: (rng.normal(size=shape) / np.sqrt(shape[-1])).astype(np.float32)
        for name, shape in tensor_shapes(sizes, uses_board_features).items()
    }
    return Policy(tensors, {"maker": "tests"})


def counting_policy(outlook: float = 10.0) -> Policy:
    """A policy that knows what the heuristic knows.

    Its value is tanh(x / 20) where x is the sum of all terms, mine less theirs, weighted as between
    opening and ending: so flat that it tells better from worse when all is won, too. Its logits
    are the outlook times a factor.
    """
    sizes = LayerSizes(8, 8, 8, 8, 8)
    tensors = {name: np.zeros(shape, np.float32) for name, shape in tensor_shapes(sizes).items()}
    weights = load_weights().mean(axis=0) / TERM_SCALES
    above, below = tensors["trunk.0.weight"][sizes.first :][:2]  # the parts of x
    above[N_FEATURES : N_FEATURES + N_TERMS] = weights
    above[N_FEATURES + N_TERMS : N_FEATURES + 2 * N_TERMS] = -weights
    below[:] = -above
    tensors["value.0.weight"][:2, :2] = np.eye(2)
    tensors["value.1.weight"][0, :2] = 0.05, -0.05
    tensors["outlook.weight"][0] = outlook
    return Policy(tensors)


def inputs_of(
    boards: npt.NDArray[np.void], states: npt.NDArray[np.void], legal: npt.NDArray[np.uint64]
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """What a network reads of positions, on one board (1,) or each on its own (n,)."""
    which = np.arange(len(states)) % len(boards)
    return encode_positions(boards, eval_tables_of(boards), which, states, legal)


def decisions(
    boards: Sequence[Any] = ("shikoku",), games: int = 24, moves: int = 60, most: int = 40
) -> Arrays:
    """Positions with a decision to take, of all phases that occur: boards, states, legal (n,)."""
    batch = Batch(games, list(boards), observation=None)
    batch.reset(seed=3)
    every = np.arange(games)
    rows: list[Arrays] = []
    for _ in range(moves):
        batch.play("random")
        there = every[batch.legal != 0]
        own = np.broadcast_to(batch.boards_of(there), len(there))
        rows.append((own.copy(), batch.states[there], batch.legal[there]))
    columns = [np.concatenate(column) for column in zip(*rows, strict=True)]
    phases = columns[1]["phase"]
    chosen = np.concatenate([np.flatnonzero(phases == phase)[:most] for phase in np.unique(phases)])
    return columns[0][chosen], columns[1][chosen].astype(STATE), columns[2][chosen]
