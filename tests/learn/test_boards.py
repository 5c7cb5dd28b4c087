"""Training on pools of boards, and the summary of boards in policy headers."""

from pathlib import Path

import pytest
from short_run import VALUES, contents

from tokaido_env.agents import Policy
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.cli.train import main as train
from tokaido_env.learn import run as runs
from tokaido_env.learn.settings import PpoSettings

SPEC = "family:train/6"
POOL = BoardPool.load(SPEC)
ON_POOL = VALUES | {"board": SPEC, "steps": 512, "checkpoint_every": 256}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run on a pool; read only."""
    run = tmp_path_factory.mktemp("runs") / "finished"
    runs.begin(run, PpoSettings(**ON_POOL))
    assert runs.train(run)
    return run


def test_run_on_a_pool__names_the_boards(finished: Path) -> None:
    assert Policy.load(finished / "last").training["board"] == {
        **{"name": SPEC, "hash": POOL.hash, "boards": len(POOL)},
        "splits": ["train"],
    }


def test_run_on_a_pool__resumes_to_the_same_bytes(finished: Path, tmp_path: Path) -> None:
    runs.begin(tmp_path / "stopped", PpoSettings(**ON_POOL | {"steps": 256}))
    assert runs.train(tmp_path / "stopped")
    assert train(["--resume", str(tmp_path / "stopped"), "--steps", "512"]) == 0
    assert contents(tmp_path / "stopped") == contents(finished)


@pytest.mark.parametrize(
    ("board", "splits"),
    [("shikoku", []), ("family:2000007", ["test"])],
)
def test_board_summary__names_the_splits_of_the_family(
    tmp_path: Path, board: str, splits: list[str]
) -> None:
    runs.begin(tmp_path / "run", PpoSettings(**VALUES | {"board": board}))
    assert runs.train(tmp_path / "run")
    assert Policy.load(tmp_path / "run").training["board"]["splits"] == splits
