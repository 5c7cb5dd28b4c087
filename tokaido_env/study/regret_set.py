"""Regret sets: positions with results of every legal action, and their file format.

The results are of rollouts, or exact in the solved positions.

The file is NumPy's `.npz` without pickles, so `numpy.load` reads it too. A set belongs to the
rules, the boards and the layout of states and actions that it was made with. Its hash covers all of
its contents.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta

from tokaido_env.arena.match import match_seed
from tokaido_env.batch import Batch
from tokaido_env.batch_validation import check_states
from tokaido_env.boards.board import Board
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.boards.reader import BoardError
from tokaido_env.core.actions import LABELS, NO_ACTION
from tokaido_env.core.arguments import repr_short, short_path, str_short
from tokaido_env.core.rng import arena_seed
from tokaido_env.core.rules import RULES_VERSION
from tokaido_env.core.state import STATE, copy_rows
from tokaido_env.decoding import Name, Share, Source, Struct
from tokaido_env.files import atomic_write, parse_json
from tokaido_env.position import PositionError

FORMAT = "tokaido-regret"
VERSION = 1
SHIPPED = Path(__file__).resolve().parent / "regret.npz"
SOLVED = SHIPPED.with_name("solved.npz")
"""Positions of last rounds with exact results."""

SAME = 1e-9
"""Exact results that differ by less are equal but for rounding."""

BLOCK = 64
"""Rollouts in one sum of results, -64 to 64, which fits into 8 bits."""

NOT_ROLLED = -128
"""The value in `RegretSet.sums` of a block without rollouts."""

LAYOUT = hashlib.sha256(repr((STATE.descr, LABELS)).encode()).hexdigest()[:16]
"""The hash of the layout of states and of the action table."""

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
    """A file that is no valid regret set of this version; the message names a remedy."""


class PositionSubset(NamedTuple):
    """Some positions of a set, k of them.

    Attributes:
        numbers: int64 (k,), of the positions within the set.
        boards: of each.
        states: `STATE` (k,).
        seeds: int64 (k,), of the luck and of the agents' random bits.
    """

    numbers: npt.NDArray[np.int64]
    boards: Sequence[Board]
    states: npt.NDArray[np.void]
    seeds: npt.NDArray[np.int64]

    def batch(self) -> Batch:
        """Return the positions as a `Batch` of k games, in their order."""
        batch = Batch(len(self.numbers), self.boards, autoreset=False, observation=None)
        batch.reset(self.seeds, self.states)
        return batch


@dataclass(frozen=True)
class RegretSet:
    """n positions with a choice, and their m legal actions.

    Attributes:
        card: description of the set, JSON types: "name", "seed", "boards" (names and hashes),
            "strata" ({"boards", "phase", "rounds", "share"} each), "policies" (specs of the agents
            that played the rollouts, none for exact results), and more by its maker.
        states: `STATE` (n,).
        board: int16 (n,), index of the board.
        stratum: int16 (n,), index of the stratum.
        starts: int32 (n + 1,): position `i` has the actions `starts[i]` to `starts[i + 1]`, all
            legal ones in ascending order.
        actions: int8 (m,).
        sums: int8 (m, policies, blocks), the sums of `BLOCK` rollouts each, for the player to
            decide; `NOT_ROLLED` after the last block of an action. The first block has rollouts
            of every action. At least one action of each position has all blocks. Exact results
            are float64 (m, 1, 1) instead, from -1 to 1.
    """

    card: dict[str, Any]
    states: npt.NDArray[np.void]
    board: npt.NDArray[np.int16]
    stratum: npt.NDArray[np.int16]
    starts: npt.NDArray[np.int32]
    actions: npt.NDArray[np.int8]
    sums: npt.NDArray[np.int8] | npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.states)

    @property
    def hash(self) -> str:
        """Sixteen hex digits of the SHA-256 of all contents."""
        text = json.dumps({**self.card, "hash": None}, sort_keys=True)
        digest = hashlib.sha256(text.encode())
        for name in _ARRAYS:
            digest.update(getattr(self, name).tobytes())
        return digest.hexdigest()[:16]

    @property
    def is_exact(self) -> bool:
        """Whether the actions' results were solved exactly, not estimated by rollouts."""
        return not self.card["policies"]

    @property
    def shares(self) -> npt.NDArray[np.float64]:
        """The share of each stratum among all choices of games: float64 (strata,)."""
        return np.array([stratum["share"] for stratum in self.card["strata"]], np.float64)

    @property
    def action_positions(self) -> npt.NDArray[np.int64]:
        """The index of the position of each action: int64 (m,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    @functools.cached_property
    def boards(self) -> BoardPool:
        """The boards in the order of the card: built-in ones or of the family, never files."""
        return BoardPool.load([Board.by_name(name) for name, _ in self.card["boards"]])

    def batch(self) -> Batch:
        """Return all positions as a `Batch` of n games, in their order."""
        return self.subset(np.arange(len(self))).batch()

    def subset(self, some: npt.NDArray[np.int64]) -> PositionSubset:
        """Return some positions by their numbers, int64 (k,)."""
        seed = match_seed(self.card["seed"], "regret", "agents")
        return PositionSubset(
            some,
            [self.boards[k] for k in self.board[some].tolist()],
            copy_rows(self.states, some),
            np.array([arena_seed(seed, k) for k in some.tolist()], np.int64),
        )

    def sample(self, positions: int, seed: int) -> RegretSet:
        """Return a set of at most that many positions, in proportion to the shares of the strata.

        A stratum with a share keeps two positions or more, which intervals need.

        Raises:
            ValueError: for fewer positions than that.
        """
        order = np.random.default_rng(seed).permutation(len(self))
        order = order[np.argsort(self.stratum[order], kind="stable")]
        stratum, shares = self.stratum[order], self.shares
        rank = np.arange(len(self)) - np.searchsorted(stratum, stratum)
        for scale in range(positions, -1, -1):
            wanted = np.where(shares > 0, np.maximum(np.rint(scale * shares), 2), 0)
            if wanted.sum() <= positions:
                break
        else:
            raise ValueError(f"positions: expected {wanted.sum():.0f} or more, got {positions}")
        some = np.sort(order[rank < wanted[stratum]])
        rows = np.isin(self.action_positions, some)
        starts = np.concatenate([[0], np.cumsum(np.diff(self.starts)[some])]).astype(np.int32)
        return RegretSet(
            *(
                deepcopy(self.card),
                copy_rows(self.states, some),
                self.board[some],
                self.stratum[some],
            ),
            *(starts, self.actions[rows], self.sums[rows]),
        )

    def action_rows(self, choices: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the row of one action of each position, int64 (n,); -1 for NO_ACTION.

        Args:
            choices: int64 (n,), action ids, legal ones or NO_ACTION.

        Raises:
            ValueError: if an action is not legal.
        """
        found = np.flatnonzero(self.actions == choices[self.action_positions])
        rows = np.full(len(self), NO_ACTION, np.int64)
        rows[self.action_positions[found]] = found
        if ((rows < 0) != (choices == NO_ACTION)).any():
            raise ValueError("choices: expected a legal action in each position, or NO_ACTION")
        return rows

    # The file

    def save(self, path: str | Path) -> None:
        """Write the file atomically; the same set gives the same bytes."""
        card = {**self.card, "hash": self.hash}
        head = {"format": FORMAT, "version": VERSION, "rules": RULES_VERSION, "layout": LAYOUT}
        text = json.dumps(head | card, sort_keys=True)
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        with atomic_write(Path(path)) as file:
            np.savez(file, card=np.frombuffer(text.encode(), np.uint8), **arrays)

    @classmethod
    def load(cls, path: str | Path = SHIPPED) -> RegretSet:
        """Read a regret set.

        Args:
            path: of the file; "solved" for the solved positions of the package (default: its
                rolled-out positions).

        Raises:
            RegretSetError: if the file is no regret set, is damaged, or was made for other rules,
                another layout or other boards.
        """
        path = SOLVED if str(path) == "solved" else Path(path)
        where = short_path(path)
        arrays = _read_arrays(path, where)
        card = _checked_card(where, arrays.pop("card"))
        loaded = cls(card, **arrays)
        if loaded.hash != card["hash"]:
            raise RegretSetError(
                f"{where}: hash: expected {loaded.hash}, that of its contents, got "
                f"{repr_short(card['hash'])}: the file is damaged or was changed"
            )
        _check_boards(where, loaded)
        _check_positions(where, loaded)
        return loaded


