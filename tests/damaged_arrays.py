"""Random damage to arrays and to .safetensors files."""

import json
import random
from collections.abc import Callable
from typing import Any

import mutants
import numpy as np

NUMBERS = (
    *(0.0, -0.0, 1.0, -1.0, 1e-45, 1e10, -1e10, 1e20, 1e30, -1e30, 3e38, -3e38),
    *(float("nan"), float("inf"), -float("inf")),
)
DTYPES = ("f8", "i8", "i4", "u1", "U3", "S4", "M8[s]", "V7", "c8", "f2", ">i8", "O")
TENSOR_DTYPES = (
    *("F64", "F16", "BF16", "F8_E5M2", "F8_E4M3", "F4", "I64", "I32", "I8", "U8", "BOOL", "C64"),
    *("U64", "U32", "U16", "f32", "F32 ", "", "F128", "object"),
)
LENGTHS = (0, 1, 2, 7, 8, 10**8, 10**8 + 1, 2**31, 2**63, 2**64 - 1)


# Arrays


def damaged_array(rng: random.Random, right: Any) -> Any:
    """Return an array with other bytes, another shape or another dtype."""
    return rng.choice((_bits, _bits, _filled, _reshaped, _retyped))(rng, right)


def _bits(rng: random.Random, right: Any) -> Any:
    raw = flipped(rng, right.tobytes(), rng.choice((1, 3, 50)))
    return np.frombuffer(raw, right.dtype).reshape(right.shape)


def flipped(rng: random.Random, data: bytes, bits: int) -> bytes:
    """Return bytes with some bits flipped."""
    raw = bytearray(data)
    for _ in range(bits if raw else 0):
        raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
    return bytes(raw)


def _filled(rng: random.Random, right: Any) -> Any:
    raw = rng.choice((b"\xff", b"\x7f", b"\x80", b"\x01", rng.randbytes(1))) * right.nbytes
    return np.frombuffer(raw, right.dtype).reshape(right.shape)


def _reshaped(rng: random.Random, right: Any) -> Any:
    forms: tuple[Callable[[Any], Any], ...]
    forms = (lambda a: a[:1], lambda a: a[:0], lambda a: a[None], lambda a: np.concatenate([a, a]))
    forms += (lambda a: a[0], lambda a: a.T, lambda a: a[: rng.randrange(len(a) + 1)])
    return rng.choice(forms)(right)


def _retyped(rng: random.Random, right: Any) -> Any:
    return np.zeros(right.shape, rng.choice(DTYPES))


# .safetensors files: the length of a JSON header, the header, and the data


def safetensors_parts(file: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the header and the data of a .safetensors file."""
    end = 8 + int.from_bytes(file[:8], "little")
    return json.loads(file[8:end]), file[end:]


def safetensors_bytes(header: Any, numbers: bytes) -> bytes:
    """Return a .safetensors file of a header and data."""
    line = header if isinstance(header, bytes) else mutants.json_bytes(header)
    return len(line).to_bytes(8, "little") + line + numbers


def damaged_safetensors(rng: random.Random, file: bytes) -> bytes:
    """Return a .safetensors file with damage to its header, an entry or its data."""
    header, numbers = safetensors_parts(file)
    kind = rng.randrange(5)
    if kind == 0:
        changed: Any = mutants.mutated_bytes(rng, mutants.json_bytes(header))
    elif kind == 1:
        changed = mutants.mutated_tree(rng, header, 2)
    else:
        changed = header
        damage = (_entries_changed, _numbers_changed, _bits_changed)[kind - 2]
        numbers = damage(rng, header, numbers)
    damaged = safetensors_bytes(changed, numbers)
    if rng.random() < (0.2 if kind == 0 else 0.03):
        length = int.from_bytes(file[:8], "little") if kind == 0 else rng.choice(LENGTHS)
        damaged = length.to_bytes(8, "little") + damaged[8:]
    return damaged


def _entries_changed(rng: random.Random, header: dict[str, Any], numbers: bytes) -> bytes:
    """Change the dtype, shape or offsets of tensors, or damage the data."""
    for _ in range(rng.randint(1, 2)):
        entry = header[rng.choice(_names(header))]
        shape, offsets = entry["shape"], entry["data_offsets"]
        kind = rng.randrange(6)
        if kind == 0:
            entry["dtype"] = rng.choice(TENSOR_DTYPES)
        elif kind == 1:
            entry["shape"] = rng.choice((shape[::-1], [*shape, 1], [1, *shape], []))
        elif kind == 2:
            entry["shape"] = [rng.choice((0, 1, 2**32, 10**12, 2**63 - 1, -1)), *shape]
        elif kind == 3:
            entry["data_offsets"] = header[rng.choice(_names(header))]["data_offsets"]
        elif kind == 4:
            entry["data_offsets"] = [x + rng.choice((-4, 0, 4)) for x in offsets]
        else:
            numbers = mutants.mutated_bytes(rng, numbers, 1)
    return numbers


def _numbers_changed(rng: random.Random, header: dict[str, Any], numbers: bytes) -> bytes:
    """Write extreme float32 numbers into some tensors, or scale all numbers."""
    whole = len(numbers) // 4 * 4
    data = np.frombuffer(numbers[:whole], "<f4").copy()
    if rng.random() < 0.3:
        data *= np.float32(rng.choice((-1, 1)) * 10.0 ** rng.randint(-20, 12))
    for _ in range(rng.randint(0, 3)):
        first, end = header[rng.choice(_names(header))]["data_offsets"]
        some = slice(first // 4, end // 4) if rng.random() < 0.5 else rng.randrange(len(data))
        data[some] = rng.choice(NUMBERS)
    return data.tobytes() + numbers[whole:]


def _bits_changed(rng: random.Random, header: dict[str, Any], numbers: bytes) -> bytes:
    return flipped(rng, numbers, rng.choice((1, 2, 100)))


def _names(header: dict[str, Any]) -> list[str]:
    return [name for name in header if name != "__metadata__"]
