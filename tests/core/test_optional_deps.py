"""Tests of the errors for optional packages that are not installed."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from processes import ROOT, run_script

from tokaido_env.core import optional_deps
from tokaido_env.core.optional_deps import ExtraError, extra_error, install_command, require_extra

ADAPTERS = {
    "tokaido_env.sb3": ("stable_baselines3", "train"),
    "tokaido_env.openspiel": ("pyspiel", "openspiel"),
    "tokaido_env.rllib": ("ray", "rllib"),
    "tokaido_env.torchrl": ("torchrl", "torchrl"),
    "tokaido_env.web.widget": ("anywidget", "notebooks"),
}


def test_install_command__installs_the_checkout_or_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert install_command("policies") == "pip install '.[policies]'"
    monkeypatch.chdir(tmp_path)
    assert install_command("policies") == f"pip install '.[policies]' in {ROOT}"
    monkeypatch.setattr(optional_deps, "_ROOT", tmp_path)
    assert install_command("policies") == "pip install 'tokaido-env[policies]'"


def test_require_extra__names_the_first_missing_package() -> None:
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


def test_adapters__name_the_extra_of_a_missing_library() -> None:
    cases = [(module, library) for module, (library, _) in ADAPTERS.items()]
    lines = run_script(WITHOUT_LIBRARIES.replace("CASES", repr(cases))).splitlines()
    for line, (library, extra) in zip(lines, ADAPTERS.values(), strict=True):
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


@pytest.mark.skipif(find_spec("sb3_contrib") is None, reason="needs the other libraries")
def test_train__names_missing_libraries_before_it_begins(tmp_path: Path) -> None:
    cases = [("td", "tensorboard"), ("td", "torch"), ("alphazero", "torch")]
    run = repr(str(tmp_path / "run"))
    output = run_script(TRAIN.replace("CASES", repr(cases)).replace("RUN", run))
    assert output == "".join(
        f"train: training needs {library}: pip install '.[train]'\n1\n" for _, library in cases
    )
    assert not list(tmp_path.iterdir())
