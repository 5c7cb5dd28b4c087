"""A match and expert iteration on a Ray cluster of three nodes, while workers die.

Prints what `test_cluster.py` compares, as JSON. A process of its own: Ray's state is global.
"""

import hashlib
import json
import os
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ray.cluster_utils import Cluster

from tokaido_env.agents import make
from tokaido_env.arena.executors import Executor, SerialExecutor, open_executor, ray as module
from tokaido_env.arena.executors.ray import ClusterError
from tokaido_env.arena.game_runner import AgentFailed
from tokaido_env.arena.tournament import MatchState, games_as_completed, play_match
from tokaido_env.learn.run import begin, train
from tokaido_env.learn.settings import AlphaZeroSettings

NO_CLUSTER = "no cluster could be begun on this machine"
GAMES = 48
SMALL = {"num_cpus": 1, "object_store_memory": 100_000_000}


def match(executor: Executor, after: Callable[[int], None] = lambda games: None) -> str:
    """Play a match; return the hash of its games."""
    a, b = make("python:outsiders:Dice"), make("heuristic")
    match_state, done = MatchState(a.spec, b.spec, GAMES, 3, "shikoku"), 0
    for some in games_as_completed(match_state, a, b, executor=executor):
        done += len(some.numbers)
        after(done)
    return hashlib.sha256(match_state.games.tobytes() + match_state.actions.tobytes()).hexdigest()


def course(executor: Executor) -> str:
    """Go through two rounds of expert iteration; return the hash of all that they leave."""
    settings = AlphaZeroSettings(
        **{"rounds": 2, "shards": 4, "games": 4, "first_sims": 3, "sims": 3, "width": 16},
        **{"minibatch_size": 256, "promotion_games": 8},
    )
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        begin(run, settings)
        assert train(run, executor=executor)
        files = sorted(path for name in ("shards", "policies") for path in (run / name).rglob("*"))
        told = [path.name.encode() + path.read_bytes() for path in (*files, run / "last")]
        assert len(told) > 10
        return hashlib.sha256(b"".join(told)).hexdigest()


def kill_a_worker() -> int:
    """Kill a process that runs a task; return how many were found."""
    found = 0
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes()
        except OSError:
            continue
        if words.startswith(b"ray::_run"):
            found += 1
            os.kill(int(path.parent.name), signal.SIGKILL)
            break
    return found


def refused(executor: Executor, stop: Callable[[Executor], None]) -> str:
    """Return the error that something ends with."""
    try:
        stop(executor)
    except (AgentFailed, ClusterError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def other_rules(executor: Executor) -> None:
    """Play on nodes whose rules are others than here."""
    here = module.RULES_VERSION
    try:
        module.RULES_VERSION = here + 1
        play_match(make("greedy"), make("random"), 2, 0, executor=executor)
    finally:
        module.RULES_VERSION = here


def ends_its_process(executor: Executor) -> None:
    """Play with an agent that ends whatever plays it."""
    play_match(make("python:outsiders:DiesAtOnce"), make("random"), 2, 0, executor=executor)


def main() -> None:
    """Play here, then on the cluster."""
    told: dict[str, Any] = {"here": [match(SerialExecutor()), course(SerialExecutor())]}
    module.RETRIES = 2
    try:
        machines = Cluster(
            initialize_head=True, head_node_args=SMALL | {"include_dashboard": False}
        )
        nodes = [machines.add_node(**SMALL) for _ in range(2)]
    except Exception as error:
        sys.exit(f"{NO_CLUSTER}: {type(error).__name__}: {error}")
    lost: list[str] = []

    def chaos(games: int) -> None:
        if not lost and games >= GAMES // 8:
            lost.append(f"{kill_a_worker()} worker")
        elif len(lost) == 1 and games >= GAMES // 4:
            machines.remove_node(nodes[1], allow_graceful=False)
            lost.append("a node")
        elif len(lost) == 2 and games >= GAMES // 2:
            machines.add_node(**SMALL)
            lost.append("one is added")

    with open_executor(f"ray:{machines.address}") as executor:
        told["workers"] = executor.workers
        told["cluster"] = [match(executor, chaos), course(executor)]
        told["refused"] = [refused(executor, stop) for stop in (other_rules, ends_its_process)]
    told["lost"] = lost
    machines.shutdown()
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
