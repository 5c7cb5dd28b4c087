"""A short run for the tests that change one."""

import shutil
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short run; not to be changed."""
    pytest.importorskip("sb3_contrib")
    from short_run import VALUES

    from tokaido_env.learn import ppo
    from tokaido_env.learn.settings import Settings

    run = tmp_path_factory.mktemp("runs") / "finished"
    ppo.begin(run, Settings(**VALUES))
    assert ppo.train(run)
    return run


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """A copy of the run, to be changed."""
    shutil.copytree(finished, tmp_path / "run")
    return tmp_path / "run"
