"""docs/agents.md: its agents are written to files as a reader would, and measured."""

import re
from pathlib import Path

import numpy as np
import pytest

from tokaido_env.__main__ import main

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "agents.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
COMMANDS = re.findall(r"^tokaido evaluate (.*)$", PAGE, re.MULTILINE)

Output = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def measured(name: str, command: str, capsys: Output) -> str:
    """Run a command of the page with few games; return what it printed."""
    (example,) = (code for code in EXAMPLES if name in code)
    module = "my_torch" if name == "torch.nn" else "my_sb3"
    Path(f"{module}.py").write_text(example, encoding="utf-8")
    words = command.replace("--games 1000", "--games 4").split()
    assert main(["evaluate", *words, "--memory", "8192"]) == 0
    shown = capsys.readouterr()
    assert "forfeit" not in shown.out + shown.err
    return shown.out


def test_a_network_of_pytorch_is_measured(folder: Path, capsys: Output) -> None:
    torch = pytest.importorskip("torch")
    layers = (torch.nn.Linear(337, 64), torch.nn.ReLU(), torch.nn.Linear(64, 49))
    torch.save(torch.nn.Sequential(*layers).state_dict(), "weights.pt")
    assert "python:my_torch:Mine" in measured("torch.nn", COMMANDS[0], capsys)


@pytest.mark.slow
def test_a_model_of_stable_baselines3_is_measured(folder: Path, capsys: Output) -> None:
    contrib = pytest.importorskip("sb3_contrib")
    from tokaido_env.sb3 import TokaidoVecEnv

    env = TokaidoVecEnv(2, ["random"], seed=0)
    contrib.MaskablePPO("MlpPolicy", env, n_steps=8, batch_size=16, device="cpu").save("model.zip")
    assert " Mine " in measured("MaskablePPO", COMMANDS[1], capsys)


def test_games_are_played_by_asking_an_agent(capsys: Output) -> None:
    (example,) = (code for code in EXAMPLES if "agent.choose" in code)
    exec(compile(example, "agents.md", "exec"), {})
    assert capsys.readouterr().out.count("total") == 2


def test_sizes_of_the_page_are_those_of_games() -> None:
    from tokaido_env import Game

    for name, array in (("observation", Game(seed=0).observation()), ("mask", Game(seed=0).mask())):
        told = rf"`game\.{name}\(\)` \| {array.dtype} \({len(array)},\)"
        assert re.search(told, PAGE), name
    assert np.flatnonzero(Game(seed=0).mask()).tolist() == Game(seed=0).legal_actions()
