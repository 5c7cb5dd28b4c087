"""Tests of `tokaido_env.observers`: vectors, board features and afterstates."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from learner_games import as_lists, expected_observation

from tokaido_env import Batch
from tokaido_env.core.board_features import N_BOARD_FEATURES
from tokaido_env.core.observation import N_FEATURES
from tokaido_env.features.afterstate_observation import AFTERSTATE_SHAPES
from tokaido_env.features.geometry_features import MAX_POINTS, N_GEOMETRY
from tokaido_env.observers import observe
from tokaido_env.spaces import observation_space

POOL = "family:train/5"
FORMS: list[dict[str, Any]] = [
    {"observation": "float32", "see_board": True},
    {"observation": "uint8", "see_board": True},
    {"observation": "geometry"},
    {"observation": "afterstates"},
]
WITH_FORMS = pytest.mark.parametrize("form", FORMS, ids=lambda form: form["observation"])


def one(seen: Any, game: int) -> Any:
    return as_lists(
        {n: each[game] for n, each in seen.items()} if isinstance(seen, dict) else seen[game]
    )


def check_batch(batch: Batch, seen: Any, seats: npt.NDArray[Any]) -> None:
    for i in range(len(batch)):
        boards = batch.boards[batch.episode_info["board"][i] :][:1]
        seat, form = max(int(seats[i]), 0), batch_form(seen)
        sees_board = form in ("float32", "uint8")
        right = expected_observation(boards, batch.states[i : i + 1], seat, form, sees_board)
        assert one(seen, i) == right
        states = batch.states[i : i + 1]
        assert one(observe(boards, states, [seat], form, sees_board), 0) == right


def batch_form(seen: Any) -> str:
    if isinstance(seen, dict):
        return "afterstates"
    return "geometry" if seen.shape[1] == N_GEOMETRY else str(seen.dtype)


# Batch


@WITH_FORMS
@pytest.mark.parametrize("copied", [True, False])
def test_batch__observes_each_game_on_its_board(form: dict[str, Any], copied: bool) -> None:
    """Also after new boards, new games, restores and restores into other games."""
    batch = Batch(7, POOL, copy=copied, **form)
    turn = batch.reset(seed=5)
    boards = {tuple(batch.episode_info["board"].tolist())}
    check_batch(batch, turn.observation, turn.mover)
    before = batch.snapshot()
    for ply in range(420):
        turn = batch.play("random")
        if ply % 20 == 0:
            check_batch(batch, turn.observation, turn.mover)
        boards.add(tuple(batch.episode_info["board"].tolist()))
    assert len(boards) > 3
    assert (batch.episode_info["episode"] > 0).any()
    batch.restore({name: each[::-1] for name, each in before.items()})
    turn = batch.play("greedy")
    check_batch(batch, turn.observation, turn.mover)
    batch.begin(np.array([1, 4]), seed=np.array([70, 71]))
    turn = batch.play("greedy")
    check_batch(batch, turn.observation, turn.mover)
    for seats in (np.zeros(7, np.int8), np.ones(7, np.int8)):
        check_batch(batch, batch.observe(batch.all_games, seats), seats)


def test_observe__is_the_same_for_any_number_of_games_and_threads() -> None:
    """Enough games for several threads, and a few of them in one thread."""
    for form in FORMS:
        batch = Batch(1100, POOL, **form)
        turn = batch.reset(seed=0)
        some = np.arange(3, 1100, 200)
        few = batch.observe(some, turn.mover[some])
        for j, i in enumerate(some.tolist()):
            assert one(few, j) == one(turn.observation, i)


# Spaces and refusals


@WITH_FORMS
def test_observation_space__has_tight_bounds(form: dict[str, Any]) -> None:
    space: Any = observation_space(**form)
    if form["observation"] == "afterstates":
        assert {name: each.shape for name, each in space.spaces.items()} == AFTERSTATE_SHAPES
        batch = Batch(64, chance="explicit", **form)
        turn = batch.reset(seed=0)
        for _ in range(300):  # also between the draws of a merchant
            assert all(map(space["observation"].contains, turn.observation["observation"]))
            merchant = np.where(turn.mask[:, 29] == 1, 29, turn.mask.argmax(axis=1))
            turn = batch.step(np.where(turn.mover < 0, batch.sample_outcomes(), merchant))
        return
    if form["observation"] == "geometry":
        assert (space.shape, space.high.max()) == ((N_GEOMETRY,), MAX_POINTS)
        return
    assert space.shape == (N_FEATURES + N_BOARD_FEATURES,)
    assert (space.dtype, space.low.max()) == (np.dtype(form["observation"]), 0)
    assert space.high.max() == (1 if form["observation"] == "float32" else 255)


def test_see_board__needs_a_vector_observation() -> None:
    for observation in (None, "geometry", "afterstates"):
        with pytest.raises(ValueError, match=r"^see_board: "):
            Batch(2, observation=observation, see_board=True)  # type: ignore[arg-type]
    quiet = Batch(2, observation=None)
    assert quiet.reset(seed=0).observation is None
    assert quiet.observe(quiet.all_games, [0, 1]).shape == (2, N_FEATURES)
