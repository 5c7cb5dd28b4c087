"""Regret set files: read back, or refused."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from regrets import drawn_sums, small_set, truth_of

from tokaido_env.study.regret_set import RegretSet, RegretSetError

RNG = np.random.default_rng(0)
SET = small_set()
SET = replace(SET, sums=drawn_sums(SET, truth_of(SET, RNG, 0.3), RNG, few=2))


def members(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    with np.load(path, allow_pickle=False) as file:
        return dict(file)


def rewritten(path: Path, **changes: Any) -> Path:
    """Replace members of a file; None removes one."""
    arrays = members(path) | changes
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    return path


def with_card(path: Path, **changes: Any) -> Path:
    card = json.loads(members(path)["card"].tobytes().decode()) | changes
    return rewritten(path, card=np.frombuffer(json.dumps(card).encode(), np.uint8))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    SET.save(tmp_path / "set.npz")
    return tmp_path / "set.npz"


def test_save__is_read_back_byte_for_byte(path: Path, tmp_path: Path) -> None:
    loaded = RegretSet.load(path)
    assert loaded.card == SET.card | {"hash": SET.hash}
    for name in ("states", "board", "stratum", "starts", "actions", "sums"):
        assert getattr(loaded, name).tobytes() == getattr(SET, name).tobytes()
    loaded.save(tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == path.read_bytes()
    assert loaded.batch().legal.tolist() == SET.batch().legal.tolist()


def test_hash__covers_all_contents() -> None:
    sums, states = SET.sums.copy(), SET.states.copy()
    sums[0, 0, 0] ^= 2
    states["coins"][0] += 1
    others = [
        replace(SET, sums=sums),
        replace(SET, states=states),
        replace(SET, card=SET.card | {"seed": 6}),
        replace(SET, card=SET.card | {"policies": ["heuristic", "champion"]}),
    ]
    assert len({SET.hash, *(other.hash for other in others)}) == 5
    assert replace(SET, card=SET.card | {"hash": "other"}).hash == SET.hash


def changed(name: str, change: Callable[[Any], Any]) -> Callable[[Path], object]:
    """Return a change of an array of a file."""
    return lambda path: rewritten(path, **{name: change(members(path)[name])})


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda p: with_card(p, rules=99), "card: rules: "),
        (lambda p: with_card(p, layout="abc"), "card: layout: "),
        (lambda p: with_card(p, version=2), "card: version: "),
        (lambda p: with_card(p, hash="0" * 16), "hash: "),
        (lambda p: with_card(p, strata=[]), "card: strata: "),
        (lambda p: with_card(p, boards=[["moon", "1"]]), "hash: "),
        (lambda p: rewritten(p, card=None), "card"),
        (lambda p: rewritten(p, card=np.frombuffer(b"{", np.uint8)), "card: "),
        (changed("actions", lambda a: a.astype(np.int64)), "actions: "),
        (changed("actions", lambda a: np.array([Path()], object)), "Object arrays"),
        (changed("starts", lambda a: a[::-1]), "hash: "),
        (changed("sums", lambda a: np.full_like(a, 100)), "hash: "),
        (lambda p: p.write_text("{}"), "not a regret set"),
        (lambda p: p.write_bytes(p.read_bytes()[:500]), "not a regret set"),
        (lambda p: p.unlink(), "No such file"),
    ],
)
def test_load__refuses_a_wrong_file(
    change: Callable[[Path], object], name: str, path: Path
) -> None:
    change(path)
    with pytest.raises((RegretSetError, FileNotFoundError)) as refused:
        RegretSet.load(path)
    assert name in str(refused.value)
    assert str(path) in str(refused.value)


def test_load__checks_contents_with_a_matching_hash(path: Path) -> None:
    states, boards = SET.states.copy(), SET.card["boards"]
    states["merchant"][3] = 100
    for wrong, expected in (
        (replace(SET, states=states), r"game 3: merchant"),
        (replace(SET, board=SET.board[:-1]), "board: "),
        (replace(SET, board=SET.board - 1), "board: "),
        (replace(SET, card=SET.card | {"boards": [boards[0], ["family:1", "1"]]}), "family:1"),
        (replace(SET, card=SET.card | {"boards": [boards[0], ["../b.toml", "1"]]}), "b.toml"),
    ):
        wrong.save(path)
        with pytest.raises(RegretSetError, match=expected):
            RegretSet.load(path)


def test_sample__keeps_shares_and_results_of_whole_positions() -> None:
    whole = RegretSet.load()
    some = whole.sample(100, seed=4)
    assert 95 <= len(some) <= 100
    counts = np.bincount(some.stratum, minlength=len(whole.shares))
    assert (counts[whole.shares > 0] >= 2).all()
    large = whole.shares > 0.05
    assert large.any()
    np.testing.assert_allclose(counts[large] / len(some), whole.shares[large], atol=0.03)
    known = [state.tobytes() for state in whole.states]
    rows = [known.index(state.tobytes()) for state in some.states]
    assert rows == sorted(rows)
    for i, row in enumerate(rows):
        own, old = (slice(*s.starts[k : k + 2]) for s, k in ((some, i), (whole, row)))
        assert (some.actions[own] == whole.actions[old]).all()
        assert (some.sums[own] == whole.sums[old]).all()
        assert some.board[i] == whole.board[row]
    assert whole.sample(100, seed=5).states.tobytes() != some.states.tobytes()
    assert len(whole.sample(2_000, seed=0)) > 1_000
    with pytest.raises(ValueError, match=r"positions: expected [0-9]+ or more, got 9"):
        whole.sample(9, seed=0)
