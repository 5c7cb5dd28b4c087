"""Fixtures of short training runs."""

from pathlib import Path

import pytest
from short_run import SHORT, VALUES, Finished, copy_run


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """Return a function that gives the finished run of a method; read only."""
    from tokaido_env.learn import run

    made: dict[str, Path] = {}

    def finished(method: str) -> Path:
        if method not in made:
            if method == "ppo":
                pytest.importorskip("sb3_contrib")
            made[method] = tmp_path_factory.mktemp("runs") / method
            run.begin(made[method], SHORT[method])
            assert run.train(made[method])
        return made[method]

    return finished


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished PPO run of one update without ratings; read only."""
    pytest.importorskip("sb3_contrib")
    from tokaido_env.learn import run
    from tokaido_env.learn.settings import PpoSettings

    folder = tmp_path_factory.mktemp("runs") / "finished"
    run.begin(folder, PpoSettings(**VALUES))
    assert run.train(folder)
    return folder


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """A copy of the finished PPO run, to change."""
    return copy_run(finished, tmp_path)
