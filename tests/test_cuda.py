"""Games on a GPU: on Numba's simulator those of `Batch`; compiled within a budget of registers."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tokaido_env.agents.eval_tables import EVAL_TABLES
from tokaido_env.agents.heuristic import SCRATCH
from tokaido_env.core.aligned_dtypes import aligned
from tokaido_env.core.rng import LUCK
from tokaido_env.core.state import BOARD, STATE
from tokaido_env.core.stepping import EPISODE_INFO, STEP_OPTIONS

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))
import ptx  # noqa: E402  the path has just been told

# Registers of a thread, of 65,536 that a processor of a GPU has: 128 let 512 threads run on it.
BUDGETS = {
    **{"step": 128, "step_greedy": 192, "tell": 32, "find_illegal": 32, "keys": 32},
    **{"observe": 64, "observe as uint8": 64, "weights": 64, "outcomes": 64},
    **{"choose_by_heuristic": 240, "choose_by_network": 192},
}

needs_numba_cuda = pytest.mark.skipif(
    find_spec("numba_cuda") is None, reason="numba-cuda is not installed: the extra [cuda]"
)


@pytest.mark.parametrize(
    "record", [STATE, BOARD, LUCK, EPISODE_INFO, STEP_OPTIONS, SCRATCH, EVAL_TABLES], ids=len
)
def test_a_twin_holds_the_same(record: np.dtype) -> None:
    rng = np.random.default_rng(0)
    rows = np.frombuffer(rng.bytes(record.itemsize * 50), record).copy()
    there = rows.astype(aligned(record))
    assert there.astype(record).tobytes() == rows.tobytes()
    assert there.dtype.isalignedstruct
    for name in record.names or ():
        kind, offset = there.dtype.fields[name][:2]
        while kind.subdtype is not None:
            kind = kind.subdtype[0]
        assert offset % kind.alignment == 0


@needs_numba_cuda
def test_the_games_of_the_simulator_are_those_of_a_batch() -> None:
    """All cases of tests/simulated.py, in one process."""
    pytest.importorskip("safetensors", reason="policies need the extra [policies]")
    simulator = {"NUMBA_ENABLE_CUDASIM": "1", "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-W", "ignore", str(ROOT / "tests" / "simulated.py")]
    done = subprocess.run(
        command, env=os.environ | simulator, cwd=ROOT, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]


@pytest.mark.parametrize(
    ("registers", "threads"),
    [(16, 2048), (32, 2048), (33, 1536), (64, 1024), (128, 512), (255, 256)],
)
def test_threads_at_a_time_are_those_of_the_occupancy_calculator(
    registers: int, threads: int
) -> None:
    assert ptx.Taken(registers, 0, 0, 0.0).threads == threads


@pytest.mark.skipif(ptx.why_not() != "", reason=ptx.why_not())
def test_every_kernel_has_a_budget() -> None:
    assert set(BUDGETS) == set(ptx.kernels())


@pytest.mark.skipif(ptx.why_not() != "", reason=ptx.why_not())
@pytest.mark.parametrize("capability", ptx.MEASURED, ids=str)
@pytest.mark.parametrize("name", BUDGETS)
def test_a_kernel_compiles_within_its_budget(name: str, capability: ptx.Capability) -> None:
    of = ptx.taken(name, capability)
    assert of.spilled == 0
    assert of.registers <= BUDGETS[name]


@needs_numba_cuda
def test_without_a_gpu_there_is_one_clear_error() -> None:
    from numba import cuda

    if cuda.is_available():
        pytest.skip("there is a GPU")
    from tokaido_env.cuda import CudaBatch, CudaError

    with pytest.raises(CudaError, match="no GPU to play on: ") as refused:
        CudaBatch(4)
    assert "\n" not in str(refused.value)


@needs_numba_cuda
@pytest.mark.parametrize(
    ("capability", "free", "options", "told"),
    [
        ((9, 0), 2**30, {"device": 1}, "device: expected 0 to 0, got 1"),
        ((6, 1), 2**30, {}, "GPU 0 has compute capability 6.1, expected 7.0 or newer"),
        ((9, 0), 2**20, {}, "n: 1000 games need 2 MiB on the GPU, 1 are free: take fewer"),
    ],
    ids=["no such", "old", "small"],
)
def test_a_gpu_that_cannot_play_is_one_clear_error(
    capability: tuple[int, int],
    free: int,
    options: dict[str, int],
    told: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from tokaido_env import cuda

    there = SimpleNamespace(
        is_available=lambda: True,
        gpus=[SimpleNamespace(compute_capability=capability)],
        select_device=lambda number: None,
        current_context=lambda: SimpleNamespace(get_memory_info=lambda: SimpleNamespace(free=free)),
    )
    monkeypatch.setattr(cuda, "cuda", there)
    with pytest.raises(cuda.CudaError, match=told) as refused:
        cuda.CudaBatch(1000, **options)
    assert "\n" not in str(refused.value)
