"""Expert iteration on executors: the same bytes, whoever plays and wherever it was stopped."""

import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import rest_slow
from networks import SIGHTED, random_policy
from tokaido_env.learn.declared import RunError
from tokaido_env.learn.samples import Samples, load_samples
from tokaido_env.learn.self_play import SelfPlayUnit
from tokaido_env.learn.zero import ZeroSettings, iterate, main, replay

from tokaido_env import Game
from tokaido_env.agents import Agent, Policy, make
from tokaido_env.arena.executors import AgentCache, SerialExecutor, Task
from tokaido_env.arena.executors.base import Result
from tokaido_env.arena.playing import AgentFailed
from tokaido_env.boards.pool import BoardPool
from tokaido_env.core.luck import agent_keys, episode_seed
from tokaido_env.learn import zero_parts

TINY = ZeroSettings(
    **{"rounds": 2, "units": 3, "games": 6, "first_sims": 3, "sims": 3, "width": 16},
    **{"minibatch": 256, "gate_games": 12, "kept_rounds": 2},
)
POOL = BoardPool.load("shikoku")

Output = pytest.CaptureFixture[str]


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that went to its end; not to be changed."""
    folder = tmp_path_factory.mktemp("zero") / "whole"
    iterate(folder, TINY)
    return folder


# Units


def unit(expert: str = "mcts:sims=3", **change: Any) -> SelfPlayUnit:
    return SelfPlayUnit(expert, "", POOL, 6, 50, 0.3, 0.1)._replace(**change)


def samples_of(one: SelfPlayUnit) -> Samples:
    (samples,) = one.run(AgentCache())
    assert isinstance(samples, Samples)
    return samples


def test_a_unit_is_whole_games_and_their_results() -> None:
    """Without variety the search plays as it does in a game alone, of the seeds that follow."""
    samples = samples_of(unit(sampled=0.0, uniform=0.0))
    known = {row.tobytes(): i for i, row in enumerate(samples.states)}
    expert, found = make("mcts:sims=3"), 0
    for number in range(50, 56):
        seed, decisions, key = episode_seed(number, 0), 0, np.empty(1, np.uint64)
        game, seen = Game(seed=seed), list[tuple[bytes, int]]()
        while not game.is_over:
            legal = np.array([game.legal_mask], np.uint64)
            if len(game.legal_actions()) > 1:
                seen.append((game.state.tobytes(), int(game.player)))
            seats = np.array([game.player], np.int8)
            agent_keys(np.array([seed]), seats, np.array([decisions]), key)
            decisions += 1
            game.play(int(expert.act(game.boards, game.state, legal, key)[0]))
        reward = {0: 1.0, 1: -1.0, None: 0.0}[game.winner()]
        for state, player in seen:
            assert samples.results[known[state]] == (reward if player == 0 else -reward)
        found += len(seen)
    assert found == len(samples.legal)


def test_units_of_other_seeds_are_other_games_and_variety_changes_them() -> None:
    first = samples_of(unit())
    assert all((a == b).all() for a, b in zip(samples_of(unit()), first, strict=True))
    for other in (unit(seed=1050), unit(uniform=0.5)):
        assert samples_of(other).states.tobytes() != first.states.tobytes()


def test_a_unit_on_a_pool_tells_its_boards() -> None:
    samples = samples_of(unit(pool=BoardPool.load("family:train/3"), games=12))
    assert set(samples.boards.tolist()) == {0, 1, 2}


@pytest.mark.parametrize("led", [False, True])
def test_some_decisions_are_searched_in_full_and_learnt_from(tmp_path: Path, led: bool) -> None:
    """A policy that its own short search contradicts has the decision searched in full."""
    random_policy(SIGHTED).save(tmp_path / "policy")
    expert = f"policy_search:{tmp_path / 'policy'},sims=24" if led else "mcts:sims=24"
    whole = samples_of(unit(expert)).visits.sum(axis=1)
    shares = {}
    for full in (0.0, 0.5, 1.0):
        visits = samples_of(unit(expert, full=full, cheap_sims=3)).visits.sum(axis=1)
        assert set(visits[visits > 0].tolist()) <= set(whole.tolist())
        shares[full] = float((visits > 0).mean())
    doubted = shares[0.0]
    assert (0.05 < doubted < 0.95) if led else doubted == 0
    assert shares[0.5] == pytest.approx(0.5 + doubted / 2, abs=0.1)
    assert shares[1.0] == 1


def test_what_is_no_search_plays_no_unit() -> None:
    with pytest.raises(AgentFailed, match=r"expected a search, as mcts or .*, got 'greedy'"):
        samples_of(unit("greedy"))


# Runs


def test_a_run_leaves_units_policies_ledger_and_gate(finished: Path) -> None:
    files = {f"units/{n:04d}-{i:04d}.npz" for n in (1, 2) for i in range(3)}
    files |= {"settings.json", "ledger.jsonl", "gate.jsonl", "policies/0001", "policies/0002"}
    assert set(contents(finished)) == files
    ledger, gate = ([json.loads(line) for line in lines(finished, name)] for name in LINES)
    assert [len(one["units"]) for one in ledger] == [3, 6]
    assert [one["passed"] for one in gate] == [True, True]
    assert gate[1]["games"] == 12
    first, second = (Policy.load(finished / "policies" / name) for name in ("0001", "0002"))
    assert (first.tensors["move.weight"] != second.tensors["move.weight"]).any()
    assert second.training["round"] == 2
    for path in (finished / "units").iterdir():
        assert len(load_samples(path, POOL).legal) > 300


LINES = ("ledger.jsonl", "gate.jsonl")


def lines(folder: Path, name: str) -> list[str]:
    return (folder / name).read_text(encoding="utf-8").splitlines()


class Leaves(SerialExecutor):
    """Stops after some units."""

    def __init__(self, after: int) -> None:
        self.left = after

    def map(self, tasks: Iterable[Task], agents: Sequence[Agent] = ()) -> Iterator[Result]:
        for part in super().map(tasks, agents):
            if not self.left:
                raise KeyboardInterrupt
            self.left -= 1
            yield part


@pytest.mark.parametrize("after", rest_slow([2, 3, 4]))
def test_a_run_goes_on_where_it_was_stopped(finished: Path, tmp_path: Path, after: int) -> None:
    """In a round, between rounds, in the gate; what was played is not played again."""
    run = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        iterate(run, TINY, Leaves(after))
    there = {path: path.stat().st_mtime_ns for path in (run / "units").iterdir()}
    assert len(there) == after
    iterate(run, TINY)
    assert all(path.stat().st_mtime_ns == when for path, when in there.items())
    assert contents(run) == contents(finished)


@pytest.mark.parametrize(
    "lost", rest_slow(["ledger.jsonl gate.jsonl", "gate.jsonl", "gate.jsonl policies/0002"])
)
def test_what_a_power_cut_took_is_made_again(finished: Path, tmp_path: Path, lost: str) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    for name in lost.split():
        if name.endswith(".jsonl"):
            first, *_ = lines(run, name)
            (run / name).write_text(first + "\n", encoding="utf-8")
        else:
            (run / name).unlink()
    (run / "policies" / "0002.tmp").write_text("half", encoding="utf-8")
    (run / "units" / "0002-0001.npz.tmp").write_text("half", encoding="utf-8")
    iterate(run, TINY)
    assert contents(run) == contents(finished)


def test_a_run_may_grow_and_nothing_else(finished: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    iterate(run, replace(TINY, rounds=1))
    iterate(run, TINY)
    assert contents(run) == contents(finished)
    with pytest.raises(RunError, match="other settings: sims: the run has 3, asked for 9"):
        iterate(run, replace(TINY, sims=9))
    assert contents(run) == contents(finished)


def test_the_ledger_replays_to_the_same_policies(finished: Path, tmp_path: Path) -> None:
    assert replay(finished) == 2
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    other = run / "units" / "0001-0002.npz"
    shutil.copy(run / "units" / "0001-0001.npz", other)
    with pytest.raises(RunError, match=r"0001-0002\.npz: is not the unit of round 1 in the ledger"):
        replay(run)
    shutil.copy(finished / "units" / "0001-0002.npz", other)
    shutil.copy(run / "policies" / "0001", run / "policies" / "0002")
    with pytest.raises(RunError, match="round 2 gives another policy than the ledger's"):
        replay(run)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("settings.json", "[3]", "expected an object of the settings seed, board"),
        ("settings.json", '{"seed": 0}', "expected an object of the settings seed, board"),
        ("settings.json", "{", "JSON"),
        ("ledger.jsonl", "7\n", "line 1: expected round 1"),
        ("ledger.jsonl", "{\n", "expected JSON, one object a line"),
        (
            "ledger.jsonl",
            '{"round": 1, "units": {"../../x": ""}, "policy": ""}\n',
            "line 1: expected",
        ),
        ("ledger.jsonl", '{"round": 1, "units": 5, "policy": ""}\n', "line 1: expected round 1"),
    ],
)
def test_a_folder_that_no_run_wrote_is_refused_in_one_line(
    finished: Path, tmp_path: Path, capsys: Output, name: str, text: str, message: str
) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    (run / name).write_text(text, encoding="utf-8")
    assert main(["--run", str(run), "--replay"]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("text", ['{"round": 1}', '{"round": 2, "passed": true}', "[]"])
def test_a_gate_that_no_run_wrote_is_refused(finished: Path, tmp_path: Path, text: str) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    (run / "gate.jsonl").write_text(text + "\n", encoding="utf-8")
    with pytest.raises(RunError, match="line 1: expected round 1"):
        iterate(run, TINY)


def test_a_policy_that_is_shown_to_be_worse_does_not_pass_the_gate(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next round is played by who holds the gate; the learner goes on from the newest."""
    real, played = zero_parts.play_series, list[str]()

    def lost(pairs: Any, sheets: Any, **options: Any) -> Any:
        played.append(sheets[0].b)
        results, stopped = real(pairs, sheets, **options)
        return [results[0]._replace(decided="b")], stopped

    monkeypatch.setattr(zero_parts, "play_series", lost)
    run = tmp_path / "run"
    policy = iterate(run, replace(TINY, rounds=3))
    gate = [json.loads(line) for line in lines(run, "gate.jsonl")]
    assert [one["passed"] for one in gate] == [True, False, False]
    assert [Path(spec).name for spec in played] == ["0001", "0001"]
    best = Policy.load(run / "policies" / "0001")
    assert policy.tensors["move.weight"].tobytes() == best.tensors["move.weight"].tobytes()


