"""Wrong arguments of all objects that play games: refused in one line, and nothing changes.

Each argument gets every value of `VALUES`. It takes those of `TAKEN` and refuses all others.
"""

import copy
import enum
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from positions import random_walk

from tokaido_env import Game
from tokaido_env.aec import env
from tokaido_env.agents import make
from tokaido_env.batch import Batch
from tokaido_env.gym import TokaidoDuoEnv, TokaidoDuoVectorEnv


class One(enum.IntEnum):
    ONE = 1


class StrSubclass(str):
    """A subclass of str."""


N = 3
WALK = random_walk(0, 40)
START = WALK.to_dict()
SOME, SEATS = np.array([2, 0]), np.array([0, 1])
ERRORS = (ValueError, LookupError, TypeError, RuntimeError, AttributeError)
VALUES: dict[str, Any] = {
    **{"True": True, "-1": -1, "2": 2, "2**63": 2**63, "10**400": 10**400, "0.5": 0.5},
    **{"nan": float("nan"), "''": "", "long": "x" * 9999, "../x": "../x"},
    **{"bytes": b"C1", "1j": 1j, "[]": [], "{}": {}, "set": set(), "ragged": [[1, 2], [3]]},
    **{"[None]": [None], "fives": [5] * N, "range": range(N), "len": len},
    **{"{x}": {"x": None}, "object": object(), "IntEnum": One.ONE},
    **{"StrSubclass": StrSubclass("random"), "2x2": np.zeros((2, 2))},
    **{"99s": np.arange(N) + 99, "objects": np.array([None, 1], object)},
    **{"texts": np.array(["C1"]), "nans": np.full(N, np.nan), "[True, 0]": [True, 0]},
    **{"uint64": np.array([2**64 - 1], np.uint64), "records": np.zeros(N, [("a" * 999, "i8")])},
    **{"twice": np.array([2, 1, 2]), "mask": np.ones(N, bool), "[0, 2]": np.array([0, 2])},
    **{"[2**40, 0]": np.array([2**40, 0]), "[0., 1.]": np.array([0.0, 1.0]), "0-d": np.array(1)},
    **{"[0, -1, 2]": [0, -1, 2], "two states": WALK.state.repeat(2)},
    **{"3x1 states": WALK.state.repeat(N)[:, None], "round": START | {"round": 10**30}},
    **{"board alone": {"state": {"board": "shikoku"}}, "state": {"state": START | {"lead": 7}}},
}
INTEGERS = ("2", "2**63", "10**400", "IntEnum", "0-d")
ONE_SEED, SEEDS = INTEGERS, (*INTEGERS, "fives", "range", "99s", "twice")
PAIR = ("[True, 0]", "[0, 2]")
TAKEN: dict[tuple[str, ...], tuple[str, ...]] = {
    SEEDS: ("Batch.reset seed", "vector.reset seed"),
    (*INTEGERS, "objects", "[0, 2]", "[2**40, 0]"): ("Batch.begin seed", "Batch.initialize seed"),
    ONE_SEED: (
        *("Game seed", "Game.from_dict seed", "Game.copy seed"),
        *(f"{name}.reset seed" for name in ("env", "Gymnasium")),
    ),
    ("2", "IntEnum", "0-d"): ("Batch n", "Game.label move"),
    ("{}", "{x}", "round", "''", "[]", "set"): tuple(
        f"{name}.reset options" for name in ("env", "Gymnasium", "vector")
    ),
    ("range", *PAIR): (
        *(f"Batch.{name} games" for name in ("begin", "initialize", "advance_to_decision")),
        "Batch.decide games",
    ),
    ("range", "twice", *PAIR): tuple(
        f"Batch.{name} games" for name in ("masks", "keys", "rewards", "snapshot", "boards_of")
    ),
    PAIR: tuple(f"Batch.{name} games" for name in ("advance", "check_moves", "observe")),
    (*PAIR, "[2**40, 0]"): ("Batch.check_moves moves",),
    PAIR[:1]: ("Batch.observe seats",),
    ("range",): ("Batch.restore games",),
    ("two states",): ("Batch.initialize positions",),
    ("StrSubclass",): (
        *("Batch.play bot", "Batch.finish bot", "Gymnasium opponent"),
        "vector opponent",
    ),
    ("-1", "2", "2**63", "IntEnum", "0-d", "uint64"): ("Gymnasium.step action",),
    ("fives", "range", "99s", "twice", "[0, -1, 2]"): ("vector.step actions",),
    ("True", "StrSubclass", "IntEnum", "0-d"): tuple(
        f"{name} seat" for name in ("Gymnasium", "vector")
    ),
    ("True", "IntEnum", "0-d"): tuple(f"{name} see_board" for name in ("env", "Gymnasium")),
}
TAKEN_AT = {place: {*labels} for labels, places in TAKEN.items() for place in places}


class Target(NamedTuple):
    """An object to call: how it is made, what a refusal may not change, and valid arguments."""

    make: Callable[[], Any]
    state: Callable[[Any], Any]
    calls: dict[str, dict[str, Any]]


def _after_reset(made: Any, seed: int | None = 0) -> Any:
    made.reset(seed=seed)
    return made


