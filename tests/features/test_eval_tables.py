"""The evaluation's tables against the reference's board, and its weights file."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reference import Board as NaiveBoard

from tokaido_env.boards.board import Board, built_in_boards
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.core.constants import AREAS, ICONS, MOUNTAIN_TOWNS, TOWNS, WARES
from tokaido_env.features.eval_tables import (
    ANY_DIE,
    EVAL_TABLES,
    N_TERMS,
    WEIGHTS_FILE,
    eval_tables_of,
    eval_tables_with_weights,
    load_weights,
)


@pytest.mark.parametrize("name", [*built_in_boards()[:2], "family:0", "family:31"])
def test_eval_tables__agree_with_the_reference(name: str, tmp_path: Path) -> None:
    board = Board.load(name)
    board.save(tmp_path / "board.toml")
    naive = NaiveBoard(tmp_path / "board.toml")
    others = BoardPool.load("family:train/40").records[5:9]
    tables: Any = eval_tables_of(np.concatenate([others, board.record]))[-1]
    for place, town in enumerate(TOWNS):
        drawn = dict.fromkeys(range(6), 0)
        for die in range(1, 7):
            ends = {path[-1] for path in naive.paths(town, die)}
            most = max((naive.mountains[m] for m in MOUNTAIN_TOWNS if m in ends), default=0)
            assert tables["most_drawn"][die, place] == most
            count = naive.faces["merchant"].count(die)
            drawn = {room: drawn[room] + count * min(room, most) for room in drawn}
        assert tables["draw_faces"][:, place].tolist() == list(drawn.values())
    for place, area in enumerate(AREAS):
        sums = np.zeros((2, len(ICONS)), int)
        for die in range(1, 7):
            paths = naive.paths(area, die)
            for side, touched in enumerate(([p[-1:] for p in paths], paths)):
                icons = {naive.icons[a] for path in touched for a in path}
                in_reach = np.array([icon in icons for icon in ICONS])
                assert (tables["gift_faces"][side, die, place] == 6 * in_reach).all()
                sums[side] += naive.faces["artist"].count(die) * in_reach
        assert (tables["gift_faces"][:, ANY_DIE, place] == sums).all()
    best = [max(price for own, price in naive.tokens if own == ware) for ware in WARES]
    assert tables["best_price"].tolist() == best


def test_eval_tables__contain_the_weights() -> None:
    board = Board.load()
    assert load_weights().shape == (2, N_TERMS)
    tables = eval_tables_with_weights(board.record, load_weights())
    assert tables.dtype == EVAL_TABLES
    assert tables.tobytes() == eval_tables_of(board.record).tobytes()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("coins = [", "coin = [", "missing or unknown: coin, coins"),
        ("coins = [", "coins = [0.5, ", "coins: expected two numbers from -7.99 to 7.99, got .0.5"),
        ("coins = [", "coins = [true, 8.0] #", "coins: expected two numbers .* got .True, 8.0"),
        ("[weights]", "[weights", "not a TOML file"),
    ],
)
def test_load_weights__refuses_a_damaged_file(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    path = tmp_path / "weights.toml"
    text = WEIGHTS_FILE.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(ValueError, match=f"weights.toml: (weights: )?{message}") as error:
        load_weights(path)
    assert len(str(error.value)) < 500
