"""Policies: how the agent chooses, and files that contain numbers only."""

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from networks import SMALL, counting_policy, decisions, random_policy

from tokaido_env import Game
from tokaido_env.agents import PolicyError, make
from tokaido_env.agents.inference import choose_actions
from tokaido_env.agents.policy import MAX_FILE_BYTES, LayerSizes, Policy, PolicyAgent, tensor_shapes
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.learn.settings import MAX_WIDTH
from tokaido_env.observers import masks
from tokaido_env.tensor_file import read_tensors, write_tensors

Floats = npt.NDArray[np.float32]
Header, Tensors = dict[str, str], dict[str, Floats]

BOARDS = ("shikoku", "shikoku_ring", "shikoku_dice", "shikoku_remix")


def assert_legal(actions: npt.NDArray[np.int64], legal: npt.NDArray[np.uint64]) -> None:
    assert masks(legal)[np.arange(len(actions)), actions].all()


# The agent


def a_decision() -> tuple[Game, list[int]]:
    """Return a game at a decision between several actions, and these actions."""
    games = (Game(seed=seed) for seed in range(100))
    game = next(game for game in games if len(game.legal_actions()) > 3)
    return game, list(game.legal_actions())


def sampled(agent: PolicyAgent, n: int) -> npt.NDArray[np.int64]:
    """Return actions in the same position with n keys."""
    game, _ = a_decision()
    keys = np.random.default_rng(0).integers(2**64, size=n, dtype=np.uint64)
    legal = np.full(n, game.legal_mask, np.uint64)
    return agent.act(game.boards, np.repeat(game.state, n), legal, keys)


def test_policy_agent__takes_the_best_action_at_temperature_0() -> None:
    boards, states, legal = decisions(BOARDS)
    policy, keys = random_policy(), np.zeros(len(legal), np.uint64)
    logits, _ = policy.evaluate(boards, states, legal)
    actions = PolicyAgent.from_policy(policy, "p").act(boards, states, legal, keys)
    assert (actions == logits.argmax(axis=1)).all()


@pytest.mark.parametrize("temperature", [0.1, 0.5, 1.0])
def test_policy_agent__samples_from_the_softmax(temperature: float) -> None:
    policy, n = counting_policy(), 20_000
    game, legal = a_decision()
    logits, _ = policy.evaluate(game.boards, game.state, np.array([game.legal_mask], np.uint64))
    weights = np.exp(logits[0, legal].astype(float) / temperature)
    shares = weights / weights.sum()
    assert shares.min() < 0.8 * shares.max()
    agent = PolicyAgent.from_policy(policy, "p", temperature)
    counts = np.bincount(sampled(agent, n), minlength=N_ACTIONS)
    assert counts.sum() == counts[legal].sum()
    deviation = np.sqrt(n * shares * (1 - shares))
    assert (np.abs(counts[legal] - n * shares) < 4.5 * deviation).all()


@pytest.mark.parametrize("temperature", [0.0, 1e-310, 1.0, 10.0])
def test_choose_actions__never_takes_an_illegal_action(temperature: float) -> None:
    """Neither a far likelier one, nor where all legal logits are far below 0."""
    _, _, legal = decisions(BOARDS)
    is_legal, keys = masks(legal).astype(bool), np.arange(len(legal), dtype=np.uint64)
    for own, others in ((-1e6, 1e6), (-1e9, -np.inf)):
        actions = np.empty(len(legal), np.int64)
        logits = np.where(is_legal, own, others).astype(np.float32)
        choose_actions(actions, logits, legal, keys, temperature)
        assert_legal(actions, legal)


# Files


def test_policy__is_the_same_after_save_and_load(tmp_path: Path) -> None:
    boards, states, legal = decisions(BOARDS)
    policy, path = random_policy(), tmp_path / "policy"
    policy.save(path)
    loaded = Policy.load(path)
    assert loaded.training == policy.training == {"maker": "tests"}
    assert loaded.sizes == SMALL
    assert {name: t.shape for name, t in loaded.tensors.items()} == tensor_shapes(SMALL)
    assert all((loaded.tensors[name] == policy.tensors[name]).all() for name in policy.tensors)
    keys = np.zeros(len(states), np.uint64)
    agents = make(f"policy:{path}"), PolicyAgent.from_policy(policy, "p")
    one, other = (agent.act(boards, states, legal, keys) for agent in agents)
    assert (one == other).all()


