"""The forward pass of a network as a compiled kernel, which needs no PyTorch.

`policy` describes the network. Layers are applied only to the units that are not 0, because most
inputs are 0. The features of a board are the same in all its positions, so that they are added to
the
first bias once a board: a forward pass costs the same with and without them.
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

_CHUNK = 16  # positions that a thread takes at once, if there are many
_MAX_COPIES = 16  # of a network, half a megabyte each; more threads share them


class Weights(NamedTuple):
    """A network as the kernels read it: float32, matrices are (copies, inputs, outputs).

    Each thread has a copy. Processors that share weights fetch them from each other whenever the
    weights fall out of a cache, which makes a forward pass a third longer.
    """

    first: Floats
    first_bias: Floats  # (rows, first + value_first): one row for all boards, or one a board
    second: Floats
    second_bias: Floats
    heads: Floats  # (copies, second, N_ACTIONS + move): actions, context of moves
    heads_bias: Floats
    value_first: Floats
    value_second: Floats
    value_second_bias: Floats
    value_out: Floats  # (copies, value_second)
    value_bias: Floats  # (copies, 1)
    afterstate: Floats  # (copies, N_AFTERSTATE, move)
    moves: Floats  # (copies, N_ACTIONS, move)
    move_out: Floats  # (copies, move)
    afterstate_factor: Floats  # (copies, 1)


SHARED_BIAS = np.zeros(1, np.int64)
"""The row of the first bias that all boards share, where a network reads no board."""


class PositionBatch(NamedTuple):
    """Positions to evaluate or search."""

    boards: Any  # BOARD (1,) for all positions, or (n,)
    eval_tables: Any  # EVAL_TABLES, one for each board
    states: Any  # STATE (n,)
    legal: Any  # uint64 (n,), the legal actions as bits, not 0
    bias_rows: npt.NDArray[np.int64] = SHARED_BIAS  # (1,) or (n,), rows of the first bias

    def part(self, part: slice | npt.NDArray[np.int64]) -> PositionBatch:
        """Return the positions at a slice or at indices."""
        each = part if len(self.boards) > 1 else slice(None)
        rows = self.bias_rows[part] if len(self.bias_rows) > 1 else self.bias_rows
        return PositionBatch(
            self.boards[each], self.eval_tables[each], self.states[part], self.legal[part], rows
        )


class PositionRow(NamedTuple):
    """One position of a `PositionBatch`."""

    board: Row
    tables: Row
    state: Row
    legal: np.uint64
    bias_row: int  # of the first bias


class Workspace(NamedTuple):
    """Memory for a forward pass of one thread; for several threads with one more axis, first."""

    copy: Any  # int, the copy of the network that the thread reads
    scratch: Any  # SCRATCH (1,): compiled functions cannot return a row
    layers: Floats  # the inputs, the layers of the trunk, the heads, the layer of a move
    afterstates: Floats  # (MAX_LEGAL or more, N_AFTERSTATE)
    units: npt.NDArray[np.int64]  # the indices of a layer's units that are not 0
    values: Floats  # their values
    logits: Floats  # (N_ACTIONS or more,), for a position that nothing else stores


class Network:
    """A network for the kernels, on any boards.

    Args:
        weights: the weights without an axis of copies.
        board: float32 (N_BOARD_FEATURES, first + value_first), the weights of board features in the
            first layer; None for a network that does not read them.
    """

    def __init__(self, weights: Weights, board: Floats | None = None) -> None:
        bias = weights.first_bias
        copies = min(numba.config.NUMBA_NUM_THREADS, _MAX_COPIES)
        copied = Weights(*(np.stack([array] * copies) for array in weights))
        self._weights = copied._replace(first_bias=bias[None])
        self._biases: BoardCache | None = None
        if board is not None:
            make = functools.partial(_make_biases, board, bias)
            self._biases = BoardCache(make, bias.shape, np.float32)

    def for_boards(self, boards: npt.NDArray[np.void]) -> tuple[Weights, npt.NDArray[np.int64]]:
        """Return the weights and the rows of the first bias, (1,) or (b,), for `BOARD` (b,)."""
        if self._biases is None:
            return self._weights, SHARED_BIAS
        table, rows = self._biases.rows(boards)
        return self._weights._replace(first_bias=table), rows


_BOARD_FEATURES = BoardCache(board_blocks, (N_BOARD_FEATURES,), np.float32)  # for all networks


def _make_biases(weights: Floats, bias: Floats, boards: npt.NDArray[np.void]) -> Floats:
    """Return the first bias with the features of each board, `BOARD` (b,), added: (b, units)."""
    table, which = _BOARD_FEATURES.rows(boards)
    features = table[which]
    biases = np.empty((len(boards), len(bias)), np.float32)
    units, values = np.empty(N_BOARD_FEATURES, np.int64), np.empty(N_BOARD_FEATURES, np.float32)
    _fill_biases(biases, features, weights, bias, units, values)
    return biases


@entry
def _fill_biases(out: Any, features: Any, weights: Any, bias: Any, units: Any, values: Any) -> None:
    for i in range(len(out)):
        active = _nonzero(features[i], units, values)
        _apply_layer(weights, bias, units, values, active, out[i])


def evaluate_all(
    network: Network,
    boards: BoardRows,
    states: States,
    legal: Legal,
) -> tuple[Floats, Floats]:
    """Return logits (n, N_ACTIONS), -inf where illegal, and values (n,) for the player to decide.

    Args:
        network: the network.
        boards: `BOARD` (1,) for all positions, or (n,).
        states: `STATE` (n,), at decisions.
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
    """Return a workspace for each thread; without a network it has only the scratch.

    Equal calls of one Python thread get the same memory.
    """
    if weights is None:
        return _make_workspaces(threading.get_ident(), threads, 1, None)
    copies, sizes = len(weights.first), workspace_sizes(weights)
    return _make_workspaces(threading.get_ident(), threads, copies, sizes)


