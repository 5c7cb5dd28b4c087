"""Agents: spec strings that teach, policy files that hold numbers only, and fair randomness."""

import json
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from safetensors import safe_open
from safetensors.numpy import save_file

from tokaido_env import FEATURES
from tokaido_env.actions import N_ACTIONS
from tokaido_env.agents import Agent, AgentError, Policy, PolicyError, describe, make
from tokaido_env.agents.policy import PolicyAgent
from tokaido_env.batch import Batch
from tokaido_env.observation import N_FEATURES

ROOT = Path(__file__).resolve().parents[1]
WIDTH = 16
ALL_FEATURES = tuple((feature.name, feature.size) for feature in FEATURES)

Floats = npt.NDArray[np.float32]


def network(inputs: int, outputs: int, seed: int) -> torch.nn.Sequential:
    torch.manual_seed(seed)
    return torch.nn.Sequential(
        *(torch.nn.Linear(inputs, WIDTH), torch.nn.Tanh()),
        *(torch.nn.Linear(WIDTH, WIDTH), torch.nn.Tanh()),
        torch.nn.Linear(WIDTH, outputs),
    )


def layers(modules: torch.nn.Sequential) -> list[tuple[Floats, Floats]]:
    linear = [module for module in modules if isinstance(module, torch.nn.Linear)]
    return [(m.weight.detach().numpy(), m.bias.detach().numpy()) for m in linear]


def a_policy(features: tuple[tuple[str, int], ...] = ALL_FEATURES) -> Policy:
    width = sum(size for _, size in features)
    return Policy(layers(network(width, N_ACTIONS, 1)), layers(network(width, 1, 2)), features)


def some_games(n: int = 64, decisions: int = 60) -> Batch:
    """Games in different rounds, each waiting for a decision."""
    batch, random = Batch(n), make("random")
    batch.reset(seed=0)
    for i in range(decisions):
        batch.decide(random, np.arange(i * n // decisions, n))
    return batch


def observations(batch: Batch) -> Floats:
    return batch.observe(np.arange(len(batch)), batch.players)


def choices(agent: Agent, batch: Batch) -> list[int]:
    keys = batch.keys(np.arange(len(batch)))
    return agent.act(batch.boards, batch.states, batch.legal, keys).tolist()


@pytest.fixture
def policy_file(tmp_path: Path) -> Path:
    a_policy().save(tmp_path / "policy")
    return tmp_path / "policy"


# Spec strings


@pytest.mark.parametrize("spec", ["random", "greedy"])
def test_a_spec_makes_an_agent_that_tells_it(spec: str) -> None:
    assert make(spec).spec == spec


@pytest.mark.parametrize(
    ("parameters", "temperature"),
    [("", 0.0), (",temperature=0.5", 0.5), (",temperature=1", 1.0), (",temperature=10", 10.0)],
)
def test_the_spec_of_a_policy(policy_file: Path, parameters: str, temperature: float) -> None:
    agent = make(f"policy:{policy_file}{parameters}")
    assert isinstance(agent, PolicyAgent)
    assert (agent.spec, agent.temperature) == (f"policy:{policy_file}{parameters}", temperature)
    by_name = make(f"policy:path={policy_file}{parameters}")
    assert choices(by_name, some_games()) == choices(agent, some_games())


def test_the_spec_of_a_policy_makes_it_again(policy_file: Path) -> None:
    agent = make(f"policy:{policy_file},temperature=0.123456789")
    again = make(agent.spec)
    assert isinstance(agent, PolicyAgent)
    assert isinstance(again, PolicyAgent)
    assert again.temperature == agent.temperature


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("nobody", "unknown agent 'nobody': expected one of random, greedy[:epsilon=E], heur"),
        ("", "unknown agent '': expected one of random"),
        ("Greedy", "unknown agent 'Greedy'"),
        ("random:1", "agent 'random:1': cannot read '1': expected random"),
        ("greedy:depth=2", "agent 'greedy:depth=2': cannot read 'depth=2': expected greedy"),
        ("policy", "expected policy:PATH"),
        ("policy:", "expected policy:PATH"),
        ("policy:temperature=1", "expected policy:PATH"),
        ("policy:nowhere", "nowhere: no such policy file"),
        ("policy:x,heat=1", "agent 'policy:x,heat=1': cannot read 'heat=1': expected policy:PATH"),
        ("policy:x,1", "agent 'policy:x,1': cannot read '1': expected policy:PATH"),
        ("policy:x,path=y", "cannot read 'path=y'"),
        ("policy:x,temperature=warm", "temperature: expected a number from 0 to 10, got 'warm'"),
        ("policy:x,temperature=-1", "temperature: expected a number from 0 to 10, got '-1'"),
        ("policy:x,temperature=11", "temperature: expected a number from 0 to 10, got '11'"),
        ("policy:x,temperature=nan", "temperature: expected a number from 0 to 10, got 'nan'"),
    ],
)
def test_a_wrong_spec_is_refused_with_what_would_do(spec: str, message: str) -> None:
    with pytest.raises(AgentError) as error:
        make(spec)
    assert message in str(error.value)


