"""What a network computes: the forward pass as a compiled kernel, which needs no PyTorch.

`policy` tells what a network is. Its layers are applied to the units that are not 0 only: of the
inputs most are. What a network reads of the board is the same in all positions on it, so it is
added to the first bias once a board: a forward pass costs the same with and without.
"""

from __future__ import annotations

import functools
import math
import threading
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from numba import prange

from tokaido_env.agent import BoardRows, Legal, States
from tokaido_env.agents.board_cache import BoardCache
from tokaido_env.agents.eval_tables import N_TERMS, eval_tables_of
from tokaido_env.agents.heuristic import SCRATCH
from tokaido_env.agents.network_inputs import AFTERSTATE_VALUES, MAX_LEGAL, encode_position
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.bitmask import lowest_action
from tokaido_env.core.board_features import N_BOARD_FEATURES, board_blocks
from tokaido_env.core.constants import Row
from tokaido_env.core.jit import entry, index, int64, kernel, parallel, subroutine, threads_for
from tokaido_env.core.rng import hash_bits
from tokaido_env.core.threads import fetch_add, padded_rows

Floats = npt.NDArray[np.float32]

_NEIGHBOURS = 16  # positions that a thread takes at a time, if there are many
_MOST_COPIES = 16  # of a network, half a megabyte each; more threads share them


class Weights(NamedTuple):
    """A network as the kernels read it: float32, (copies, inputs, outputs) where it is a matrix.

    A copy is for one thread: processors that share weights fetch them from each other each time
    that they fall out of a cache, which makes a forward pass a third longer.
    """

    first: Floats
    first_bias: Floats  # (rows, first + value_first): one for all boards, or of each of several
    second: Floats
    second_bias: Floats
    heads: Floats  # (copies, second, N_ACTIONS + move): actions, context of moves
    heads_bias: Floats
    value_first: Floats
    value_second: Floats
    value_second_bias: Floats
    value_out: Floats  # (copies, value_second)
    value_bias: Floats  # (copies, 1)
    afterstate: Floats  # (copies, numbers of a move, move)
    moves: Floats  # (copies, N_ACTIONS, move)
    move_out: Floats  # (copies, move)
    afterstate_factor: Floats  # (copies, 1)


SHARED_BIAS = np.zeros(1, np.int64)
"""The row of all boards."""


class PositionBatch(NamedTuple):
    """Positions that wait for a decision."""

    boards: Any  # BOARD (1,) for all, or (n,)
    eval_tables: Any  # GUIDE, as many
    states: Any  # STATE (n,)
    legal: Any  # uint64 (n,), the legal actions as bits, not 0
    bias_rows: npt.NDArray[np.int64] = SHARED_BIAS  # (1,) or (n,), each board's of the first bias

    def part(self, part: slice | npt.NDArray[np.int64]) -> PositionBatch:
        """Return some of them."""
        each = part if len(self.boards) > 1 else slice(None)
        rows = self.bias_rows[part] if len(self.bias_rows) > 1 else self.bias_rows
        return PositionBatch(
            self.boards[each], self.eval_tables[each], self.states[part], self.legal[part], rows
        )


class PositionRow(NamedTuple):
    """A row of `Positions`."""

    board: Row
    tables: Row
    state: Row
    legal: np.uint64
    bias_row: int  # of the first bias


class Workspace(NamedTuple):
    """What a forward pass of one thread writes to; with one axis more, first, that of several."""

    copy: Any  # int, which one of the network it reads
    scratch: Any  # a row of SCRATCH
    layers: Floats  # the trunk's inputs, its layers, the heads, the layer of a move
    afterstates: Floats  # (MAX_LEGAL or more, numbers of a move)
    units: npt.NDArray[np.int64]  # the numbers of the units of a layer that are not 0
    values: Floats  # what they are
    logits: Floats  # (N_ACTIONS or more,), room for those of a position that nothing else keeps


class Network:
    """A network that is ready for the kernels, on any boards.

    Args:
        weights: without copies.
        board: float32 (N_BOARD_FEATURES, first + value_first), what the board's features add to the
            first layer; None if it does not read them.
    """

    def __init__(self, weights: Weights, board: Floats | None = None) -> None:
        bias = weights.first_bias
        copies = min(numba.config.NUMBA_NUM_THREADS, _MOST_COPIES)
        copied = Weights(*(np.stack([array] * copies) for array in weights))
        self._weights = copied._replace(first_bias=bias[None])
        self._biases: BoardCache | None = None
        if board is not None:
            make = functools.partial(_make_biases, board, bias)
            self._biases = BoardCache(make, bias.shape, np.float32)

    def for_boards(self, boards: npt.NDArray[np.void]) -> tuple[Weights, npt.NDArray[np.int64]]:
        """Return what the kernels read on boards, `BOARD` (b,), and `Positions.rows` there."""
        if self._biases is None:
            return self._weights, SHARED_BIAS
        table, rows = self._biases.rows(boards)
        return self._weights._replace(first_bias=table), rows