def workspace_sizes(weights: Weights) -> tuple[int, int, int]:
    """Return the lengths of a workspace's layers, of its widest layer and of an afterstate."""
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
def workspace_at(workspaces: Workspace, thread: int) -> Workspace:
    """Return the workspace of one thread; callers must not count references (`jit.kernel`)."""
    return Workspace(
        workspaces.copy[thread],
        workspaces.scratch[thread],
        workspaces.layers[thread],
        workspaces.afterstates[thread],
        workspaces.units[thread],
        workspaces.values[thread],
        workspaces.logits[thread],
    )


@kernel
def forward(network: Any, position: PositionRow, workspace: Workspace, logits: Any) -> np.float32:
    """Write the logits of the legal actions; return the value for the player to decide.

    Args:
        network: `Weights`.
        position: a position at a decision.
        workspace: of one thread, by `cached_workspaces`; overwritten.
        logits: float32 (N_ACTIONS,); those of illegal actions stay as they are.
    """
    net = _thread_copy(network, workspace.copy, position.bias_row)
    units, values = workspace.units, workspace.values
    inputs, first, second, heads, hidden = _split_layers(net, workspace)
    active = _encode(net, position, workspace, inputs)
    _apply_layer(net.first, net.first_bias, units, values, active, first)
    count = _positive_units(first, units, values)
    _apply_layer(net.second, net.second_bias, units, values, count, second)
    count = _positive_units(second, units, values)
    _apply_layer(net.heads, net.heads_bias, units, values, count, heads)
    _score_moves(net, position.legal, workspace, inputs, heads, hidden, logits)
    return _compute_value(net, workspace, inputs, _nonzero(inputs, units, values))


@subroutine
def value_at_chance(network: Any, position: PositionRow, workspace: Workspace) -> np.float32:
    """Return the value of a position at chance for `active_seat`.

    Args:
        network: `Weights`.
        position: a position at chance, but not the set-up; nothing is legal.
        workspace: as for `forward`.
    """
    net = _thread_copy(network, workspace.copy, position.bias_row)
    inputs = workspace.layers[: len(net.first)]
    return _compute_value(net, workspace, inputs, _encode(net, position, workspace, inputs))


@kernel
def _split_layers(net: Any, workspace: Workspace) -> Any:
    """Return views of the inputs, the trunk's layers, the heads, and the layer of a move."""
    ends = len(net.first), len(net.second), len(net.second_bias), len(net.heads_bias)
    layers = workspace.layers
    rest = layers[ends[0] :]
    first = rest[: ends[1]]
    rest = rest[ends[1] :]
    second = rest[: ends[2]]
    rest = rest[ends[2] :]
    return layers[: ends[0]], first, second, rest[: ends[3]], rest[ends[3] :][: len(net.move_out)]


@kernel
def _encode(net: Any, position: PositionRow, workspace: Workspace, inputs: Any) -> int:
    """Write the inputs of a position and list those that are not 0; return their number."""
    encode_position(
        position.board,
        position.tables,
        position.state,
        position.legal,
        workspace.scratch[0],
        inputs,
        workspace.afterstates,
    )
    return _nonzero(inputs, workspace.units, workspace.values)


