"""Regret set files: read back, or refused."""

import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from regrets import drawn_sums, small_set, truth_of

from tokaido_env.study.regret_set import NOT_ROLLED, RegretSet, RegretSetError

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


def with_huge_array(path: Path) -> None:
    """Write an array with a header of 1 GB and eight bytes of data."""
    line = b"{'descr': '|i1', 'fortran_order': False, 'shape': (1000000000,)}\n"
    with zipfile.ZipFile(path, "w") as archive:
        header = b"\x93NUMPY\x01\x00" + len(line).to_bytes(2, "little") + line
        archive.writestr("actions.npy", header + bytes(8))


REFUSED: dict[str, tuple[Callable[[Path], object], str]] = {
    "rules": (
        lambda p: with_card(p, rules=99),
        "card: rules: expected 2, got 99: make the set again",
    ),
    "layout": (lambda p: with_card(p, layout="abc"), ", got 'abc': make the set again"),
    "version": (lambda p: with_card(p, version=2), "version: expected 1, got 2: make the set"),
    "format": (lambda p: with_card(p, format="other"), "format: expected tokaido-regret, got"),
    "hash": (
        lambda p: with_card(p, hash="0" * 16),
        ", got '0000000000000000': the file is damaged",
    ),
    "boards": (
        lambda p: with_card(p, boards=[["moon", "1"]]),
        "expected arrays of matching shapes",
    ),
    "strata": (lambda p: with_card(p, strata=[]), "card: strata: Expected `array` of length >= 1"),
    "a path as a board": (lambda p: with_card(p, boards=[["../b.toml", ""]] * 2), "hash: expected"),
    "no card": (lambda p: rewritten(p, card=None), "expected a regret set, with the arrays card,"),
    "no JSON": (lambda p: rewritten(p, card=np.frombuffer(b"{", np.uint8)), "card: expected JSON"),
    "another dtype": (
        lambda p: rewritten(p, actions=SET.actions.astype(np.int64)),
        "actions: expected int8, got int64",
    ),
    "another shape": (
        lambda p: rewritten(p, board=SET.board[:-1]),
        "expected arrays of matching shapes",
    ),
    "sums": (lambda p: rewritten(p, sums=np.full_like(SET.sums, 100)), "sums: expected -64 to 64"),
    "nothing rolled": (
        lambda p: rewritten(p, sums=np.full_like(SET.sums, NOT_ROLLED)),
        "sums: expected one action of each position in all blocks",
    ),
    "text": (lambda p: p.write_text("{}"), "not a regret set (.npz): File is not a zip file"),
    "a compressed file": (
        lambda p: np.savez_compressed(p, **members(p)),
        "expected at most 32 MiB of arrays without compression",
    ),
    "a huge file": (
        lambda p: rewritten(p, sums=np.zeros(33 << 20, np.int8)),
        "expected at most 32 MiB of arrays without compression",
    ),
    "a huge array": (with_huge_array, "not a regret set (.npz): EOF: reading array data"),
    "objects": (
        lambda p: rewritten(p, actions=np.array([Path()], object)),
        "not a regret set (.npz): Object arrays cannot be loaded when allow_pickle=False",
    ),
    "cut short": (lambda p: p.write_bytes(p.read_bytes()[:500]), "not a regret set (.npz)"),
    "a folder": (lambda p: (p.unlink(), p.mkdir()), "no such file"),
    "nothing": (lambda p: p.unlink(), "no such file"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_load__refuses_a_wrong_file_in_one_line(why: str, path: Path) -> None:
    change, expected = REFUSED[why]
    change(path)
    with pytest.raises(RegretSetError) as refused:
        RegretSet.load(path)
    message = str(refused.value)
    assert expected in message
    assert str(path) in message
    assert "\n" not in message
    assert len(message) <= 500


def save_with_hash(path: Path, **changes: Any) -> None:
    """Write a set with changed contents and a matching hash."""
    replace(SET, **changes).save(path)


def test_load__checks_contents_with_a_matching_hash(path: Path) -> None:
    states, actions = SET.states.copy(), SET.actions.copy()
    states["merchant"][3] = 100
    actions[0] = 48
    boards = SET.card["boards"]
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"states": states}, r"game 3: merchant: expected 0 to 11"),
        ({"actions": actions}, "position 0: expected all legal actions"),
        ({"card": SET.card | {"boards": [boards[0], ["family:1", "1"]]}}, "make the set again"),
        ({"card": SET.card | {"boards": [boards[0], ["../b.toml", "1"]]}}, "board"),
    ]
    for changes, expected in wrong:
        save_with_hash(path, **changes)
        with pytest.raises(RegretSetError, match=expected):
            RegretSet.load(path)


def test_load__checks_exact_results(path: Path) -> None:
    solved = RegretSet.load("solved")
    for value in (1.01, np.nan):
        sums = solved.sums.copy()
        sums[7] = value
        replace(solved, sums=sums).save(path)
        with pytest.raises(RegretSetError, match="sums: expected exact results, -1 to 1"):
            RegretSet.load(path)
    for other in (
        replace(solved, card=solved.card | {"policies": ["champion"]}),
        replace(SET, card=SET.card | {"policies": []}),
    ):
        other.save(path)
        with pytest.raises(RegretSetError, match="expected arrays of matching shapes"):
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