_BOARD_FEATURES = BoardCache(board_blocks, (N_BOARD_FEATURES,), np.float32)  # for all networks


def _make_biases(weights: Floats, bias: Floats, boards: npt.NDArray[np.void]) -> Floats:
    """Return the first bias with what is read of each of the boards, `BOARD` (b,): (b, first)."""
    table, which = _BOARD_FEATURES.rows(boards)
    blocks = table[which]
    biases = np.empty((len(boards), len(bias)), np.float32)
    units, values = np.empty(N_BOARD_FEATURES, np.int64), np.empty(N_BOARD_FEATURES, np.float32)
    _fill_biases(biases, blocks, weights, bias, units, values)
    return biases


@entry
def _fill_biases(out: Any, blocks: Any, weights: Any, bias: Any, units: Any, values: Any) -> None:
    for i in range(len(out)):
        active = _nonzero(blocks[i], units, values)
        _apply_layer(weights, bias, units, values, active, out[i])


def evaluate_all(
    network: Network,
    boards: BoardRows,
    states: States,
    legal: Legal,
) -> tuple[Floats, Floats]:
    """Return logits (n, N_ACTIONS), -inf where illegal, and values (n,) for who decides.

    Args:
        network: that evaluates.
        boards: `BOARD` (1,) for all, or (n,).
        states: `STATE` (n,), with a decision to take.
        legal: uint64 (n,), the legal actions as bits, not 0.
    """
    logits = np.full((len(states), N_ACTIONS), -np.inf, np.float32)
    values = np.empty(len(states), np.float32)
    weights, rows = network.for_boards(boards)
    positions = PositionBatch(boards, eval_tables_of(boards), states, legal, rows)
    threads = threads_for(len(states))
    workspaces = cached_workspaces(threads, weights)
    _evaluate_all(values, logits, weights, positions, workspaces, np.zeros(1, np.int64))
    return logits, values


def cached_workspaces(threads: int, weights: Weights | None) -> Workspace:
    """Return what a forward pass writes to, for each thread; without a network only the scratch.

    A thread of Python gets the same memory each time that it asks for as much.
    """
    if weights is None:
        return _make_workspaces(threading.get_ident(), threads, 1, None)
    copies, sizes = len(weights.first), workspace_sizes(weights)
    return _make_workspaces(threading.get_ident(), threads, copies, sizes)


def workspace_sizes(weights: Weights) -> tuple[int, int, int]:
    """Return how many numbers of a workspace are layers, units of the widest layer, of a move."""
    _, inputs, first = weights.first.shape
    _, value_first, value_second = weights.value_second.shape
    _, result, move = weights.afterstate.shape
    _, second, heads = weights.heads.shape
    layers = inputs + max(first, value_first) + max(second, value_second) + heads + move
    return layers, max(inputs, first, second, value_first, value_second, result), result


@functools.lru_cache(maxsize=8)
def _make_workspaces(
    python_thread: int, threads: int, copies: int, sizes: tuple[int, int, int] | None
) -> Workspace:
    layers, widest, result = (0, 0, N_TERMS) if sizes is None else sizes
    moves = 0 if sizes is None else MAX_LEGAL
    return Workspace(
        copy=np.arange(threads) % copies,
        scratch=padded_rows(threads, 1, SCRATCH),
        layers=padded_rows(threads, layers, np.float32),
        afterstates=padded_rows(threads, moves, np.dtype((np.float32, result))),
        units=padded_rows(threads, widest, np.int64),
        values=padded_rows(threads, widest, np.float32),
        logits=padded_rows(threads, N_ACTIONS, np.float32),
    )


