"""Policies: what the network computes, how it chooses, and files that hold numbers only."""

import json
import os
import pickle
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from evaluated import terms_of
from networks import SMALL, counting_policy, decisions, inputs_of, random_policy
from repeatable import check_repeatable
from safetensors import safe_open
from safetensors.numpy import save_file

from tokaido_env import Game
from tokaido_env.agents import PolicyError, make
from tokaido_env.agents.eval_tables import eval_tables_of, load_weights
from tokaido_env.agents.network_inputs import AFTERSTATE_VALUES, encode_positions
from tokaido_env.agents.policy import LayerSizes, Policy, PolicyAgent, tensor_shapes
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.board_features import BOARD_LAYOUT_HASH, N_BOARD_FEATURES
from tokaido_env.core.state import Phase
from tokaido_env.learn.network import Moves, PolicyNetwork, load_weights as give_weights
from tokaido_env.learn.rollouts import moves_of
from tokaido_env.learn.settings import MAX_WIDTH
from tokaido_env.learn.settings_schema import RunError

Floats = npt.NDArray[np.float32]

POOL = BoardPool.load("family:train/12")
BOARDS = ("shikoku", "shikoku_ring", "shikoku_dice", "shikoku_remix")


def rows(legal: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Legal actions as bool (n, N_ACTIONS)."""
    return np.array([[int(mask) >> a & 1 for a in range(N_ACTIONS)] for mask in legal], bool)


@pytest.fixture
def policy_file(tmp_path: Path) -> Path:
    random_policy(uses_board_features=True).save(tmp_path / "policy")
    return tmp_path / "policy"


# The network


@pytest.fixture(scope="module")
def met() -> Any:
    """Positions on all boards of the pool: boards, states, legal, and the place of each board."""
    boards, states, legal = decisions([*POOL], games=48)
    places = {record.tobytes(): i for i, record in enumerate(POOL.records)}
    which = np.array([places[board.tobytes()] for board in boards])
    assert set(which.tolist()) == set(range(len(POOL)))
    assert set(states["phase"]) == {Phase.MOVE, Phase.EFFECT, Phase.DISCARD, Phase.REPEAT}
    assert set(states["player"]) == {0, 1}
    return boards, states, legal, which


def ask(
    network: PolicyNetwork,
    which: npt.NDArray[np.int64],
    states: npt.NDArray[np.void],
    legal: npt.NDArray[np.uint64],
) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores of legal actions, and values as log odds / 2, of positions on boards of the pool."""
    eval_tables = eval_tables_of(POOL.records)
    inputs, results = encode_positions(POOL.records, eval_tables, which, states, legal)
    position, action = map(torch.from_numpy, moves_of(legal))
    moves = Moves(torch.from_numpy(results), position, action)
    scores, values, _ = network(torch.from_numpy(inputs), moves, torch.from_numpy(which))
    return scores, values


@pytest.mark.parametrize("uses_board_features", [False, True])
@pytest.mark.parametrize("sizes", [LayerSizes(), SMALL, LayerSizes(7, 3, 1, 5, 2)])
def test_the_compiled_network_computes_what_torch_computes(
    sizes: LayerSizes, uses_board_features: bool, met: Any
) -> None:
    boards, states, legal, which = met
    policy = random_policy(sizes, uses_board_features=uses_board_features)
    network = PolicyNetwork(sizes, POOL.records if uses_board_features else None)
    give_weights(network, policy)
    logits, values = policy.evaluate(boards, states, legal)
    with network.inference():
        for _ in range(2):  # what boards add is kept
            scores, wanted = ask(network, which, states, legal)
    np.testing.assert_allclose(values, torch.tanh(wanted).numpy(), atol=1e-5)
    np.testing.assert_allclose(logits[rows(legal)], scores.numpy(), atol=5e-5)
    assert (logits[~rows(legal)] == -np.inf).all()


def test_an_untrained_network_leans_on_the_heuristic() -> None:
    torch.manual_seed(0)
    boards, states, legal = decisions(games=16)
    logits, _ = PolicyNetwork(LayerSizes()).to_policy().evaluate(boards, states, legal)
    outlook = inputs_of(boards, states, legal)[0][
        :, AFTERSTATE_VALUES : AFTERSTATE_VALUES + N_ACTIONS
    ]
    chosen = outlook[np.arange(len(states)), logits.argmax(axis=1)]
    assert chosen.mean() > 0.5 * outlook[np.isfinite(logits)].mean()


@pytest.mark.parametrize("uses_board_features", [False, True])
def test_a_wider_network_begins_as_the_policy_plays(uses_board_features: bool, met: Any) -> None:
    boards, states, legal, which = met
    policy = random_policy(LayerSizes(7, 3, 1, 5, 2), uses_board_features=uses_board_features)
    torch.manual_seed(0)
    network = PolicyNetwork(
        LayerSizes(12, 8, 4, 9, 6), POOL.records if uses_board_features else None
    )
    give_weights(network, policy)
    seen = boards, states, legal
    for own, theirs in zip(
        network.to_policy().evaluate(*seen), policy.evaluate(*seen), strict=True
    ):
        np.testing.assert_allclose(own, theirs, atol=1e-5)
    scores, values = ask(network, which, states, legal)
    (scores.square().sum() + values.square().sum()).backward()  # and what is new can learn
    for name, first_new in (("move.weight", 1), ("value.1.weight", 2), ("context.weight", 3)):
        gradient = network.get_parameter(name).grad
        assert gradient is not None
        assert (gradient[..., first_new:] != 0).any(), name


def test_weights_of_another_network_are_refused() -> None:
    network = PolicyNetwork(SMALL)
    for layer in range(len(SMALL)):
        wider = LayerSizes(*(units + (i == layer) for i, units in enumerate(SMALL)))
        with pytest.raises(
            RunError, match=r"expected at most LayerSizes\(first=24.*has LayerSizes"
        ):
            give_weights(network, random_policy(wider))
    with pytest.raises(RunError, match="expected a policy without board features"):
        give_weights(network, random_policy(uses_board_features=True))


def test_a_network_made_by_hand_says_what_it_was_made_to_say() -> None:
    boards, states, legal = decisions(games=8, most=12)
    logits, values = counting_policy(outlook=3.0).evaluate(boards, states, legal)
    outlook = inputs_of(boards, states, legal)[0][
        :, AFTERSTATE_VALUES : AFTERSTATE_VALUES + N_ACTIONS
    ]
    assert logits[rows(legal)] == pytest.approx(3.0 * outlook[rows(legal)])
    weights = load_weights().mean(axis=0)
    for i, player in enumerate(states["player"]):
        terms, _ = terms_of(states[i : i + 1])
        ahead = terms[player].astype(int) - terms[1 - player]
        assert values[i] == pytest.approx(np.tanh(ahead @ weights / 20), abs=1e-5)


@pytest.mark.parametrize("uses_board_features", [False, True])
def test_many_positions_are_as_each_alone(uses_board_features: bool, met: Any) -> None:
    _, states, legal, which = met
    policy = random_policy(uses_board_features=uses_board_features)
    _, values = check_repeatable(lambda *asked: policy.evaluate(*asked[:3]), *met[:3], every=3)[0]
    other = POOL.records[(which + 1) % len(POOL)]
    assert (policy.evaluate(other, states, legal)[1] != values).mean() > 0.9


def test_weights_of_0_for_the_board_change_no_byte(met: Any) -> None:
    boards, states, legal, _ = met
    blind = random_policy()
    zero = np.zeros((SMALL.first + SMALL.value_first, N_BOARD_FEATURES), np.float32)
    policy = Policy(blind.tensors | {"board.weight": zero})
    for one, other in zip(
        blind.evaluate(boards, states, legal), policy.evaluate(boards, states, legal), strict=True
    ):
        assert one.tobytes() == other.tobytes()


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
    chosen = PolicyAgent.from_policy(policy, "p").act(
        boards, states, legal, np.zeros(len(legal), np.uint64)
    )
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
    counts = np.bincount(
        draws(PolicyAgent.from_policy(policy, "p", temperature), n), minlength=N_ACTIONS
    )
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
        chosen = draws(PolicyAgent.from_policy(policy, "p", temperature), 500)
        assert set(chosen.tolist()) <= set(legal)


# Files


@pytest.mark.parametrize("uses_board_features", [False, True])
def test_a_policy_comes_back_from_its_file(
    tmp_path: Path, uses_board_features: bool, met: Any
) -> None:
    boards, states, legal, _ = met
    policy, path = random_policy(uses_board_features=uses_board_features), tmp_path / "policy"
    policy.save(path)
    loaded = Policy.load(path)
    assert loaded.training == policy.training == {"maker": "tests"}
    assert (loaded.sizes, loaded.uses_board_features) == (SMALL, uses_board_features)
    assert {name: t.shape for name, t in loaded.tensors.items()} == tensor_shapes(
        SMALL, uses_board_features
    )
    assert all((loaded.tensors[name] == policy.tensors[name]).all() for name in policy.tensors)
    keys = np.zeros(len(states), np.uint64)
    actions = make(f"policy:{path}").act(boards, states, legal, keys)
    assert (actions == PolicyAgent.from_policy(policy, "p").act(boards, states, legal, keys)).all()


def test_a_policy_file_is_the_same_bytes_every_time(policy_file: Path, tmp_path: Path) -> None:
    files = {policy_file.read_bytes()}
    for i in range(3):
        random_policy(uses_board_features=True).save(tmp_path / f"{i}")
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
    "version": ({"version": "2"}, "made for version '2', this version has '4'"),
    "board": (
        {"board": "0123456789abcdef"},
        f"made for board '0123456789abcdef', this version has '{BOARD_LAYOUT_HASH}'",
    ),
    "inputs": ({"inputs": "0123456789abcdef"}, "made for inputs '0123456789abcdef', this version"),
    "format": ({"format": "chess-policy"}, "not a policy of this project"),
    "training": ({"training": "{"}, "training: expected JSON"),
}


