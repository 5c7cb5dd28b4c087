"""`agents/one_file_td.py`: the values of moves."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
import torch

from tokaido_env import Batch
from tokaido_env.features.afterstates import CHANCE, END, Afterstates
from tokaido_env.observers import afterstates

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "agents"))

import one_file_td as td


def value(network: td.Network, after: Afterstates, row: int, mover: int) -> float:
    if after.kind[row] == END:
        return float(after.result[row])
    sign = 1 if after.viewer[row] == mover else -1
    return sign * torch.tanh(network(torch.from_numpy(after.inputs[row : row + 1]))).item()


@pytest.mark.parametrize("track", ["raw", "geometry"])
def test_values__are_those_of_the_best_action_of_the_same_player(track: str) -> None:
    torch.manual_seed(0)
    network, batch = td.Network(track), Batch(16, "family:train/3", observation=None)
    torch.nn.init.normal_(network.layers[-1].weight)
    batch.reset(seed=0)
    looked = 0
    for _ in range(60):
        movers, after = batch.states["player"].copy(), batch.afterstates(inputs=network.inputs)
        boards = batch.boards_of(batch.all_games)
        values, own = network.values(boards, after, movers)
        for row, game in enumerate(after.game):
            mover, at = movers[game], slice(row, row + 1)
            expected, again = value(network, after, row, mover), False
            if after.kind[row] not in (CHANCE, END) and after.viewer[row] == mover:
                again = True
                board = boards[game : game + 1]
                following = afterstates(board, after.states[at], after.legal[at], network.inputs)
                rows = range(len(following.game))
                expected = max(value(network, following, each, mover) for each in rows)
            assert values[row] == pytest.approx(expected, abs=1e-5)
            assert own[row] == (not again and after.kind[row] != END)
            looked += again
        batch.play("random")
    assert looked > 100
