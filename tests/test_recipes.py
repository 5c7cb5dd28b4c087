"""Short runs of the programs of docs/recipes: each trains and plays its matches.

Some libraries exclude each other: `make certify-all` runs this file in several environments.
"""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tokaido_env.agents.registry import make
from tokaido_env.arena.tournament import play_match

ROOT = Path(__file__).resolve().parents[1]
RECIPES = ROOT / "docs" / "recipes"

SHORT = {
    "agilerl_dqn": ("agilerl", "--steps", "2000"),
    "jax_ppo": ("optax", "--updates", "1"),
    "rllib_ppo": ("tokaido_env.rllib", "--minutes", "0.02"),
    "skrl_ppo": ("skrl", "--steps", "20000"),
    "sb3_self_play": ("sb3_contrib", "--decisions", "1"),
    "tianshou_dqn": ("tianshou", "--decisions", "2000"),
    "torchrl_ppo": ("torchrl", "--decisions", "1"),
}


SMALL = {"GAMES": 8, "STEPS": 16, "MINIBATCH": 64, "MINIBATCH_SIZE": 64, "COLLECTED": 160}
TRACKED = {  # scripts with two tracks: the package that they need, and the class of their agent
    "agents/one_file_ppo.py": ("torch", "NetworkAgent"),
    "agents/one_file_td.py": ("torch", "ValueAgent"),
    "docs/recipes/sb3_self_play.py": ("sb3_contrib", "ModelAgent"),
    "docs/recipes/tianshou_dqn.py": ("tianshou", "TianshouAgent"),
    "docs/recipes/torchrl_ppo.py": ("torchrl", "NetworkAgent"),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of TorchRL's own classes
@pytest.mark.parametrize("script", TRACKED)
def test_script__trains_on_each_track_and_its_agent_plays_from_a_file(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package, agent = TRACKED[script]
    pytest.importorskip(package)
    torch = pytest.importorskip("torch")
    from tokaido_env.learn.budget import Budget

    monkeypatch.syspath_prepend(str((ROOT / script).parent))
    module: Any = importlib.import_module(Path(script).stem)
    for name, value in SMALL.items():
        if hasattr(module, name):
            monkeypatch.setattr(module, name, value)
    file = tmp_path / "weights.pt"
    for track, size in (("raw", 337), ("afterstates", 780)):
        budget = Budget(300, curve=tmp_path / track)
        network = module.train(budget, seed=1, track=track)
        assert 300 <= budget.decisions < 5000
        torch.save(network.state_dict(), file)
        assert any(weight.shape[-1:] == (size,) for weight in network.state_dict().values())
        player = make(f"python:{ROOT / script}:{agent},file={file}")
        assert play_match(player, make("random"), 8, 0).results.size == 8
        *_, last = sorted((tmp_path / track).iterdir())
        assert int(last.name.partition("-")[0]) == budget.decisions


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
