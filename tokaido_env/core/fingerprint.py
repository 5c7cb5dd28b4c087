"""What a compiled entry is made of, as a short text: the name under which the disk keeps it.

It is read from what Numba compiles, in memory: the byte code of the function and of all that it
calls, their constants, options and versions. What lies in a source file by then has no part in it.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

import numba
import numpy as np
from numba.core import config, types
from numba.core.dispatcher import Dispatcher
from numba.core.extending import _Intrinsic

# Settings of Numba that change what it compiles.
_SETTINGS = (
    *("OPT", "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "DEBUG_ARRAY_OPT", "ENABLE_AVX"),
    *("LOOP_VECTORIZE", "SLP_VECTORIZE", "DISABLE_INTEL_SVML", "ERROR_MODEL"),
)
_PLAIN = (type(None), type(Ellipsis), bool, int, float, complex, str, bytes)
# Code that a version number tells, or that is part of Python; that of llvmlite goes with Numba's.
_VERSIONED = {"numpy", "numba", "llvmlite", *sys.stdlib_module_names}

Description = tuple[str, list[Any]]
"""A value in words, and other values that it is made of."""


def fingerprint(entry: Any, signature: Any) -> str | None:
    """Return 32 hexadecimal digits of what a dispatcher compiles for a signature.

    None if something in it has no lasting description, such as a pointer: then nothing may be kept.
    """
    digest = hashlib.sha256(repr(_surroundings(entry)).encode())
    met: dict[int, int] = {}  # what is mentioned twice, or calls itself
    waiting = [signature, entry]
    while waiting:
        value = waiting.pop()
        if id(value) in met:
            digest.update(f"again {met[id(value)]};".encode())
            continue
        if isinstance(value, Dispatcher | FunctionType | type):
            met[id(value)] = len(met)
        described = _describe(value)
        if described is None:
            return None
        words, parts = described
        digest.update(f"{type(value).__name__} {len(parts)} {len(words)} {words};".encode())
        waiting += reversed(parts)
    return digest.hexdigest()[:32]


def _surroundings(entry: Any) -> tuple[Any, ...]:
    """Return what code depends on beside itself: versions, the processor, settings."""
    versions = (numba.__version__, np.__version__, sys.version)
    processor = entry.targetctx.codegen().magic_tuple()
    return (versions, processor, [getattr(config, name, None) for name in _SETTINGS])


def _describe(value: Any) -> Description | None:
    """Return a value in words and what it is made of, None if it cannot be told."""
    if isinstance(value, _PLAIN):
        return repr(value), []
    if isinstance(value, Dispatcher):
        return repr(sorted(value.targetoptions.items())), [value.py_func]
    if isinstance(value, CodeType):
        return _words_of_code(value), list(value.co_consts)
    if isinstance(value, types.Type):
        return repr(value), _parts_of_type(value)
    if isinstance(value, tuple | list):
        return "", [type(value), *value] if hasattr(value, "_fields") else list(value)
    if isinstance(value, frozenset):
        return "", sorted(value, key=repr)
    if isinstance(value, slice):  # a constant since Python 3.14
        return "", [value.start, value.stop, value.step]
    if isinstance(value, np.ndarray | np.generic | np.dtype):
        return _describe_numpy(value)
    return _describe_named(value)


def _describe_named(value: Any) -> Description | None:
    """Describe functions, classes and modules, those of libraries by their names."""
    if isinstance(value, _Intrinsic):
        return "", [value._defn]
    name = _name(value)
    if name.partition(".")[0] in _VERSIONED:
        return name, []
    if isinstance(value, FunctionType):
        return name, _parts_of_function(value)
    return (name, _parts_of_class(value)) if isinstance(value, type) else None


def _parts_of_function(function: FunctionType) -> list[Any]:
    """Return its code and the values that its names and closure have now."""
    scope = function.__globals__
    known = [(name, scope[name]) for name in _names(function.__code__) if name in scope]
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    return [function.__code__, function.__defaults__, known, cells]


@functools.cache
def _names(code: CodeType) -> tuple[str, ...]:
    """Return the names of globals, and of attributes, in a function's code, sorted."""
    return tuple(sorted(set(_each_name(code))))


def _each_name(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _each_name(inner)


@functools.cache
def _words_of_code(code: CodeType) -> str:
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return repr((code.co_code, code.co_argcount, code.co_flags, names))


def _describe_numpy(value: Any) -> Description | None:
    if isinstance(value, np.dtype):
        return repr((value.str, value.fields, value.subdtype)), []
    if value.dtype.hasobject:
        return None
    contents = hashlib.sha256(value.tobytes()).hexdigest()
    return f"{value.shape} {value.strides} {contents}", [value.dtype]


def _parts_of_class(kind: type) -> list[Any]:
    if issubclass(kind, enum.Enum):
        return [(member.name, member.value) for member in kind]
    return list(getattr(kind, "_fields", ()))


def _parts_of_type(kind: Any) -> list[Any]:
    """Return what the name of a type of Numba leaves out: the fields of named tuples."""
    named = [kind.instance_class] if hasattr(kind, "instance_class") else []
    return [*getattr(kind, "types", ()), *named]


def _name(value: Any) -> str:
    """Return the full name of a function, class or module, empty for anything else."""
    if isinstance(value, type(sys)):
        return value.__name__
    own = getattr(value, "__qualname__", None) or getattr(value, "__name__", "")
    return f"{getattr(value, '__module__', None) or 'builtins'}.{own}" if own else ""