def test_every_kind_is_described() -> None:
    kinds = [re.split(r"[:\[]", usage)[0] for usage, _ in describe()]
    assert kinds == ["random", "greedy", "heuristic", "expectimax", "mcts", "policy", "python"]
    assert all(meaning for _, meaning in describe())


# Every agent


@pytest.mark.parametrize(
    "spec",
    [
        *("random", "greedy", "greedy:epsilon=0.5", "heuristic", "expectimax:depth=1"),
        *("mcts:sims=9", "policy", "policy,temperature=1"),
    ],
)
def test_an_agent_plays_legal_actions_that_follow_from_key_and_position_alone(
    policy_file: Path, spec: str
) -> None:
    agent = make(spec.replace("policy", f"policy:{policy_file}"))
    batch = some_games()
    before = batch.states.copy()
    chosen = np.array(choices(agent, batch))
    assert all(int(batch.legal[i]) >> int(action) & 1 for i, action in enumerate(chosen))
    assert (batch.states == before).all()
    order = np.random.default_rng(0).permutation(len(batch))[:40]
    again = agent.act(batch.boards, batch.states[order], batch.legal[order], batch.keys(order))
    assert again.tolist() == chosen[order].tolist()


# Policies: the network


def test_a_policy_computes_what_torch_computes() -> None:
    actor, critic = network(N_FEATURES, N_ACTIONS, 1), network(N_FEATURES, 1, 2)
    policy = Policy(layers(actor), layers(critic))
    seen = observations(some_games())
    with torch.no_grad():
        logits, values = actor(torch.tensor(seen)), critic(torch.tensor(seen))[:, 0]
    np.testing.assert_allclose(policy.logits(seen), logits.numpy(), atol=1e-5)
    np.testing.assert_allclose(policy.values(seen), values.numpy(), atol=1e-5)


def test_temperature_zero_takes_the_likeliest_legal_action() -> None:
    policy, batch = a_policy(), some_games()
    logits = policy.logits(observations(batch))
    legal = batch.masks(np.arange(len(batch)))
    expected = np.where(legal, logits, -np.inf).argmax(axis=1)
    assert choices(PolicyAgent.of(policy, "p"), batch) == expected.tolist()


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_temperature_samples_from_the_softmax(temperature: float) -> None:
    """A network whose logits are its last biases, whatever it sees."""
    biases = np.linspace(-2, 2, N_ACTIONS, dtype=np.float32)
    constant = [(np.zeros((N_ACTIONS, N_FEATURES), np.float32), biases)]
    agent = PolicyAgent.of(Policy(constant, constant), "p", temperature)
    batch, n = Batch(1), 40_000
    batch.reset(seed=3)
    keys = np.random.default_rng(0).integers(2**64, size=n, dtype=np.uint64)
    legal = np.flatnonzero(batch.masks(np.arange(1))[0])
    actions = agent.act(batch.boards, batch.states.repeat(n), batch.legal.repeat(n), keys)
    weights = np.exp(biases[legal].astype(float) / temperature)
    p = weights / weights.sum()
    counts = np.bincount(actions, minlength=N_ACTIONS)
    assert counts.sum() == counts[legal].sum()
    assert (np.abs(counts[legal] - n * p) < 4.5 * np.sqrt(n * p * (1 - p))).all()