@kernel
def forward(network: Any, position: PositionRow, workspace: Workspace, logits: Any) -> np.float32:
    """Write the logits of the legal actions; return the value for the player who decides.

    Args:
        network: `Weights`.
        position: with a decision to take.
        workspace: of one thread, by `kept_workspaces`; overwritten.
        logits: float32 (N_ACTIONS,); of illegal actions left as they are.
    """
    own = _thread_copy(network, workspace.copy, position.bias_row)
    units, values = workspace.units, workspace.values
    trunk, first, second, heads, hidden = _split_layers(own, workspace)
    active = _encode(own, position, workspace, trunk)
    _apply_layer(own.first, own.first_bias, units, values, active, first)
    count = _positive_units(first, units, values)
    _apply_layer(own.second, own.second_bias, units, values, count, second)
    count = _positive_units(second, units, values)
    _apply_layer(own.heads, own.heads_bias, units, values, count, heads)
    _score_moves(own, position.legal, workspace, trunk, heads, hidden, logits)
    return _compute_value(own, workspace, trunk, _nonzero(trunk, units, values))


@subroutine
def value_at_chance(network: Any, position: PositionRow, workspace: Workspace) -> np.float32:
    """Return the value of a position at chance for `viewer`.

    Args:
        network: `Weights`.
        position: at chance, but not the set-up; nothing is legal.
        workspace: as of `forward`.
    """
    own = _thread_copy(network, workspace.copy, position.bias_row)
    trunk = workspace.layers[: len(own.first)]
    return _compute_value(own, workspace, trunk, _encode(own, position, workspace, trunk))


@kernel
def _split_layers(own: Any, workspace: Workspace) -> Any:
    """Return the trunk's inputs, its layers, the heads, and the layer of a move."""
    ends = len(own.first), len(own.second), len(own.second_bias), len(own.heads_bias)
    layers = workspace.layers
    rest = layers[ends[0] :]
    first = rest[: ends[1]]
    rest = rest[ends[1] :]
    second = rest[: ends[2]]
    rest = rest[ends[2] :]
    return layers[: ends[0]], first, second, rest[: ends[3]], rest[ends[3] :][: len(own.move_out)]


@kernel
def _encode(own: Any, position: PositionRow, workspace: Workspace, trunk: Any) -> int:
    """Read a position; return how many of the trunk's inputs are not 0, which are noted."""
    encode_position(
        position.board,
        position.tables,
        position.state,
        position.legal,
        workspace.scratch,
        trunk,
        workspace.afterstates,
    )
    return _nonzero(trunk, workspace.units, workspace.values)


@kernel
def _compute_value(own: Any, workspace: Workspace, trunk: Any, active: int) -> np.float32:
    """Return the value of a position whose inputs are noted; overwrites the layers."""
    units, values = workspace.units, workspace.values
    first = workspace.layers[len(trunk) :][: len(own.value_second)]
    second = workspace.layers[len(trunk) + len(first) :][: len(own.value_out)]
    bias = own.first_bias[len(own.second) :]
    _apply_layer(own.value_first, bias, units, values, active, first)
    count = _positive_units(first, units, values)
    _apply_layer(own.value_second, own.value_second_bias, units, values, count, second)
    value = own.value_bias[0]
    for k in range(len(second)):
        value += max(second[k], np.float32(0.0)) * own.value_out[k]
    return np.float32(math.tanh(value))


@kernel
def _thread_copy(network: Any, copy: int, row: int) -> Any:
    """Return a copy of a network on a board: its arrays without their first axis."""
    which = index(copy)
    return Weights(
        network.first[which],
        network.first_bias[index(row)],
        network.second[which],
        network.second_bias[which],
        network.heads[which],
        network.heads_bias[which],
        network.value_first[which],
        network.value_second[which],
        network.value_second_bias[which],
        network.value_out[which],
        network.value_bias[which],
        network.afterstate[which],
        network.moves[which],
        network.move_out[which],
        network.afterstate_factor[which],
    )


@kernel
def _score_moves(
    own: Any,
    legal: np.uint64,
    workspace: Workspace,
    trunk: Any,
    heads: Any,
    hidden: Any,
    logits: Any,
) -> None:
    """Write the logits of the legal actions, from the heads and the results of the moves."""
    units, values = workspace.units, workspace.values
    row = int64(0)
    while legal != np.uint64(0):
        action = index(lowest_action(legal))
        legal &= legal - np.uint64(1)
        for k in range(len(hidden)):
            hidden[k] = own.moves[action, k] + heads[N_ACTIONS + k]
        active = _nonzero(workspace.afterstates[index(row)], units, values)
        row += 1
        _add_weighted_rows(own.afterstate, units, values, active, hidden)
        score = heads[action] + own.afterstate_factor[0] * trunk[index(AFTERSTATE_VALUES) + action]
        for k in range(len(hidden)):
            score += max(hidden[k], np.float32(0.0)) * own.move_out[k]
        logits[action] = score


