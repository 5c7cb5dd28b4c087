"""Registers, stack, spills and occupancy of the GPU kernels, measured without a GPU.

    python benchmarks/ptx.py                 # sm_80 and sm_90
    python benchmarks/ptx.py --cc 10.0 step

It needs the extra [cuda], which contains NVIDIA's compiler and its assembler `ptxas`.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

Capability = tuple[int, int]

MEASURED: tuple[Capability, ...] = ((8, 0), (9, 0))


@dataclass(frozen=True)
class KernelCost:
    """Registers, bytes of stack and bytes of spills of a thread; seconds to compile."""

    registers: int
    stack: int
    spilled: int
    seconds: float

    @property
    def threads(self) -> int:
        """The threads that can run on a multiprocessor at once, at most 2,048.

        The formula is that of NVIDIA's occupancy calculator for 7.0, 8.0 and 9.0: each warp of 32
        threads gets a multiple of 256 of the 65,536 registers, and warps run in fours.
        """
        per_warp = -(-self.registers * 32 // 256) * 256
        return min(65_536 // per_warp // 4 * 4 * 32, 2_048)


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
    if _ptxas() is None:
        return "ptxas is not installed: the extra [cuda]"
    return ""


def measure(name: str, capability: Capability) -> KernelCost:
    """Compile a kernel of `kernels` for a compute capability and return its cost."""
    from numba import cuda

    function, types = kernels()[name]
    start = time.perf_counter()
    with _no_device(capability):
        ptx, _ = cuda.compile(
            function, types, cc=capability, output="ptx", device=False, abi="numba"
        )
    seconds = time.perf_counter() - start
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "kernel.ptx"
        source.write_text(ptx, encoding="ascii")
        architecture = f"-arch=sm_{capability[0]}{capability[1]}"
        command = [str(_ptxas()), "-v", architecture, str(source), "-o", str(source) + ".cubin"]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    stack, stores, loads = map(int, re.findall(r"(\d+) bytes (?:stack|spill)", output)[:3])
    registers = re.search(r"Used (\d+) registers", output)
    assert registers is not None, output
    return KernelCost(int(registers[1]), stack, stores + loads, seconds)


def kernels() -> dict[str, tuple[Callable[..., None], tuple[Any, ...]]]:
    """Return the kernels of `CudaBatch` by name, with the types of their arguments."""
    from numba import types

    from tokaido_env import cuda_kernels
    from tokaido_env.core.stepping import STEP_OPTIONS

    array = types.Array
    games, output = _games_type(), _output_type()
    flat, table = array(types.int64, 1, "C"), array(types.int64, 2, "C")
    floats = array(types.float32, 2, "C")
    bytes_ = array(types.uint8, 2, "C")
    seats = array(types.int8, 1, "C")
    signatures: dict[str, tuple[Any, ...]] = {
        "step": (games, output, flat, _record_array(STEP_OPTIONS)),
        "step_greedy": (games, output, flat, _record_array(STEP_OPTIONS)),
        "write_output": (games, output),
        "find_illegal": (games, flat, array(types.int32, 1, "C")),
        "observe": (games, seats, floats, floats, floats),
        "observe as uint8": (games, seats, bytes_, bytes_, bytes_),
        "keys": (games, array(types.uint64, 1, "C")),
        "weights": (games, table),
        "outcomes": (games, flat),
    }
    batch_kernels = {
        name: (getattr(cuda_kernels, name.partition(" ")[0]), signature)
        for name, signature in signatures.items()
    }
    return batch_kernels | _agent_kernels(games)


def _agent_kernels(games: Any) -> dict[str, tuple[Callable[..., None], tuple[Any, ...]]]:
    from numba import types

    from tokaido_env.agents import cuda_agents
    from tokaido_env.agents.inference import Workspace
    from tokaido_env.agents.weights import Weights
    from tokaido_env.features.eval_tables import EVAL_TABLES
    from tokaido_env.features.evaluation import SCRATCH

    def array(kind: Any, axes: int) -> Any:
        return types.Array(kind, axes, "C")

    moves, one, two = array(types.int64, 1), array(types.float32, 1), array(types.float32, 2)
    three, units = array(types.float32, 3), array(types.int64, 2)
    whole_two, whole_three = array(types.int16, 2), array(types.int16, 3)
    shapes = (whole_three, two, whole_two, three, two, three, two, three, two, two, two, three)
    network = types.NamedTuple((*shapes, three, two, two), Weights)
    memory = _record_array(SCRATCH), two, units, whole_two, whole_three, whole_three
    room = types.NamedTuple((moves, *memory, three, units, two, two), Workspace)
    outputs = two, one, moves
    policy = (
        games,
        _record_array(EVAL_TABLES),
        moves,
        network,
        room,
        types.int64,
        types.float64,
        *outputs,
    )
    return {
        "choose_by_heuristic": (
            cuda_agents.choose_by_heuristic,
            (games, _record_array(EVAL_TABLES), moves),
        ),
        "choose_by_network": (cuda_agents.choose_by_network, policy),
    }


def _games_type() -> Any:
    from numba import types

    from tokaido_env.core.rng import LUCK
    from tokaido_env.core.state import BOARD, STATE
    from tokaido_env.core.stepping import EPISODE_INFO
    from tokaido_env.cuda_kernels import Games

    records = [_record_array(record) for record in (BOARD, STATE, STATE, LUCK, EPISODE_INFO)]
    masks = types.Array(types.uint64, 1, "C"), types.Array(types.uint64, 2, "C")
    return types.NamedTuple((*records, *masks), Games)


def _output_type() -> Any:
    from numba import types

    from tokaido_env.cuda_kernels import StepOutput

    seats, flags = types.Array(types.int8, 1, "C"), types.Array(types.boolean, 1, "C")
    rewards = types.Array(types.float32, 2, "C")
    return types.NamedTuple((seats, rewards, flags, flags, seats, seats), StepOutput)


def _record_array(record: Any) -> Any:
    """Return the type of an array (n,) of an aligned record."""
    from numba import types
    from numba.cuda.np.numpy_support import from_dtype

    from tokaido_env.core.aligned_dtypes import aligned

    return types.Array(from_dtype(aligned(record)), 1, "C")


@contextlib.contextmanager
def _no_device(capability: Capability) -> Iterator[None]:
    """Compile without a GPU: device functions would ask it for its compute capability."""
    from numba.cuda import dispatcher

    before = dispatcher.get_current_device
    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=capability)
    try:
        yield
    finally:
        dispatcher.get_current_device = before


def _ptxas() -> Path | None:
    """Return the path of the assembler in NVIDIA's packages or in PATH."""
    for folder in map(Path, sys.path):
        for name in ("nvidia/cuda_nvcc/bin/ptxas", "nvidia/cu13/bin/ptxas"):
            if (folder / name).is_file():
                return folder / name
    path = shutil.which("ptxas")
    return None if path is None else Path(path)


def main() -> None:
    """Print the table of costs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="names of kernels (default: all)")
    parser.add_argument("--cc", help="compute capability, such as 9.0 (default: 8.0 and 9.0)")
    options = parser.parse_args()
    if message := missing_compiler():
        raise SystemExit(message)
    capabilities = MEASURED
    if options.cc:
        major, _, minor = options.cc.partition(".")
        capabilities = ((int(major), int(minor)),)
    print(
        f"{'kernel':<20} {'for':<7} {'registers':>9} {'stack':>7} {'spilled':>8} "
        f"{'threads':>8} {'compiled':>9}"
    )
    for name in options.names or kernels():
        for capability in capabilities:
            cost = measure(name, capability)
            print(
                f"{name:<20} sm_{capability[0]}{capability[1]:<3} {cost.registers:>9} "
                f"{cost.stack:>5} B {cost.spilled:>6} B {cost.threads:>8,} {cost.seconds:>7.1f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
