"""Tasks on a Ray cluster of several nodes, which come and go. Without Ray these are left out."""

import json
import os
import socket
import subprocess
import sys
from typing import Any

import pytest
from processes import ROOT

pytest.importorskip("ray", reason="pip install '.[ray]'")

from cluster_of_nodes import NO_CLUSTER

from tokaido_env.arena.executors import open_executor
from tokaido_env.arena.executors.ray import ClusterError
from tokaido_env.cli.evaluate import main


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    path = os.pathsep.join(map(str, (ROOT, ROOT / "tests")))
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "cluster_of_nodes.py")],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if NO_CLUSTER in done.stderr:  # raylets that do not begin are Ray's, or the machine's
        pytest.skip(done.stderr.splitlines()[-1])
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.alone
def test_three_nodes_of_which_one_is_lost_give_the_bytes_of_this_process(
    told: dict[str, Any],
) -> None:
    """A worker is killed, a node removed, one added; then expert iteration."""
    assert told["workers"] == 3
    assert told["lost"] == ["1 worker", "a node", "one is added"]
    assert told["cluster"] == told["here"]
    assert len(set(told["here"])) == 2


@pytest.mark.alone
def test_what_cannot_go_on_is_told(told: dict[str, Any]) -> None:
    other_rules, ends = told["refused"]
    assert other_rules.startswith("ClusterError: node ")
    assert "rules 2, actions 1, as in the process that sends the tasks, got " in other_rules
    assert ends.startswith("AgentFailed: the workers that played game ")
    assert "ended 3 times: the agent ended them" in ends


def test_an_address_where_nothing_answers_is_told_at_once(capsys: Any) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        with (
            pytest.raises(ClusterError, match=f"'{address}': nothing answers: .*: start a cluster"),
            open_executor(f"ray:{address}"),
        ):
            pass
        words = ["greedy", "random", "--games", "2", "--executor", f"ray:{address}"]
        assert main(words) == 1
    assert capsys.readouterr().err.startswith(f"evaluate: cluster '{address}': nothing answers")


def test_without_a_cluster_that_runs_auto_finds_none() -> None:
    with pytest.raises(ClusterError, match="cluster 'auto': "), open_executor("ray:auto"):
        pass
