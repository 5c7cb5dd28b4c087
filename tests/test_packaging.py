"""The wheel: its contents, and commands without the checkout and without extras.

It is built from `git archive`, through the sdist and without network, in a folder with spaces and
letters beyond ASCII, and installed in a new environment. No link of the repository survives that.
"""

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

pytestmark = pytest.mark.slow
Done = subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The zip file of `git archive`, with changes that are not committed yet."""
    if not (ROOT / ".git").exists():
        pytest.skip("needs a git checkout")
    folder = tmp_path_factory.mktemp("archive")
    index = shutil.copy(git("rev-parse", "--path-format=absolute", "--git-path", "index"), folder)
    git("add", "--all", index=index)
    path = folder / "source.zip"
    git("archive", "--format=zip", f"--output={path}", git("write-tree", index=index))
    return path


def git(*words: str, index: Path | str | None = None) -> str:
    other = {} if index is None else {"GIT_INDEX_FILE": str(index)}
    done = subprocess.run(
        ["git", *words],
        cwd=ROOT,
        env=os.environ | other,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


@pytest.fixture(scope="module")
def environment(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment that has the wheel and none of the packages that it requires."""
    folder = tmp_path_factory.mktemp("Tōkaidō wheel")
    source, dist = folder / "source", folder / "dist"
    zipfile.ZipFile(archive).extractall(source)  # makes files of links
    stale = source / "build" / "lib" / "tokaido_env" / "removed.py"
    stale.parent.mkdir(parents=True)
    stale.touch()
    python = folder / "environment" / "bin" / "python"
    install = (
        "pip",
        "--python",
        python,
        "install",
        "--no-index",
        "--no-deps",
        "--find-links",
        dist,
    )
    for words in (
        ("venv", "--without-pip", folder / "environment"),
        ("build", "--no-isolation", "--outdir", dist, source),
        (*install, "tokaido-env"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", *words], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    return folder / "environment"


@pytest.fixture(scope="module")
def installed(environment: Path) -> Path:
    """The folder with the contents of the wheel."""
    (folder,) = environment.glob("lib/python*/site-packages")
    return folder


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


def test_wheel__has_every_file_of_the_package_and_no_other(archive: Path, installed: Path) -> None:
    with zipfile.ZipFile(archive) as source:
        tree = {
            name: source.read(name)
            for name in source.namelist()
            if name.startswith("tokaido_env/") and not name.endswith("/")
        }
    assert len(tree) > 200
    found = [path for path in (installed / "tokaido_env").rglob("*") if path.is_file()]
    files = {path.relative_to(installed).as_posix(): path.read_bytes() for path in found}
    files = {name: content for name, content in files.items() if not name.endswith(".pyc")}
    assert {*tree} ^ {*files} == set()
    assert tree == files


def test_build__fails_without_a_package_or_a_data_file(archive: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(archive) as source:
        names = [n for n in source.namelist() if n.startswith(("tokaido_env/", "setup", "py"))]
        source.extractall(tmp_path, [*names, "README.md", "LICENSE"])
    build = (sys.executable, "-c", "import setuptools.build_meta as b; b.build_wheel('dist')")
    cases = (
        ("tokaido_env/study/regret.npz", Path.unlink),
        ("tokaido_env/render", lambda path: path.rename(tmp_path / "elsewhere")),
        # As a checkout without links has it, if the package lies behind a link.
        ("tokaido_env/agents", lambda path: (shutil.rmtree(path), path.write_text("../agents"))),
    )
    for name, damage in cases:
        path = tmp_path / name
        damage(path)
        done = subprocess.run(build, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode != 0, name
        assert name in done.stderr, done.stderr
        assert not list(tmp_path.glob("dist/*.whl"))
        if path.suffix:
            path.touch()


def test_wheel__has_the_console_command(environment: Path, required: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [environment / "bin" / "tokaido", "actions"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(required), "PATH": os.environ["PATH"], "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "tile:moon" in done.stdout


def other_than_progress(text: str) -> list[str]:
    """Return the lines without those of progress, which a slow machine prints."""
    return [line for line in text.splitlines() if not re.search(r": \d+ of \d+ games", line)]


def test_evaluate__runs_without_extras(installed: Path, required: Path, tmp_path: Path) -> None:
    command = ("-m", "tokaido_env")
    match = ("evaluate", "random", "greedy", "--games", "100")
    done = run((installed, required), tmp_path, *command, *match)
    assert (done.returncode, other_than_progress(done.stderr)) == (0, [])
    assert "100 games, board shikoku, seed 0" in done.stdout
    rate = ("rate", "greedy", "--games", "10", "--opponent-count", "2")
    done = run((installed, required), tmp_path, *command, *rate)
    assert (done.returncode, other_than_progress(done.stderr)) == (0, [])
    ladder = json.loads((installed / "tokaido_env/arena/ladder.json").read_text())
    assert f"on ladder {ladder['hash']}" in done.stdout


def test_training__without_its_extra_names_the_missing_package(
    installed: Path, required: Path, tmp_path: Path
) -> None:
    done = run((installed, required), tmp_path, "-m", "tokaido_env", "train", "--run", "run")
    assert (done.returncode, done.stdout) == (1, "")
    assert "torch" in done.stderr
    assert "pip install 'tokaido-env[train]'" in done.stderr
    assert not list(tmp_path.iterdir())
