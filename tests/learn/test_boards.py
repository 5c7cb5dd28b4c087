"""Training on pools: what the learner is shown, and runs that are the same again."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from networks import SMALL, decisions, random_policy
from short_run import VALUES

from tokaido_env.agents import Policy, make
from tokaido_env.agents.inputs import N_INPUTS, read_positions
from tokaido_env.agents.policy import PolicyAgent, Sizes
from tokaido_env.arena.ratings import Rating
from tokaido_env.boards.pool import BoardPool
from tokaido_env.cli.train import main as train
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.learn import expert, ppo
from tokaido_env.learn.declared import RunError
from tokaido_env.learn.expert import ExpertSettings, iterate, self_play
from tokaido_env.learn.network import MoveNetwork, load_weights
from tokaido_env.learn.ppo_policy import (
    BOARD_AT,
    LEGAL,
    learner_env,
    new_learner,
    policy_of,
)
from tokaido_env.learn.samples import legal_rows, load_samples, save_samples
from tokaido_env.learn.settings import Settings

SPEC = "family:train/6"
POOL = BoardPool.load(SPEC)
ON_POOL = VALUES | {"board": SPEC, "steps": 512, "checkpoint_every": 256}

Output = pytest.CaptureFixture[str]


def contents(folder: Path) -> dict[str, bytes]:
    """All files but TensorBoard's, which hold times."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    names = {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
    return {name: data for name, data in names.items() if not name.startswith("tb/")}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on a pool; not to be changed."""
    run = tmp_path_factory.mktemp("runs") / "finished"
    ppo.begin(run, Settings(**ON_POOL))
    assert ppo.train(run)
    return run


# What the learner is shown


def test_the_row_tells_the_board_of_the_game_that_is_being_played() -> None:
    env = learner_env(Settings(**ON_POOL), ["random", "greedy"])
    seen, rng, met, ended = env.reset(), np.random.default_rng(0), set(), 0
    for _ in range(300):
        batch = env.games.batch
        boards = POOL.records[seen[:, BOARD_AT].astype(int)]
        wanted = [POOL.of_seed(int(seed)).name for seed in batch.slots["seed"]]
        assert [POOL[int(place)].name for place in seen[:, BOARD_AT]] == wanted
        assert (seen[:, :N_INPUTS] == read_positions(boards, batch.states, batch.legal)).all()
        assert (seen[:, LEGAL] == env.action_masks()).all()
        met |= set(wanted)
        weights = rng.random((env.num_envs, N_ACTIONS)) * env.action_masks()
        seen, _, dones, _ = env.step(weights.argmax(axis=1))
        ended += int(dones.sum())
    assert ended > 10
    assert len(met) == len(POOL)


def test_the_learner_decides_and_judges_as_the_exported_policy() -> None:
    settings = Settings(**ON_POOL)
    env = learner_env(settings, "random")
    env.self_play[:] = True
    model = new_learner(env, settings)
    policy: Any = model.policy
    with torch.no_grad():
        for weights in policy.parameters():
            weights += 0.05 * torch.randn_like(weights)
        seen, masks, batch = torch.from_numpy(env.reset()), env.action_masks(), env.games.batch
        odds = policy.get_distribution(seen, action_masks=masks).distribution.probs.numpy()
        values = policy.predict_values(seen)[:, 0].numpy()
    agent = PolicyAgent.of(policy_of(model), "learner")
    boards, keys = batch.boards_of(batch.all_games), np.zeros(len(batch), np.uint64)
    wanted, own = agent.judge(boards, batch.states, batch.legal, keys)
    np.testing.assert_allclose(odds, wanted, atol=1e-5)
    np.testing.assert_allclose(values, own * (1 - 2 * batch.states["player"]), atol=1e-5)


def test_only_a_network_that_reads_the_board_learns_what_depends_on_it() -> None:
    """The same inputs, won on one of two boards and lost on the other."""
    boards, states, legal = decisions(games=8, most=16)
    inputs = torch.from_numpy(read_positions(boards, states, legal)).repeat(2, 1)
    allowed = torch.from_numpy(legal_rows(legal)).repeat(2, 1)
    board = torch.arange(2).repeat_interleave(len(states))
    results, right = 1.0 - 2.0 * board, []
    for own in (None, POOL.records[:2]):
        torch.manual_seed(0)
        network = MoveNetwork(SMALL, own)
        optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
        for _ in range(100):
            optimizer.zero_grad()
            values = network(inputs, allowed, board)[1][:, 0]
            (values - results).square().mean().backward()
            optimizer.step()
        right.append(float(((values > 0) == (results > 0)).float().mean()))
    assert right[0] == 0.5
    assert right[1] > 0.95


def make_expert() -> Any:
    agent: Any = make("mcts:sims=4")
    return agent.search


# Runs


def test_a_run_on_a_pool_reads_the_board_and_its_policy_plays(finished: Path) -> None:
    policy = Policy.load(finished / "last")
    assert policy.sees_board
    assert np.abs(policy.tensors["board.weight"]).max() > 0
    assert not Policy.load(finished / "pool" / "000000000").tensors["board.weight"].any()
    assert policy.training["board"] == {
        **{"name": SPEC, "hash": POOL.hash, "boards": len(POOL)},
        "splits": ["train"],
    }
    assert make(f"policy:{finished}").spec == f"policy:{finished}"


def test_a_run_on_a_pool_is_the_same_again_and_when_it_was_stopped(
    finished: Path, tmp_path: Path
) -> None:
    ppo.begin(tmp_path / "again", Settings(**ON_POOL))
    assert ppo.train(tmp_path / "again")
    assert contents(tmp_path / "again") == contents(finished)
    ppo.begin(tmp_path / "stopped", Settings(**ON_POOL | {"steps": 256}))
    assert ppo.train(tmp_path / "stopped")
    assert train(["--resume", str(tmp_path / "stopped"), "--steps", "512"]) == 0
    stopped = contents(tmp_path / "stopped")
    for name in ("last", "best", "metrics.jsonl", "pool/pool.json", "config.toml"):
        assert stopped[name] == contents(finished)[name], name


@pytest.mark.parametrize(
    ("board", "splits"),
    [("shikoku", []), ("family:2000007", ["test"]), ("family:valid/3", ["valid"])],
)
def test_a_policy_tells_whether_it_was_trained_on_boards_to_measure_on(
    tmp_path: Path, board: str, splits: list[str]
) -> None:
    ppo.begin(tmp_path / "run", Settings(**VALUES | {"board": board}))
    assert ppo.train(tmp_path / "run")
    assert Policy.load(tmp_path / "run").training["board"]["splits"] == splits
    assert Policy.load(tmp_path / "run").sees_board == (board == "family:valid/3")


def test_a_run_that_starts_from_a_policy_that_reads_no_board_begins_as_that_policy(
    tmp_path: Path,
) -> None:
    old = random_policy(Sizes.of_width(VALUES["width"]))
    old.save(tmp_path / "old")
    ppo.begin(tmp_path / "run", Settings(**ON_POOL | {"start_from": str(tmp_path / "old")}))
    assert ppo.train(tmp_path / "run")
    first = Policy.load(tmp_path / "run" / "pool" / "000000000")
    assert not first.tensors["board.weight"].any()
    assert all((first.tensors[name] == tensor).all() for name, tensor in old.tensors.items())


def test_a_policy_tells_the_boards_of_the_one_that_it_started_from(tmp_path: Path) -> None:
    """Also after it was stopped, and when the other is gone."""
    start = tmp_path / "start"
    told = {"splits": ["test", "nowhere", 3], "name": "x" * 9000}
    replace(random_policy(Sizes.of_width(VALUES["width"])), training={"board": told}).save(start)
    run = tmp_path / "run"
    ppo.begin(run, Settings(**ON_POOL | {"start_from": str(start), "steps": 256}))
    assert ppo.train(run)
    start.unlink()
    assert train(["--resume", str(run), "--steps", "512"]) == 0
    assert Policy.load(run / "last").training["board"] == {
        **{"name": SPEC, "hash": POOL.hash, "boards": len(POOL)},
        "splits": ["train", "test"],
    }


def test_a_policy_that_reads_the_board_does_not_start_a_run_that_does_not(
    finished: Path, tmp_path: Path, capsys: Output
) -> None:
    words = [f"--{name.replace('_', '-')}={value}" for name, value in VALUES.items()]
    start = [f"--start-from={finished}", *words]
    assert train(["--run", str(tmp_path / "run"), *start]) == 1
    assert capsys.readouterr().err == (
        "train: start_from: the policy reads the board, this run does not: expected see_board = "
        "yes, or another policy\n"
    )
    assert not (tmp_path / "run").exists()
    assert train(["--run", str(tmp_path / "run"), *start, "--see-board=yes"]) == 0
    network = MoveNetwork(SMALL)
    with pytest.raises(RunError, match="the policy reads the board"):
        load_weights(network, random_policy(sees_board=True))


def test_a_run_notices_that_its_pool_is_another(finished: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    ppo.begin(run, Settings(**ON_POOL))
    config = run / "config.toml"
    text = config.read_text(encoding="utf-8").replace(POOL.hash, "0123456789abcdef")
    config.write_text(text, encoding="utf-8")
    with pytest.raises(RunError, match=f"hash '0123456789abcdef', {SPEC} now has {POOL.hash}"):
        ppo.train(run)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--board=family:abc"], "family:abc'?: expected family:NUMBER, or family:SPLIT"),
        (["--board=family:train/0"], "family:train/0: expected 1 to .* got an empty pool"),
        (["--board=family:test/101"], "family:test/101: expected 1 to 100 boards of test"),
        (["--board=family:2147483648"], "0 to 2147483647, got 2147483648"),
        (["--see-board=perhaps"], "see_board: expected 'auto' or 'yes' or 'no', got 'perhaps'"),
    ],
)
def test_what_is_no_pool_is_refused_in_one_line(
    tmp_path: Path, capsys: Output, words: list[str], message: str
) -> None:
    for command in (train, expert.main):
        assert command(["--run", str(tmp_path / "run"), *words]) == 1
        error = capsys.readouterr().err
        assert re.search(message, error)
        assert error.count("\n") == 1
        assert not (tmp_path / "run" / "config.toml").exists()


# Expert iteration

LESSONS = ExpertSettings(
    **{"seed": 3, "rounds": 2, "first_sims": 3, "first_positions": 3000, "sims": 3, "games": 8},
    **{"positions": 2600, "epochs": 1.0, "minibatch": 256, "width": 16, "board": SPEC},
)


@pytest.fixture
def rated_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expert, "place", lambda *arguments: Rating("x", 5.0, (1.0, 9.0), 6))
    monkeypatch.setattr(expert.Ladder, "load", lambda *arguments: None)


@pytest.mark.usefixtures("rated_at_once")
def test_expert_iteration_on_a_pool_is_the_same_again_and_when_it_was_stopped(
    tmp_path: Path,
) -> None:
    policy = iterate(tmp_path / "whole", LESSONS)
    assert policy.sees_board
    assert policy.training["board"]["name"] == SPEC
    assert np.abs(policy.tensors["board.weight"]).max() > 0
    iterate(tmp_path / "stopped", replace(LESSONS, rounds=1))
    settings = tmp_path / "stopped" / "settings.json"
    settings.write_bytes((tmp_path / "whole" / "settings.json").read_bytes())
    iterate(tmp_path / "stopped", LESSONS)
    for name in ("01", "02", "lessons-01.npz", "lessons-02.npz", "rounds.jsonl"):
        same = [(tmp_path / run / name).read_bytes() for run in ("whole", "stopped")]
        if not name.isdigit():  # policies tell the settings that they were made with
            assert same[0] == same[1], name
    again = Policy.load(tmp_path / "stopped" / "02")
    assert all((again.tensors[name] == t).all() for name, t in policy.tensors.items())
    policy.training["board"]["hash"] = "0123456789abcdef"
    policy.save(tmp_path / "whole" / "02")
    with pytest.raises(RunError, match=f"of hash '0123456789abcdef', '{SPEC}' now has {POOL.hash}"):
        iterate(tmp_path / "whole", LESSONS)


def test_samples_tell_the_board_that_they_were_played_on(tmp_path: Path) -> None:
    path = tmp_path / "lessons-01.npz"
    samples = self_play(make_expert(), 4000, 9, replace(LESSONS, games=16))
    save_samples(path, samples)
    loaded = load_samples(path, SPEC)
    assert all((one == other).all() for one, other in zip(loaded, samples, strict=True))
    assert set(loaded.boards.tolist()) == set(range(len(POOL)))
    for wrong in ((loaded.boards + 1) % len(POOL), loaded.boards + 6, loaded.boards - 6):
        save_samples(path, samples._replace(boards=wrong.astype(np.int32)))
        with pytest.raises(RunError, match=r"broken samples: (game|boards: expected numbers) "):
            load_samples(path, SPEC)


def test_samples_from_before_there_were_pools_are_of_one_board(tmp_path: Path) -> None:
    path = tmp_path / "lessons-01.npz"
    samples = self_play(make_expert(), 2500, 9, replace(LESSONS, board="shikoku"))
    save_samples(path, samples)
    with np.load(path) as file:
        arrays = {name: file[name] for name in file if name != "boards"}
    np.savez(path, **arrays)
    loaded = load_samples(path, "shikoku")
    assert not loaded.boards.any()
    assert (loaded.states == samples.states).all()
    with pytest.raises(RunError, match=r"boards: expected int32 of shape .*, got none"):
        load_samples(path, SPEC)


@pytest.mark.usefixtures("rated_at_once")
def test_a_folder_from_before_there_were_pools_goes_on(tmp_path: Path) -> None:
    settings = replace(LESSONS, board="shikoku", rounds=1)
    iterate(tmp_path, settings)
    path = tmp_path / "settings.json"
    old = json.loads(path.read_text(encoding="utf-8"))
    del old["see_board"]
    path.write_text(json.dumps(old), encoding="utf-8")
    assert iterate(tmp_path, settings).sizes == settings.sizes
    with pytest.raises(RunError, match="see_board: the run has 'auto', asked for 'yes'"):
        iterate(tmp_path, replace(settings, see_board="yes"))
