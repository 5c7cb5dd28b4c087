"""Agents: spec strings that teach, and play that follows from key and position alone."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from networks import decisions, random_policy
from repeatable import check_repeatable

from tokaido_env.agents import Agent, AgentError, Policy, describe, make
from tokaido_env.agents.champion import CHAMPION, GENERALIST
from tokaido_env.agents.policy import PolicyAgent
from tokaido_env.agents.registry import cost_of
from tokaido_env.agents.search import PolicySearchAgent
from tokaido_env.agents.search_config import network_search_config
from tokaido_env.batch import Batch
from tokaido_env.core.actions import N_ACTIONS


def some_games(n: int = 64, plies: int = 60) -> Batch:
    """Games in different rounds, each waiting for a decision."""
    batch, random = Batch(n), make("random")
    batch.reset(seed=0)
    for i in range(plies):
        batch.decide(random, np.arange(i * n // plies, n))
    return batch


def choices(agent: Agent, batch: Batch) -> list[int]:
    keys = batch.keys(np.arange(len(batch)))
    return agent.act(batch.boards, batch.states, batch.legal, keys).tolist()


@pytest.fixture
def policy_file(tmp_path: Path) -> Path:
    random_policy().save(tmp_path / "policy")
    return tmp_path / "policy"


# Spec strings


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


@pytest.mark.parametrize(
    "name", ["a,b", "lr=0.1", "a,temperature=1", "path=x", "dice=x", "é \\", '"', "a b"]
)
def test_a_path_may_hold_what_divides_a_spec(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    random_policy().save(tmp_path / name)
    for agent in (PolicyAgent(name), PolicyAgent(name, 0.5), make(f"policy:{json.dumps(name)}")):
        again = make(agent.spec)
        assert isinstance(again, PolicyAgent)
        assert (again.spec, again.temperature) == (agent.spec, agent.temperature)
    searching = PolicySearchAgent(name, 8)
    assert make(searching.spec).spec == searching.spec
    assert cost_of(searching.spec) == 8 * cost_of("policy_search:x,sims=1")


def test_a_path_with_an_equals_sign_needs_no_quotes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    random_policy().save(tmp_path / "lr=0.1")
    assert make("policy:lr=0.1,temperature=1").spec == "policy:lr=0.1,temperature=1"
    with pytest.raises(AgentError, match="a PATH with a comma in double quotes"):
        make("policy:a,b")


def test_an_agent_is_made_again_from_its_spec(policy_file: Path) -> None:
    for spec in (
        *("random", "greedy", "greedy:epsilon=0.1234567891", "mcts:sims=7,rollout=full"),
        *("expectimax:depth=1", f"policy:{policy_file},temperature=0.123456789"),
    ):
        assert make(make(spec).spec).spec == make(spec).spec == spec
    agent: Any = make("greedy:epsilon=0.1234567891")
    assert make(agent.spec).epsilon == agent.epsilon == 0.1234567891  # type: ignore[attr-defined]


def test_the_spec_of_a_search_by_a_policy(policy_file: Path) -> None:
    assert make(f"policy_search:{policy_file}").spec == f"policy_search:{policy_file},sims=400"
    agent = make(f"policy_search:path={policy_file},sims=8")
    assert agent.spec == f"policy_search:{policy_file},sims=8"
    assert make(agent.spec).spec == agent.spec
    for kind in (f"policy_search:{policy_file},", "champion:"):
        agent = make(f"{kind}dice=stratified,sims=8,temperature=1.5")
        assert agent.spec == f"{kind}sims=8"  # all as by default
        agent = make(f"{kind}dice=drawn,sims=8,temperature=1")
        assert agent.spec == f"{kind}sims=8,temperature=1,dice=drawn"
        assert make(agent.spec).spec == agent.spec


@pytest.mark.parametrize(
    ("name", "path"),
    [("champion", CHAMPION), ("generalist", GENERALIST)],
)
def test_what_ships_is_small_and_loads(name: str, path: Path) -> None:
    assert path.stat().st_size <= 4_000_000
    assert make(name).spec == name
    assert make(f"{name}:sims=8").spec == f"{name}:sims=8"
    training = Policy.load(path).training
    assert json.loads(json.dumps(training)) == training
    plan = network_search_config(8)
    for ours, own in (
        (make(name), PolicyAgent.from_policy(Policy.load(path), "file")),
        (make(f"{name}:sims=8"), PolicySearchAgent.from_policy(Policy.load(path), "file", plan)),
    ):
        batch = some_games()
        assert choices(ours, batch) == choices(own, batch)


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
        ("champion:sims=0", "sims: expected an integer from 1 to 1000000, got '0'"),
        ("champion:temperature=1", "champion: temperature: expected together with sims=N"),
        ("generalist:dice=drawn", "generalist: dice: expected together with sims=N"),
        ("champion:dice=drawn,temperature=1", "dice and temperature: expected together with sims"),
        ("champion:sims=8,dice=loaded", "dice: expected 'stratified' or 'drawn', got 'loaded'"),
        ("champion:sims=8,temperature=0", "temperature: expected a number from 0.1 to 10, got '0'"),
        ("champion:sims=8,heat=1", "cannot read 'heat=1': expected champion[:sims=N[,...]]"),
        ("policy_search", "expected policy_search:PATH[,sims=N]"),
        ("policy_search:sims=8", "expected policy_search:PATH[,sims=N]"),
        ("policy_search:nowhere", "nowhere: no such policy file"),
        ("policy_search:x,sims=1.5", "sims: expected an integer from 1 to 1000000, got '1.5'"),
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
    assert kinds == [
        *("random", "greedy", "heuristic", "expectimax", "mcts"),
        *("champion", "generalist"),
        *("policy_search", "exploiter", "policy", "python"),
    ]
    assert all(meaning for _, meaning in describe())


# Every agent


@pytest.mark.parametrize(
    "spec",
    [
        *("random", "greedy", "greedy:epsilon=0.5", "heuristic", "expectimax:depth=2"),
        *("mcts:sims=60", "mcts:sims=30,rollout=2", "policy", "policy,temperature=1"),
        "policy_search,sims=40",
        *("champion", "champion:sims=8", "champion:sims=8,temperature=1,dice=drawn"),
        *("generalist", "generalist:sims=8", "generalist:sims=8,chance=sampled"),
        *("exploiter:heuristic,sims=8", "exploiter:champion,sims=8"),
    ],
)
def test_an_agent_plays_legal_actions_that_follow_from_key_and_position_alone(
    policy_file: Path, spec: str
) -> None:
    agent = make(re.sub("^(policy_search|policy)", rf"\1:{policy_file}", spec))
    for boards in (("shikoku",), ("shikoku", "family:7")):
        arrays = decisions(boards, games=12, most=6)
        actions, _ = check_repeatable(agent.act, *arrays, every=3)
        assert (arrays[2] >> actions.astype(np.uint64) & np.uint64(1)).all()


@pytest.mark.parametrize("spec", ["mcts:sims=9", "policy", "policy_search,sims=8", "champion"])
def test_a_judge_holds_what_it_plays_best(policy_file: Path, spec: str) -> None:
    agent: Any = make(re.sub("^(policy_search|policy)", rf"\1:{policy_file}", spec))
    batch = some_games()
    keys = batch.keys(np.arange(len(batch)))
    shares, values = agent.judge(batch.boards, batch.states, batch.legal, keys)
    legal = batch.legal[:, None] >> np.arange(N_ACTIONS, dtype=np.uint64) & np.uint64(1)
    assert shares.sum(axis=1) == pytest.approx(1)
    assert (shares[legal == 0] == 0).all()
    assert (shares[np.arange(len(batch)), choices(agent, batch)] == shares.max(axis=1)).all()
    assert (np.abs(values) <= 1).all()


def test_a_judge_tells_the_result_of_player_0(policy_file: Path) -> None:
    """Whoever decides, the value is good where player_0 is about to win."""
    batch = some_games()
    second = batch.states["player"] == 1
    assert 0 < second.sum() < len(batch)
    agent: Any = make(f"policy:{policy_file}")
    _, own = agent.policy.evaluate(batch.boards, batch.states, batch.legal)
    _, values = agent.judge(batch.boards, batch.states, batch.legal, batch.keys(np.arange(64)))
    assert (values == np.where(second, -own, own)).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"states": [1, 2]}, "states: expected an array of STATE, of shape (n,), got list [1, 2]"),
        ({"states": np.zeros(4)}, "states: expected an array of STATE, of shape (n,), got an arr"),
        ({"boards": None}, "boards: expected an array of BOARD, of shape (1,) or (n,), got None"),
        ({"legal": np.ones(4)}, "legal: expected an array of uint64, of shape (n,), got an array"),
        ({"legal": np.ones((4, 1), np.uint64)}, "legal: expected an array of uint64, of shape (n,"),
        ({"legal": np.ones(3, np.uint64)}, "of shape (n,), got (3,) for 4 games"),
        ({"keys": np.ones(9, np.uint64)}, "of shape (n,), got (9,) for 4 games"),
        ({"keys": np.ones(4, np.int64)}, "keys: expected an array of uint64, of shape (n,), got a"),
        ({"keys": 7}, "keys: expected an array of uint64, of shape (n,), got int 7"),
    ],
)
@pytest.mark.parametrize(
    "spec", ["random", "greedy", "heuristic", "mcts:sims=9", "champion", "python:outsiders:Highest"]
)
def test_wrong_arguments_are_named(spec: str, change: dict[str, Any], message: str) -> None:
    batch = some_games(4)
    keys = batch.keys(np.arange(4))
    right = {"boards": batch.boards, "states": batch.states, "legal": batch.legal, "keys": keys}
    agent = make(spec)
    for ask in (agent.act, agent.judge):
        with pytest.raises((TypeError, ValueError), match=re.escape(message)):
            ask(**right | change)
        assert ask(**right) is not None