@kernel
def _compute_value(net: Any, workspace: Workspace, inputs: Any, active: int) -> np.float32:
    """Return the value of a position with listed inputs; overwrite the layers."""
    units, values = workspace.units, workspace.values
    first = workspace.layers[len(inputs) :][: len(net.value_second)]
    second = workspace.layers[len(inputs) + len(first) :][: len(net.value_out)]
    bias = net.first_bias[len(net.second) :]
    _apply_layer(net.value_first, bias, units, values, active, first)
    count = _positive_units(first, units, values)
    _apply_layer(net.value_second, net.value_second_bias, units, values, count, second)
    value = net.value_bias[0]
    for k in range(len(second)):
        value += max(second[k], np.float32(0.0)) * net.value_out[k]
    return np.float32(math.tanh(value))


@kernel
def _thread_copy(network: Any, copy: int, row: int) -> Any:
    """Return a copy of a network for a board: its arrays without their first axis."""
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
    net: Any,
    legal: np.uint64,
    workspace: Workspace,
    inputs: Any,
    heads: Any,
    hidden: Any,
    logits: Any,
) -> None:
    """Write the logits of the legal actions from the heads and the afterstates."""
    units, values = workspace.units, workspace.values
    row = int64(0)
    while legal != np.uint64(0):
        action = index(lowest_action(legal))
        legal &= legal - np.uint64(1)
        for k in range(len(hidden)):
            hidden[k] = net.moves[action, k] + heads[N_ACTIONS + k]
        active = _nonzero(workspace.afterstates[index(row)], units, values)
        row += 1
        _add_weighted_rows(net.afterstate, units, values, active, hidden)
        score = heads[action] + net.afterstate_factor[0] * inputs[index(AFTERSTATE_VALUES) + action]
        for k in range(len(hidden)):
            score += max(hidden[k], np.float32(0.0)) * net.move_out[k]
        logits[action] = score


@kernel
def _nonzero(inputs: Any, units: Any, values: Any) -> int:
    """List the inputs that are not 0; return their number."""
    count = 0
    for i in range(len(inputs)):
        units[count] = i
        values[count] = inputs[i]
        count += int64(inputs[i] != 0)
    return count


@kernel
def _positive_units(layer: Any, units: Any, values: Any) -> int:
    """List the units above 0; return their number."""
    count = 0
    for i in range(len(layer)):
        units[count] = i
        values[count] = layer[i]
        count += int64(layer[i] > 0)
    return count


@kernel
def _apply_layer(weights: Any, bias: Any, units: Any, values: Any, count: int, out: Any) -> None:
    """Write the bias plus the weighted rows of a matrix."""
    for o in range(len(out)):
        out[o] = bias[o]
    _add_weighted_rows(weights, units, values, count, out)


@kernel
def _add_weighted_rows(weights: Any, units: Any, values: Any, count: int, out: Any) -> None:
    """Add the weighted rows of a matrix to `out`.

    Four rows at a time, so that `out` is loaded and stored less often.
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
    """Write `choose_action` of n positions, int64 (n,)."""
    for i in range(len(out)):
        out[i] = choose_action(logits[i], legal[i], keys[i], temperature)


@kernel
def choose_action(logits: Any, legal: np.uint64, key: np.uint64, temperature: float) -> int:
    """Return the legal action with the highest logit.

    With a temperature, Gumbel noise makes it a sample of the softmax (Gumbel 1954).
    """
    best = -np.inf
    choice = lowest_action(legal)  # if all scores are -inf, for example at a temperature of 1e-310
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
    """Evaluate n positions, each thread in its own workspace."""
    for w in prange(len(workspaces.units)):
        _evaluate_share(values, logits, network, positions, workspaces, w, taken)


# With a pool of Python threads instead, 64 positions took 1.4 times as long, 1,024 1.05 times.
_evaluate_all: Any = parallel(_evaluate_each, at_least=2)


@subroutine
def _evaluate_share(
    values: Any,
    logits: Any,
    network: Any,
    positions: PositionBatch,
    workspaces: Workspace,
    thread: int,
    taken: Any,
) -> None:
    """Evaluate chunks of positions until the threads have taken all."""
    workspace = workspace_at(workspaces, thread)
    step = min(_CHUNK, 1 + len(values) // _CHUNK)
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
