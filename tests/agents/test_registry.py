"""Spec strings: parameters, quotes, errors with a remedy, and the agents that they make."""

import re
from pathlib import Path

import pytest
from networks import random_policy

from tokaido_env.agents import AgentError, describe, make
from tokaido_env.agents.policy import PolicyAgent
from tokaido_env.agents.registry import check_spec_in_file, cost_of, policy_path_of
from tokaido_env.agents.search import PolicySearchAgent


def test_specs__expand_the_home_folder(
    policy_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "my runs" / "best"
    path.parent.mkdir()
    path.write_bytes(policy_file.read_bytes())
    monkeypatch.setenv("HOME", str(tmp_path))
    for spec in ("policy:~/my runs", "policy:~/my runs/best,temperature=1"):
        assert isinstance(make(spec), PolicyAgent)
        assert policy_path_of(spec) == path
    with pytest.raises(AgentError, match="no such policy file"):
        make("policy:runs/~/best")


def test_check_spec_in_file__refuses_code_and_finds_policies_next_to_the_file(
    policy_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "net").write_bytes(policy_file.read_bytes())
    monkeypatch.chdir(tmp_path)
    for spec in ("python:bot:Bot", "exec:./bot"):
        with pytest.raises(AgentError, match=r"^here: .*: a file may not name code to run"):
            check_spec_in_file(spec, "here", theirs)
        assert check_spec_in_file(spec, "here", theirs, [spec]) == spec
    for spec, found in (
        ("policy:net,temperature=1", f"policy:{theirs}/net,temperature=1"),
        ("policy:theirs/net", "policy:theirs/net"),
        ("greedy:epsilon=0.5", "greedy:epsilon=0.5"),
    ):
        assert check_spec_in_file(spec, "here", theirs) == found
    monkeypatch.chdir(theirs)
    assert check_spec_in_file("policy:net", "here", theirs) == "policy:net"


def test_make__round_trips_specs(policy_file: Path) -> None:
    file, search = f"policy:{policy_file}", f"policy_search:{policy_file}"
    for spec, canonical in {
        **{spec: spec for spec in ("random", "greedy", "greedy:epsilon=0.1234567891")},
        **{spec: spec for spec in ("mcts:sims=7,rollout=full", file)},
        "mcts": "mcts:sims=400",
        f"{file},temperature=0.123456789": f"{file},temperature=0.123456789",
        f"{file},temperature=10": f"{file},temperature=10",
        search: f"{search},sims=400",
        f"policy_search:{policy_file},sims=8": f"{search},sims=8",
        f"{search},c_puct=0.3,sims=8,temperature=1": f"{search},sims=8",
        f"{search},endings=network,c_puct=1": f"{search},sims=400,c_puct=1,endings=network",
        "champion:endings=exact": "champion",
        "generalist:endings=network": "generalist:endings=network",
        "champion:c_puct=1,sims=8,temperature=2": "champion:sims=8,temperature=2,c_puct=1",
    }.items():
        assert make(spec).spec == make(canonical).spec == canonical
    agent = make(f"{file},temperature=0.5")
    assert isinstance(agent, PolicyAgent)
    assert agent.temperature == 0.5


@pytest.mark.parametrize("name", ["a,b", "lr=0.1", "é \\", '"', "a b"])
def test_make__takes_a_path_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    random_policy().save(tmp_path / name)
    for spec in (f"policy:{name}", f"policy:{name},temperature=0.5"):
        assert make(spec).spec == make(make(spec).spec).spec == spec
    search = PolicySearchAgent(name, 8)
    assert make(search.spec).spec == search.spec
    assert cost_of(search.spec) == 8 * cost_of("policy_search:x,sims=1")


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        ("gredy", ["gredy", "greedy"]),
        ("greedy:eps=0.2", ["eps", "epsilon", "greedy[:epsilon=E]"]),
        ("policy:x,heat=1", ["heat", "temperature, endings"]),
        ("policy:a,b", ["a,b: no such policy file"]),
        ("mcts:400", ["400"]),
        ("mcts:sims=4,sims=5", ["sims: expected once"]),
        *((spec, ["policy:PATH"]) for spec in ("policy", "policy:")),
        *((spec, ["PATH[,sims=N]"]) for spec in ("policy_search", "policy_search:")),
        ("champion:sims=0", ["sims", "from 1 to 1000000"]),
        ("champion:sims=" + "9" * 400, ["sims", "from 1 to 1000000"]),
        ("champion:c_puct=1,temperature=1", ["c_puct and temperature", "sims=N"]),
        ("champion:sims=8,endings=x", ["endings", "'exact' or 'network'"]),
        ("mcts:rollout=2", ["rollout", "'full'"]),
        ("policy:x,temperature=warm", ["temperature", "from 0 to 10"]),
        ("policy:x,temperature=nan", ["temperature", "from 0 to 10"]),
    ],
)
def test_make__refuses_a_wrong_spec_with_a_remedy(spec: str, names: list[str]) -> None:
    with pytest.raises(AgentError) as error:
        make(spec)
    assert all(name in str(error.value) for name in names)


def test_describe__lists_every_kind() -> None:
    assert [re.split(r"[:\[]", usage)[0] for usage, _ in describe()] == [
        *("random", "greedy", "heuristic", "rusher", "hoarder", "mcts"),
        *("champion", "generalist", "policy_search", "policy", "python", "exec"),
    ]
    assert all(meaning.endswith(".") for _, meaning in describe())
