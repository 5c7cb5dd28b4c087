"""What is missing without an extra is told alike, with the command that installs it."""

import re
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest
from processes import ROOT, run_script

from tokaido_env.core import optional_deps
from tokaido_env.core.optional_deps import ExtraError, extra_error, install_command, require_extra

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
    "optional-dependencies"
]
ADAPTERS = {
    "tokaido_env.sb3": ("stable_baselines3", "train"),
    "tokaido_env.openspiel": ("pyspiel", "openspiel"),
    "tokaido_env.rllib": ("ray", "rllib"),
    "tokaido_env.torchrl": ("torchrl", "torchrl"),
    "tokaido_env.textarena": ("textarena", "textarena"),
    "tokaido_env.web.widget": ("anywidget", "notebooks"),
}


def test_the_command_is_that_of_the_checkout_or_of_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert install_command("policies") == "pip install '.[policies]'"
    monkeypatch.chdir(tmp_path)
    assert install_command("policies") == f"pip install '.[policies]' in {ROOT}"
    monkeypatch.setattr(optional_deps, "_ROOT", tmp_path)
    assert install_command("policies") == "pip install 'tokaido-env[policies]'"


def test_the_first_that_is_missing_is_named() -> None:
    require_extra("a test needs", "dev", "json", "pytest")
    with pytest.raises(ExtraError, match=r"^a test needs no_such_module: pip install") as error:
        require_extra("a test needs", "dev", "json", "no_such_module", "neither_this")
    assert error.value.name == "no_such_module"
    assert "figures need plots: " in str(extra_error("figures need", None, "plots"))


WITHOUT_LIBRARIES = """
import importlib, sys
for module, library in CASES:
    sys.modules[library] = None
    try:
        importlib.import_module(module)
    except Exception as error:
        print(type(error).__name__, error)
"""


def test_an_adapter_without_its_library_says_what_to_install() -> None:
    cases = [(module, library) for module, (library, _) in ADAPTERS.items()]
    told = run_script(WITHOUT_LIBRARIES.replace("CASES", repr(cases))).splitlines()
    for line, (library, extra) in zip(told, ADAPTERS.values(), strict=True):
        command = rf"pip install '\.\[{extra}\]'"
        assert re.fullmatch(rf"ExtraError .* needs? {library}: {command}", line)


TRAIN = """
import sys
sys.stderr = sys.stdout
for method, library in CASES:
    sys.modules[library] = None
    from tokaido_env.__main__ import main
    print(main(["train", "--method", method, "--run", RUN]))
    del sys.modules[library]
"""


@pytest.mark.skipif(find_spec("sb3_contrib") is None, reason="libraries are asked for in order")
def test_training_asks_for_all_that_it_needs_before_it_begins(tmp_path: Path) -> None:
    cases = [("ppo", name) for name in ("rich", "stable_baselines3", "torch")]
    cases += [("selfplay", "torch"), ("alphazero", "torch")]
    run = repr(str(tmp_path / "run"))
    told = run_script(TRAIN.replace("CASES", repr(cases)).replace("RUN", run))
    assert told == "".join(
        f"train: training needs {library}: pip install '.[train]'\n1\n" for _, library in cases
    )
    assert not list(tmp_path.iterdir())


def test_every_extra_that_a_message_names_is_there() -> None:
    """No message spells the command itself: it would be wrong in a checkout, or elsewhere."""
    files = (ROOT / "tokaido_env").rglob("*.py")
    named = set()
    for path in files:
        text = path.read_text(encoding="utf-8")
        assert "tokaido-env[" not in text, path
        calls = re.findall(r'extra_error\("[^"]*", [\w.]+, "(\w+)"\)', text)
        named |= {*calls, *re.findall(r'require_extra\("[^"]*", "(\w+)"', text)}
    assert named <= EXTRAS.keys()
    assert len(named) > 6
