"""Compile the kernels of `CudaBatch` and of its agents for a GPU, without one."""

import contextlib
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy as np

Kernel = tuple[Callable[..., None], tuple[Any, ...]]
"""A kernel, and the types of its arguments."""

CAPABILITY = 9, 0  # of an H100


def missing_compiler() -> str:
    """Return a message that names the missing part of the compiler; "" if there is none."""
    if find_spec("numba_cuda") is None:
        return "numba-cuda is not installed: the extra [cuda]"
    from cuda.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib

    for library in ("nvvm", "nvrtc"):
        try:
            load_nvidia_dynamic_lib(library)
        except DynamicLibNotFoundError:
            return f"{library} is not installed: the extra [cuda]"
    return ""


def compiled(kernel: Kernel) -> str:
    """Return the PTX of a kernel."""
    from numba import cuda

    function, types = kernel
    with _no_device():
        ptx, _ = cuda.compile(
            function, types, cc=CAPABILITY, output="ptx", device=False, abi="numba"
        )
    return str(ptx)


@contextlib.contextmanager
def _no_device() -> Iterator[None]:
    """Compile without a GPU: device functions would ask it for its compute capability."""
    from numba.cuda import dispatcher

    before = dispatcher.get_current_device
    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=CAPABILITY)
    try:
        yield
    finally:
        dispatcher.get_current_device = before


def kernels() -> dict[str, Kernel]:
    """Return all kernels by name, each with the types of small arrays like those of `CudaBatch`."""
    from tokaido_env import cuda_kernels
    from tokaido_env.agents.cuda_agents import choose_by_heuristic, choose_by_network
    from tokaido_env.core.stepping import STEP_OPTIONS

    games, output, flat = _games(), _output(), _new(np.int64, 1)
    seats, floats, bytes_ = _new(np.int8, 1), _new(np.float32, 2), _new(np.uint8, 2)
    arguments: dict[str, tuple[Any, ...]] = {
        "step": (games, output, flat, _new(STEP_OPTIONS, 1)),
        "step_greedy": (games, output, flat, _new(STEP_OPTIONS, 1)),
        "write_output": (games, output),
        "find_illegal": (games, flat, _new(np.int32, 1)),
        "observe": (games, seats, floats, floats, floats),
        "observe as uint8": (games, seats, bytes_, bytes_, bytes_),
        "keys": (games, _new(np.uint64, 1)),
    }
    found = {name: (getattr(cuda_kernels, name.split()[0]), own) for name, own in arguments.items()}
    results = floats, _new(np.float32, 1), flat
    by_network = games, *_network(), np.int64(0), np.float64(0.0), *results
    found["choose_by_heuristic"] = choose_by_heuristic, (games, flat)
    found["choose_by_network"] = choose_by_network, by_network
    return {name: (kernel, _types(own)) for name, (kernel, own) in found.items()}


def _types(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    from numba.cuda.typing.typeof import typeof

    return tuple(map(typeof, arguments))


def _network() -> tuple[Any, Any]:
    """Return a network's weights and its workspace."""
    from tokaido_env.agents.weights import Weights
    from tokaido_env.agents.workspaces import Workspace
    from tokaido_env.features.evaluation import SCRATCH

    one, two, units = _new(np.float32, 1), _new(np.float32, 2), _new(np.int64, 2)
    whole_one, whole_two, whole_three = (_new(np.int16, axes) for axes in (1, 2, 3))
    memory = _new(SCRATCH, 1), two, units, whole_two, whole_three, whole_three
    weights = Weights(whole_two, one, whole_one, two, one, one, one)
    return weights, Workspace(*memory, units, two, two)


def _games() -> Any:
    from tokaido_env.core.rng import LUCK
    from tokaido_env.core.state import BOARD, STATE
    from tokaido_env.core.stepping import EPISODE_INFO
    from tokaido_env.cuda_kernels import Games

    records = [_new(dtype, 1) for dtype in (BOARD, STATE, STATE, LUCK, EPISODE_INFO)]
    return Games(*records, _new(np.uint64, 1), _new(np.uint64, 2))


def _output() -> Any:
    from tokaido_env.cuda_kernels import StepOutput

    seats, flags = _new(np.int8, 1), _new(np.bool_, 1)
    return StepOutput(seats, _new(np.float32, 2), flags, seats, seats)


def _new(dtype: Any, axes: int) -> Any:
    """Return an array with one item in each axis; records are aligned."""
    from tokaido_env.core.aligned_dtypes import aligned

    return np.zeros((1,) * axes, aligned(dtype) if np.dtype(dtype).names else dtype)
