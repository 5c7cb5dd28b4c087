"""Tests of `CudaBatch` on Numba's simulator, of its kernels' compilation, and of its errors."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gpu_kernels
import numpy as np
import pytest

from tokaido_env import Batch
from tokaido_env.agents import make
from tokaido_env.core.aligned_dtypes import aligned
from tokaido_env.core.rng import LUCK
from tokaido_env.core.state import BOARD, STATE
from tokaido_env.core.stepping import EPISODE_INFO, STEP_OPTIONS
from tokaido_env.features.evaluation import SCRATCH

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))
from bench_games import gpu_name  # noqa: E402  the line above adds its folder

needs_numba_cuda = pytest.mark.skipif(
    find_spec("numba_cuda") is None, reason="numba-cuda is not installed: the extra [cuda]"
)


@pytest.mark.parametrize(
    "record", [STATE, BOARD, LUCK, EPISODE_INFO, STEP_OPTIONS, SCRATCH], ids=len
)
def test_aligned__keeps_the_values_and_aligns_every_field(record: np.dtype) -> None:
    rng = np.random.default_rng(0)
    rows = np.frombuffer(rng.bytes(record.itemsize * 50), record).copy()
    converted = rows.astype(aligned(record))
    assert converted.astype(record).tobytes() == rows.tobytes()
    assert converted.dtype.isalignedstruct
    for name in record.names or ():
        kind, offset = converted.dtype.fields[name][:2]
        while kind.subdtype is not None:
            kind = kind.subdtype[0]
        assert offset % kind.alignment == 0


@needs_numba_cuda
def test_cuda_batch__plays_the_games_of_batch_in_the_simulator() -> None:
    """Run all cases of tests/simulated.py in one process."""
    pytest.importorskip("safetensors", reason="policies need the extra [policies]")
    simulator = {"NUMBA_ENABLE_CUDASIM": "1", "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-W", "ignore", str(ROOT / "tests" / "simulated.py")]
    done = subprocess.run(
        command, env=os.environ | simulator, cwd=ROOT, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]


needs_gpu = pytest.mark.skipif(not gpu_name(), reason="there is no GPU")


@needs_gpu
@pytest.mark.parametrize(
    ("n", "options"),
    [
        (100_000, {}),
        (100_000, {"board": "family:train/1000", "see_board": True, "observation": "uint8"}),
        (20_000, {"reward": "margin", "observation": None}),
    ],
    ids=["shikoku", "pool", "margin"],
)
def test_cuda_batch__plays_the_games_of_batch_on_a_gpu(n: int, options: dict[str, Any]) -> None:
    """Random moves to the end of each game, and in the next one."""
    from simulated import random_moves

    random_moves(n, 360, every=20, **options)


@needs_gpu
def test_cuda_batch__plays_greedy_games_of_batch_on_a_gpu() -> None:
    from simulated import assert_same_games

    from tokaido_env.cuda import CudaBatch

    gpu, cpu = CudaBatch(20_000, observation=None), Batch(20_000, observation=None)
    gpu.reset(seed=6)
    cpu.reset(seed=6)
    gpu.finish("greedy")
    cpu.finish("greedy")
    assert_same_games(gpu, cpu)


@needs_gpu
@pytest.mark.parametrize("spec", ["heuristic", "champion:endings=network"])
def test_cuda_agents__choose_as_on_a_cpu(spec: str) -> None:
    """Fused products change the last bits of evaluations, and with them a few choices."""
    from tokaido_env.agents.cuda_agents import CudaHeuristic, CudaPolicy
    from tokaido_env.cuda import CudaBatch

    gpu = CudaBatch(20_000, observation=None)
    gpu.reset(seed=7)
    for _ in range(150):
        gpu.play("random")
    cpu, agent = gpu.host(), make(spec)
    on_gpu = CudaHeuristic(gpu) if spec == "heuristic" else CudaPolicy(gpu, agent.policy)
    same = on_gpu.decide().copy_to_host() == cpu.decide(agent, cpu.all_games)
    assert same.mean() > 0.999


@needs_gpu
def test_cuda_batch__exchanges_arrays_with_pytorch() -> None:
    torch = pytest.importorskip("torch")
    from tokaido_env.cuda import CudaBatch

    gpu, cpu = CudaBatch(1000), Batch(1000)
    turn = gpu.reset(seed=8)
    cpu.reset(seed=8)
    for _ in range(20):
        mask = torch.as_tensor(turn.mask, device="cuda")
        moves = torch.multinomial(mask.float(), 1).squeeze(1)
        turn, expected = gpu.step(moves), cpu.step(moves.cpu().numpy())
        observation = torch.as_tensor(turn.observation, device="cuda")
        assert np.array_equal(observation.cpu().numpy(), expected.observation)
    with pytest.raises(ValueError, match=r"moves: expected int64 of shape \(1000,\), got float32"):
        gpu.step(torch.zeros(1000, device="cuda"))


@pytest.mark.skipif(gpu_kernels.missing_compiler() != "", reason=gpu_kernels.missing_compiler())
def test_kernels__compile_for_a_gpu() -> None:
    for name, kernel in gpu_kernels.kernels().items():
        assert ".visible .entry" in gpu_kernels.compiled(kernel), name


@needs_numba_cuda
def test_cuda_batch__refuses_to_run_without_a_gpu() -> None:
    from numba import cuda

    if cuda.is_available():
        pytest.skip("there is a GPU")
    from tokaido_env.cuda import CudaBatch, CudaError

    with pytest.raises(CudaError, match="no usable GPU: ") as refused:
        CudaBatch(4)
    assert "\n" not in str(refused.value)
