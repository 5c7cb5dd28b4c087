"""Hashes of layouts: a new description keeps saved networks usable, another number refuses them."""

import runpy
from typing import Any

import numpy as np
import pytest

from tokaido_env.core import board_features, observation
from tokaido_env.core.observation import N_FEATURES, layout_hash
from tokaido_env.features import (
    afterstate_observation,
    geometry_features,
    lookahead_features,
    network_inputs,
    terms,
)
from tokaido_env.features.network_inputs import INPUTS_HASH

# Saved networks and data sets contain them: a change makes these files unusable.
HASHES = {
    "LAYOUT_HASH": (observation, "354a5c59f0613007"),
    "BOARD_LAYOUT_HASH": (board_features, "81d80f632769bf42"),
    "LOOKAHEAD_HASH": (lookahead_features, "6ba99954b8aa1156"),
    "GEOMETRY_LAYOUT_HASH": (afterstate_observation, "4b0690074286deb7"),
    "AFTERSTATE_LAYOUT_HASH": (afterstate_observation, "bab80206496f7db7"),
    "INPUTS_HASH": (network_inputs, "065a0b1c0cf8fcdf"),
}
LAYOUTS: dict[str, tuple[Any, ...]] = {
    "observation": observation.FEATURES,
    "board": board_features.BOARD_FEATURES,
    "look-ahead": lookahead_features.LOOKAHEAD,
    "geometry": afterstate_observation.GEOMETRY,
    "inputs": afterstate_observation.AFTERSTATE_INPUTS,
    "actions": afterstate_observation.AFTERSTATE_FEATURES,
}


@pytest.mark.parametrize("name", HASHES)
def test_hashes__are_those_of_saved_files(name: str) -> None:
    module, frozen = HASHES[name]
    assert getattr(module, name) == frozen


def inputs_hash() -> Any:
    """Return `INPUTS_HASH` of its module, run again with changed parts."""
    return runpy.run_path(str(network_inputs.__file__))["INPUTS_HASH"]


def test_inputs_hash__changes_with_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    first, *others = all_terms = terms.TERMS
    changes: list[tuple[Any, str, Any]] = [
        (observation, "LAYOUT_HASH", "0123456789abcdef"),
        (lookahead_features, "LOOKAHEAD_HASH", "0123456789abcdef"),
        (terms, "TERMS", (first._replace(name="piety"), *others)),
        (terms, "TERMS", all_terms[::-1]),
        (terms, "LOG_ODDS", terms.LOG_ODDS + np.float32(0.01)),
    ]
    found = {inputs_hash()}
    for module, name, value in changes:
        with monkeypatch.context() as patch:
            patch.setattr(module, name, value)
            found.add(inputs_hash())
    assert len(found) == 1 + len(changes)
    monkeypatch.setattr(terms, "TERMS", [term._replace(meaning="other") for term in all_terms])
    assert inputs_hash() == INPUTS_HASH


@pytest.mark.parametrize("name", LAYOUTS)
def test_layout_hash__leaves_out_meanings_only(name: str) -> None:
    layout = LAYOUTS[name]
    first, *others = layout
    scale = first._fields[3]
    known = layout_hash(layout)
    assert layout_hash([entry._replace(meaning="other") for entry in layout]) == known
    changed = [
        first._replace(name="other"),
        first._replace(start=first.start + 1),
        first._replace(size=first.size + 1),
        first._replace(**{scale: 2 * getattr(first, scale)}),
    ]
    found = {layout_hash([other, *others]) for other in changed}
    found |= {layout_hash(others), layout_hash(layout[::-1]), layout_hash(layout, [])}
    assert len(found - {known}) == len(changed) + 3
    assert layout_hash(layout, []) != layout_hash([], layout)


SIZES = {
    "observation": (N_FEATURES, observation.SCALES),
    "board": (board_features.N_BOARD_FEATURES, board_features.BOARD_SCALES),
    "look-ahead": (lookahead_features.N_LOOKAHEAD, None),
    "geometry": (geometry_features.N_GEOMETRY, None),
    "inputs": (afterstate_observation.N_OBSERVED, None),
    "actions": (afterstate_observation.N_AFTERSTATE, None),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layout__describes_every_number_once(name: str) -> None:
    layout, (size, scales) = LAYOUTS[name], SIZES[name]
    assert len({entry.name for entry in layout}) == len(layout)
    assert all(entry.meaning for entry in layout)
    numbers = np.concatenate([np.arange(size)[entry.slice] for entry in layout])
    assert numbers.tolist() == list(range(size))
    if scales is not None:
        assert scales.tolist() == [entry.scale for entry in layout for _ in range(entry.size)]
