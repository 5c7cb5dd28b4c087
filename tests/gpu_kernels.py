"""Compile the kernels of `CudaBatch` and of its agents for a GPU, without one."""

import contextlib
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

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
    """Return all kernels by name."""
    from tokaido_env.core.stepping import STEP_OPTIONS

    games, flat, options = _games(), _array("int64", 1), _records(STEP_OPTIONS)
    seats, floats, bytes_ = _array("int8", 1), _array("float32", 2), _array("uint8", 2)
    types: dict[str, tuple[Any, ...]] = {
        "step": (games, _output(), flat, options),
        "step_greedy": (games, _output(), flat, options),
        "write_output": (games, _output()),
        "find_illegal": (games, flat, _array("int32", 1)),
        "observe": (games, seats, floats, floats, floats),
        "observe as uint8": (games, seats, bytes_, bytes_, bytes_),
        "keys": (games, _array("uint64", 1)),
        "weights": (games, _array("int64", 2)),
        "outcomes": (games, flat),
    }
    from tokaido_env import cuda_kernels

    found = {
        name: (getattr(cuda_kernels, name.partition(" ")[0]), own) for name, own in types.items()
    }
    return found | _agent_kernels(games)


def _agent_kernels(games: Any) -> dict[str, Kernel]:
    from tokaido_env.agents import cuda_agents

    moves = _array("int64", 1)
    outputs = _array("float32", 2), _array("float32", 1), moves
    network = games, *_network(), _array("int64", 0), _array("float64", 0)
    return {
        "choose_by_heuristic": (cuda_agents.choose_by_heuristic, (games, moves)),
        "choose_by_network": (cuda_agents.choose_by_network, (*network, *outputs)),
    }


def _network() -> tuple[Any, Any]:
    """Return the types of a network's weights and of its workspace."""
    from numba import types

    from tokaido_env.agents.weights import Weights
    from tokaido_env.agents.workspaces import Workspace
    from tokaido_env.features.evaluation import SCRATCH

    one, two, units = _array("float32", 1), _array("float32", 2), _array("int64", 2)
    whole_one, whole_two, whole_three = (_array("int16", axes) for axes in (1, 2, 3))
    memory = _records(SCRATCH), two, units, whole_two, whole_three, whole_three
    workspace = types.NamedTuple((*memory, units, two, two), Workspace)
    weights = types.NamedTuple((whole_two, one, whole_one, two, one, one, one), Weights)
    return weights, workspace


def _games() -> Any:
    from numba import types

    from tokaido_env.core.rng import LUCK
    from tokaido_env.core.state import BOARD, STATE
    from tokaido_env.core.stepping import EPISODE_INFO
    from tokaido_env.cuda_kernels import Games

    records = [_records(dtype) for dtype in (BOARD, STATE, STATE, LUCK, EPISODE_INFO)]
    return types.NamedTuple((*records, _array("uint64", 1), _array("uint64", 2)), Games)


def _output() -> Any:
    from numba import types

    from tokaido_env.cuda_kernels import StepOutput

    seats, flags = _array("int8", 1), _array("boolean", 1)
    own = seats, _array("float32", 2), flags, flags, seats, seats
    return types.NamedTuple(own, StepOutput)


def _records(dtype: Any) -> Any:
    """Return the type of an array (n,) of aligned records."""
    from numba import types
    from numba.cuda.np.numpy_support import from_dtype

    from tokaido_env.core.aligned_dtypes import aligned

    return types.Array(from_dtype(aligned(dtype)), 1, "C")


def _array(kind: str, axes: int) -> Any:
    """Return the type of an array with a number of axes, of a number with none."""
    from numba import types

    own = getattr(types, kind)
    return types.Array(own, axes, "C") if axes else own
