"""A match and expert iteration on a Ray cluster of three nodes, while workers and nodes are lost.

Prints the outcome for `test_ray_executor.py` as JSON. A separate process: Ray's state is global.
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
from tokaido_env.arena.executors import open_executor, ray as module
from tokaido_env.arena.executors.base import Executor, SerialExecutor
from tokaido_env.arena.executors.ray import ClusterError
from tokaido_env.arena.game_runner import AgentFailed
from tokaido_env.arena.tournament import MatchState, games_as_completed, play_match
from tokaido_env.learn.run import begin, train
from tokaido_env.learn.settings import AlphaZeroSettings

NO_CLUSTER = "no cluster could be started on this machine"
GAMES = 48
SMALL_NODE = {"num_cpus": 1, "object_store_memory": 100_000_000}


def match_hash(executor: Executor, after: Callable[[int], None] = lambda games: None) -> str:
    """Play a match; return the hash of its games."""
    a, b = make("python:custom_agents:Dice"), make("heuristic")
    match_state, done = MatchState(a.spec, b.spec, GAMES, 3, "shikoku"), 0
    for some in games_as_completed(match_state, a, b, executor=executor):
        done += len(some.numbers)
        after(done)
    return hashlib.sha256(match_state.games.tobytes() + match_state.actions.tobytes()).hexdigest()


def training_hash(executor: Executor) -> str:
    """Train for two rounds of expert iteration; return the hash of shards and policies."""
    settings = AlphaZeroSettings(
        **{"rounds": 2, "shards": 4, "games": 4, "sims": 3, "width": 16},
        **{"minibatch_size": 256, "promotion_games": 8},
    )
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        begin(run, settings)
        assert train(run, executor=executor)
        files = sorted(path for name in ("shards", "policies") for path in (run / name).rglob("*"))
        parts = [path.name.encode() + path.read_bytes() for path in (*files, run / "last")]
        assert len(parts) > 10
        return hashlib.sha256(b"".join(parts)).hexdigest()


def kill_a_worker() -> int:
    """Kill one process that runs a task; return how many were killed."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes()
        except OSError:
            continue
        if words.startswith(b"ray::_run"):
            os.kill(int(path.parent.name), signal.SIGKILL)
            return 1
    return 0


def error_of(call: Callable[[Executor], None], executor: Executor) -> str:
    """Return the error of a call with an executor."""
    try:
        call(executor)
    except (AgentFailed, ClusterError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def play_with_other_rules(executor: Executor) -> None:
    """Play on nodes of another version of the rules than this process."""
    version = module.RULES_VERSION
    try:
        module.RULES_VERSION = version + 1
        play_match(make("greedy"), make("random"), 2, 0, executor=executor)
    finally:
        module.RULES_VERSION = version


def play_with_exits(executor: Executor) -> None:
    """Play with an agent that ends its worker."""
    play_match(make("python:custom_agents:DiesAtOnce"), make("random"), 2, 0, executor=executor)


def main() -> None:
    """Play in this process, then on the cluster."""
    serial = SerialExecutor()
    outcome: dict[str, Any] = {"serial": [match_hash(serial), training_hash(serial)]}
    module.RETRIES = 2
    try:
        cluster = Cluster(
            initialize_head=True, head_node_args=SMALL_NODE | {"include_dashboard": False}
        )
        nodes = [cluster.add_node(**SMALL_NODE) for _ in range(2)]
    except Exception as error:
        sys.exit(f"{NO_CLUSTER}: {type(error).__name__}: {error}")
    changes: list[str] = []

    def change_nodes(games: int) -> None:
        if not changes and games >= GAMES // 8:
            changes.append(f"{kill_a_worker()} worker killed")
        elif len(changes) == 1 and games >= GAMES // 4:
            cluster.remove_node(nodes[1], allow_graceful=False)
            changes.append("a node removed")
        elif len(changes) == 2 and games >= GAMES // 2:
            cluster.add_node(**SMALL_NODE)
            changes.append("a node added")

    with open_executor(f"ray:{cluster.address}") as executor:
        outcome["workers"] = executor.workers
        outcome["cluster"] = [match_hash(executor, change_nodes), training_hash(executor)]
        calls = (play_with_other_rules, play_with_exits)
        outcome["errors"] = [error_of(call, executor) for call in calls]
    outcome["changes"] = changes
    cluster.shutdown()
    json.dump(outcome, sys.stdout)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
