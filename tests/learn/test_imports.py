"""What the files of the room load: settings no PyTorch, a network no trainer."""

import subprocess
import sys

import pytest

TRAINERS = "stable_baselines3 sb3_contrib"


@pytest.mark.parametrize(
    ("modules", "libraries"),
    [
        ("settings pool rating tune", f"torch {TRAINERS}"),
        ("network checkpoint expert", TRAINERS),
    ],
)
def test_a_module_loads_no_more_than_it_needs(modules: str, libraries: str) -> None:
    lines = [f"import tokaido_env.agents.learn.{module}" for module in modules.split()]
    found = f"print([name for name in {libraries.split()} if name in sys.modules])"
    script = "\n".join(["import sys", *lines, found])
    shown = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert shown.stdout.strip() == "[]"
