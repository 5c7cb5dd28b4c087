"""A regret set: positions, and what each legal action in them is worth by rollouts; and its file.

The file is NumPy's `.npz` without pickles, so `numpy.load` reads it too. A set is for the rules,
the boards and the layout of states and actions that it was made with; its hash stands for all.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta

from tokaido_env.arena.ladder import match_seed
from tokaido_env.batch import Batch
from tokaido_env.batch_validation import check_states
from tokaido_env.boards.board import Board
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.boards.reader import BoardError
from tokaido_env.core.actions import LABELS
from tokaido_env.core.arguments import MAX_PATH_CHARS, repr_short, str_short
from tokaido_env.core.bitmask import actions_of
from tokaido_env.core.rng import arena_seed
from tokaido_env.core.rules import RULES_VERSION, legal_mask
from tokaido_env.core.state import STATE, copy_rows
from tokaido_env.decoding import Name, Share, Source, Struct
from tokaido_env.files import atomic_write, parse_json
from tokaido_env.learn.safe_npz import read_arrays
from tokaido_env.position import PositionError

FORMAT = "tokaido-regret"
VERSION = 1
SHIPPED = Path(__file__).resolve().parent / "regret.npz"

BLOCK = 64
"""Rollouts whose results are kept as one sum, which 8 bits hold: -64 to 64."""

MOST_FILE = 32 << 20
MOST_POSITIONS = 100_000
MOST_BLOCKS = 1024
MOST_BOARDS = 1000
NOT_ROLLED = -128
"""Stands in `RegretSet.sums` for a block that was not rolled out."""

LAYOUT = hashlib.sha256(repr((STATE.descr, LABELS)).encode()).hexdigest()[:16]
"""Of states and actions, as the file holds them."""

PhaseName = Literal["MOVE", "EFFECT", "DISCARD", "REPEAT"]
PHASES: tuple[str, ...] = get_args(PhaseName)

_ARRAYS: dict[str, npt.DTypeLike] = {
    "states": STATE,
    "board": np.int16,
    "stratum": np.int16,
    "starts": np.int32,
    "actions": np.int8,
    "sums": np.int8,
}


class RegretSetError(ValueError):
    """A file that is no regret set, or one of another version: the message says what helps."""


class Questions(NamedTuple):
    """Positions in which it is to be decided, k of them.

    Attributes:
        numbers: int64 (k,), of the positions within the set.
        boards: of each.
        states: `STATE` (k,).
        seeds: int64 (k,), of the luck that each has of its own.
    """

    numbers: npt.NDArray[np.int64]
    boards: Sequence[Board]
    states: npt.NDArray[np.void]
    seeds: npt.NDArray[np.int64]

    def batch(self) -> Batch:
        """Return them as games."""
        batch = Batch(len(self.numbers), self.boards, autoreset=False, observation=None)
        batch.reset(self.seeds, self.states)
        return batch


@dataclass(frozen=True)
class RegretSet:
    """Positions with a choice, n of them, and m legal actions in them.

    Attributes:
        card: what it is and how it was made, JSON types: "name", "seed", "boards" (names and
            hashes), "strata" ({"boards", "phase", "rounds", "share"} each), "policies" (specs of
            who played the rollouts), and what else its maker says.
        states: `STATE` (n,).
        board: int16 (n,), which of the boards.
        stratum: int16 (n,), which of the strata.
        starts: int32 (n + 1,): position `i` has the actions `starts[i]` to `starts[i + 1]`, all
            that are legal, ascending.
        actions: int8 (m,).
        sums: int8 (m, policies, blocks), the results of `BLOCK` rollouts each, for who decides;
            `NOT_ROLLED` behind the blocks that an action has. A position has one action at least
            with all blocks, and the first of them is rolled out for every action.
    """

    card: dict[str, Any]
    states: npt.NDArray[np.void]
    board: npt.NDArray[np.int16]
    stratum: npt.NDArray[np.int16]
    starts: npt.NDArray[np.int32]
    actions: npt.NDArray[np.int8]
    sums: npt.NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.states)

    @property
    def hash(self) -> str:
        """Sixteen hex digits that stand for all of it."""
        text = json.dumps({**self.card, "hash": None}, sort_keys=True)
        held = hashlib.sha256(text.encode())
        for name in _ARRAYS:
            held.update(getattr(self, name).tobytes())
        return held.hexdigest()[:16]

    @property
    def shares(self) -> npt.NDArray[np.float64]:
        """The share of each stratum among all choices of games: float64 (strata,)."""
        return np.array([stratum["share"] for stratum in self.card["strata"]], np.float64)

    @property
    def owners(self) -> npt.NDArray[np.int64]:
        """The position of each action: int64 (m,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    @functools.cached_property
    def boards(self) -> BoardPool:
        """The boards, in the order of the card: built-in ones or of the family, never files."""
        return BoardPool.load([Board.named(name) for name, _ in self.card["boards"]])

    def batch(self) -> Batch:
        """Return all positions as games in which it is to be decided, with luck of their own."""
        return self.questions(np.arange(len(self))).batch()

    def questions(self, some: npt.NDArray[np.int64]) -> Questions:
        """Return what is asked in some positions, int64 (k,)."""
        seed = match_seed(self.card["seed"], "regret", "agents")
        return Questions(
            some,
            [self.boards[k] for k in self.board[some].tolist()],
            copy_rows(self.states, some),
            np.array([arena_seed(seed, k) for k in some.tolist()], np.int64),
        )

    def rows(self, choices: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the rows of legal actions, one of each position: int64 (n,)."""
        mine = np.flatnonzero(self.actions == choices[self.owners])
        if len(mine) != len(self):
            raise ValueError("choices: expected a legal action in each position")
        return mine

    # The file

    def save(self, path: str | Path) -> None:
        """Write the file: whole or not at all; the same set gives the same bytes."""
        card = {**self.card, "hash": self.hash}
        head = {"format": FORMAT, "version": VERSION, "rules": RULES_VERSION, "layout": LAYOUT}
        text = json.dumps(head | card, sort_keys=True)
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        with atomic_write(Path(path)) as file:
            np.savez(file, card=np.frombuffer(text.encode(), np.uint8), **arrays)

    @classmethod
    def load(cls, path: str | Path = SHIPPED) -> RegretSet:
        """Read a regret set.

        Raises:
            RegretSetError: if the file is none, is damaged, or was made for other rules, another
                layout or other boards.
        """
        path = Path(path)
        where = str_short(path, MAX_PATH_CHARS)
        members = _members(path, where)
        card = _checked_card(where, members.pop("card"))
        loaded = cls(card, **members)
        _check_shapes(where, loaded)
        if loaded.hash != card["hash"]:
            raise RegretSetError(
                f"{where}: hash: the file says {repr_short(card['hash'])}, what it holds has "
                f"{loaded.hash}: it is damaged, or was changed"
            )
        _check_boards(where, loaded)
        _check_positions(where, loaded)
        return loaded


def _members(path: Path, where: str) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a file, of the dtypes they should have."""
    wanted = {"card": np.dtype(np.uint8)} | {k: np.dtype(v) for k, v in _ARRAYS.items()}
    try:
        held = read_arrays(path, MOST_FILE)
    except ValueError as error:
        told = str(error).removeprefix(f"{path.name}: ")
        raise RegretSetError(f"{where}: {told}") from None
    if sorted(held) != sorted(wanted):
        raise RegretSetError(f"{where}: not a regret set: expected the arrays {', '.join(wanted)}")
    for name, dtype in wanted.items():
        if held[name].dtype != dtype or not held[name].flags.c_contiguous:
            raise RegretSetError(
                f"{where}: {name}: expected {str_short(dtype, 20)}, got {str_short(held[name].dtype, 20)}"
            )
    return held


class _Stratum(Struct, frozen=True):
    boards: Name
    phase: PhaseName
    rounds: Name
    share: Share


class _Card(msgspec.Struct, frozen=True):
    """What is read of a card: its maker may say more."""

    name: Name
    hash: str
    seed: int
    boards: Annotated[list[tuple[Name, str]], Meta(min_length=1, max_length=MOST_BOARDS)]
    strata: Annotated[list[_Stratum], Meta(min_length=1)]
    policies: Annotated[list[Name], Meta(min_length=1)]


def _checked_card(where: str, text: npt.NDArray[np.uint8]) -> dict[str, Any]:
    try:
        card = parse_json(text.tobytes().decode())
    except ValueError as error:
        raise RegretSetError(f"{where}: card: expected JSON: {str_short(error, 200)}") from None
    source = Source(f"{where}: card", card, RegretSetError)
    remedy = "make it again (benchmarks/regret_set.py), or use the version it was made with"
    source.check_versions("it is no regret set", format=FORMAT)
    source.check_versions(remedy, version=VERSION, rules=RULES_VERSION, layout=LAYOUT)
    source.decode(_Card)
    made_for = ("format", "version", "rules", "layout")
    return {key: value for key, value in card.items() if key not in made_for}


def _check_shapes(where: str, told: RegretSet) -> None:
    n, m, starts = told.states.size, told.actions.size, told.starts
    policies, strata = len(told.card["policies"]), len(told.card["strata"])
    right = told.states.ndim == told.board.ndim == told.stratum.ndim == starts.ndim == 1
    right = right and 1 <= n <= MOST_POSITIONS and len(told.board) == len(told.stratum) == n
    right = right and len(starts) == n + 1 and starts[0] == 0 and starts[-1] == m
    right = right and bool((np.diff(starts) > 0).all()) and told.actions.ndim == 1
    right = right and told.sums.ndim == 3 and told.sums.shape[:2] == (m, policies)
    right = right and 2 <= told.sums.shape[2] <= MOST_BLOCKS
    right = right and bool(((told.stratum >= 0) & (told.stratum < strata)).all())
    right = right and bool(((told.board >= 0) & (told.board < len(told.card["boards"]))).all())
    if not right:
        raise RegretSetError(f"{where}: its arrays do not belong together")
    counts, shares = np.bincount(told.stratum, minlength=strata), told.shares
    if ((counts < 2) != (shares == 0)).any() or not shares.any():
        raise RegretSetError(
            f"{where}: expected two positions or more of each stratum with a share"
        )
    _check_sums(where, told)


def _check_sums(where: str, told: RegretSet) -> None:
    rolled = told.sums != NOT_ROLLED
    behind = rolled[:, :, 1:] & ~rolled[:, :, :-1]  # a block behind one that is missing
    alike = (rolled == rolled[:, :1]).all()
    whole = np.logical_or.reduceat(rolled[:, 0].all(axis=1), told.starts[:-1])
    within = np.abs(told.sums.astype(np.int16)) <= BLOCK
    if behind.any() or not alike or not rolled[:, :, 0].all() or not whole.all():
        raise RegretSetError(f"{where}: sums: expected one action of each position in all blocks")
    if not (within | ~rolled).all():
        raise RegretSetError(f"{where}: sums: expected -{BLOCK} to {BLOCK}, or {NOT_ROLLED}")


def _check_boards(where: str, told: RegretSet) -> None:
    try:
        hashes = told.boards.hashes.tolist()
    except BoardError as error:
        raise RegretSetError(f"{where}: {error}") from None
    for (name, own), known in zip(told.card["boards"], hashes, strict=True):
        if known != own:
            raise RegretSetError(
                f"{where}: made on a board {repr_short(name)} of hash {repr_short(own)}, the one here has "
                f"{known}: make it again (benchmarks/regret_set.py)"
            )


def _check_positions(where: str, told: RegretSet) -> None:
    """Check that the states are possible, and the actions those that are legal in them."""
    boards = told.boards
    which = told.board.astype(np.int64)
    try:
        check_states(boards, boards.records, which, np.arange(len(told)), copy_rows(told.states))
    except PositionError as error:
        raise RegretSetError(f"{where}: {error}") from None
    records = copy_rows(boards.records, which)
    for i in range(len(told)):
        actions = told.actions[told.starts[i] : told.starts[i + 1]].tolist()
        if actions != actions_of(legal_mask(records, told.states, i)) or len(actions) < 2:
            raise RegretSetError(
                f"{where}: position {i}: expected the actions that are legal, two or more, "
                f"got {repr_short(actions)}"
            )
