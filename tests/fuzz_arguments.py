"""Valid, similar and invalid arguments for fuzz tests of objects."""

import random
from collections.abc import Callable
from typing import Any

import mutants
import numpy as np
from positions import random_position, random_walk

from tokaido_env.batch import Batch

N = 3  # games
_RNG = random.Random(0)
POSITIONS = [random_walk(seed, 40 * seed).to_dict() for seed in range(10)]
POSITIONS += [random_position(_RNG) for _ in range(10)]
SEED = 2**53 - 1 - N


class Give:
    """Returns a valid argument, a similar one or an invalid one."""

    def __init__(self, rng: random.Random, wrong: float) -> None:
        self.rng = rng
        self.wrong = wrong

    def __call__(self, right: Any) -> Any:
        if self.rng.random() >= self.wrong:
            return right
        how = self.rng.random()
        if how < 0.4:
            return alike(self.rng, right)
        wrong = mutants.wrong_value(self.rng) if how < 0.7 else mutants.foreign_value(self.rng)
        return None if isinstance(wrong, str) and "sims=" in wrong else wrong  # it would search


def alike(rng: random.Random, right: Any) -> Any:
    """Return the value in another form, or a similar value."""
    if isinstance(right, np.ndarray) and right.dtype.names is None:
        return _other_array(rng, right)
    if isinstance(right, dict):
        try:
            return (
                rng.choice((mutants.mutated_tree, mutants.with_lookalikes))(rng, right)
                if right
                else [right]
            )
        except TypeError:  # a stranger in it cannot be copied
            return [right]
    if isinstance(right, bool) or right is None:
        return rng.choice((0, 1, "", "true", np.bool_(True), not right, [], [right]))
    if isinstance(right, int):
        near = (right + 1, -right, -1, float(right), str(right), [right], np.int64(right))
        return rng.choice((*near, np.array(right), np.array([right]), mutants.HostileInt(right)))
    if isinstance(right, str):
        return rng.choice(
            (right.upper(), right + " ", right[:-1], right.encode(), [right], {right})
        )
    return [right, right]


DTYPES = ("i1", "u1", ">i8", "<i4", "u8", "f4", "f8", "?", "O", "U")


def _other_array(rng: random.Random, right: np.ndarray[Any, Any]) -> Any:
    """Return the array with another shape, dtype, order or type, or with an invalid item."""
    spoilt = right.astype(object)
    if spoilt.size:
        spoilt.reshape(-1)[rng.randrange(spoilt.size)] = mutants.wrong_value(rng)
    forms: tuple[Callable[[], Any], ...] = (
        right.tolist,
        lambda: tuple(right.tolist()),
        lambda: set(right.reshape(-1).tolist()),
        lambda: (x for x in right),
        lambda: right.astype(rng.choice(DTYPES)),
        lambda: np.repeat(right, 2, axis=0)[::2],
        lambda: _read_only(right),
        lambda: right[::-1],
        lambda: right[1:],
        lambda: np.concatenate([right, right[:1]]),
        lambda: right[None],
        lambda: np.broadcast_to(right[:1], right.shape),
        lambda: np.ma.masked_array(right, True),
        lambda: right.astype(np.int64) + rng.choice((1, -1, 2, 3, 100, 2**40)),
        lambda: right.view(np.matrix) if right.ndim < 3 else right,
        lambda: right.astype(np.uint64) + np.uint64(2**64 - 1),
        lambda: spoilt,
        spoilt.tolist,
        lambda: np.array(right.tolist(), dtype=[(mutants.TEXTS[3], "i8")]),
    )
    return rng.choice(forms)()


def _read_only(right: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    other = right.copy()
    other.flags.writeable = False
    return other


def spoilt(give: Give, snapshot: dict[str, Any]) -> Any:
    """Return a snapshot with one array changed or replaced."""
    if give.rng.random() >= give.wrong:
        return snapshot
    rng, name = give.rng, give.rng.choice(sorted(snapshot))
    array = snapshot[name]
    forms: tuple[Callable[[], Any], ...] = (
        lambda: _with_other_bytes(rng, array),
        lambda: _with_other_bytes(rng, array),
        lambda: array[::-1],
        lambda: array[:1],
        lambda: np.concatenate([array, array]),
        lambda: array[None],
        lambda: snapshot[rng.choice(sorted(snapshot))],
        lambda: array.astype(object),
        lambda: mutants.wrong_value(rng),
        lambda: mutants.foreign_value(rng),
    )
    return snapshot | {name: rng.choice(forms)()}


def _with_other_bytes(rng: random.Random, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    other = array.copy()
    if other.dtype.kind != "U":
        raw = other.view(np.uint8)
        raw[rng.randrange(len(raw))] = rng.randrange(256)
    return other


class Player:
    """An opponent with valid or invalid actions."""

    def __init__(self, give: Give) -> None:
        self.give = give

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> Any:
        return self.give(np.array([(int(mask) & -int(mask)).bit_length() - 1 for mask in legal]))


def some(give: Give) -> Any:
    """Return indices of some games."""
    games = np.array(give.rng.sample(range(N), give.rng.randint(1, N)))
    return give(games)


def size(games: Any) -> int:
    return (
        games.size
        if isinstance(games, np.ndarray)
        else len(games)
        if isinstance(games, list)
        else 1
    )


def start(give: Give) -> Any:
    """Return a position on the default board, or None."""
    return give(give.rng.choice((POSITIONS[0], None, None)))


def starts(batch: Batch, give: Give) -> Any:
    """Return a position per game of a batch, one for all, or None."""
    if len(batch.boards) == 1:
        several = [give.rng.choice(POSITIONS) for _ in range(N)]
        return give(give.rng.choice((POSITIONS[0], several, batch.states.copy(), None)))
    return give(give.rng.choice((batch.states.copy(), None)))


def begins(give: Give) -> Any:
    """Return options of a reset."""
    if give.rng.random() < 0.8:
        return {"state": start(give)}
    return give({"state": POSITIONS[0]})