def _contents(games: Any) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in games.snapshot().items()}


def _state_of_game(game: Game) -> tuple[Any, ...]:
    return bytes(game.states), bytes(game._luck), game.legal_mask, bytes(game._history)


def _next_seed(made: Any) -> Any:
    return _after_reset(copy.deepcopy(made), None).infos["player_0"]["seed"]


MOVES, TWO_MOVES = np.zeros(N, int), np.zeros(2, int)
GAMES = {"games": SOME}
RESET = {"seed": 5, "options": {"state": START}}
BATCH: dict[str, dict[str, Any]] = {
    "reset": {"seed": 5, "positions": START},
    "step": {"moves": MOVES},
    "play": {"bot": "random"},
    "begin": GAMES | {"seed": 7},
    "initialize": GAMES | {"seed": 7, "positions": START},
    "advance": GAMES | {"moves": TWO_MOVES},
    "set_bots": GAMES | {"bots": np.full((2, 2), -1)},
    "check_moves": GAMES | {"moves": TWO_MOVES},
    "observe": GAMES | {"seats": SEATS},
    **dict.fromkeys(("advance_to_decision", "masks", "keys", "rewards"), GAMES),
    **dict.fromkeys(("snapshot", "boards_of"), GAMES),
    "restore": {"snapshot": Batch(N).snapshot(), "games": SOME},
    "decide": {"agent": make("random"), "games": SOME},
    "finish": {"bot": "random"},
}
PETTINGZOO: dict[str, dict[str, Any]] = {
    "reset": RESET,
    **{key: {"agent": "player_0"} for key in ("observe", "observation_space", "action_space")},
}
TARGETS = {
    "Batch": Target(lambda: _after_reset(Batch(N, ["shikoku"] * 2)), _contents, BATCH),
    "Game": Target(
        lambda: Game(seed=0),
        _state_of_game,
        {
            "play": {"move": 0},
            "label": {"move": 0},
            "record": {"players": ("a", "b")},
            "copy": {"luck": "same", "seed": 7},
        },
    ),
    **{
        name: Target(
            lambda make=make: _after_reset(make()),  # type: ignore[misc]
            lambda made: (_state_of_game(made.game), _next_seed(made)),
            PETTINGZOO,
        )
        for name, make in (("env", env),)
    },
    "Gymnasium": Target(
        lambda: _after_reset(TokaidoDuoEnv("random")),
        lambda made: (_contents(made.games.batch), str(made.np_random.bit_generator.state)),
        {"step": {"action": 0}, "reset": RESET},
    ),
    "vector": Target(
        lambda: _after_reset(TokaidoDuoVectorEnv(N, "random")),
        lambda made: _contents(made.batch),
        {"step": {"actions": np.zeros(N)}, "reset": RESET},
    ),
}


def is_refused(call: Callable[[], object]) -> bool:
    """Call; return whether it was refused by an ordinary error."""
    try:
        call()
    except (RecursionError, NotImplementedError, UnicodeError):
        raise
    except ERRORS:
        return True
    return False


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TARGETS)
def test_call__refuses_wrong_arguments_without_a_change(name: str) -> None:
    target = TARGETS[name]
    for method, right in target.calls.items():
        for argument in right:
            made, taken = target.make(), []
            for label, wrong in VALUES.items():
                before = target.state(made)
                given = right | {argument: wrong}
                if is_refused(partial(getattr(made, method), **given)):
                    assert target.state(made) == before, (method, argument, label)
                else:
                    taken.append(label)
                    made = target.make()
            place = f"{name}.{method} {argument}"
            assert {*taken} == TAKEN_AT.get(place, set()), place


MAKERS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "Batch": (
        Batch,
        {"n": N, "board": "shikoku", "chance": "sampled", "reward": "win", "observation": None},
    ),
    "Game": (Game, {"board": "shikoku", "seed": 3, "chance": "sampled"}),
    "Game.from_dict": (Game.from_dict, {"position": START, "seed": 3, "chance": "explicit"}),
    **{
        name: (
            make,
            {"board": "shikoku", "reward": "win", "observation": "dict", "see_board": False}
            | {"mask": "both", "render_mode": None},
        )
        for name, make in (("env", env),)
    },
    "env, illegal": (env, {"illegal": "raise"}),
    "Gymnasium": (
        TokaidoDuoEnv,
        {"opponent": "random", "seat": 0, "board": "shikoku", "reward": "win"}
        | {"observation": "float32", "see_board": False, "render_mode": None},
    ),
    "vector": (
        partial(TokaidoDuoVectorEnv, N),
        {"opponent": "random", "seat": 0, "board": "shikoku", "reward": "win"}
        | {"autoreset_mode": "NextStep", "render_mode": None},
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MAKERS)
def test_make__refuses_wrong_options(name: str) -> None:
    make, options = MAKERS[name]
    for option in options:
        taken = [
            label
            for label, wrong in VALUES.items()
            if not is_refused(partial(make, **options | {option: wrong}))
        ]
        assert {*taken} == TAKEN_AT.get(f"{name} {option}", set()), f"{name} {option}"
