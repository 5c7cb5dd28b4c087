"""Random moves in batches without move checks; a script for test_batch_validation.py.

    python tests/garbage.py PLIES SEED

A batch with checks plays the legal ones of the same moves; both must have the same states.
"""

import sys
import tempfile
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from positions import other_board_data, shikoku_data, write_board

from tokaido_env import position
from tokaido_env.batch import Batch
from tokaido_env.core.rules import legal_mask
from tokaido_env.spaces import observation_space

Ints = npt.NDArray[np.int64]

AFTERSTATES: Any = observation_space("afterstates")
N = 24
EXTREMES = np.array(
    [-(2**63), 2**63 - 1, -(2**32), 2**32, 2**31, -1, -2, 10**6, 255, 256, 1000, *range(48, 72)]
)
COMPARED = ("seed", "episode", "decisions")


def random_moves(rng: np.random.Generator, legal: Ints) -> Ints:
    """Return moves of all kinds; about half are the legal ones."""
    whole = rng.integers(-(2**63), 2**63 - 1, len(legal), endpoint=True)
    small = rng.integers(0, 301, len(legal))
    extreme = rng.choice(EXTREMES, len(legal))
    kind = rng.integers(0, 8, len(legal))
    return np.choose(np.minimum(kind, 3), [whole, small, extreme, legal])


def legal_moves(batch: Batch, rng: np.random.Generator) -> Ints:
    """Return a legal move for each game, 0 for finished games."""
    weights = np.zeros((len(batch), 256))
    weights[:, :49] = batch.masks(np.arange(len(batch)))
    if batch.explicit:  # type: ignore[attr-defined]
        weights[:, :216] += batch.outcome_weights() > 0
    return (weights * rng.random(weights.shape)).argmax(axis=1)


def check_bounds(observation: Any) -> None:
    """Check that the numbers of an observation are within the bounds of its space."""
    arrays = observation if isinstance(observation, dict) else {"": observation}
    for name, each in arrays.items():
        space = AFTERSTATES[name] if "actions" in arrays else None
        low, high = (space.low, space.high) if space else (0, 1)
        assert each.dtype == np.uint8 or ((each >= low) & (each <= high)).all()


def check(batch: Batch) -> None:
    """Check that states are valid, masks are the legal moves and observations are in bounds."""
    games = np.arange(len(batch))
    masks = batch.masks(games)
    for i in games.tolist():
        index = int(batch.episode_info["board"][i])
        board, states = batch.pool[index], batch.states[i : i + 1].copy()
        again = position.from_dict(board, position.to_dict(board, states[0]))
        assert again.tobytes() == states.tobytes(), f"game {i}"
        mask = legal_mask(board.record, states, 0)
        assert mask == batch.legal[i], f"game {i}"
        assert sum(1 << int(a) for a in np.flatnonzero(masks[i])) == mask, f"game {i}"
    for seat in range(2):
        check_bounds(batch.observe(games, np.full(len(games), seat)))


def have_same_state(batch: Batch, checked: Batch) -> bool:
    arrays = [
        (batch.states, checked.states),
        (batch.luck, checked.luck),
        (batch.legal, checked.legal),
    ]
    arrays += [(batch.episode_info[name], checked.episode_info[name]) for name in COMPARED]
    return all(a.tobytes() == b.tobytes() for a, b in arrays)


def fuzz(chance: Any, autoreset: bool, boards: list[Any], plies: int, seed: int) -> int:
    """Play random moves; return the number of ignored ones."""
    rng = np.random.default_rng(seed)
    options = {"chance": chance, "autoreset": autoreset, "observation": None}
    batch = Batch(N, boards, check=False, copy=False, **options)
    checked = Batch(N, boards, **options)
    for each in (batch, checked):
        each.explicit = chance == "explicit"  # type: ignore[attr-defined]
        each.set_bots(np.arange(2), np.array([[0, 1], [2, 0]]))
        each.reset(seed=seed)
    ignored = 0
    for ply in range(plies):
        moves = random_moves(rng, legal_moves(checked, rng))
        _, wrong = checked.check_moves(np.arange(N), moves)
        ignored += int(wrong.sum())
        players, ignored_here = batch.states["player"].copy(), wrong & ~batch.over
        turn = batch.step(moves)
        checked.advance(np.flatnonzero(~wrong), moves[~wrong])
        assert (turn.player == np.where(wrong, -1, players)).all()
        assert (turn.next_player == batch.states["player"])[ignored_here].all()
        assert not turn.reward[ignored_here].any()
        assert not turn.terminated[ignored_here].any()
        assert not turn.mask[batch.over].any()
        assert have_same_state(batch, checked), f"ply {ply}"
        over = np.flatnonzero(batch.over)
        if len(over) > N // 2:
            batch.begin(over)
            checked.begin(over)
        if ply % 100 == 0:
            check(batch)
    check(batch)
    batch.finish("random")
    check(batch)
    assert int(batch.episode_info["episode"].max()) > 0
    return ignored


def main(plies: int, seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        other = write_board(Path(folder) / "other.toml", other_board_data())
        short = shikoku_data() | {"name": "short", "max_rounds": 7}
        boards = ["shikoku", other, write_board(Path(folder) / "short.toml", short)]
        kinds = product(("sampled", "explicit"), (True, False))
        print(sum(fuzz(chance, again, boards, plies, seed) for chance, again in kinds))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
