"""What is missing without an extra is told alike, with the command that installs it."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tokaido_env.core import extras
from tokaido_env.core.extras import ExtraError, how_to_install, missing, require

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
    "optional-dependencies"
]
ADAPTERS = {
    "tokaido_env.sb3": ("stable_baselines3", "train"),
    "tokaido_env.openspiel": ("pyspiel", "openspiel"),
    "tokaido_env.rllib": ("ray", "rllib"),
    "tokaido_env.web.widget": ("anywidget", "notebooks"),
}


def test_the_command_is_that_of_the_checkout_or_of_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert how_to_install("policies") == "pip install '.[policies]'"
    monkeypatch.chdir(tmp_path)
    assert how_to_install("policies") == f"pip install '.[policies]' in {ROOT}"
    monkeypatch.setattr(extras, "_ROOT", tmp_path)
    assert how_to_install("policies") == "pip install 'tokaido-env[policies]'"


def test_the_first_that_is_missing_is_named() -> None:
    require("a test needs", "dev", "json", "pytest")
    with pytest.raises(ExtraError, match=r"^a test needs no_such_module: pip install") as error:
        require("a test needs", "dev", "json", "no_such_module", "neither_this")
    assert error.value.name == "no_such_module"
    assert "figures need plots: " in str(missing("figures need", None, "plots"))


@pytest.mark.parametrize("module", ADAPTERS)
def test_an_adapter_without_its_library_says_what_to_install(module: str) -> None:
    library, extra = ADAPTERS[module]
    asked = f"import sys; sys.modules[{library!r}] = None; import {module}"
    done = subprocess.run([sys.executable, "-c", asked], cwd=ROOT, capture_output=True, text=True)
    last = done.stderr.splitlines()[-1]
    assert last.startswith("tokaido_env.core.extras.ExtraError: ")
    assert re.search(rf"needs? {library}: pip install '\.\[{extra}\]'$", last)


@pytest.mark.parametrize("method", ["ppo", "scale", "zero"])
@pytest.mark.parametrize("library", ["torch", "stable_baselines3", "rich"])
def test_training_asks_for_all_that_it_needs_before_it_begins(
    method: str, library: str, tmp_path: Path
) -> None:
    if method != "ppo" and library != "torch":
        pytest.skip("it needs PyTorch alone")
    if library != "torch":
        pytest.importorskip("torch")  # asked for first
    run = ["train", "--method", method, "--run", str(tmp_path / "run")]
    asked = f"import sys; sys.modules[{library!r}] = None\n"
    asked += f"from tokaido_env.__main__ import main; sys.exit(main({run!r}))"
    done = subprocess.run([sys.executable, "-c", asked], cwd=ROOT, capture_output=True, text=True)
    told = f"train: training needs {library}: pip install '.[train]'\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", told)
    assert not list(tmp_path.iterdir())


def test_every_extra_that_a_message_names_is_there() -> None:
    """No message spells the command itself: it would be wrong in a checkout, or elsewhere."""
    folders = (ROOT / "tokaido_env", ROOT / "agents")
    files = [path for folder in folders for path in folder.rglob("*.py")]
    named = set()
    for path in files:
        text = path.read_text(encoding="utf-8")
        assert "tokaido-env[" not in text, path
        calls = re.findall(r'missing\("[^"]*", [\w.]+, "(\w+)"\)', text)
        named |= {*calls, *re.findall(r'require\("[^"]*", "(\w+)"', text)}
    assert named <= EXTRAS.keys()
    assert len(named) > 6
