"""Make the sample inputs that scale the first layer of networks (`tokaido_env.agents.weights`).

    python benchmarks/sample_inputs.py

Other samples change the integers of every network, and with them moves of the shipped ones: make
the file again only when the inputs change, for networks that are trained on them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tokaido_env import Batch
from tokaido_env.agents.weights import SAMPLE_INPUTS
from tokaido_env.core.state import copy_rows
from tokaido_env.features.network_inputs import encode_positions

BOARDS = "shikoku", *(f"family:{number}" for number in range(15))
GAMES, MOVES, EVERY = 32, 130, 8  # games, decisions of each, one of so many


def sample_inputs() -> npt.NDArray[np.float32]:
    """Return the inputs (n, N_INPUTS) of positions of played games."""
    batch = Batch(GAMES, list(BOARDS), observation=None)
    batch.reset(seed=np.arange(GAMES))
    inputs = []
    for move in range(MOVES):
        if move % EVERY == 0:
            at = np.flatnonzero(batch.legal)
            boards, which = batch.boards_of(at), np.arange(len(at))
            states = copy_rows(batch.states, at)
            inputs.append(encode_positions(boards, which, states))
        batch.play("random" if move % 10 == 9 else "greedy")
    return np.concatenate(inputs)


if __name__ == "__main__":
    np.savez_compressed(SAMPLE_INPUTS, inputs=sample_inputs())
