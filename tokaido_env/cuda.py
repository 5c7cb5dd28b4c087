"""`CudaBatch`: the games of a `Batch` on an NVIDIA GPU, with the same bytes.

    from tokaido_env.cuda import CudaBatch, dlpack

    batch = CudaBatch(65_536)
    turn = batch.reset(seed=0)
    while True:
        moves = policy(torch.from_dlpack(dlpack(turn.observation)))  # on the same GPU
        turn = batch.step(moves)

The rules of `core` are compiled for the GPU. A `Batch` begins games on the CPU, and the GPU plays
them. With `NUMBA_ENABLE_CUDASIM=1` and `NUMBA_DISABLE_JIT=1` Numba's simulator runs the kernels
without a GPU: slow, for tests.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tokaido_env.core.optional_deps import extra_error

if find_spec("numba_cuda") is None:  # without it, numba.cuda can be imported but is empty
    raise extra_error("games on a GPU need", "numba_cuda", "cuda")

from numba import cuda
from numba.core import config

from tokaido_env import batch_validation, cuda_kernels as kernels
from tokaido_env.batch import Batch
from tokaido_env.batch_validation import Positions, Seeds
from tokaido_env.boards.board_pool import BoardPool, Boards
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.aligned_dtypes import aligned
from tokaido_env.core.arguments import check_choice, repr_short
from tokaido_env.core.bitmask import MASK_BYTES
from tokaido_env.core.board_features import board_features_of
from tokaido_env.core.bots import BOTS, GREEDY
from tokaido_env.core.observation import N_FEATURES, OBSERVATION_DTYPES, check_fits, quotient_table
from tokaido_env.core.rng import LUCK
from tokaido_env.core.state import BOARD, STATE, initial_states
from tokaido_env.core.stepping import EPISODE_INFO, STEP_OPTIONS
from tokaido_env.observers import check_observation
from tokaido_env.timestep import TimeStep

_THREADS = 128  # per block
_OUTPUT_BYTES = 12  # of `StepOutput`, per game

SIMULATED = bool(config.ENABLE_CUDASIM)
"""Whether Numba's simulator runs the kernels."""

BYTES_PER_STEP = (
    2 * (sum(aligned(each).itemsize for each in (STATE, LUCK, EPISODE_INFO)) + 8)
    + MASK_BYTES
    + _OUTPUT_BYTES
)
"""The least bytes that a step of a game reads and writes: its records and its results."""


class CudaError(RuntimeError):
    """There is no usable GPU, or none with this index."""


