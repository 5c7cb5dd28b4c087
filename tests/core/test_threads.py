"""Tests of the tools for threads, and of the pool of threads."""

import os
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from numba import prange
from processes import run_script

from tokaido_env.core import jit, threads


def _fill(out: Any, taken: Any, count: int) -> None:
    """Count how often each index is taken, three at a time."""
    for _ in prange(count):
        first = threads.fetch_add(taken, 3)
        while first < len(out):
            for i in range(first, min(first + 3, len(out))):
                out[i] += 1
            first = threads.fetch_add(taken, 3)


def test_fetch_add__gives_each_index_to_one_thread() -> None:
    fill: Any = jit.parallel()(_fill)
    out = np.zeros(100_000, np.int64)
    fill(out, np.zeros(1, np.int64), 4)
    assert (out == 1).all()


# The pool of threads

POOL = """
import hashlib, os, sys, threading, warnings
warnings.simplefilter("error")
import numba, numpy
from torch.utils.data import DataLoader
from tokaido_env import Batch
from tokaido_env.agents import make
from tokaido_env.core.jit import threads_for

class Searches:
    def __len__(self):
        return 2

    def __getitem__(self, i):
        batch = Batch(64, observation=None)
        batch.reset(seed=1)
        keys = batch.keys(numpy.arange(64))
        actions = make("mcts:sims=20").act(batch.boards, batch.states, batch.legal, keys)
        return hashlib.sha256(actions.tobytes()).hexdigest()[:8] + f" {threads_for(64)}"

searches, found = Searches(), []
print("main", searches[0])
pair = [threading.Thread(target=lambda: found.append(searches[0])) for _ in range(2)]
[each.start() for each in pair]
[each.join() for each in pair]
print("two threads", *sorted(found))
sys.stdout.flush()
if os.fork() == 0:
    print("forked", searches[0], flush=True)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
loader = DataLoader(searches, batch_size=None, num_workers=2, multiprocessing_context="fork")
print("loader", *loader)
print("main", searches[0])
"""


@pytest.mark.skipif(jit.INTERPRETED, reason="interpreted kernels are serial")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed")
def test_pooled__gives_the_same_bytes_in_forks_loaders_and_threads() -> None:
    """Without a warning; forked children use one thread each."""
    output = run_script(POOL, NUMBA_NUM_THREADS="2")
    found = output.split()[1]
    assert output == (
        f"main {found} 2\ntwo threads {found} 2 {found} 2\nforked {found} 1\n"
        f"loader {found} 1 {found} 1\nmain {found} 2\n"
    )
