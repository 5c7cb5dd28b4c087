"""Short runs of the programs of docs/recipes: each trains and plays its matches, or has a test.

Some libraries exclude each other: `make certify-all` runs this file in several environments.
"""

import importlib
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from networks import ROUNDING, decisions, random_policy
from prompt_reader import reads_and_answers

from tokaido_env import Batch, Game
from tokaido_env.__main__ import main
from tokaido_env.agents.inference import AFTERSTATE_LOGIT
from tokaido_env.agents.policy import LayerSizes, Policy
from tokaido_env.agents.registry import make
from tokaido_env.arena.tournament import play_match
from tokaido_env.core.observation import N_FEATURES
from tokaido_env.features.afterstate_observation import N_OBSERVED
from tokaido_env.features.geometry_features import N_GEOMETRY
from tokaido_env.features.network_inputs import N_INPUTS
from tokaido_env.observers import masks, observe
from tokaido_env.text import TextFormat

ROOT = Path(__file__).resolve().parents[1]
RECIPES = ROOT / "docs" / "recipes"

SHORT = {
    "agilerl_dqn": ("agilerl", "--steps", "2000"),
    "jax_ppo": ("optax", "--updates", "1"),
    "pufferlib_ppo": ("pufferlib", "--decisions", "1"),
    "rllib_ppo": ("tokaido_env.rllib", "--minutes", "0.02"),
    "skrl_ppo": ("skrl", "--steps", "20000"),
    "sb3_self_play": ("sb3_contrib", "--decisions", "1"),
    "tianshou_dqn": ("tianshou", "--decisions", "2000"),
    "torchrl_ppo": ("torchrl", "--decisions", "1"),
}


