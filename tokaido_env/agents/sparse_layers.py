"""Products of a matrix with the units of a layer that are not 0, as kernels."""

from __future__ import annotations

from typing import Any

from tokaido_env.core.jit import index, int64, kernel


@kernel
def list_nonzero(inputs: Any, units: Any, values: Any) -> int:
    """List the inputs that are not 0; return their number.

    Args:
        inputs: (n,).
        units: int64 (n,), the first entries become the indices of these inputs.
        values: (n,), the first entries become the inputs.
    """
    count = 0
    for i in range(len(inputs)):
        units[count] = i
        values[count] = inputs[i]
        count += int64(inputs[i] != 0)
    return count


@kernel
def apply_layer(weights: Any, bias: Any, units: Any, values: Any, count: int, out: Any) -> None:
    """Write the bias plus the weighted rows of a matrix.

    Four rows at a time, so that `out` is loaded and stored less often.

    Args:
        weights: (inputs, outputs).
        bias: (outputs,).
        units: indices of rows, as `list_nonzero` writes them.
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
