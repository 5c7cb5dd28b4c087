"""The wheel: its contents, and commands without the checkout and without extras."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent

PLAY = """
import tokaido_env
from tokaido_env import agents
assert tokaido_env.__file__.startswith({folder!r}), tokaido_env.__file__
game = tokaido_env.Game(seed=1)
while not game.is_over:
    game.play(game.legal_actions()[-1])
env = tokaido_env.env(render_mode="ansi")
env.reset(seed=1)
env.step(env.last()[0]["action_mask"].argmax())
assert env.render()
assert agents.make("greedy").spec == "greedy"
assert tokaido_env.Board.load().name == "shikoku"
from tokaido_env.web.replay_page import replay_frame
assert "<iframe" in replay_frame(game)._repr_html_()
from tokaido_env.agents.eval_tables import load_weights
assert load_weights().any()
assert agents.make("champion").policy.training is not None
import sys
assert "torch" not in sys.modules
"""

Done = subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the contents of the wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)]
    # Built from a copy, so that the checkout does not change.
    source = folder / "source"
    left_out = shutil.ignore_patterns(".*", "runs", "build", "dist", "*.egg-info")
    shutil.copytree(ROOT, source, symlinks=True, ignore=left_out)
    subprocess.run([*build, str(source)], check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "installed")
    return folder / "installed"


@pytest.fixture(scope="module")
def required(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the packages that the wheel requires, directly or not, without extras."""
    folder = tmp_path_factory.mktemp("required")
    (metadata,) = installed.glob("*.dist-info")
    waiting, seen = [Distribution.at(metadata)], {"tokaido-env"}
    while waiting:
        requirements = map(Requirement, waiting.pop().requires or ())
        names = {
            r.name for r in requirements if r.marker is None or r.marker.evaluate({"extra": ""})
        }
        for name in names - seen:
            seen.add(name)
            package = distribution(name)
            waiting.append(package)
            for top in {file.parts[0] for file in package.files or ()} - {"..", "__pycache__"}:
                if not (folder / top).exists():
                    (folder / top).symlink_to(package.locate_file(top))
    return folder


def run(folders: tuple[Path, ...], working: Path, *arguments: str) -> Done:
    """Run Python with only these folders on its path."""
    path = os.pathsep.join(map(str, folders))
    # The user's kernel cache, so that nothing is compiled twice.
    kept = {key: os.environ[key] for key in ("HOME", "XDG_CACHE_HOME") if key in os.environ}
    return subprocess.run(
        [sys.executable, "-S", *arguments],
        cwd=working,
        env={"PYTHONPATH": path, "PATH": "", **kept},
        capture_output=True,
        text=True,
        check=False,
    )


def test_wheel__has_all_data_files(installed: Path) -> None:
    data = {
        path.relative_to(ROOT)
        for path in (ROOT / "tokaido_env").glob("**/*")
        if path.is_file() and path.suffix not in (".py", ".pyc")
    }
    assert len(data) > 14
    assert [path for path in data if not (installed / path).is_file()] == []


def test_wheel__plays_a_game_without_the_checkout(installed: Path, tmp_path: Path) -> None:
    packages = Path(str(distribution("numpy").locate_file("")))
    played = run((installed, packages), tmp_path, "-c", PLAY.format(folder=str(installed)))
    assert played.returncode == 0, played.stderr


def test_wheel__has_the_console_command(installed: Path) -> None:
    (entries,) = installed.glob("*.dist-info/entry_points.txt")
    assert entries.read_text(encoding="utf-8").split("\n")[:2] == [
        "[console_scripts]",
        "tokaido = tokaido_env.__main__:main",
    ]


def test_evaluate__runs_without_extras(installed: Path, required: Path, tmp_path: Path) -> None:
    command = ("-m", "tokaido_env", "evaluate")
    done = run((installed, required), tmp_path, *command, "random", "greedy", "--games", "100")
    assert (done.returncode, done.stderr) == (0, "")
    assert "100 games per pair of agents, seats swapped, seed 0, board shikoku" in done.stdout
    rate = ("rate", "greedy", "--games", "10", "--opponents", "2")
    done = run((installed, required), tmp_path, *command, *rate)
    assert (done.returncode, done.stderr) == (0, "")
    ladder = json.loads((installed / "tokaido_env/arena/ladder.json").read_text())
    assert f"on ladder {ladder['hash']}" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", [("train", "--run", "run", "--preset", "quick"), ("evaluate", "exploit", "greedy")]
)
def test_training__without_its_extra_names_the_missing_package(
    installed: Path, required: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    done = run((installed, required), tmp_path, "-m", "tokaido_env", *command)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.search(r" needs (torch|stable_baselines3): ", done.stderr)
    assert done.stderr.startswith(f"{command[0]}: ")
    assert done.stderr.endswith(": pip install 'tokaido-env[train]'\n")
    assert not list(tmp_path.iterdir())