# Policies: features


@pytest.mark.parametrize(
    "features",
    [
        ALL_FEATURES[:-3],  # some were appended since
        ALL_FEATURES[5:20],
        ALL_FEATURES[::-1],  # all, in another order
        (ALL_FEATURES[40], ALL_FEATURES[2]),
    ],
)
def test_a_policy_reads_its_own_features_by_name(
    tmp_path: Path, features: tuple[tuple[str, int], ...]
) -> None:
    policy = a_policy(features)
    policy.save(tmp_path / "policy")
    slices = {feature.name: feature.slice for feature in FEATURES}
    seen = observations(some_games())
    read = np.concatenate([seen[:, slices[name]] for name, _ in features], axis=1)
    x = read
    for weight, bias in policy.policy[:-1]:
        x = np.tanh(x @ weight.T + bias)
    weight, bias = policy.policy[-1]
    loaded = Policy.load(tmp_path / "policy")
    np.testing.assert_allclose(loaded.logits(seen), x @ weight.T + bias, atol=1e-5)


# Policies: files


def test_a_policy_comes_back_from_its_file(tmp_path: Path) -> None:
    policy = a_policy(ALL_FEATURES[:30])
    policy.save(tmp_path / "policy")
    loaded = Policy.load(tmp_path / "policy")
    assert loaded.features == policy.features
    for saved, read in ((policy.policy, loaded.policy), (policy.value, loaded.value)):
        assert [[x.tolist() for x in layer] for layer in saved] == [
            [x.tolist() for x in layer] for layer in read
        ]


def test_a_policy_file_is_the_same_bytes_every_time(tmp_path: Path) -> None:
    files = set()
    for i in range(4):
        a_policy().save(tmp_path / f"{i}")
        files.add((tmp_path / f"{i}").read_bytes())
    assert len(files) == 1


def test_a_run_folder_stands_for_its_best(tmp_path: Path) -> None:
    a_policy().save(tmp_path / "best")
    assert Policy.load(tmp_path).policy[0][0].shape == (WIDTH, N_FEATURES)
    with pytest.raises(PolicyError, match=r"best: no such policy file"):
        Policy.load(tmp_path / "..")


def rewritten(
    path: Path,
    header: Callable[[dict[str, str]], dict[str, str]] = lambda header: header,
    tensors: Callable[[dict[str, Floats]], dict[str, Any]] = lambda tensors: tensors,
) -> None:
    """Change a policy file."""
    with safe_open(path, framework="numpy") as file:
        metadata = dict(file.metadata())
        found = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  no mapping
    save_file(tensors(found), path, metadata=header(metadata))


def features_json(change: Callable[[list[list[Any]]], Any]) -> str:
    return json.dumps(change([[name, size] for name, size in ALL_FEATURES]))


WRONG_HEADERS = {
    "rules": ({"rules": "2"}, "made for rules '2', this version has '1'"),
    "actions": ({"actions": "2"}, "made for actions '2', this version has '1'"),
    "version": ({"version": "2"}, "made for version '2', this version has '1'"),
    "activation": ({"activation": "relu"}, "made for activation 'relu', this version has 'tanh'"),
    "format": ({"format": "chess-policy"}, "not a policy of this project"),
    "an unknown feature": (
        {"features": features_json(lambda all_: [*all_[:-1], ["weather", all_[-1][1]]])},
        "other features: weather",
    ),
    "a feature of another size": (
        {"features": features_json(lambda all_: [[all_[0][0], 2], *all_[1:]])},
        "other features: seat",
    ),
    "fewer features": (
        {"features": features_json(lambda all_: all_[1:])},
        "policy.0.weight: expected",
    ),
    "features that are no JSON": ({"features": "seat, phase"}, "features"),
    "features that are no pairs": ({"features": "[1, 2]"}, "features"),
}


