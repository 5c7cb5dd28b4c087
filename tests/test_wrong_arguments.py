"""Wrong arguments of all objects that play games: refused in one line, and nothing changes."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from fuzz import check_message
from mutants import HostileInt, One, StrSubclass, deep_list
from positions import random_walk

from tokaido_env import Game
from tokaido_env.aec import env
from tokaido_env.batch import Batch
from tokaido_env.gym import TokaidoDuoEnv, TokaidoDuoVectorEnv
from tokaido_env.single_agent import SingleAgentBatch

N = 3
START = random_walk(0, 40).to_dict()
SOME, SEATS = np.array([2, 0]), np.array([0, 1])
ERRORS = (ValueError, IndexError, TypeError, RuntimeError)
REMEDIES = ("expected", "legal are", "unknown", "no such", "needs", "is not a valid", "has no att")
WRONG: tuple[Any, ...] = (
    *(True, -1, 2, 2**63, 10**400, 0.5, float("nan"), "", "x" * 9999, "\ud800", "../x", b"C1", 1j),
    *([], {}, set(), [[1, 2], [3]], [None], [5] * N, range(N), deep_list(200), {"x": None}, len),
    *(object(), HostileInt(1), StrSubclass("random"), One.ONE, np.zeros((2, 2)), np.arange(N) + 99),
    *(np.array([None, HostileInt(1)], object), np.array(["C1"]), np.full(N, np.nan)),
    *(
        np.array([2**64 - 1], np.uint64),
        np.zeros(N, [("a" * 999, "i8")]),
        START | {"round": 10**30},
    ),
)


class Target(NamedTuple):
    """An object to call: how it is made, what a refusal may not change, and valid arguments."""

    make: Callable[[], Any]
    state: Callable[[Any], Any]
    calls: dict[str, tuple[Any, ...]]


def _batch() -> Batch:
    batch = Batch(N)
    batch.reset(seed=0)
    return batch


def _single_agent() -> SingleAgentBatch:
    games = SingleAgentBatch(N, "random")
    games.reset(seed=0)
    return games


def _after_reset(made: Any) -> Any:
    made.reset(seed=0)
    return made


def _contents(games: Any) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in games.snapshot().items()}


def _state_of_game(game: Game) -> tuple[Any, ...]:
    return bytes(game.states), bytes(game._luck), game.legal_mask, bytes(game._history)


BATCH = {
    "reset": (5, START),
    "step": (np.zeros(N, int),),
    "play": ("random",),
    "begin": (SOME, 7),
    "initialize": (SOME, 7, START),
    "advance_to_decision": (SOME,),
    "advance": (SOME, np.zeros(2, int)),
    "set_bots": (SOME, np.full((2, 2), -1)),
    "check_moves": (SOME, np.zeros(2, int)),
    "observe": (SOME, SEATS),
    "masks": (SOME,),
    "keys": (SOME,),
    "rewards": (SOME,),
    "snapshot": (SOME,),
    "restore": (Batch(N).snapshot(), SOME),
    "decide": ("random", SOME),
    "finish": ("random",),
}
TARGETS = {
    "Batch": Target(_batch, _contents, BATCH),
    "SingleAgentBatch": Target(
        _single_agent,
        _contents,
        {"reset": (5, START), "step": (np.zeros(N, int),), "set_opponents": ("random", SOME)},
    ),
    "Game": Target(
        lambda: Game(seed=0),
        _state_of_game,
        {"play": (0,), "label": (0,), "record": (("a", "b"),), "copy": ("same", 7)},
    ),
    "env": Target(
        lambda: _after_reset(env()),
        lambda made: _state_of_game(made.game),
        {"reset": (5, {"state": START}), "observe": ("player_0",)},
    ),
    "Gymnasium": Target(
        lambda: _after_reset(TokaidoDuoEnv("random")), lambda made: None, {"step": (0,)}
    ),
    "vector": Target(
        lambda: _after_reset(TokaidoDuoVectorEnv(N)), lambda made: None, {"step": (np.zeros(N),)}
    ),
}


def is_refused(call: Callable[[], object]) -> bool:
    """Call; return whether it was refused, by a short message with a remedy."""
    try:
        call()
    except (RecursionError, NotImplementedError, UnicodeError):
        raise
    except ERRORS as error:
        check_refusal(str(error))
        return True
    return False


def check_refusal(message: str) -> None:
    check_message(message)
    assert any(remedy in message for remedy in REMEDIES), message


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TARGETS)
def test_call__refuses_wrong_arguments_without_a_change(name: str) -> None:
    target, refused = TARGETS[name], 0
    for method, right in target.calls.items():
        for place in range(len(right)):
            made = target.make()
            for wrong in WRONG:
                before, given = target.state(made), (*right[:place], wrong, *right[place + 1 :])
                if is_refused(partial(getattr(made, method), *given)):
                    assert target.state(made) == before, (method, place)
                    refused += 1
                else:
                    made = target.make()
    assert refused > len(target.calls) * len(WRONG) // 3


MAKERS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "Batch": (
        Batch,
        {"n": N, "board": "shikoku", "chance": "sampled", "reward": "win", "observation": None},
    ),
    "SingleAgentBatch": (
        lambda n, opponents, **options: SingleAgentBatch(n, opponents, **options),
        {"n": N, "opponents": "random", "seat": 0, "illegal": "raise"},
    ),
    "Game": (Game, {"board": "shikoku", "seed": 3, "chance": "sampled"}),
    "Game.from_dict": (Game.from_dict, {"position": START, "seed": 3, "chance": "explicit"}),
    "env": (env, {"board": "shikoku", "reward": "win", "illegal": "raise", "render_mode": None}),
    "Gymnasium": (TokaidoDuoEnv, {"opponent": "random", "seat": 0, "board": "shikoku"}),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MAKERS)
def test_make__refuses_wrong_options(name: str) -> None:
    make, options = MAKERS[name]
    refused = [
        is_refused(partial(make, **options | {option: wrong}))
        for option in options
        for wrong in WRONG
    ]
    assert sum(refused) > len(refused) // 2