def test_a_run_can_start_from_a_policy(finished: Path, tmp_path: Path) -> None:
    policy, start = Policy.load(finished / "policies" / "0002"), tmp_path / "start"
    Policy(policy.tensors, {"board": {"splits": ["test"]}}).save(start)
    begun = replace(TINY, rounds=1, start_from=str(start), games=2, units=1, samples=0.01)
    iterate(tmp_path / "run", replace(begun, learning_rate=1e-9))
    again = Policy.load(tmp_path / "run" / "policies" / "0001")
    for name, tensor in Policy.load(start).tensors.items():
        assert again.tensors[name] == pytest.approx(tensor, abs=1e-6)
    assert again.training["board"]["splits"] == ["test"]
    assert json.loads(lines(tmp_path / "run", "gate.jsonl")[0])["games"] == 12


def test_a_network_with_sight_learns_its_policy(tmp_path: Path) -> None:
    start = tmp_path / "start"
    random_policy(SIGHTED).save(start)
    settings = replace(TINY, start_from=str(start), sims=8, full=0.25, cheap_sims=2)
    policy, before = iterate(tmp_path / "run", settings), Policy.load(start)
    assert policy.has_sight
    units = SIGHTED.first
    for name, tensor in policy.tensors.items():
        same = tensor == before.tensors[name]
        if name.startswith("trunk.0"):
            assert same[units:].all()
            assert not same[:units].all()
        else:
            assert same.all() == name.startswith("value")
    assert replay(tmp_path / "run") == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gate_games": 3}, "gate_games: expected an even number, got 3"),
        ({"uniform": 0.9}, r"sampled \+ uniform: expected at most 1, got 0.26 \+ 0.9"),
        ({"full": 0.5}, "full: expected 1, as cheap_sims = 0 searches all decisions alike"),
        ({"units": 0}, "units: expected an integer from 1 to 10000, got 0"),
        ({"width": 20}, "width: expected a multiple of 8, got 20"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(RunError, match=message):
        ZeroSettings(**change)


def test_the_command_trains_replays_and_refuses_in_one_line(
    tmp_path: Path, finished: Path, capsys: Output
) -> None:
    """Two processes leave the same bytes."""
    words = [f"--{k.replace('_', '-')}={v}" for k, v in asdict(TINY).items() if k != "start_from"]
    run = ["--run", str(tmp_path / "run")]
    assert main([*run, *words, "--executor", "processes:2"]) == 0
    heading, *rows = capsys.readouterr().out.splitlines()
    assert heading.split()[:3] == ["round", "units", "positions"]
    assert [row.split()[:2] for row in rows] == [["1", "3"], ["2", "3"]]
    made = contents(tmp_path / "run").items()
    assert {name: data for name, data in made if name[:3] != "tb/"} == contents(finished)
    assert main([*run, "--replay"]) == 0
    assert "2 rounds give the policies of the ledger" in capsys.readouterr().out
    for more, message in (
        (
            ["--executor", "nobody"],
            "zero: executor: expected serial, processes[:N] or ray[:ADDRESS], got",
        ),
        (["--sims", "5"], "cannot go on with other settings"),
    ):
        assert main([*run, *words, *more]) == 1
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