def recipe_of(name: str) -> Any:
    """Import a recipe."""
    spec = importlib.util.spec_from_file_location(name, RECIPES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    recipe = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(recipe)
    return recipe


SMALL = {"GAMES": 8, "STEPS": 16, "MINIBATCH": 64, "MINIBATCH_SIZE": 64, "COLLECTED": 160}
TRACKED = {  # scripts with tracks: the package that they need, their agent and inputs
    "agents/one_file_ppo.py": ("torch", "NetworkAgent", N_OBSERVED),
    "agents/one_file_td.py": ("torch", "ValueAgent", N_INPUTS),
    "docs/recipes/sb3_self_play.py": ("sb3_contrib", "ModelAgent", N_OBSERVED),
    "docs/recipes/tianshou_dqn.py": ("tianshou", "TianshouAgent", N_OBSERVED),
    "docs/recipes/torchrl_ppo.py": ("torchrl", "NetworkAgent", N_OBSERVED),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of TorchRL's own classes
@pytest.mark.parametrize("script", TRACKED)
def test_script__trains_on_each_track_and_its_agent_plays_from_a_file(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package, agent, inputs = TRACKED[script]
    pytest.importorskip(package)
    torch = pytest.importorskip("torch")
    from tokaido_env.learn.training_script import Budget

    monkeypatch.syspath_prepend(str((ROOT / script).parent))
    module: Any = importlib.import_module(Path(script).stem)
    for name, value in SMALL.items():
        if hasattr(module, name):
            monkeypatch.setattr(module, name, value)
    file = tmp_path / "weights.pt"
    few: Any = {}
    if script == "agents/one_file_td.py":
        few["settings"] = module.Settings(games_per_update=8)
    tracks = {"raw": N_FEATURES, "geometry": N_GEOMETRY, "afterstates": inputs}
    for track in module.TRACKS:
        budget = Budget(300, curve=tmp_path / track)
        network = module.train(budget, seed=1, track=track, **few)
        assert 300 <= budget.decisions < 5000
        torch.save(network.state_dict(), file)
        assert any(
            weight.shape[-1:] == (tracks[track],) for weight in network.state_dict().values()
        )
        player = make(f"python:{ROOT / script}:{agent},file={file}")
        assert play_match(player, make("random"), 8, 0).results.size == 8
        *_, last = sorted((tmp_path / track).iterdir())
        assert int(last.name.partition("-")[0]) == budget.decisions


def test_recipes__are_all_run() -> None:
    assert {path.stem for path in RECIPES.glob("*.py")} == {
        *SHORT,
        *("imitation", "kaggle_harness", "minari_dataset", "onnx_policy", "textarena_env"),
    }


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


@pytest.mark.slow
def test_pufferlib_ppo__advantages_are_those_from_one_players_view() -> None:
    """With all rewards and values for `player_0` no sign changes, and GAE is that of one player."""
    pytest.importorskip("pufferlib")
    torch = pytest.importorskip("torch")
    games, steps, decay, rng = 6, 900, 0.95, np.random.default_rng(0)
    env, twin = recipe_of("pufferlib_ppo").SelfPlay(games), Batch(games, observation=None)
    env.reset(seed=3)
    twin.reset(seed=3)
    stored = np.zeros((3, games, steps), np.float32)  # values, rewards, terminals
    sign, reward, ends = np.zeros((3, games, steps), np.float32)
    stored[0] = rng.uniform(-1, 1, (games, steps))
    for t in range(steps):
        stored[1:, :, t] = env.rewards, env.terminals
        sign[:, t] = 1 - 2 * twin.states["player"]
        mask = env.observations[:, -49:]
        actions = (rng.random(mask.shape) * mask).argmax(axis=1)
        env.step(actions.astype(np.int32))
        step = twin.step(actions)
        reward[:, t], ends[:, t] = step.reward[:, 0], step.next_player < 0
    assert ends.sum() > games < abs(reward).sum()
    assert set(np.unique(stored[2])) == {0, 1, 2}
    arrays = *stored, np.ones_like(sign), np.zeros_like(sign)
    tensors = [torch.from_numpy(each) for each in arrays]
    torch.ops.pufferlib.compute_puff_advantage(*tensors, 1.0, decay, 1.0, 1.0)
    value, later, expected = sign * stored[0], np.zeros(games), np.zeros_like(sign)
    for t in reversed(range(steps - 1)):
        goes_on = 1 - ends[:, t]
        delta = reward[:, t] + goes_on * value[:, t + 1] - value[:, t]
        later = delta + decay * goes_on * later
        expected[:, t] = sign[:, t] * later
    np.testing.assert_allclose(tensors[-1].numpy(), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("observation", "inputs"), [("float32", N_FEATURES), ("afterstates", N_OBSERVED)]
)
def test_imitation__reads_what_its_agent_sees_in_play(
    observation: str, inputs: int, tmp_path: Path
) -> None:
    """An untrained network chooses in the exported rows as it did in the recorded games."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("pyarrow")
    games, table, file = (str(tmp_path / name) for name in ("g.jsonl", "t.parquet", "w.pt"))
    recipe = recipe_of("imitation")
    network = recipe.Network(inputs)
    torch.save(network.state_dict(), file)
    player = f"me=python:{RECIPES / 'imitation.py'}:ImitationAgent,file={file}"
    assert main(["evaluate", player, "random", "--games", "10", "--records", games]) == 0
    assert main(["export", games, table, "--observation", observation]) == 0
    seen, action, is_held_out = recipe.read(table, "me")
    assert 0 < is_held_out.sum() < len(action) / 2
    assert (network(*seen).argmax(1) == action).all()
    recipe.train(table, "me", epochs=1, seed=1)


# A trained policy elsewhere


@pytest.fixture(scope="module")
def value_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A policy file."""
    path = tmp_path_factory.mktemp("policies") / "best"
    random_policy(LayerSizes(32, 8)).save(path)
    return str(path)


def assert_scores_are_the_policys(scores: npt.NDArray[Any], file: str, positions: Any) -> None:
    """Compare with `policy:FILE`, which rounds its first layer to 16 bits."""
    logits, _ = Policy.load(file).evaluate(*positions)
    legal = masks(positions[2])
    assert (np.isfinite(scores) == legal).all()
    difference = np.abs(scores[legal] - logits[legal] / AFTERSTATE_LOGIT)
    assert difference.max() < ROUNDING
    assert np.ptp(scores[legal]) > 100 * ROUNDING


def test_numpy_agent_of_the_page__has_the_values_of_the_policy(value_file: str) -> None:
    page = RECIPES.parent / "how-to" / "use-a-policy-elsewhere.md"
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(code, str(page), "exec"), names)
    positions = decisions()
    agent = names["NumpyAgent"](value_file)
    assert_scores_are_the_policys(agent.scores(*positions), value_file, positions)
    keys = np.zeros(len(positions[2]), np.uint64)
    assert masks(positions[2])[np.arange(len(keys)), agent.act(*positions, keys)].all()


# PyTorch's exporter uses a function that PyTorch deprecates.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning")
def test_onnx_policy__plays_as_the_exported_network(value_file: str, tmp_path: Path) -> None:
    for package in ("onnxruntime", "onnxscript", "sb3_contrib"):
        pytest.importorskip(package)
    from sb3_contrib import MaskablePPO

    from tokaido_env.sb3 import TokaidoVecEnv

    recipe = recipe_of("onnx_policy")
    positions, exported = decisions(), str(tmp_path / "network.onnx")
    recipe.export(value_file, exported)
    scores = recipe.ValueAgent(exported).scores(*positions)
    assert_scores_are_the_policys(scores, value_file, positions)

    model = MaskablePPO("MlpPolicy", TokaidoVecEnv(2, "random", 0), device="cpu")
    model.save(tmp_path / "model.zip")
    recipe.export(str(tmp_path / "model.zip"), exported)
    boards, states, legal = positions
    expected, _ = model.predict(
        observe(boards, states), action_masks=masks(legal), deterministic=True
    )
    keys = np.zeros(len(legal), np.uint64)
    assert (recipe.PolicyAgent(exported).act(*positions, keys) == expected).all()


# Datasets


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")  # of a missing author and link
def test_minari_dataset__has_the_episodes_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("minari")
    pytest.importorskip("h5py")
    gymnasium = pytest.importorskip("gymnasium")
    from tokaido_env.record import load

    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    file = tmp_path / "games.jsonl"
    assert main(["evaluate", "random", "greedy", "--games", "4", "--records", str(file)]) == 0
    records = load(file)
    dataset = recipe_of("minari_dataset").write(file, "tokaido/random-v0")
    assert dataset.total_episodes == 2 * len(records) == 8
    assert dataset.recover_environment().spec.kwargs == {"board": "shikoku"}
    family = ["--board", "family:train/3", "--records", str(tmp_path / "family.jsonl")]
    assert main(["evaluate", "random", "greedy", "--games", "8", *family]) == 0
    several = recipe_of("minari_dataset").write(tmp_path / "family.jsonl", "tokaido/family-v0")
    assert several.total_episodes == 16
    assert several.spec.env_spec is None
    played = 0
    for episode in dataset:
        seat, record = episode.infos["seat"][0], records[episode.infos["game"][0] - 1]
        if record.players[seat] != "random":
            continue
        env = gymnasium.make("TokaidoDuo-v0", opponent="greedy", seat=int(seat))
        seen, info = env.reset(seed=record.seed)
        for t, action in enumerate(episode.actions.tolist()):
            assert np.array_equal(episode.observations[t], seen)
            assert np.array_equal(episode.infos["action_mask"][t], info["action_mask"])
            seen, *step, info = env.step(action)
            assert step == [episode.rewards[t], episode.terminations[t], episode.truncations[t]]
        assert np.array_equal(episode.observations[-1], seen)
        assert not episode.infos["action_mask"][-1].any()
        played += 1
    assert played == len(records)


# A harness of language models


def test_kaggle_harness__plays_a_game_by_its_three_functions() -> None:
    """Without Kaggle's package: as its loop calls them, with a refused answer at first."""
    harness = recipe_of("kaggle_harness").TextHarness(TextFormat(retries=1))
    game, moves, wrong = Game(seed=4), ([], []), '{"action": "fly"}'  # type: tuple[Game, Any, str]
    assert harness.get_legal_moves({}) == {}
    while game.player is not None:
        seat, previous = game.player, ()  # type: tuple[int, Any]
        seen = {"observationString": json.dumps(game.to_dict()), "playerId": seat}
        assert harness.get_legal_moves(seen | {"playerId": 1 - seat}) == {}
        legal = harness.get_legal_moves(seen)
        assert legal == dict(zip(game.legal_actions(), game.legal_labels(), strict=True))
        if not moves[seat]:
            parsed = harness.parse_response(wrong, list(legal.values()), observation=seen)
            assert parsed == (None, "fly", None, wrong)
            previous = wrong, parsed.raw_action
        prompt = harness.make_prompt(seen, moves[seat], *previous)
        assert ("fly is no legal action here" in prompt) == bool(previous)
        last = f"Your last moves: {', '.join(moves[seat][-12:])}\n"
        assert prompt.startswith(last if moves[seat] else "Tokaido Duo, for two")
        answer = reads_and_answers(prompt)
        parsed = harness.parse_response(answer, list(legal.values()), observation=seen)
        assert parsed.legal_action is not None
        assert parsed.thoughts == answer
        moves[seat].append(parsed.legal_action)
        game.play(parsed.legal_action)
    assert game.is_over
    assert harness.get_legal_moves({"observationString": json.dumps(game.to_dict())}) == {}
