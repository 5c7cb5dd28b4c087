"""Hashes of layouts: a new description keeps saved networks usable, another number refuses them."""

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tokaido_env.core import board_features, entities, observation
from tokaido_env.core.observation import layout_hash
from tokaido_env.features import (
    afterstate_observation,
    lookahead_features,
    network_inputs,
    terms,
)
from tokaido_env.features.network_inputs import INPUTS_HASH

# Saved networks and data sets contain them: a change makes these files unusable.
HASHES = {
    "LAYOUT_HASH": (observation, "354a5c59f0613007"),
    "BOARD_LAYOUT_HASH": (board_features, "81d80f632769bf42"),
    "ENTITY_LAYOUT_HASH": (entities, "1748c7c4d37ea8db"),
    "LOOKAHEAD_HASH": (lookahead_features, "6ba99954b8aa1156"),
    "AFTERSTATE_LAYOUT_HASH": (afterstate_observation, "bab80206496f7db7"),
    "INPUTS_HASH": (network_inputs, "065a0b1c0cf8fcdf"),
}
LAYOUTS: dict[str, tuple[Any, ...]] = {
    "observation": observation.FEATURES,
    "board": board_features.BOARD_FEATURES,
    **entities.ENTITY_FEATURES,
    "look-ahead": lookahead_features.LOOKAHEAD,
    "inputs": afterstate_observation.AFTERSTATE_INPUTS,
    "actions": afterstate_observation.AFTERSTATE_FEATURES,
}

# A text in the source of the module of a hash, and another one.
NEW_DESCRIPTIONS = [
    ("LAYOUT_HASH", '"rolls made"', '"rolls"'),
    ("LAYOUT_HASH", '"gold slabs"', '"slabs"'),
    ("BOARD_LAYOUT_HASH", '"stations"', '"spaces"'),
    ("ENTITY_LAYOUT_HASH", '"{} pilgrim is here"', '"{} pilgrim"'),
    ("LOOKAHEAD_HASH", '"points of the next temple"', '"points"'),
    ("AFTERSTATE_LAYOUT_HASH", "mine less theirs", "mine - theirs"),
    ("INPUTS_HASH", '"1 if a line pulls', '"a line pulls'),
]
NEW_NUMBERS = [
    ("LAYOUT_HASH", '("pending", 1, MAX_PENDING', '("pending", 1, 2 * MAX_PENDING'),
    ("BOARD_LAYOUT_HASH", "_POINTS = 63", "_POINTS = 64"),
    ("ENTITY_LAYOUT_HASH", '"space", 1, _SPACES - 1', '"space", 1, _SPACES'),
    ("ENTITY_LAYOUT_HASH", '("coast", _COASTS', '("coast", _COASTS + 1'),
    ("ENTITY_LAYOUT_HASH", '"stations": _SPACES', '"stations": _SPACES + 1'),
    ("LOOKAHEAD_HASH", '("temple_step", 1, _POINTS_SCALE', '("temple_step", 1, 4'),
    ("AFTERSTATE_LAYOUT_HASH", '"term_{term.name}"', '"difference_{term.name}"'),
    ("INPUTS_HASH", '("trigger",', '("triggers",'),
    ("INPUTS_HASH", "_ENDING_LIMIT = 300", "_ENDING_LIMIT = 301"),
    ("INPUTS_HASH", "_MIN_SCALE = 0.02", "_MIN_SCALE = 0.03"),
]


def hash_after(name: str, old: str = "", new: str = "") -> Any:
    """Return a hash after an edit of its module's source."""
    module, _ = HASHES[name]
    file = str(module.__file__)
    source = Path(file).read_text(encoding="utf-8")
    assert old in source
    edited: dict[str, Any] = {"__name__": module.__name__, "__file__": file}
    exec(compile(source.replace(old, new), file, "exec"), edited)
    return edited[name]


@pytest.mark.parametrize("name", HASHES)
def test_hashes__are_those_of_saved_files(name: str) -> None:
    module, frozen = HASHES[name]
    assert getattr(module, name) == frozen


@pytest.mark.parametrize(("name", "old", "new"), NEW_DESCRIPTIONS)
def test_hashes__stay_with_another_description(name: str, old: str, new: str) -> None:
    assert hash_after(name, old, new) == hash_after(name)


@pytest.mark.parametrize(("name", "old", "new"), NEW_NUMBERS)
def test_hashes__change_with_the_numbers(name: str, old: str, new: str) -> None:
    assert hash_after(name, old, new) != hash_after(name)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (observation, "LAYOUT_HASH"),
        (lookahead_features, "LOOKAHEAD_HASH"),
    ],
)
def test_inputs_hash__changes_with_the_hashes_of_its_parts(
    module: ModuleType, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, "0123456789abcdef")
    assert hash_after("INPUTS_HASH") != INPUTS_HASH


def test_inputs_hash__changes_with_names_and_weights_of_terms(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, *others = all_terms = terms.TERMS
    monkeypatch.setattr(terms, "TERMS", (first._replace(name="piety"), *others))
    assert hash_after("INPUTS_HASH") != INPUTS_HASH
    monkeypatch.setattr(terms, "TERMS", all_terms[::-1])
    assert hash_after("INPUTS_HASH") != INPUTS_HASH
    monkeypatch.setattr(terms, "TERMS", [term._replace(meaning="other") for term in all_terms])
    assert hash_after("INPUTS_HASH") == INPUTS_HASH
    monkeypatch.setattr(terms, "LOG_ODDS", terms.LOG_ODDS + np.float32(0.01))
    assert hash_after("INPUTS_HASH") != INPUTS_HASH


@pytest.mark.parametrize("name", LAYOUTS)
def test_layout_hash__leaves_out_meanings_only(name: str) -> None:
    layout = LAYOUTS[name]
    scale = layout[0]._fields[3]
    known = layout_hash(layout)
    assert layout_hash([entry._replace(meaning="other") for entry in layout]) == known
    for i, entry in enumerate(layout):
        changed = [
            entry._replace(name=f"{entry.name}_2"),
            entry._replace(start=entry.start + 1),
            entry._replace(size=entry.size + 1),
            entry._replace(**{scale: 2 * getattr(entry, scale)}),
        ]
        found = {layout_hash([*layout[:i], other, *layout[i + 1 :]]) for other in changed}
        assert len(found - {known}) == len(changed)
        assert layout_hash([*layout[:i], *layout[i + 1 :]]) != known
    assert layout_hash(layout[::-1]) != known
    assert layout_hash(layout, []) != layout_hash([], layout)
