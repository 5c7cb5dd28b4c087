"""The examples of agents/, run by the commands of their README, and sizes in the docs."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "agents" / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"`((?:tokaido|python|cc) .*?)`", README)
PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
LIMITS = {"--games": 10, "--steps": 64, "--decisions": 1}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder like the root of a checkout, where commands may write files."""
    shutil.copytree(ROOT / "agents", tmp_path / "agents")
    return tmp_path


def run(folder: Path, example: str, *more: str, **environment: str) -> str:
    """Run the README's commands of an example with few games, in turn; return their output."""
    printed = ""
    for command in [command for command in COMMANDS if example in command]:
        words = shlex.split(command)
        for at, word in enumerate(words[:-1]):
            if word in LIMITS:
                words[at + 1] = str(min(int(words[at + 1]), LIMITS[word]))
        if words[0] == "tokaido":
            words += ["--executor", "serial"]
        if words[0] != "cc":
            words[:1] = [sys.executable, *(["-m", "tokaido_env"] if words[0] == "tokaido" else [])]
        done = subprocess.run(
            [*words, *more],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(ROOT), "PATH": PATH} | environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        printed += done.stdout + done.stderr
    assert printed
    assert "forfeit" not in printed
    return printed


def test_readme__lists_every_example() -> None:
    files = {path.name for path in (ROOT / "agents").iterdir() if path.is_file()}
    assert {*re.findall(r"`([\w-]+\.(?:py|pl|c|toml))`", README), "README.md"} == files


needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
needs_perl = pytest.mark.skipif(shutil.which("perl") is None, reason="needs Perl")


@pytest.mark.parametrize(
    ("example", "package", "printed"),
    [
        ("temple_bot", "numpy", r" 1 +\S+:TempleBot +10 "),  # ahead of `random`
        pytest.param("simple_players", "numpy", r":Decliner .* 0\.0% ", marks=pytest.mark.slow),
        pytest.param("engine", "numpy", r" 1 +exec:\./engine +10 ", marks=needs_cc),
        pytest.param("trader", "numpy", r" 1 +exec:perl agents/trader\.pl +10 ", marks=needs_perl),
        pytest.param("sb3_agent", "sb3_contrib", "SB3Agent", marks=pytest.mark.slow),
        pytest.param("one_file_ppo", "torch", "against greedy: ", marks=pytest.mark.slow),
    ],
)
def test_example__plays(example: str, package: str, printed: str, folder: Path) -> None:
    pytest.importorskip(package)
    more = ("--games", "8") if example == "one_file_ppo" else ()
    assert re.search(printed, run(folder, example, *more))
