"""Memory of forward passes and searches: each Python thread has its own, until it ends."""

import gc
import weakref
from collections.abc import Callable
from threading import Barrier, Thread
from typing import Any

import pytest

from tokaido_env.agents.search_tree import Tree, cached_trees
from tokaido_env.agents.workspaces import Workspace, cached_workspaces

THREADS, CALLS = 20, 5


def workspaces() -> list[Workspace]:
    return [cached_workspaces(1, None, of_opponent=is_opponent) for is_opponent in (False, True)]


def trees() -> list[Tree]:
    return [cached_trees(1, nodes, priors=False) for nodes in (8, 16)]


@pytest.mark.parametrize("make", [workspaces, trees])
def test_cached_by_thread__keeps_the_memory_of_many_threads_until_they_end(
    make: Callable[[], list[Any]],
) -> None:
    """Each thread makes its memory once, while all others work too."""
    barrier, made = Barrier(THREADS), list[weakref.ref[Any]]()
    alive: list[int] = []

    def work() -> None:
        for _ in range(CALLS):
            barrier.wait()
            made.extend(weakref.ref(array) for one in make() for array in one)
        barrier.wait()
        alive.append(len({id(ref()) for ref in made if ref() is not None}))
        barrier.wait()

    each = sum(len(one) for one in make())
    threads = [Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == THREADS * CALLS * each
    assert alive == [THREADS * each] * THREADS
    gc.collect()
    assert [ref for ref in made if ref() is not None] == []
