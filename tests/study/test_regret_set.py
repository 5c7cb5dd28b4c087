"""The file of a regret set: read back, and refused with what was expected."""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processes import ROOT
from regrets import drawn_sums, small_set, truth_of

from tokaido_env.study.regret_set import (
    NOT_ROLLED,
    SHIPPED,
    RegretSet,
    RegretSetError,
)

sys.path.insert(0, str(ROOT / "benchmarks"))

from regret_agreement import agreement

RNG = np.random.default_rng(0)
TOLD = small_set()
TOLD = replace(TOLD, sums=drawn_sums(TOLD, truth_of(TOLD, RNG, 0.3), RNG, few=2))


def members(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    with np.load(path, allow_pickle=False) as file:
        return dict(file)


def rewritten(path: Path, **changes: Any) -> Path:
    """The file with other members; None leaves one out."""
    held = members(path) | changes
    np.savez(path, **{name: array for name, array in held.items() if array is not None})
    return path


def with_card(path: Path, **changes: Any) -> Path:
    card = json.loads(members(path)["card"].tobytes().decode()) | changes
    return rewritten(path, card=np.frombuffer(json.dumps(card).encode(), np.uint8))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    TOLD.save(tmp_path / "set.npz")
    return tmp_path / "set.npz"


def test_a_set_is_read_back_byte_for_byte(path: Path, tmp_path: Path) -> None:
    loaded = RegretSet.load(path)
    assert loaded.card == TOLD.card | {"hash": TOLD.hash}
    for name in ("states", "board", "stratum", "starts", "actions", "sums"):
        assert getattr(loaded, name).tobytes() == getattr(TOLD, name).tobytes()
    loaded.save(tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == path.read_bytes()
    assert loaded.batch().legal.tolist() == TOLD.batch().legal.tolist()


def test_the_hash_stands_for_all_of_it() -> None:
    sums, states = TOLD.sums.copy(), TOLD.states.copy()
    sums[0, 0, 0] ^= 2
    states["coins"][0] += 1
    others = [
        replace(TOLD, sums=sums),
        replace(TOLD, states=states),
        replace(TOLD, card=TOLD.card | {"seed": 6}),
        replace(TOLD, card=TOLD.card | {"policies": ["heuristic", "champion"]}),
    ]
    assert len({TOLD.hash, *(other.hash for other in others)}) == 5
    assert replace(TOLD, card=TOLD.card | {"hash": "other"}).hash == TOLD.hash


REFUSED: dict[str, tuple[Callable[[Path], object], str]] = {
    "rules": (lambda p: with_card(p, rules=99), "card: rules: expected 1, got 99: make it again"),
    "layout": (lambda p: with_card(p, layout="abc"), ", got 'abc': make it again"),
    "version": (lambda p: with_card(p, version=2), "version: expected 1, got 2: make it"),
    "format": (lambda p: with_card(p, format="other"), "format: expected tokaido-regret, got"),
    "hash": (lambda p: with_card(p, hash="0" * 16), "hash: the file says '0000000000000000'"),
    "boards": (lambda p: with_card(p, boards=[["moon", "1"]]), "its arrays do not belong together"),
    "strata": (lambda p: with_card(p, strata=[]), "card: strata: expected a list of length >="),
    "a path as a board": (lambda p: with_card(p, boards=[["../b.toml", ""]] * 2), "hash: the file"),
    "no card": (lambda p: rewritten(p, card=None), "not a regret set: expected the arrays card,"),
    "no JSON": (
        lambda p: rewritten(p, card=np.frombuffer(b"{", np.uint8)),
        "card: expected JSON",
    ),
    "another dtype": (
        lambda p: rewritten(p, actions=TOLD.actions.astype(np.int64)),
        "actions: expected int8, got int64",
    ),
    "another shape": (lambda p: rewritten(p, board=TOLD.board[:-1]), "do not belong together"),
    "sums": (lambda p: rewritten(p, sums=np.full_like(TOLD.sums, 100)), "sums: expected -64 to 64"),
    "nothing rolled": (
        lambda p: rewritten(p, sums=np.full_like(TOLD.sums, NOT_ROLLED)),
        "sums: expected one action of each position in all blocks",
    ),
    "text": (lambda p: p.write_text("{}"), "not a file of arrays: File is not a zip file"),
    "cut short": (lambda p: p.write_bytes(p.read_bytes()[:500]), "not a file of arrays"),
    "a folder": (lambda p: (p.unlink(), p.mkdir()), "expected a file, it is"),
    "nothing": (lambda p: p.unlink(), "expected a file, it is"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_is_wrong_with_a_file_is_told_in_one_line(why: str, path: Path) -> None:
    change, told = REFUSED[why]
    change(path)
    with pytest.raises(RegretSetError) as refused:
        RegretSet.load(path)
    message = str(refused.value)
    assert told in message
    assert str(path) in message
    assert "\n" not in message
    assert len(message) <= 500


def resealed(path: Path, **changes: Any) -> None:
    """Write a set of which only the contents are wrong: its hash is right."""
    replace(TOLD, **changes).save(path)


def test_what_a_right_hash_stands_for_is_checked_too(path: Path) -> None:
    states, actions = TOLD.states.copy(), TOLD.actions.copy()
    states["merchant"][3] = 100
    actions[0] = 48
    boards = TOLD.card["boards"]
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"states": states}, r"game 3: merchant: expected 0 to 11"),
        ({"actions": actions}, "position 0: expected the actions that are legal"),
        ({"card": TOLD.card | {"boards": [boards[0], ["family:1", "1"]]}}, "make it again"),
        ({"card": TOLD.card | {"boards": [boards[0], ["../b.toml", "1"]]}}, "board"),
    ]
    for changes, told in wrong:
        resealed(path, **changes)
        with pytest.raises(RegretSetError, match=told):
            RegretSet.load(path)


def test_the_set_that_is_shipped() -> None:
    """Its policies agree on what is good, and on how good it is."""
    shipped = RegretSet.load(SHIPPED)
    found = agreement(shipped)
    assert found["correlation_without_noise"] > 0.8
    for policy in shipped.card["policies"]:
        assert found[f"lost_by_{policy}"]["mean"] < 0.025
    assert {"champion", "greedy"} <= {*shipped.card["references"]}
