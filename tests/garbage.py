"""Garbage moves into batches that do not check them; a script for test_batch_validation.py.

    python tests/garbage.py PLIES SEED

A twin that checks plays the legal ones of the same moves and must stand where the batch does.
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

Ints = npt.NDArray[np.int64]

N = 24
EXTREMES = np.array(
    [-(2**63), 2**63 - 1, -(2**32), 2**32, 2**31, -1, -2, 10**6, 255, 256, 1000, *range(48, 72)]
)
KEPT = ("seed", "episode", "decisions")


def garbage(rng: np.random.Generator, offered: Ints) -> Ints:
    """Moves of all kinds; about half are the ones that are on offer."""
    whole = rng.integers(-(2**63), 2**63 - 1, len(offered), endpoint=True)
    small = rng.integers(0, 301, len(offered))
    extreme = rng.choice(EXTREMES, len(offered))
    kind = rng.integers(0, 8, len(offered))
    return np.choose(np.minimum(kind, 3), [whole, small, extreme, offered])


def offered(batch: Batch, rng: np.random.Generator) -> Ints:
    """A move on offer in each game, 0 where it is over."""
    odds = np.zeros((len(batch), 256))
    odds[:, :49] = batch.masks(np.arange(len(batch)))
    if batch.explicit:  # type: ignore[attr-defined]
        odds[:, :216] += batch.outcome_weights() > 0
    return (odds * rng.random(odds.shape)).argmax(axis=1)


def check(batch: Batch) -> None:
    """Every state can be, masks are what is legal, observations lie in [0, 1]."""
    games = np.arange(len(batch))
    masks = batch.masks(games)
    for i in games.tolist():
        which = int(batch.episode_info["board"][i])
        board, states = batch.pool[which], batch.states[i : i + 1].copy()
        again = position.from_dict(board, position.to_dict(board, states[0]))
        assert again.tobytes() == states.tobytes(), f"game {i}"
        mask = legal_mask(board.record, states, 0)
        assert mask == batch.legal[i], f"game {i}"
        assert sum(1 << int(a) for a in np.flatnonzero(masks[i])) == mask, f"game {i}"
    for seat in range(2):
        seen = batch.observe(games, np.full(len(games), seat))
        for each in seen.values() if isinstance(seen, dict) else [seen]:
            assert each.min() >= 0
            assert each.max() <= 1 or each.dtype == np.uint8


def same(batch: Batch, twin: Batch) -> bool:
    arrays = [(batch.states, twin.states), (batch.luck, twin.luck), (batch.legal, twin.legal)]
    arrays += [(batch.episode_info[name], twin.episode_info[name]) for name in KEPT]
    return all(a.tobytes() == b.tobytes() for a, b in arrays)


def fuzz(chance: Any, autoreset: bool, boards: list[Any], plies: int, seed: int) -> int:
    """Play garbage; return how many moves were ignored."""
    rng = np.random.default_rng(seed)
    options = {"chance": chance, "autoreset": autoreset, "observation": None}
    batch = Batch(N, boards, check=False, copy=False, **options)
    twin = Batch(N, boards, **options)
    for each in (batch, twin):
        each.explicit = chance == "explicit"  # type: ignore[attr-defined]
        each.set_bots(np.arange(2), np.array([[0, 1], [2, 0]]))
        each.reset(seed=seed)
    ignored = 0
    for ply in range(plies):
        moves = garbage(rng, offered(twin, rng))
        wrong = twin.find_illegal(np.arange(N), moves)
        ignored += int(wrong.sum())
        players, ignored_here = batch.states["player"].copy(), wrong & ~batch.over
        turn = batch.step(moves)
        twin.advance(np.flatnonzero(~wrong), moves[~wrong])
        assert (turn.player == np.where(wrong, -1, players)).all()
        assert (turn.next_player == batch.states["player"])[ignored_here].all()
        assert not turn.reward[ignored_here].any()
        assert not (turn.terminated | turn.truncated)[ignored_here].any()
        assert not turn.mask[batch.over].any()
        assert same(batch, twin), f"ply {ply}"
        over = np.flatnonzero(batch.over)
        if len(over) > N // 2:
            batch.begin(over)
            twin.begin(over)
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