@pytest.mark.parametrize("what", WRONG_HEADERS)
def test_a_policy_made_for_something_else_is_refused(policy_file: Path, what: str) -> None:
    change, message = WRONG_HEADERS[what]
    rewritten(policy_file, header=lambda header: header | change)
    with pytest.raises(PolicyError) as error:
        Policy.load(policy_file)
    assert str(policy_file) in str(error.value)
    assert message in str(error.value)


@pytest.mark.parametrize("key", ["format", "version", "rules", "actions", "activation", "features"])
def test_a_policy_without_a_key_of_its_header_is_refused(policy_file: Path, key: str) -> None:
    rewritten(policy_file, header=lambda header: {k: v for k, v in header.items() if k != key})
    with pytest.raises(PolicyError, match=str(policy_file)):
        Policy.load(policy_file)


WRONG_TENSORS: dict[str, Callable[[dict[str, Floats]], dict[str, Any]]] = {
    "no value network": lambda t: {k: v for k, v in t.items() if k.startswith("policy")},
    "no bias": lambda t: {k: v for k, v in t.items() if k != "policy.1.bias"},
    "a layer left out": lambda t: {k: v for k, v in t.items() if not k.startswith("policy.1.")},
    "a last layer too small": lambda t: t | {"policy.2.weight": t["policy.2.weight"][:40]},
    "layers that do not fit": lambda t: t | {"policy.1.weight": t["policy.1.weight"][:, :3].copy()},
    "a bias that does not fit": lambda t: t | {"value.0.bias": t["value.0.bias"][:3]},
    "a weight of one dimension": lambda t: t | {"policy.0.weight": t["policy.0.weight"][0]},
    "numbers that are none": lambda t: t | {"policy.2.bias": t["policy.2.bias"] * np.nan},
}


@pytest.mark.parametrize("what", WRONG_TENSORS)
def test_a_policy_with_other_tensors_is_refused(policy_file: Path, what: str) -> None:
    rewritten(policy_file, tensors=WRONG_TENSORS[what])
    with pytest.raises(PolicyError, match=str(policy_file)):
        Policy.load(policy_file)


@pytest.mark.parametrize("size", [0, 5, 500, 5000, -1])
def test_a_cut_file_is_refused(policy_file: Path, size: int) -> None:
    policy_file.write_bytes(policy_file.read_bytes()[:size])
    with pytest.raises(PolicyError, match="not a policy"):
        Policy.load(policy_file)


class Trap:
    """Touches a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.path,))


@pytest.mark.parametrize("dump", [pickle.dump, torch.save])
def test_a_policy_file_cannot_run_code(tmp_path: Path, dump: Callable[..., None]) -> None:
    touched = tmp_path / "touched"
    with (tmp_path / "policy").open("wb") as file:
        dump(Trap(touched), file)
    with pytest.raises(PolicyError, match="not a policy file"):
        make(f"policy:{tmp_path / 'policy'}")
    assert not touched.exists()
    pickle.loads(pickle.dumps(Trap(touched)))
    assert touched.exists()  # the trap works


# The package's name


def test_the_folder_refuses_to_be_imported_under_its_own_name() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import agents"],
        cwd=ROOT,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "ImportError: import this package as tokaido_env.agents" in done.stderr


def test_an_agent_is_made_again_from_its_spec() -> None:
    for spec in ("greedy:epsilon=0.1234567891", "mcts:sims=7,rollout=full", "expectimax:depth=1"):
        assert make(make(spec).spec).spec == make(spec).spec == spec
    assert make(make("greedy:epsilon=0.1234567891").spec).epsilon == 0.1234567891  # type: ignore[attr-defined]