class CudaBatch:
    """N games on a GPU: the same games as `Batch(n, …)` with the same seeds and sampled chance.

    A `TimeStep` holds the batch's buffers on the GPU, which the next step overwrites. PyTorch and
    CuPy read them by `__cuda_array_interface__` (`torch.as_tensor(turn.reward)`); `dlpack` converts
    them for JAX.

    Args:
        n: number of games.
        board: a name, a path, a `Board`, or a pool from which each episode's seed draws.
        autoreset: start a finished game's next episode within the step that ended it.
        reward: "win" for +1, -1 and 0, or "margin" for the score margin / 100, clipped to [-1, 1].
        observation: "float32", "uint8" or None; the others are for CPUs only.
        see_board: append the board features to each observation.
        check: raise an error for an illegal move before any game is played. It waits for the GPU
            in each step. Without it, illegal moves are ignored, as by `Batch`.
        device: index of the GPU.

    Attributes:
        pool: the boards in use.
        games: the arrays on the GPU, `cuda_kernels.Games`: aligned versions of those of `Batch`.

    Raises:
        BoardError: for an unknown board.
        ValueError: for another argument that is not allowed.
        CudaError: no driver, or an unknown GPU.
    """

    def __init__(
        self,
        n: int,
        board: Boards = "shikoku",
        *,
        autoreset: bool = True,
        reward: Literal["win", "margin"] = "win",
        observation: Literal["float32", "uint8"] | None = "float32",
        see_board: bool = False,
        check: bool = True,
        device: int = 0,
    ) -> None:
        check_choice("check", check, (True, False))
        check_observation(observation, see_board, (*OBSERVATION_DTYPES, None))
        self._host = Batch(n, board, autoreset=autoreset, reward=reward, observation=None)
        self.pool: BoardPool = self._host.pool
        self._check = check
        self._dtype = observation or "float32"
        if observation is not None:
            check_fits(self._host.boards, observation)
        self._device = device
        self._select()
        width = N_FEATURES if observation is not None else 0
        blocks = np.zeros((len(self.pool), 0), self._dtype)
        if see_board:
            blocks = board_features_of(self._host.boards, self._dtype)
            width += blocks.shape[1]
        self._allocate(n, width, blocks)
        self._begun = False

    def __len__(self) -> int:
        return len(self._host)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("CudaBatch: cannot be copied: restore its `snapshot()` in another batch")

    # All games

    def reset(self, seed: Seeds = None, positions: Positions | None = None) -> TimeStep:
        """Begin an episode of all games; arguments and errors are those of `Batch.reset`."""
        continues = seed is None or np.ndim(seed) > 0  # a list may hold None
        host = self.host() if self._begun and continues else self._host
        host.begin(host.all_games, seed, positions)
        self._upload(host)
        return self.timestep()

    def step(self, moves: Any) -> TimeStep:
        """Play a decision of every game, as `Batch.step`.

        Args:
            moves: int64 (n,) on this GPU, with `__cuda_array_interface__` or `__dlpack__`, or
                integers (n,) in main memory, which are copied to the GPU.

        Raises:
            IllegalMove: naming the games and their moves (with `check`); nothing is played.
            ValueError: another dtype or shape.
        """
        self._need_begun()
        self._select()
        chosen = self._on_device(moves)
        if self._check:
            self._check_legal(chosen)
        self._run(chosen, self._options)
        return self.timestep()

    def play(self, bot: str) -> TimeStep:
        """Let the bot "random" or "greedy" play one move of each running game, as `Batch.play`.

        Raises:
            ValueError: for another bot.
            RuntimeError: before the first `reset`.
        """
        return self._play(bot, to_end=False)

    def finish(self, bot: str) -> TimeStep:
        """Let the bot "random" or "greedy" play both seats of each game to its end."""
        return self._play(bot, to_end=True)

    def set_bots(self, bots: npt.ArrayLike) -> None:
        """Let bots play seats within steps, from the next step on.

        Args:
            bots: integers (n, 2), by seat `bots.RANDOM`, `bots.GREEDY` or `bots.NO_BOT`.
        """
        self._need_begun()
        host = self.host()
        host.set_bots(host.all_games, bots)
        self._upload(host)

    def timestep(self) -> TimeStep:
        """Write the observations and return the results of the last step."""
        if self._turn.observation is not None:
            self._observe(self._output.mover, self._turn.observation)
        return self._turn

    def observe(self, seats: npt.ArrayLike) -> Any:
        """Return observations of seats, integers (n,), on the GPU; as `TimeStep.observation`."""
        chosen = batch_validation.checked_seats(seats, len(self)).astype(np.int8)
        width = N_FEATURES + self._blocks.shape[1]
        out = cuda.device_array((len(self), width), self._dtype)
        self._observe(cuda.to_device(chosen), out)
        return out

    def keys(self) -> Any:
        """Return the agents' random keys of the next decisions, uint64 (n,) on the GPU."""
        out = cuda.device_array(len(self), np.uint64)
        self._launch(kernels.keys, self.games, out)
        return out

    @property
    def padded_mask(self) -> Any:
        """A live view of `TimeStep.mask` padded with zeros, int8 (n, MASK_BYTES), contiguous."""
        return self.games.words.view(np.int8)

    # Between GPU and CPU

    def host(self) -> Batch:
        """Return the games as a `Batch`, copied from the GPU.

        The next call overwrites it. Moves played there reach the GPU only by
        `restore(batch.host().snapshot())`.
        """
        host, games = self._host, self.games
        if not self._begun:
            return host
        host.states[:] = games.states.copy_to_host()
        host.luck[:] = games.lucks.copy_to_host()
        host.episode_info[:] = games.episode_info.copy_to_host()
        host.legal[:] = games.masks.copy_to_host()
        host.restore(host.snapshot())  # recompute the derived arrays
        return host

    def snapshot(self) -> dict[str, npt.NDArray[Any]]:
        """Return copies of the games' arrays in main memory; see `Batch.snapshot`."""
        return self.host().snapshot()

    def restore(self, snapshot: dict[str, npt.NDArray[Any]]) -> None:
        """Replace the games by a snapshot of n games of a `CudaBatch` or a `Batch`.

        Args:
            snapshot: arrays (n, …) by name.
        """
        self._host.restore(snapshot)
        self._upload(self._host)

    # Implementation

    def _select(self) -> None:
        _check_device(self._device)
        cuda.select_device(self._device)

    def _allocate(self, n: int, width: int, blocks: npt.NDArray[Any]) -> None:
        host, new = self._host, cuda.device_array
        self.games = kernels.Games(
            cuda.to_device(host.boards.astype(aligned(BOARD))),
            cuda.to_device(initial_states(host.boards).astype(aligned(STATE))),
            cuda.to_device(host.states.astype(aligned(STATE))),
            cuda.to_device(host.luck.astype(aligned(LUCK))),
            cuda.to_device(host.episode_info.astype(aligned(EPISODE_INFO))),
            new(n, np.uint64),
            new((n, MASK_BYTES // 8), np.uint64),
        )
        self._output = kernels.StepOutput(
            *(new(n, np.int8), new((n, 2), np.float32), new(n, np.bool_)),
            *(new(n, np.int8), new(n, np.int8)),
        )
        self._quotients = cuda.to_device(quotient_table(self._dtype))
        self._blocks = cuda.to_device(blocks)
        self._moves = new(n, np.int64)
        self._turn = TimeStep(
            new((n, width), self._dtype) if width else None,
            self.padded_mask[:, :N_ACTIONS],
            self.games.masks,
            *self._output,
        )

    def _upload(self, host: Batch) -> None:
        """Copy the games of a batch on the CPU to the GPU."""
        self._select()
        games = self.games
        games.states.copy_to_device(host.states.astype(aligned(STATE)))
        games.lucks.copy_to_device(host.luck.astype(aligned(LUCK)))
        games.episode_info.copy_to_device(host.episode_info.astype(aligned(EPISODE_INFO)))
        games.masks.copy_to_device(host.legal)
        self._options = host.options.copy()
        self._options_on_gpu: dict[bytes, Any] = {}
        self._greedy = bool((host.episode_info["bot"] == GREEDY).any())
        self._begun = True
        self._launch(kernels.write_output, games, self._output)

    def _play(self, bot: str, *, to_end: bool) -> TimeStep:
        self._need_begun()
        check_choice("bot", bot, BOTS)
        self._select()
        options = self._options.copy()
        options["bot"] = BOTS[bot]
        options["to_end"] = to_end
        options["bots"] |= to_end
        self._run(self._moves, options)
        return self.timestep()

    def _run(self, moves: Any, options: npt.NDArray[np.void]) -> None:
        greedy = self._greedy or int(options["bot"][0]) == GREEDY
        body = kernels.step_greedy if greedy else kernels.step
        key = options.tobytes()
        if key not in self._options_on_gpu:  # each copy to the GPU would wait for it
            self._options_on_gpu[key] = cuda.to_device(options.astype(aligned(STEP_OPTIONS)))
        self._launch(body, self.games, self._output, moves, self._options_on_gpu[key])

    def _observe(self, seats: Any, out: Any) -> None:
        self._launch(kernels.observe, self.games, seats, self._quotients, self._blocks, out)

    def _launch(self, body: Callable[..., None], *arguments: Any) -> None:
        launch(body, len(self), *arguments)

    def _check_legal(self, moves: Any) -> None:
        wrong = cuda.to_device(np.array([len(self)], np.int32))
        self._launch(kernels.find_illegal, self.games, moves, wrong)
        first = int(wrong.copy_to_host()[0])
        if first < len(self):
            move = moves.copy_to_host()[first : first + 1]
            raise self.host().illegal_moves_error(np.array([first]), move)

    def _on_device(self, moves: Any) -> Any:
        """Return moves as int64 (n,) on this GPU."""
        if not hasattr(moves, "copy_to_host" if SIMULATED else "__cuda_array_interface__"):
            self._moves.copy_to_device(batch_validation.checked_moves(moves, len(self)))
            return self._moves
        found = moves if SIMULATED else cuda.as_cuda_array(moves)  # PyTorch has other dtypes
        if found.dtype != np.int64 or tuple(found.shape) != (len(self),):
            got = f"{found.dtype} of shape {tuple(found.shape)}"
            raise ValueError(f"moves: expected int64 of shape ({len(self)},), got {got}")
        return found

    def _need_begun(self) -> None:
        if not self._begun:
            raise RuntimeError("game 0 has not begun: call reset(seed=…) first")


def _check_device(device: int) -> None:
    if SIMULATED:
        return
    if not cuda.is_available():
        reason = cuda.cuda_error() or "no GPU was found"
        raise CudaError(f"no usable GPU: {' '.join(str(reason).split())}")
    count = len(cuda.gpus)
    if not 0 <= device < count:
        raise CudaError(f"device: expected 0 to {count - 1}, got {repr_short(device)}")


def dlpack(array: Any) -> Any:
    """Return a view with `__dlpack__` of an array on the GPU, for PyTorch, JAX and CuPy.

    It is no copy, and the next step changes it.
    """
    from cuda.core.utils import StridedMemoryView

    if hasattr(array, "__cuda_array_interface__"):
        return StridedMemoryView.from_cuda_array_interface(array, stream_ptr=-1)
    return np.asarray(array)  # the simulator's arrays are in main memory


def launch(body: Callable[..., None], n: int, *arguments: Any) -> None:
    """Run a kernel in at least n threads, with arrays on the GPU; return before it has run."""
    compiled(body)[-(-n // _THREADS), min(_THREADS, n)](*arguments)


@functools.cache
def compiled(body: Callable[..., None]) -> Any:
    """Return a CUDA kernel of a function, compiled at its first launch in each process."""
    return cuda.jit(body)
