"""What the kernels for GPUs take, without a GPU: registers, stack, spills, threads at a time.

    python benchmarks/ptx.py                 # sm_80 and sm_90
    python benchmarks/ptx.py --cc 10.0 step

Needs the extra [cuda], which brings the compiler of NVIDIA's and its assembler `ptxas`.
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
class Taken:
    """What a kernel takes a thread: registers, bytes of stack and of spills; seconds to compile."""

    registers: int
    stack: int
    spilled: int
    seconds: float

    @property
    def threads(self) -> int:
        """How many threads registers let run on a multiprocessor at a time, of 2,048.

        As NVIDIA's occupancy calculator has it for 7.0, 8.0 and 9.0: of 65,536 registers a warp of
        32 threads gets whole multiples of 256, and warps come by four.
        """
        of_warp = -(-self.registers * 32 // 256) * 256
        return min(65_536 // of_warp // 4 * 4 * 32, 2_048)


def why_not() -> str:
    """Return what is missing to compile for a GPU here; "" for nothing."""
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


def taken(name: str, capability: Capability) -> Taken:
    """Compile a kernel of `kernels` for a compute capability, and ask the assembler about it."""
    from numba import cuda

    function, types = kernels()[name]
    since = time.perf_counter()
    with _no_device(capability):
        ptx, _ = cuda.compile(
            function, types, cc=capability, output="ptx", device=False, abi="numba"
        )
    seconds = time.perf_counter() - since
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "kernel.ptx"
        source.write_text(ptx, encoding="ascii")
        architecture = f"-arch=sm_{capability[0]}{capability[1]}"
        command = [str(_ptxas()), "-v", architecture, str(source), "-o", str(source) + ".cubin"]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    stack, stores, loads = map(int, re.findall(r"(\d+) bytes (?:stack|spill)", told)[:3])
    registers = re.search(r"Used (\d+) registers", told)
    assert registers is not None, told
    return Taken(int(registers[1]), stack, stores + loads, seconds)


def kernels() -> dict[str, tuple[Callable[..., None], tuple[Any, ...]]]:
    """Return the kernels of `CudaBatch` by name, with the types that it launches them with."""
    from numba import types

    from tokaido_env import cuda_kernels
    from tokaido_env.core.stepping import STEP_OPTIONS

    of = types.Array
    games, told = _games(), _told()
    flat, table = of(types.int64, 1, "C"), of(types.int64, 2, "C")
    floats = of(types.float32, 2, "C")
    bytes_ = of(types.uint8, 2, "C")
    seats = of(types.int8, 1, "C")
    signatures: dict[str, tuple[Any, ...]] = {
        "step": (games, told, flat, _records(STEP_OPTIONS)),
        "step_greedy": (games, told, flat, _records(STEP_OPTIONS)),
        "tell": (games, told),
        "find_illegal": (games, flat, of(types.int32, 1, "C")),
        "observe": (games, seats, floats, floats, floats),
        "observe as uint8": (games, seats, bytes_, bytes_, bytes_),
        "keys": (games, of(types.uint64, 1, "C")),
        "weights": (games, table),
        "outcomes": (games, flat),
    }
    found = {
        name: (getattr(cuda_kernels, name.partition(" ")[0]), signature)
        for name, signature in signatures.items()
    }
    return found | _players(games)


def _players(games: Any) -> dict[str, tuple[Callable[..., None], tuple[Any, ...]]]:
    from numba import types

    from tokaido_env.agents import cuda_agents
    from tokaido_env.agents.eval_tables import EVAL_TABLES
    from tokaido_env.agents.heuristic import SCRATCH
    from tokaido_env.agents.inference import Weights, Workspace

    def array(kind: Any, axes: int) -> Any:
        return types.Array(kind, axes, "C")

    moves, one, two = array(types.int64, 1), array(types.float32, 1), array(types.float32, 2)
    three, units = array(types.float32, 3), array(types.int64, 2)
    shapes = (three, two, three, two, three, two, three, three, two, two, two, three, three, two)
    network = types.NamedTuple((*shapes, two), Weights)
    room = types.NamedTuple((moves, _records(SCRATCH), two, three, units, two, two), Workspace)
    told = two, one, moves
    policy = (games, _records(EVAL_TABLES), moves, network, room, types.int64, types.float64, *told)
    return {
        "choose_by_heuristic": (
            cuda_agents.choose_by_heuristic,
            (games, _records(EVAL_TABLES), moves),
        ),
        "choose_by_network": (cuda_agents.choose_by_network, policy),
    }


def _games() -> Any:
    from numba import types

    from tokaido_env.core.rng import LUCK
    from tokaido_env.core.state import BOARD, STATE
    from tokaido_env.core.stepping import EPISODE_INFO
    from tokaido_env.cuda_kernels import Games

    records = [_records(record) for record in (BOARD, STATE, STATE, LUCK, EPISODE_INFO)]
    masks = types.Array(types.uint64, 1, "C"), types.Array(types.uint64, 2, "C")
    return types.NamedTuple((*records, *masks), Games)


def _told() -> Any:
    from numba import types

    from tokaido_env.cuda_kernels import StepOutput

    seats, flags = types.Array(types.int8, 1, "C"), types.Array(types.boolean, 1, "C")
    rewards = types.Array(types.float32, 2, "C")
    return types.NamedTuple((seats, rewards, flags, flags, seats, seats), StepOutput)


def _records(record: Any) -> Any:
    """Return the type of an array (n,) of the twins of a record."""
    from numba import types
    from numba.cuda.np.numpy_support import from_dtype

    from tokaido_env.core.aligned_dtypes import aligned

    return types.Array(from_dtype(aligned(record)), 1, "C")


@contextlib.contextmanager
def _no_device(capability: Capability) -> Iterator[None]:
    """Compile as if there were a GPU: functions that kernels call ask it for its capability."""
    from numba.cuda import dispatcher

    before = dispatcher.get_current_device
    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=capability)
    try:
        yield
    finally:
        dispatcher.get_current_device = before


def _ptxas() -> Path | None:
    """Return the assembler: of NVIDIA's packages, or on the path."""
    for folder in map(Path, sys.path):
        for name in ("nvidia/cuda_nvcc/bin/ptxas", "nvidia/cu13/bin/ptxas"):
            if (folder / name).is_file():
                return folder / name
    found = shutil.which("ptxas")
    return None if found is None else Path(found)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="kernels; all by default")
    parser.add_argument("--cc", help="a compute capability, such as 9.0; 8.0 and 9.0 by default")
    options = parser.parse_args()
    if why := why_not():
        raise SystemExit(why)
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
            of = taken(name, capability)
            print(
                f"{name:<20} sm_{capability[0]}{capability[1]:<3} {of.registers:>9} "
                f"{of.stack:>5} B {of.spilled:>6} B {of.threads:>8,} {of.seconds:>7.1f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
