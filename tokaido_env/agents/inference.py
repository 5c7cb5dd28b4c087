"""The forward pass of a network as a compiled kernel, which needs no PyTorch.

`policy` describes the network. Layers are applied only to the units that are not 0, because most
inputs are 0.

The network has a value only: the logits of a position are the values of its afterstates, times
`AFTERSTATE_LOGIT`, and its value is that of the best action.

The first layer, most of the work, computes in 16-bit integers (`weights`), and only with the
inputs that differ from the position before of the same seat. Sums of integers are exact, so that
the order of positions changes no result (efficiently updatable neural networks; Nasu 2018).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tokaido_env.agent import BoardRows, Legal, States
from tokaido_env.agents.weights import Floats, Weights, thread_copy
from tokaido_env.agents.workspaces import (
    MAX_CHANGES,
    PositionBatch,
    PositionRow,
    Workspace,
    new_workspace,
)
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.bitmask import lowest_action
from tokaido_env.core.constants import Seat
from tokaido_env.core.jit import entry, index, int64, kernel, pooled, subroutine, threads_for
from tokaido_env.core.rng import hash_bits
from tokaido_env.core.rules import apply
from tokaido_env.core.state import OVER
from tokaido_env.core.threads import fetch_add
from tokaido_env.features.evaluation import final_result
from tokaido_env.features.network_inputs import INPUT_UNITS, N_INPUTS, active_seat, encode_position

AFTERSTATE_LOGIT = np.float32(16.0)
"""The logit of an afterstate value of 1: at a temperature of 1, an action that is worse by 1/16 is
played 1/e as often. Not tuned."""

_CHUNK = 16  # positions that a thread takes at once, if there are many
_INVERSE_UNITS = 1 / INPUT_UNITS
_OFFSET = 1 << 14
_ROUNDING = np.float32(_OFFSET + 0.5)


def evaluate_all(
    network: Weights,
    boards: BoardRows,
    states: States,
    legal: Legal,
) -> tuple[Floats, Floats]:
    """Return the logits and values of n positions.

    Args:
        network: the network.
        boards: `BOARD` (1,) for all positions, or (n,).
        states: `STATE` (n,), at decisions.
        legal: uint64 (n,), the legal actions as bits, not 0.

    Returns:
        Logits, float32 (n, N_ACTIONS), -inf where illegal; and values for the player to decide,
        float32 (n,) in [-1, 1].
    """
    logits = np.full((len(states), N_ACTIONS), -np.inf, np.float32)
    values = np.empty(len(states), np.float32)
    positions = PositionBatch(boards, states, legal)
    taken = np.zeros(1, np.int64)
    _evaluate_each(threads_for(len(states)), values, logits, network, positions, taken)
    return logits, values


@subroutine
def forward(network: Any, position: PositionRow, workspace: Workspace, logits: Any) -> np.float32:
    """Write the logits of the legal actions; return the decider's value, in [-1, 1].

    Args:
        network: `Weights`, the copy of one thread.
        position: a position at a decision.
        workspace: from `new_workspace` for this network; overwritten.
        logits: float32 (N_ACTIONS,); those of illegal actions stay as they are.
    """
    seat = int64(position.state["player"])
    after = workspace.scratch[0]["states"][2]  # the inputs need the others
    best = np.float32(-2.0)
    left = position.legal
    while left != np.uint64(0):
        action = lowest_action(left)
        left &= left - np.uint64(1)
        workspace.scratch[0]["states"][2] = position.state
        mask = apply(position.board, after, action)
        if int64(after["phase"]) == OVER:
            value = np.float32(1 - 2 * seat) * final_result(position.board, after)
        else:
            row = PositionRow(position.board, after, mask)
            value = value_of(network, row, workspace)
            if active_seat(after) != seat:
                value = -value
        logits[action] = AFTERSTATE_LOGIT * value
        best = max(best, value)
    return best


@subroutine
def value_of(network: Any, position: PositionRow, workspace: Workspace) -> np.float32:
    """Return the value in [-1, 1] of a position for its `active_seat`.

    Args:
        network: `Weights`, the copy of one thread.
        position: a position at a decision, or at chance but not the set-up.
        workspace: from `new_workspace` for this network; overwritten.
    """
    seat = active_seat(position.state)
    _update_first_layer(network, position, workspace, seat)
    return _compute_value(network, workspace, workspace.sums[index(seat)])


@kernel
def _update_first_layer(net: Any, position: PositionRow, workspace: Workspace, seat: Seat) -> None:
    """Write a position's inputs for a seat, and update the first layer's sums."""
    inputs = workspace.layers[: len(net.first)]
    scratch = workspace.scratch[0]
    encode_position(position.board, position.state, seat, scratch, inputs)
    whole, sums = workspace.whole[index(seat)], workspace.sums[index(seat)]
    count = _list_changes(inputs, whole, workspace.changed, workspace.changes)
    _add_whole_rows(net.first, workspace.changed, workspace.changes, count, sums)


@kernel
def _list_changes(inputs: Any, whole: Any, changed: Any, changes: Any) -> int:
    """Replace `whole` by inputs in units; list what changes, and return the length of the list.

    Zeros at the end make the length a multiple of four.
    """
    for i in range(len(inputs)):  # a loop that the compiler vectorises
        # The number that is added exceeds all inputs, so that the cast rounds down.
        new = np.int16(np.int32(inputs[i] * _INVERSE_UNITS[i] + _ROUNDING) - _OFFSET)
        changes[i] = np.int16(new - whole[i])
        whole[i] = new
    changes[len(inputs) : MAX_CHANGES] = 0
    fours = changes[:MAX_CHANGES].view(np.int64)  # to pass over four at once takes half the time
    count = 0
    for four in range(len(fours)):
        if fours[four] == 0:
            continue
        for i in range(4 * four, 4 * four + 4):
            change = changes[i]
            changed[count] = i
            changes[count] = change
            count += int64(change != 0)
    while count & 3:
        changed[count] = 0
        changes[count] = 0
        count += 1
    return count


@kernel
def _add_whole_rows(weights: Any, rows: Any, factors: Any, count: int, out: Any) -> None:
    """Add weighted rows of a matrix of integers; `count` is a multiple of four.

    Each step is cast to 16 bits: Numba would compute in 64.
    """
    for k in range(0, count, 4):
        a, b = weights[index(rows[k])], weights[index(rows[k + 1])]
        c, d = weights[index(rows[k + 2])], weights[index(rows[k + 3])]
        u, v, w, x = factors[k], factors[k + 1], factors[k + 2], factors[k + 3]
        for o in range(len(out)):
            two = np.int16(np.int16(u * a[o]) + np.int16(v * b[o]))
            more = np.int16(np.int16(w * c[o]) + np.int16(x * d[o]))
            out[o] = np.int16(out[o] + np.int16(two + more))


@kernel
def _compute_value(net: Any, workspace: Workspace, sums: Any) -> np.float32:
    """Return the value of a position from its first layer; overwrite the second layer."""
    units, values = workspace.units, workspace.values
    second = workspace.layers[N_INPUTS:][: len(net.out)]
    count = _list_positive(net, sums, units, values)
    _apply_layer(net.second, net.second_bias, units, values, count, second)
    value = net.out_bias[0]
    for k in range(len(net.out)):
        value += max(second[k], np.float32(0.0)) * net.out[k]
    return np.float32(math.tanh(value))


@kernel
def _list_positive(net: Any, sums: Any, units: Any, values: Any) -> int:
    """List the units of the first layer above 0; return their number."""
    count = 0
    for o in range(len(net.first_scale)):
        total = np.int16(sums[o] + net.first_bias[o])
        units[count] = o
        values[count] = np.float32(total) * net.first_scale[o]
        count += int64(total > 0)
    return count


@kernel
def _apply_layer(weights: Any, bias: Any, units: Any, values: Any, count: int, out: Any) -> None:
    """Write the bias plus the weighted rows of a matrix.

    Four rows at a time, so that `out` is loaded and stored less often.

    Args:
        weights: (inputs, outputs).
        bias: (outputs,).
        units: indices of rows, of units that are not 0.
        values: their weights.
        count: number of rows.
        out: (outputs,), written.
    """
    for o in range(len(out)):
        out[o] = bias[o]
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
    """Write the actions of n positions, as `choose_action`.

    Args:
        out: int64 (n,), written.
        logits: float32 (n, N_ACTIONS).
        legal: uint64 (n,), the legal actions as bits, not 0.
        keys: uint64 (n,), random bits.
        temperature: 0 takes the highest logit; above, Gumbel noise samples the softmax.
    """
    for i in range(len(out)):
        out[i] = choose_action(logits[i], legal[i], keys[i], temperature)


@kernel
def choose_action(logits: Any, legal: np.uint64, key: np.uint64, temperature: float) -> int:
    """Return the legal action with the highest logit.

    Args:
        logits: float32 (N_ACTIONS,).
        legal: the legal actions as bits, not 0.
        key: random bits.
        temperature: above 0, Gumbel noise makes the action a sample of the softmax (Gumbel 1954).
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


# An item is the share of one thread. Numba's threads would take 64 positions in 0.7 of the time and
# 1,024 in 0.95, but need a second compiled form: a minute and a half of compiling.
@pooled(at_least=2)
def _evaluate_each(
    first: int,
    last: int,
    values: Any,
    logits: Any,
    network: Any,
    positions: PositionBatch,
    taken: Any,
) -> None:
    """Evaluate n positions, each thread in its own workspace."""
    for w in range(first, last):
        net = thread_copy(network, w)
        _evaluate_share(values, logits, net, positions, new_workspace(net), taken)


@subroutine
def _evaluate_share(
    values: Any,
    logits: Any,
    network: Any,
    positions: PositionBatch,
    workspace: Workspace,
    taken: Any,
) -> None:
    """Evaluate chunks of positions until the threads have taken all."""
    step = min(_CHUNK, 1 + len(values) // _CHUNK)
    first = fetch_add(taken, step)
    while first < len(values):
        for i in range(first, min(first + step, len(values))):
            which = i if len(positions.boards) > 1 else 0
            position = PositionRow(positions.boards[which], positions.states[i], positions.legal[i])
            values[i] = forward(network, position, workspace, logits[i])
        first = fetch_add(taken, step)
