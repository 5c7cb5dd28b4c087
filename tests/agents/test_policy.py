"""Policies: what the network computes, how it chooses, and files that hold numbers only."""

import json
import os
import pickle
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pytest
import torch
from evaluated import terms_of
from networks import SMALL, counting_policy, decisions, random_policy
from safetensors import safe_open
from safetensors.numpy import save_file

from tokaido_env import Game
from tokaido_env.agents import PolicyError, make
from tokaido_env.agents.heuristic import load_weights
from tokaido_env.agents.inputs import OUTLOOK, read_positions
from tokaido_env.agents.policy import Policy, PolicyAgent, Sizes, shapes_of
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.state import Phase
from tokaido_env.learn.network import MoveNetwork, load_weights as give_weights
from tokaido_env.learn.settings import MOST_WIDTH

Floats = npt.NDArray[np.float32]

BOARDS = ("shikoku", "shikoku_ring", "shikoku_dice", "shikoku_remix")


def rows(legal: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Legal actions as bool (n, N_ACTIONS)."""
    return np.array([[int(mask) >> a & 1 for a in range(N_ACTIONS)] for mask in legal], bool)


@pytest.fixture
def policy_file(tmp_path: Path) -> Path:
    random_policy().save(tmp_path / "policy")
    return tmp_path / "policy"


# The network


@pytest.mark.parametrize("sizes", [Sizes(), SMALL, Sizes(7, 3, 1)])
def test_the_compiled_network_computes_what_torch_computes(sizes: Sizes) -> None:
    boards, states, legal = decisions(BOARDS)
    assert set(states["phase"]) == {Phase.MOVE, Phase.EFFECT, Phase.DISCARD, Phase.REPEAT}
    assert set(states["player"]) == {0, 1}
    policy = random_policy(sizes)
    network = MoveNetwork(sizes)
    give_weights(network, policy)
    with torch.no_grad():
        inputs = torch.from_numpy(read_positions(boards, states, legal))
        wanted, wanted_values = network(inputs, torch.from_numpy(rows(legal)))
    logits, values = policy.evaluate(boards, states, legal)
    np.testing.assert_allclose(values, wanted_values[:, 0].numpy(), atol=1e-5)
    np.testing.assert_allclose(logits[rows(legal)], wanted.numpy()[rows(legal)], atol=2e-5)
    assert (logits[~rows(legal)] == -np.inf).all()


def test_a_network_made_by_hand_says_what_it_was_made_to_say() -> None:
    boards, states, legal = decisions(games=8, most=12)
    logits, values = counting_policy(outlook=3.0).evaluate(boards, states, legal)
    outlook = read_positions(boards, states, legal)[:, OUTLOOK : OUTLOOK + N_ACTIONS]
    assert logits[rows(legal)] == pytest.approx(3.0 * outlook[rows(legal)])
    weights = load_weights().mean(axis=0)
    for i, player in enumerate(states["player"]):
        terms, _ = terms_of(states[i : i + 1])
        ahead = terms[player].astype(int) - terms[1 - player]
        assert values[i] == pytest.approx(np.tanh(ahead @ weights / 20), abs=1e-5)


def test_many_positions_are_as_each_alone() -> None:
    boards, states, legal = decisions(BOARDS)
    policy = random_policy()
    logits, values = policy.evaluate(boards, states, legal)
    for i in range(len(states)):
        one = slice(i, i + 1)
        alone, value = policy.evaluate(boards[one], states[one], legal[one])
        assert (alone[0] == logits[i]).all()
        assert value[0] == values[i]


def test_the_number_of_threads_makes_no_difference() -> None:
    boards, states, legal = decisions(BOARDS)
    policy, threads = random_policy(), numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        alone = policy.evaluate(boards, states, legal)
    finally:
        numba.set_num_threads(threads)
    together = policy.evaluate(boards, states, legal)
    assert all((a == b).all() for a, b in zip(alone, together, strict=True))


# The agent


def a_decision() -> tuple[Game, list[int]]:
    """A game that waits for a decision between several actions."""
    seeds = (Game(seed=seed) for seed in range(100))
    game = next(game for game in seeds if len(game.legal_actions()) > 3)
    return game, list(game.legal_actions())


def draws(agent: PolicyAgent, n: int) -> npt.NDArray[np.int64]:
    """Choices in the same position with many keys."""
    game, _ = a_decision()
    keys = np.random.default_rng(0).integers(2**64, size=n, dtype=np.uint64)
    legal = np.full(n, game.legal_mask, np.uint64)
    return agent.act(game.boards, np.repeat(game.state, n), legal, keys)


def test_temperature_zero_takes_the_likeliest_legal_action() -> None:
    boards, states, legal = decisions(BOARDS)
    policy = random_policy()
    logits, _ = policy.evaluate(boards, states, legal)
    chosen = PolicyAgent.of(policy, "p").act(boards, states, legal, np.zeros(len(legal), np.uint64))
    assert (chosen == logits.argmax(axis=1)).all()


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_temperature_samples_from_the_softmax(temperature: float) -> None:
    """Actions are as frequent as the softmax of the biases says, and no other is chosen."""
    policy, n = counting_policy(outlook=0.0), 20_000
    biases = np.linspace(-2, 2, N_ACTIONS, dtype=np.float32)
    policy.tensors["action.bias"][:] = biases
    _, legal = a_decision()
    weights = np.exp(biases[legal].astype(float) / temperature)
    shares = weights / weights.sum()
    counts = np.bincount(draws(PolicyAgent.of(policy, "p", temperature), n), minlength=N_ACTIONS)
    assert counts.sum() == counts[legal].sum()
    spread = np.sqrt(n * shares * (1 - shares))
    assert (np.abs(counts[legal] - n * shares) < 4.5 * spread).all()


def test_an_action_that_is_not_legal_is_never_chosen() -> None:
    """However likely the network takes it to be."""
    _, legal = a_decision()
    policy = counting_policy()
    policy.tensors["action.bias"][:] = 1e6
    policy.tensors["action.bias"][legal] = -1e6
    for temperature in (0.0, 1.0, 10.0):
        chosen = draws(PolicyAgent.of(policy, "p", temperature), 500)
        assert set(chosen.tolist()) <= set(legal)


# Files


def test_a_policy_comes_back_from_its_file(policy_file: Path) -> None:
    policy, loaded = random_policy(), Policy.load(policy_file)
    assert loaded.training == policy.training == {"maker": "tests"}
    assert loaded.sizes == SMALL
    assert loaded.tensors.keys() == policy.tensors.keys() == shapes_of(SMALL).keys()
    assert all((loaded.tensors[name] == policy.tensors[name]).all() for name in policy.tensors)


def test_a_policy_file_is_the_same_bytes_every_time(policy_file: Path, tmp_path: Path) -> None:
    files = {policy_file.read_bytes()}
    for i in range(3):
        random_policy().save(tmp_path / f"{i}")
        files.add((tmp_path / f"{i}").read_bytes())
    Policy.load(policy_file).save(tmp_path / "again")
    files.add((tmp_path / "again").read_bytes())
    assert len(files) == 1
    assert not list(tmp_path.glob("*.tmp"))


def test_a_run_folder_stands_for_its_best(tmp_path: Path) -> None:
    random_policy().save(tmp_path / "best")
    assert Policy.load(tmp_path).sizes == SMALL
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


def refusal(path: Path) -> str:
    """The one line that refuses a file; it names the file."""
    with pytest.raises(PolicyError) as error:
        Policy.load(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)
    return str(error.value)


WRONG_HEADERS = {
    "rules": ({"rules": "2"}, "made for rules '2', this version has '1'"),
    "actions": ({"actions": "2"}, "made for actions '2', this version has '1'"),
    "version": ({"version": "1"}, "made for version '1', this version has '2'"),
    "inputs": ({"inputs": "0123456789abcdef"}, "made for inputs '0123456789abcdef', this version"),
    "format": ({"format": "chess-policy"}, "not a policy of this project"),
    "training": ({"training": "{"}, "training: expected JSON"),
}


@pytest.mark.parametrize("what", WRONG_HEADERS)
def test_a_policy_made_for_something_else_is_refused(policy_file: Path, what: str) -> None:
    change, message = WRONG_HEADERS[what]
    rewritten(policy_file, header=lambda header: header | change)
    assert message in refusal(policy_file)


@pytest.mark.parametrize("key", ["format", "version", "rules", "actions", "inputs"])
def test_a_policy_without_a_key_of_its_header_is_refused(policy_file: Path, key: str) -> None:
    rewritten(policy_file, header=lambda header: {k: v for k, v in header.items() if k != key})
    refusal(policy_file)


WRONG_TENSORS: dict[str, tuple[Callable[[dict[str, Floats]], dict[str, Any]], str]] = {
    "no value": (
        lambda t: {name: t[name] for name in t if not name.startswith("value")},
        "tensors missing or unknown: value.bias, value.weight",
    ),
    "no first bias": (
        lambda t: {name: t[name] for name in t if name != "trunk.0.bias"},
        "tensors missing or unknown: trunk.0.bias",
    ),
    "one more": (
        lambda t: t | {"policy.0.weight": np.zeros(3, np.float32)},
        "tensors missing or unknown: policy.0.weight",
    ),
    "fewer actions": (
        lambda t: t | {"action.weight": t["action.weight"][:40]},
        "action.weight: expected finite float32 numbers of shape (49, 10)",
    ),
    "layers that do not fit": (
        lambda t: t | {"trunk.1.weight": t["trunk.1.weight"][:, :3].copy()},
        "trunk.1.weight: expected finite float32 numbers of shape (10, 24)",
    ),
    "a bias of two dimensions": (
        lambda t: t | {"trunk.0.bias": t["trunk.0.bias"][None]},
        "trunk.0.",
    ),
    "float64": (
        lambda t: t | {"value.bias": t["value.bias"].astype(np.float64)},
        "expected finite float32 numbers of shape (1,), got float64 of shape (1,), 0 not",
    ),
    "not a number": (
        lambda t: t | {"move.bias": t["move.bias"] * np.nan},
        "shape (49, 6), got float32 of shape (49, 6), 294 not finite",
    ),
    "infinite": (
        lambda t: t | {"outlook.weight": t["outlook.weight"] * np.inf},
        "outlook.weight: expected finite float32 numbers of shape (1,)",
    ),
}


@pytest.mark.parametrize("what", WRONG_TENSORS)
def test_a_policy_with_other_tensors_is_refused(policy_file: Path, what: str) -> None:
    change, message = WRONG_TENSORS[what]
    rewritten(policy_file, tensors=change)
    assert message in refusal(policy_file)


def test_layers_without_a_unit_are_refused(policy_file: Path) -> None:
    none = {name: np.zeros(s, np.float32) for name, s in shapes_of(Sizes(0, 0, 0)).items()}
    rewritten(policy_file, tensors=lambda t: none)
    assert "expected layers of one unit or more, got (0, 0, 0)" in refusal(policy_file)


@pytest.mark.parametrize("name", sorted(shapes_of(SMALL)))
def test_weights_that_could_pass_the_largest_number_are_refused(
    policy_file: Path, name: str
) -> None:
    rewritten(policy_file, tensors=lambda t: t | {name: np.full_like(t[name], 3e38)})
    assert "weights so large that its numbers could pass float32's" in refusal(policy_file)


def test_the_largest_weights_that_are_taken_give_numbers(tmp_path: Path) -> None:
    """Whatever is not refused judges and chooses: no overflow, no NaN, no undefined action."""
    boards, states, legal = decisions(BOARDS)
    keys = np.arange(len(states), dtype=np.uint64)
    sound, taken = random_policy(), 0
    for power in range(3, 12):
        for sign in (1.0, -1.0):
            large = {n: np.abs(t) * np.float32(sign * 10**power) for n, t in sound.tensors.items()}
            Policy(large).save(tmp_path / "large")
            try:
                agent = PolicyAgent(str(tmp_path / "large"), 1e-310)
            except PolicyError:
                continue
            taken += 1
            odds, values = agent.judge(boards, states, legal, keys)
            assert np.isfinite(odds).all()
            assert np.isfinite(values).all()
            chosen = agent.act(boards, states, legal, keys)
            assert rows(legal)[np.arange(len(chosen)), chosen].all()
    assert 0 < taken < 18


@pytest.mark.parametrize("temperature", [0.0, 1e-310])
def test_the_least_logits_choose_a_legal_action(temperature: float) -> None:
    boards, states, legal = decisions(BOARDS)
    policy = random_policy()
    policy.tensors["action.bias"][:] = -1e9
    agent = PolicyAgent.of(policy, "policy:low", temperature)
    chosen = agent.act(boards, states, legal, np.arange(len(states), dtype=np.uint64))
    assert rows(legal)[np.arange(len(chosen)), chosen].all()


@pytest.mark.parametrize("size", [0, 5, 500, 5000, -1])
def test_a_cut_file_is_refused(policy_file: Path, size: int) -> None:
    policy_file.write_bytes(policy_file.read_bytes()[:size])
    assert "not a policy file" in refusal(policy_file)


def test_a_file_of_anything_else_is_refused(policy_file: Path) -> None:
    policy_file.write_text("a policy\n" * 100, encoding="utf-8")
    assert "not a policy file" in refusal(policy_file)


def test_a_file_as_large_as_a_disk_is_refused_and_the_widest_network_is_not(
    policy_file: Path, tmp_path: Path
) -> None:
    os.truncate(policy_file, 2**40)
    assert "too large: expected at most 48 MiB" in refusal(policy_file)
    random_policy(Sizes.of_width(MOST_WIDTH)).save(tmp_path / "wide")
    assert Policy.load(tmp_path / "wide").sizes == (4096, 1024, 512)


@pytest.mark.parametrize(
    ("dtype", "shape"), [("BF16", [2]), ("F32", [1] * 65)], ids=["type", "dimensions"]
)
def test_an_array_that_numpy_has_not_is_refused(
    policy_file: Path, dtype: str, shape: list[int]
) -> None:
    entry = {"dtype": dtype, "shape": shape, "data_offsets": [0, 4]}
    header = json.dumps({"value.bias": entry}).encode()
    policy_file.write_bytes(struct.pack("<Q", len(header)) + header + bytes(4))
    assert "not a policy file" in refusal(policy_file)


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


def test_without_safetensors_the_message_says_what_to_install(
    policy_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(PolicyError, match=r"pip install '\.\[policies\]'"):
        Policy.load(policy_file)


def test_a_model_of_another_library_is_sent_to_python(tmp_path: Path) -> None:
    path = tmp_path / "model.zip"
    path.write_bytes(b"PK\x03\x04" + bytes(100))
    told = r"model\.zip: not a policy file: a model of another library plays as python:MODULE:CLASS"
    with pytest.raises(PolicyError, match=told):
        make(f"policy:{path}")
