"""Tests of arena/executors/ray.py on a cluster of three nodes; skipped without Ray."""

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

from tokaido_env.__main__ import main
from tokaido_env.arena.executors import open_executor
from tokaido_env.arena.executors.ray import ClusterError
from tokaido_env.core.rules import RULES_VERSION


@pytest.fixture(scope="module")
def outcome() -> dict[str, Any]:
    path = os.pathsep.join(map(str, (ROOT, ROOT / "tests")))
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "cluster_of_nodes.py")],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if NO_CLUSTER in done.stderr:  # Ray's nodes do not start on every machine
        pytest.skip(done.stderr.splitlines()[-1])
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.slow
@pytest.mark.alone
def test_cluster__gives_the_bytes_of_the_serial_executor_while_nodes_change(
    outcome: dict[str, Any],
) -> None:
    """A match while a worker is killed, a node removed, one added; then expert iteration."""
    assert outcome["workers"] == 3
    assert outcome["changes"] == ["1 worker killed", "a node removed", "a node added"]
    assert outcome["cluster"] == outcome["serial"]
    assert len(set(outcome["serial"])) == 2


@pytest.mark.slow
@pytest.mark.alone
def test_cluster__refuses_other_versions_and_workers_that_end_repeatedly(
    outcome: dict[str, Any],
) -> None:
    other_rules, exits = outcome["errors"]
    assert other_rules.startswith("ClusterError: node ")
    assert f"'rules': '{RULES_VERSION + 1}'" in other_rules
    assert exits.startswith("AgentFailed: the worker that played game ")


def test_open_executor__reports_an_address_without_a_cluster_at_once(capsys: Any) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        with (
            pytest.raises(ClusterError, match=f"'{address}': .*: start one"),
            open_executor(f"ray:{address}"),
        ):
            pass
        words = ["evaluate", "greedy", "random", "--games", "2", "--executor", f"ray:{address}"]
        assert main(words) == 1
    assert capsys.readouterr().err.startswith(f"evaluate: cluster '{address}'")


def test_open_executor__finds_no_running_cluster_by_auto() -> None:
    with pytest.raises(ClusterError, match="cluster 'auto': "), open_executor("ray:auto"):
        pass