@pytest.mark.parametrize("what", WRONG_HEADERS)
def test_a_policy_made_for_something_else_is_refused(policy_file: Path, what: str) -> None:
    change, message = WRONG_HEADERS[what]
    rewritten(policy_file, header=lambda header: header | change)
    assert message in refusal(policy_file)


@pytest.mark.parametrize("key", ["format", "version", "rules", "actions", "inputs", "board"])
def test_a_policy_without_a_key_of_its_header_is_refused(policy_file: Path, key: str) -> None:
    rewritten(policy_file, header=lambda header: {k: v for k, v in header.items() if k != key})
    refusal(policy_file)


WRONG_TENSORS: dict[str, tuple[Callable[[dict[str, Floats]], dict[str, Any]], str]] = {
    "no value": (
        lambda t: {name: t[name] for name in t if not name.startswith("value")},
        "tensors missing or unknown: value.0.bias, value.0.weight, value.1.bias, value.1.weight",
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
    "a value of other units": (
        lambda t: t | {"value.0.weight": np.zeros((8, 30), np.float32)},
        "expected finite float32 numbers of shape (10, 10)",
    ),
    "features of other boards": (
        lambda t: t | {"board.weight": np.zeros((40, 3), np.float32)},
        f"board.weight: expected finite float32 numbers of shape (40, {N_BOARD_FEATURES})",
    ),
    "a bias of two dimensions": (
        lambda t: t | {"trunk.0.bias": t["trunk.0.bias"][None]},
        "trunk.0.",
    ),
    "float64": (
        lambda t: t | {"value.1.bias": t["value.1.bias"].astype(np.float64)},
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
    none = {
        name: np.zeros(s, np.float32)
        for name, s in tensor_shapes(LayerSizes(0, 0, 0, 0, 0), True).items()
    }
    rewritten(policy_file, tensors=lambda t: none)
    assert "expected layers of one unit or more, got (0, 0, 0, 0, 0)" in refusal(policy_file)


@pytest.mark.parametrize("name", sorted(tensor_shapes(SMALL, True)))
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
    agent = PolicyAgent.from_policy(policy, "policy:low", temperature)
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
    assert "too large: expected at most 96 MiB" in refusal(policy_file)
    random_policy(LayerSizes.of_width(MAX_WIDTH)).save(tmp_path / "wide")
    assert Policy.load(tmp_path / "wide").sizes == (4096, 1024, 512, 4096, 1024)


@pytest.mark.parametrize(
    ("dtype", "shape"), [("BF16", [2]), ("F32", [1] * 65)], ids=["type", "dimensions"]
)
def test_an_array_that_numpy_has_not_is_refused(
    policy_file: Path, dtype: str, shape: list[int]
) -> None:
    entry = {"dtype": dtype, "shape": shape, "data_offsets": [0, 4]}
    header = json.dumps({"value.1.bias": entry}).encode()
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
