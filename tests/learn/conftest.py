"""Fixtures of short training runs."""

from pathlib import Path

import pytest
from short_run import SHORT, TINY, Finished, copy_run


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """Return a function that gives the finished run of a method; read only."""
    from tokaido_env.learn import run

    made: dict[str, Path] = {}

    def finished(method: str) -> Path:
        if method not in made:
            made[method] = tmp_path_factory.mktemp("runs") / method
            run.begin(made[method], SHORT[method])
            assert run.train(made[method])
        return made[method]

    return finished


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of `td` of one update, without ratings; read only."""
    from tokaido_env.learn import run
    from tokaido_env.learn.settings import TdSettings

    folder = tmp_path_factory.mktemp("runs") / "tiny"
    run.begin(folder, TdSettings(**TINY))
    assert run.train(folder)
    return folder


@pytest.fixture
def run(tiny_run: Path, tmp_path: Path) -> Path:
    """A copy of `tiny_run`, to change."""
    return copy_run(tiny_run, tmp_path)
