"""`alphazero`: training on samples, rounds and promotion matches."""

import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from networks import SMALL, counting_policy, random_policy
from short_run import SHORT, contents, metrics, options_of, train as main

from tokaido_env.agents import make
from tokaido_env.arena.executors.base import SerialExecutor
from tokaido_env.arena.game_runner import AgentFailed
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.core.state import CHANCE_PHASES
from tokaido_env.learn import alphazero, run as runs
from tokaido_env.learn.alphazero import learn
from tokaido_env.learn.network import ValueNetwork, evaluate_positions, load_policy
from tokaido_env.learn.replay_buffer import Samples, legal_of, load_samples
from tokaido_env.learn.selfplay_games import SelfPlayGames
from tokaido_env.learn.settings import AlphaZeroSettings

TINY = AlphaZeroSettings(
    **{"rounds": 2, "shards": 2, "games": 6, "sims": 3, "width": 16},
    **{"minibatch_size": 256, "promotion_games": 12, "replay_rounds": 2},
    samples_per_position=0.5,
)


POOL = BoardPool.load("shikoku")


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Samples:
    """Samples of 24 games of a small search."""
    path = tmp_path_factory.mktemp("policies") / "policy"
    counting_policy().save(path)
    return SelfPlayGames(POOL, 24, 50, 0.3, 0.1).samples(make(f"policy_search:{path},sims=3"))


def new_network() -> ValueNetwork:
    """Return a network with random weights."""
    network = ValueNetwork(SMALL)
    load_policy(network, random_policy())
    return network


def test_learn__fits_values_at_decisions_and_chance(samples: Samples) -> None:
    network, settings = new_network(), replace(TINY, learning_rate=0.01)
    loss = learn(network, POOL.records, samples, 300, 1, settings)
    which = samples.boards.astype(np.int64)
    choices = np.bitwise_count(legal_of(POOL.records, which, samples.states))
    assert loss < 0.8 * (np.log(2) + np.log(np.maximum(choices, 1)).mean())  # even odds
    with torch.no_grad():
        found = evaluate_positions(network, POOL.records, which, samples.states)
    values, is_chance = np.tanh(found.numpy()), np.isin(samples.states["phase"], CHANCE_PHASES)
    for some in (is_chance, ~is_chance):
        assert some.sum() > 300
        assert np.corrcoef(values[some], samples.targets[some])[0, 1] > 0.4


def test_learn__orders_actions_as_the_search(samples: Samples) -> None:
    """Without targets of values the visits alone teach the order, in the compiled network too."""
    network, states = new_network(), samples.states
    legal = legal_of(POOL.records, samples.boards.astype(np.int64), states)
    k = np.flatnonzero(legal)
    most = samples.visits[k].max(axis=1, keepdims=True)

    def agreement() -> float:
        logits, _ = network.to_policy().evaluate(POOL.records, states[k], legal[k])
        chosen = logits.argmax(axis=1)
        return float((samples.visits[k, chosen] == most[:, 0]).mean())

    before = agreement()
    even = samples._replace(targets=np.zeros_like(samples.targets))
    learn(network, POOL.records, even, 150, 1, replace(TINY, learning_rate=0.01))
    assert agreement() > before + 0.3


class Signalled(SerialExecutor):
    """Executor that loses its workers after the first task, at a signal to the process group."""

    def map(self, tasks: Any) -> Any:
        yield next(iter(super().map(tasks)))
        signal.raise_signal(signal.SIGTERM)
        raise AgentFailed("the process ended with status -15")


def test_alphazero__keeps_shards_at_a_signal_to_all_processes(
    finished_run: Any, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    runs.begin(run, SHORT["alphazero"])
    assert not runs.train(run, executor=Signalled())
    name = "shards/0001-0000.safetensors"
    assert contents(run)[name] == contents(finished_run("alphazero"))[name]


def test_alphazero__in_two_processes_makes_the_same_bytes(
    finished_run: Any, tmp_path: Path
) -> None:
    run, words = tmp_path / "run", options_of(SHORT["alphazero"])
    assert main(["--run", str(run), *words, "--executor", "processes:2"]) == 0
    assert contents(run) == contents(finished_run("alphazero"))


def test_alphazero__logs_the_shards_of_each_round(finished_run: Any) -> None:
    """Every second shard of the run is played on the two extra boards in turn."""
    first, second, third = metrics(finished_run("alphazero"))
    assert list(first["shards"]) == [f"0001-000{i}.safetensors" for i in range(3)]
    assert list(third["shards"])[:3] == list(second["shards"])[3:]
    assert first["promotion/games"] == second["promotion/games"] == 12
    assert 0.7 < second["decisions"] / (first["positions"] + second["positions"]) < 0.9
    extra = BoardPool.load(["shikoku_ring", "shikoku_art"])
    for path in (finished_run("alphazero") / "shards").iterdir():
        is_extra = path.stem in ("0001-0001", "0002-0000", "0002-0002", "0003-0001")
        samples = load_samples(path, extra if is_extra else POOL)
        assert len(samples.targets) > 300
        assert set(samples.boards.tolist()) == ({0, 1} if is_extra else {0})


def test_alphazero__does_not_promote_a_worse_policy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The incumbent stays; training continues from the newest network."""
    real, played = alphazero.play_series, list[str]()

    def lost(pairs: Any, match_states: Any, **options: Any) -> Any:
        played.append(match_states[0].b)
        results, stopped = real(pairs, match_states, **options)
        return [replace(results[0], decided="b")], stopped

    monkeypatch.setattr(alphazero, "play_series", lost)
    run = tmp_path / "run"
    runs.begin(run, replace(TINY, rounds=3))
    assert runs.train(run)
    assert [one["promoted"] for one in metrics(run)] == [False] * 3
    assert [Path(spec).name for spec in played] == ["000000000"] * 3
    assert (run / "last").read_bytes() == (run / "policies" / "000000000").read_bytes()
    files = [run / "policies" / f"00000000{number}" for number in range(4)]
    assert len({file.read_bytes() for file in files}) == 4
