"""The contract of every agent: legal and repeatable actions, judgements, checked arguments."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from networks import decisions
from repeatable import check_repeatable

from tokaido_env.agents import Policy, make
from tokaido_env.agents.champion import CHAMPION, GENERALIST
from tokaido_env.agents.policy import PolicyAgent
from tokaido_env.agents.search import PolicySearchAgent
from tokaido_env.observers import afterstates, masks, observe

Arrays = dict[str, Any]


@pytest.fixture(scope="module")
def arrays() -> Arrays:
    """Decisions of random games on one board, with keys: the arguments of `act`."""
    boards, states, legal = decisions(games=12, most=12)
    keys = np.random.default_rng(5).integers(2**64, size=len(states), dtype=np.uint64)
    return {"boards": boards[:1], "states": states, "legal": legal, "keys": keys}


def with_file(spec: str, policy_file: Path) -> str:
    """Return a spec with the path of the policy file after `policy` or `policy_search`."""
    return re.sub("^(policy_search|policy)", rf"\1:{policy_file}", spec)


@pytest.mark.parametrize(
    "spec",
    [
        *("random", "greedy", "greedy:epsilon=0.5", "heuristic"),
        *("rusher", "hoarder"),
        *("mcts:sims=60", "mcts:sims=30,rollout=full", "policy", "policy,temperature=1"),
        "policy_search,sims=40",
        *("champion", "champion:sims=8", "champion:sims=8,temperature=2"),
        *("generalist", "generalist:sims=8", "generalist:sims=8,endings=network"),
    ],
)
def test_act__returns_legal_actions_that_depend_on_key_and_position_alone(
    policy_file: Path, spec: str
) -> None:
    agent = make(with_file(spec, policy_file))
    for boards in (("shikoku",), ("shikoku", "family:7")):
        columns = decisions(boards, games=12, most=6)
        actions, _ = check_repeatable(agent.act, *columns, every=3)
        assert (columns[2] >> actions.astype(np.uint64) & np.uint64(1)).all()


def test_greedy__plays_at_random_in_a_share_of_epsilon(arrays: Arrays) -> None:
    columns = {name: np.repeat(arrays[name], 100, axis=0) for name in ("states", "legal")}
    keys = np.random.default_rng(0).integers(0, 2**64, len(columns["legal"]), np.uint64)
    best, mixed, random = (
        make(spec).act(boards=arrays["boards"], **columns, keys=keys)
        for spec in ("greedy", "greedy:epsilon=0.5", "random")
    )
    assert (mixed != best).mean() / (random != best).mean() == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize("spec", ["mcts:sims=9", "policy", "policy_search,sims=8", "champion"])
def test_judge__prefers_the_action_that_act_returns(
    policy_file: Path, spec: str, arrays: Arrays
) -> None:
    agent = make(with_file(spec, policy_file))
    shares, values = agent.judge(**arrays)
    assert shares.sum(axis=1) == pytest.approx(1)
    assert (shares[~masks(arrays["legal"]).astype(bool)] == 0).all()
    assert (shares[np.arange(len(shares)), agent.act(**arrays)] == shares.max(axis=1)).all()
    assert values is not None
    assert (np.abs(values) <= 1).all()


def test_judge__returns_values_of_player_0(policy_file: Path, arrays: Arrays) -> None:
    second = arrays["states"]["player"] == 1
    assert 0 < second.sum() < len(second)
    agent = make(f"policy:{policy_file}")
    assert isinstance(agent, PolicyAgent)
    _, own = agent.policy.evaluate(arrays["boards"], arrays["states"], arrays["legal"])
    assert (agent.judge(**arrays)[1] == np.where(second, -own, own)).all()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("states", [1, 2]),
        ("boards", None),
        ("legal", np.ones(4)),
        ("legal", np.ones(3, np.uint64)),
        ("keys", np.ones(4, np.int64)),
    ],
)
@pytest.mark.parametrize("spec", ["mcts:sims=9", "python:custom_agents:Highest"])
def test_agents__name_a_wrong_argument(spec: str, name: str, value: Any, arrays: Arrays) -> None:
    right = {name: array[:4] for name, array in arrays.items()}
    agent = make(spec)
    for method in (agent.act, agent.judge):
        with pytest.raises((TypeError, ValueError), match=f"^{name}: expected an array of "):
            method(**right | {name: value})


@pytest.mark.parametrize("layout", ["strided", "read-only"])
@pytest.mark.parametrize(
    "spec",
    ["greedy:epsilon=0.5", "heuristic", "mcts:sims=4", "policy", "policy_search,sims=4"],
)
def test_agents__compile_nothing_for_other_layouts_of_arrays(
    policy_file: Path, spec: str, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = make(with_file(spec, policy_file))
    boards, states, legal = decisions(("shikoku", "family:7"), games=4, most=6)
    keys = np.random.default_rng(5).integers(2**64, size=len(states), dtype=np.uint64)
    arguments = boards, states, legal, keys
    expected, (shares, _) = agent.act(*arguments), agent.judge(*arguments)
    observe(*arguments[:2])
    afterstates(*arguments[:3])
    other = [np.repeat(one, 2)[::2] if layout == "strided" else one.copy() for one in arguments]
    for one in other:
        one.flags.writeable = layout == "strided"

    def fails(*args: object) -> None:
        raise AssertionError("a kernel compiles for another type of arguments")

    monkeypatch.setattr("numba.core.dispatcher._DispatcherBase._compile_for_args", fails)
    assert (agent.act(*other) == expected).all()
    assert (agent.judge(*other)[0] == shares).all()
    observe(*other[:2])
    afterstates(*other[:3])
    if isinstance(agent, PolicyAgent):
        agent.policy.evaluate(*other[:3])


@pytest.mark.parametrize(("name", "path"), [("champion", CHAMPION), ("generalist", GENERALIST)])
def test_shipped_networks__are_small_and_play_their_file(
    name: str, path: Path, arrays: Arrays
) -> None:
    assert path.stat().st_size <= 4_000_000
    policy = Policy.load(path)
    assert json.loads(json.dumps(policy.training)) == policy.training
    for agent, own in (
        (make(name), PolicyAgent.from_policy(policy, "file")),
        (make(f"{name}:sims=8"), PolicySearchAgent.from_policy(policy, "file", 8)),
    ):
        assert (agent.act(**arrays) == own.act(**arrays)).all()