def test_policy__refuses_transposed_tensors() -> None:
    tensors = {name: tensor.T.copy() for name, tensor in random_policy().tensors.items()}
    with pytest.raises(PolicyError, match=r"^policy: "):
        PolicyAgent.from_policy(Policy(tensors), "p")


def test_policy__is_saved_as_the_same_bytes_each_time(policy_file: Path, tmp_path: Path) -> None:
    random_policy().save(tmp_path / "same")
    Policy.load(policy_file).save(tmp_path / "again")
    for name in ("same", "again"):
        assert (tmp_path / name).read_bytes() == policy_file.read_bytes()


def test_load__reads_the_best_policy_of_a_run_folder(tmp_path: Path) -> None:
    random_policy().save(tmp_path / "best")
    assert Policy.load(tmp_path).sizes == SMALL
    with pytest.raises(PolicyError, match=r"best: no such policy file"):
        Policy.load(tmp_path / "..")


def rewrite(
    path: Path,
    header: Callable[[Header], Header] = lambda header: header,
    tensors: Callable[[Tensors], dict[str, Any]] = lambda tensors: tensors,
) -> None:
    """Change the header or the tensors of a policy file, with a SHA-256 that matches."""
    found = read_tensors(path, MAX_FILE_BYTES)
    write_tensors(path, tensors(found.arrays), header(found.header))


def refusal(path: Path) -> str:
    """Return the one-line error for a file, which names the file."""
    with pytest.raises(PolicyError) as error:
        Policy.load(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_load__refuses_a_flipped_bit(policy_file: Path) -> None:
    """Most of them in the header, where every letter counts."""
    data, rng = policy_file.read_bytes(), random.Random(7)
    header = data[: 8 + int.from_bytes(data[:8], "little")]
    name = data.index(b"sha256")
    places = [*rng.choices(range(len(header)), k=150), *rng.choices(range(len(data)), k=50)]
    for at in (*places, *range(name, name + len("sha256"))):
        flipped = data[at] ^ 1 << rng.randrange(8)
        policy_file.write_bytes(data[:at] + bytes([flipped]) + data[at + 1 :])
        refusal(policy_file)
    policy_file.write_bytes(data)
    assert Policy.load(policy_file).sizes == SMALL


WRONG_HEADERS = [
    ({"rules": "1"}, "rules"),
    ({"board": "0123456789abcdef"}, "board"),
    ({"format": "chess-policy"}, "not a policy"),
    ({"training": "["}, "training"),
    ({"training": "[]"}, "training"),
]


@pytest.mark.parametrize(("change", "key"), WRONG_HEADERS)
def test_load__refuses_a_wrong_header(policy_file: Path, change: Header, key: str) -> None:
    rewrite(policy_file, header=lambda header: header | change)
    assert key in refusal(policy_file)


def no_units(tensors: Tensors) -> Tensors:
    shapes = tensor_shapes(LayerSizes(0, 0))
    return {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}


WRONG_TENSORS: list[tuple[Callable[[Tensors], dict[str, Any]], str]] = [
    (lambda t: {name: t[name] for name in t if name != "value.bias"}, "value.bias"),
    (lambda t: t | {"first.weight": t["first.weight"][:, :700]}, "first.weight"),
    (lambda t: t | {"board.weight": np.zeros((24, 3), np.float32)}, "board.weight"),
    (lambda t: t | {"second.bias": t["second.bias"] * np.nan}, "second.bias"),
    (lambda t: t | {"second.bias": t["second.bias"] + np.float32("inf")}, "second.bias"),
    (no_units, "layers"),
]


@pytest.mark.parametrize(("change", "name"), WRONG_TENSORS)
def test_load__refuses_wrong_tensors(
    policy_file: Path, change: Callable[[Tensors], dict[str, Any]], name: str
) -> None:
    rewrite(policy_file, tensors=change)
    assert name in refusal(policy_file)


def test_load__refuses_other_and_huge_files_but_not_the_widest_network(
    policy_file: Path, tmp_path: Path
) -> None:
    for content in (b"", b"a policy\n" * 1000, policy_file.read_bytes()[:-1]):
        (tmp_path / "damaged").write_bytes(content)
        assert "not a policy file" in refusal(tmp_path / "damaged")
    os.truncate(policy_file, 2**40)
    assert "too large: expected at most 96 MiB" in refusal(policy_file)
    widest = LayerSizes(MAX_WIDTH, MAX_WIDTH)
    random_policy(widest).save(tmp_path / "wide")
    assert Policy.load(tmp_path / "wide").sizes == widest
