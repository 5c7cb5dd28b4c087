"""Networks for tests, and positions of random games to ask them about."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env import Batch, Game
from tokaido_env.agents.policy import LayerSizes, Policy, tensor_shapes
from tokaido_env.core.observation import N_FEATURES
from tokaido_env.core.state import CHANCE_PHASES, STATE
from tokaido_env.features.network_inputs import TERM_SCALES, encode_positions
from tokaido_env.features.terms import LOG_ODDS, N_TERMS

SMALL = LayerSizes(24, 10)
ROUNDING = 8e-3
"""By less than this the 16-bit weights of the first layer change the outputs of small networks."""

Arrays = tuple[npt.NDArray[np.void], npt.NDArray[np.void], npt.NDArray[np.uint64]]


def random_policy(sizes: LayerSizes = SMALL, seed: int = 0) -> Policy:
    """Return a policy with random weights and biases, none of them 0."""
    rng = np.random.default_rng(seed)
    tensors = {
        name: (rng.normal(size=shape) / np.sqrt(shape[-1])).astype(np.float32)
        for name, shape in tensor_shapes(sizes).items()
    }
    return Policy(tensors, {"maker": "tests"})


def counting_policy() -> Policy:
    """Return a policy with the knowledge of the heuristic.

    Its value is tanh(x / 20); x is the sum of all terms, mine less theirs, with the mean of the
    weights of opening and ending. The factor keeps the value from saturating.
    """
    sizes = LayerSizes(8, 8)
    tensors = {name: np.zeros(shape, np.float32) for name, shape in tensor_shapes(sizes).items()}
    weights = LOG_ODDS.mean(axis=0) / TERM_SCALES
    positive, negative = tensors["first.weight"][:2]  # the parts of x
    positive[N_FEATURES : N_FEATURES + N_TERMS] = weights
    positive[N_FEATURES + N_TERMS : N_FEATURES + 2 * N_TERMS] = -weights
    negative[:] = -positive
    tensors["second.weight"][:2, :2] = np.eye(2)
    tensors["value.weight"][0, :2] = 0.05, -0.05
    return Policy(tensors)


def inputs_of(
    boards: npt.NDArray[np.void], states: npt.NDArray[np.void]
) -> npt.NDArray[np.float32]:
    """Return `encode_positions` on one board (1,) or on the board of each position (n,)."""
    which = np.arange(len(states)) % len(boards)
    return encode_positions(boards, which, states)


def decisions(
    boards: Sequence[Any] = ("shikoku",), games: int = 24, moves: int = 60, most: int = 40
) -> Arrays:
    """Return decisions of random games: boards, states, legal (n,); `most` of each phase."""
    batch = Batch(games, list(boards), observation=None)
    batch.reset(seed=range(3, 3 + games))
    rows: list[Arrays] = []
    for _ in range(moves):
        batch.play("random")
        deciding = np.flatnonzero(batch.legal)
        own = np.broadcast_to(batch.boards_of(deciding), len(deciding))
        rows.append((own.copy(), batch.states[deciding], batch.legal[deciding]))
    columns = [np.concatenate(column) for column in zip(*rows, strict=True)]
    phases = columns[1]["phase"]
    chosen = np.concatenate([np.flatnonzero(phases == phase)[:most] for phase in np.unique(phases)])
    return columns[0][chosen], columns[1][chosen].astype(STATE), columns[2][chosen]


def random_play(
    board: str = "shikoku", games: int = 8, max_rounds: int = 999
) -> Iterator[tuple[Game, np.random.Generator]]:
    """Yield the positions of random games with explicit chance, before each move.

    Games pass only if they must. The generator is the one for the game's moves.
    """
    for seed in range(games):
        game, rng = Game(board, seed=seed, chance="explicit"), np.random.default_rng(seed)
        while not game.is_over and game.rounds < max_rounds:
            yield game, rng
            if game.phase in CHANCE_PHASES:
                labels, odds = zip(*game.outcomes(), strict=True)
                game.play(labels[rng.choice(len(labels), p=odds)])
                continue
            labels = [label for label in game.legal_labels() if label != "pass"]
            game.play(labels[rng.integers(len(labels))] if labels else "pass")