@kernel
def _nonzero(inputs: Any, units: Any, values: Any) -> int:
    """Note the inputs that are not 0; return how many."""
    count = 0
    for i in range(len(inputs)):
        units[count] = i
        values[count] = inputs[i]
        count += int64(inputs[i] != 0)
    return count


@kernel
def _positive_units(layer: Any, units: Any, values: Any) -> int:
    """Note the units above 0; return how many."""
    count = 0
    for i in range(len(layer)):
        units[count] = i
        values[count] = layer[i]
        count += int64(layer[i] > 0)
    return count


@kernel
def _apply_layer(weights: Any, bias: Any, units: Any, values: Any, count: int, out: Any) -> None:
    """Write the bias and the weighted rows of a matrix."""
    for o in range(len(out)):
        out[o] = bias[o]
    _add_weighted_rows(weights, units, values, count, out)


@kernel
def _add_weighted_rows(weights: Any, units: Any, values: Any, count: int, out: Any) -> None:
    """Add the weighted rows of a matrix to `out`.

    Several rows at a time, so that `out` is fetched and stored less often.
    """
    k = 0
    while k + 4 <= count:
        a, b = weights[index(units[k])], weights[index(units[k + 1])]
        c, d = weights[index(units[k + 2])], weights[index(units[k + 3])]
        u, v, w, x = values[k], values[k + 1], values[k + 2], values[k + 3]
        for o in range(len(out)):
            out[o] += (u * a[o] + v * b[o]) + (w * c[o] + x * d[o])
        k += 4
    while k < count:
        a, u = weights[index(units[k])], values[k]
        for o in range(len(out)):
            out[o] += u * a[o]
        k += 1


@entry
def choose_actions(out: Any, logits: Any, legal: Any, keys: Any, temperature: float) -> None:
    """Write `chosen` for each of n positions, int64 (n,)."""
    for i in range(len(out)):
        out[i] = choose_action(logits[i], legal[i], keys[i], temperature)


@kernel
def choose_action(logits: Any, legal: np.uint64, key: np.uint64, temperature: float) -> int:
    """Return the best legal action; Gumbel noise makes it a draw from the softmax (Gumbel 1954)."""
    best = -np.inf
    choice = lowest_action(legal)  # of scores that are all -inf, as for a temperature of 1e-310
    while legal != np.uint64(0):
        action = lowest_action(legal)
        legal &= legal - np.uint64(1)
        value = float(logits[action])
        if temperature > 0:
            bits = hash_bits(key, 0, 0, action)
            uniform = (float(bits >> np.uint64(11)) + 0.5) / 2.0**53
            value = value / temperature - math.log(-math.log(uniform))
        if value > best:
            best = value
            choice = action
    return choice


def _evaluate_each(
    values: Any,
    logits: Any,
    network: Any,
    positions: PositionBatch,
    workspaces: Workspace,
    taken: Any,
) -> None:
    """Evaluate n positions, each thread in a workspace of its own."""
    for w in prange(len(workspaces.units)):
        workspace = Workspace(
            workspaces.copy[w],
            workspaces.scratch[w, 0],
            workspaces.layers[w],
            workspaces.afterstates[w],
            workspaces.units[w],
            workspaces.values[w],
            workspaces.logits[w],
        )
        _evaluate_share(values, logits, network, positions, workspace, taken)


# In a pool of Python threads 64 positions took 1.4 times as long, 1,024 1.05 times.
_evaluate_all: Any = parallel(_evaluate_each, at_least=2)


@subroutine
def _evaluate_share(
    values: Any,
    logits: Any,
    network: Any,
    positions: PositionBatch,
    workspace: Workspace,
    taken: Any,
) -> None:
    """Evaluate positions that no other thread has taken, a few neighbours at a time."""
    step = min(_NEIGHBOURS, 1 + len(values) // _NEIGHBOURS)
    first = fetch_add(taken, step)
    while first < len(values):
        for i in range(first, min(first + step, len(values))):
            which = i if len(positions.boards) > 1 else 0
            position = PositionRow(
                positions.boards[which],
                positions.eval_tables[which],
                positions.states[i],
                positions.legal[i],
                positions.bias_rows[i if len(positions.bias_rows) > 1 else 0],
            )
            values[i] = forward(network, position, workspace, logits[i])
        first = fetch_add(taken, step)