def _read_arrays(path: Path, where: str) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a file, without pickles, after a check of their dtypes."""
    expected = {"card": np.dtype(np.uint8)} | {k: np.dtype(v) for k, v in _ARRAYS.items()}
    data = io.BytesIO(path.read_bytes())
    try:
        with np.load(data, allow_pickle=False) as file:
            arrays = {name: np.asarray(file[name], order="C") for name in expected}
    except Exception as error:  # NumPy and zipfile raise many for a damaged file
        reason = str_short(error, 200)
        raise RegretSetError(f"{where}: not a regret set (.npz): {reason}") from None
    if arrays["sums"].dtype == np.float64:
        expected["sums"] = np.dtype(np.float64)  # exact results
    for name, dtype in expected.items():
        if arrays[name].dtype != dtype:
            got = str_short(arrays[name].dtype, 20)
            raise RegretSetError(f"{where}: {name}: expected {str_short(dtype, 20)}, got {got}")
    return arrays


class _Stratum(Struct, frozen=True):
    boards: Name
    phase: PhaseName
    rounds: Name
    share: Share


class _Card(msgspec.Struct, frozen=True):
    """The keys of a card that are read; its maker may add more."""

    name: Name
    hash: str
    seed: int
    boards: Annotated[list[tuple[Name, str]], Meta(min_length=1)]
    strata: Annotated[list[_Stratum], Meta(min_length=1)]
    policies: list[Name]


def _checked_card(where: str, text: npt.NDArray[np.uint8]) -> dict[str, Any]:
    try:
        card = parse_json(text.tobytes().decode())
    except ValueError as error:
        raise RegretSetError(f"{where}: card: expected JSON: {str_short(error, 200)}") from None
    source = Source(f"{where}: card", card, RegretSetError)
    remedy = "make the set again (benchmarks/*_set.py), or use the version that made it"
    source.check_versions("this is no regret set", format=FORMAT)
    source.check_versions(remedy, version=VERSION, rules=RULES_VERSION, layout=LAYOUT)
    source.decode(_Card)
    made_for = ("format", "version", "rules", "layout")
    return {key: value for key, value in card.items() if key not in made_for}


def _check_boards(where: str, loaded: RegretSet) -> None:
    try:
        hashes = loaded.boards.hashes.tolist()
    except BoardError as error:
        raise RegretSetError(f"{where}: {error}") from None
    for (name, own), known in zip(loaded.card["boards"], hashes, strict=True):
        if known != own:
            raise RegretSetError(
                f"{where}: board {repr_short(name)}: expected hash {known}, got {repr_short(own)}: "
                "make the set again (benchmarks/*_set.py)"
            )


def _check_positions(where: str, loaded: RegretSet) -> None:
    """Check that a game can reach the states: kernels use their numbers as indices."""
    boards, which = loaded.boards, loaded.board.astype(np.int64)
    shapes = loaded.states.shape == which.shape == (which.size,)
    if not shapes or not ((which >= 0) & (which < len(boards))).all():
        raise RegretSetError(f"{where}: board: expected the index of a board for each position")
    try:
        numbers = np.arange(len(loaded))
        check_states(boards, boards.records, which, numbers, copy_rows(loaded.states))
    except PositionError as error:
        raise RegretSetError(f"{where}: {error}") from None
