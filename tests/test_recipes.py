"""Short runs of the programs of docs/recipes: each trains and plays its matches.

Some libraries exclude each other: `make certify-all` runs this file in several environments.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

RECIPES = Path(__file__).resolve().parents[1] / "docs" / "recipes"

SHORT = {
    "agilerl_dqn": ("agilerl", "--steps", "2000"),
    "jax_ppo": ("optax", "--updates", "1"),
    "rllib_ppo": ("tokaido_env.rllib", "--minutes", "0.02"),
    "skrl_ppo": ("skrl", "--steps", "20000"),
    "sb3_self_play": ("sb3_contrib", "--decisions", "1"),
    "tianshou_dqn": ("tianshou", "--decisions", "2000"),
    "torchrl_ppo": ("torchrl", "--decisions", "1"),
}


def test_recipes__are_all_run() -> None:
    assert {path.stem for path in RECIPES.glob("*.py")} == set(SHORT)


@pytest.mark.slow
@pytest.mark.parametrize("name", SHORT)
def test_recipe__trains_and_plays(name: str, tmp_path: Path) -> None:
    package, *short = SHORT[name]
    pytest.importorskip(package, exc_type=ImportError)
    command = [sys.executable, str(RECIPES / f"{name}.py"), *short, "--games", "8"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(RECIPES.parents[1])},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    share = r"\d+\.\d%"
    assert re.search(rf"^against greedy: {share} \({share} - {share}", done.stdout, re.MULTILINE)
    assert not list(tmp_path.iterdir()), "a recipe leaves files behind"
