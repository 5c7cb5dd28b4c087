"""Short runs for the tests that look at one, or change one."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

Finished = Callable[[str], Path]


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """Gives a run of a method that went to its end; not to be changed."""
    from short_run import SHORT

    from tokaido_env.learn import run

    made: dict[str, Path] = {}

    def finished(method: str) -> Path:
        if method not in made:
            made[method] = tmp_path_factory.mktemp("runs") / method
            run.begin(made[method], SHORT[method])
            assert run.train(made[method])
        return made[method]

    return finished


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of PPO of two updates, without ratings; not to be changed."""
    pytest.importorskip("sb3_contrib")
    from short_run import VALUES

    from tokaido_env.learn import run
    from tokaido_env.learn.settings import PpoSettings

    folder = tmp_path_factory.mktemp("runs") / "finished"
    run.begin(folder, PpoSettings(**VALUES))
    assert run.train(folder)
    return folder


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """A copy of the run of PPO, to be changed."""
    shutil.copytree(finished, tmp_path / "run")
    return tmp_path / "run"
