"""Policies that read the board they play on: what they compute, and their files."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
import torch
from networks import SMALL, decisions, random_policy
from safetensors import safe_open
from safetensors.numpy import save_file

from tokaido_env.agents import PolicyError, make
from tokaido_env.agents.inputs import read_positions
from tokaido_env.agents.policy import Policy, PolicyAgent, Sizes, shapes_of
from tokaido_env.agents.search import PolicySearchAgent
from tokaido_env.boards.pool import BoardPool
from tokaido_env.core.board_features import BOARD_LAYOUT_HASH, N_BOARD_FEATURES
from tokaido_env.learn.network import MoveNetwork, load_weights
from tokaido_env.learn.samples import legal_rows

POOL = BoardPool.load("family:train/12")
BOARDS = ("shikoku", "shikoku_ring", "shikoku_dice", "shikoku_remix")


@pytest.fixture(scope="module")
def met() -> Any:
    """Positions on all boards of the pool: boards, states, legal, and the place of each board."""
    boards, states, legal = decisions([*POOL], games=48)
    places = {record.tobytes(): i for i, record in enumerate(POOL.records)}
    which = np.array([places[board.tobytes()] for board in boards])
    assert set(which.tolist()) == set(range(len(POOL)))
    return boards, states, legal, which


# The network


@pytest.mark.parametrize("sizes", [Sizes(), SMALL, Sizes(7, 3, 1)])
def test_the_compiled_network_computes_what_torch_computes(sizes: Sizes, met: Any) -> None:
    boards, states, legal, which = met
    policy = random_policy(sizes, sees_board=True)
    network = MoveNetwork(sizes, POOL.records)
    load_weights(network, policy)
    inputs = torch.from_numpy(read_positions(boards, states, legal))
    allowed, board = torch.from_numpy(legal_rows(legal)), torch.from_numpy(which)
    logits, values = policy.evaluate(boards, states, legal)
    for gradients in (True, False):  # what boards add is kept while there are none
        with torch.set_grad_enabled(gradients):
            wanted, wanted_values = network(inputs, allowed, board)
        np.testing.assert_allclose(values, wanted_values[:, 0].detach().numpy(), atol=1e-5)
        own = wanted.detach().numpy()[legal_rows(legal)]
        np.testing.assert_allclose(logits[legal_rows(legal)], own, atol=2e-5)


def test_what_boards_add_follows_the_weights_as_they_change() -> None:
    torch.manual_seed(0)
    network = MoveNetwork(SMALL, POOL.records)
    board, at = torch.arange(5), torch.tensor([3, 3, 0])
    layer: Any = network.board
    for _ in range(3):
        with torch.no_grad():
            for tensor in (layer.weight, network.trunk[0].bias):
                tensor += torch.randn_like(tensor)
            bias: Any = network.trunk[0].bias
            wanted = layer.blocks[:5] @ layer.weight.T + bias
            torch.testing.assert_close(layer(at, bias), wanted[at])
            torch.testing.assert_close(layer(board, bias), wanted)
        torch.testing.assert_close(layer(at, bias), wanted[at])


def test_each_position_is_judged_on_its_own_board(met: Any) -> None:
    boards, states, legal, which = met
    policy = random_policy(sees_board=True)
    logits, values = policy.evaluate(boards, states, legal)
    for i in range(0, len(states), 5):
        one = slice(i, i + 1)
        alone, value = policy.evaluate(boards[one], states[one], legal[one])
        assert (alone[0] == logits[i]).all()
        assert value[0] == values[i]
    other = POOL.records[(which + 1) % len(POOL)]
    blind = random_policy()
    assert (policy.evaluate(other, states, legal)[1] != values).mean() > 0.9
    assert blind.tensors.keys() < policy.tensors.keys()


def test_the_number_of_threads_makes_no_difference(met: Any) -> None:
    boards, states, legal, _ = met
    agent = PolicySearchAgent.of(random_policy(sees_board=True), "p", 8)
    keys, threads = np.arange(len(states), dtype=np.uint64), numba.get_num_threads()
    together = agent.judge(boards, states, legal, keys)
    try:
        numba.set_num_threads(1)
        alone = agent.judge(boards, states, legal, keys)
    finally:
        numba.set_num_threads(threads)
    assert all((a == b).all() for a, b in zip(alone, together, strict=True))
    for i in range(0, len(states), 20):
        one = slice(i, i + 1)
        odds, _ = agent.judge(boards[one], states[one], legal[one], keys[one])
        assert (odds[0] == together[0][i]).all()


def test_weights_of_0_for_the_board_change_no_byte(met: Any) -> None:
    boards, states, legal, _ = met
    blind = random_policy()
    zero = np.zeros((SMALL.first, N_BOARD_FEATURES), np.float32)
    policy = Policy(blind.tensors | {"board.weight": zero})
    assert policy.sees_board
    for one, other in zip(
        blind.evaluate(boards, states, legal), policy.evaluate(boards, states, legal), strict=True
    ):
        assert one.tobytes() == other.tobytes()
    keys = np.arange(len(states), dtype=np.uint64)
    agents = (PolicySearchAgent.of(each, "p", 12) for each in (blind, policy))
    first, second = (agent.act(boards, states, legal, keys) for agent in agents)
    assert (first == second).all()


@pytest.mark.parametrize(
    ("spec", "digest"),
    [
        ("champion", "3e44dbb9d1f46d40"),
        ("champion:sims=30,temperature=1,dice=drawn", "bd1a5ec48bd057a6"),
    ],
)
def test_a_policy_from_before_there_were_pools_plays_the_same(spec: str, digest: str) -> None:
    """The first digest is of the moves of the release before; since then the value is another."""
    boards, states, legal = decisions(BOARDS)
    keys = np.arange(len(states), dtype=np.uint64)
    actions = make(spec).act(boards, states, legal, keys)
    assert hashlib.sha256(actions.astype("<i8").tobytes()).hexdigest()[:16] == digest


# Files


@pytest.fixture
def seeing_file(tmp_path: Path) -> Path:
    random_policy(sees_board=True).save(tmp_path / "policy")
    return tmp_path / "policy"


def test_a_policy_that_reads_the_board_comes_back_from_its_file(
    seeing_file: Path, tmp_path: Path, met: Any
) -> None:
    boards, states, legal, _ = met
    policy, loaded = random_policy(sees_board=True), Policy.load(seeing_file)
    assert loaded.sees_board
    assert loaded.tensors.keys() == shapes_of(SMALL, sees_board=True).keys()
    assert all((loaded.tensors[name] == policy.tensors[name]).all() for name in policy.tensors)
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == seeing_file.read_bytes()
    keys = np.zeros(len(states), np.uint64)
    actions = make(f"policy:{seeing_file}").act(boards, states, legal, keys)
    assert (actions == PolicyAgent.of(policy, "p").act(boards, states, legal, keys)).all()


def test_older_code_refuses_such_a_file_by_its_version(seeing_file: Path) -> None:
    with safe_open(seeing_file, framework="numpy") as file:
        header = file.metadata()
    assert header["version"] == "3"
    assert header["board"] == BOARD_LAYOUT_HASH
    random_policy().save(seeing_file)
    with safe_open(seeing_file, framework="numpy") as file:
        header = file.metadata()
    assert header["version"] == "2"
    assert "board" not in header


Change = Callable[[dict[str, str], dict[str, Any]], Any]
WRONG: dict[str, tuple[Change, str]] = {
    "layout": (
        lambda header, tensors: header.update(board="0123456789abcdef"),
        f"made for board '0123456789abcdef', this version has '{BOARD_LAYOUT_HASH}'",
    ),
    "no layout": (lambda header, tensors: header.pop("board"), "made for board None, this version"),
    "version": (
        lambda header, tensors: header.update(version="5"),
        "made for version '5', this version has '2', '3', '4'",
    ),
    "missing": (
        lambda header, tensors: tensors.pop("board.weight"),
        "tensors missing or unknown: board.weight",
    ),
    "too much": (
        lambda header, tensors: header.update(version="2"),
        "tensors missing or unknown: board.weight",
    ),
    "shape": (
        lambda header, tensors: tensors.update({"board.weight": np.zeros((24, 3), np.float32)}),
        f"board.weight: expected finite float32 numbers of shape (24, {N_BOARD_FEATURES})",
    ),
    "infinite": (
        lambda header, tensors: tensors["board.weight"].fill(np.inf),
        "board.weight: expected finite float32 numbers",
    ),
    "large": (
        lambda header, tensors: tensors["board.weight"].fill(3e38),
        "weights so large that its numbers could pass float32's",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_file_that_does_not_fit_is_refused_in_one_line(seeing_file: Path, what: str) -> None:
    change, message = WRONG[what]
    with safe_open(seeing_file, framework="numpy") as file:
        header = dict(file.metadata())
        tensors = {name: file.get_tensor(name).copy() for name in file.keys()}  # noqa: SIM118  no mapping
    change(header, tensors)
    save_file(tensors, seeing_file, metadata=header)
    with pytest.raises(PolicyError) as error:
        Policy.load(seeing_file)
    assert message in str(error.value)
    assert str(seeing_file) in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) <= 500
