"""`alphazero`: shards of self-play, what is learnt from them, and who plays next."""

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from networks import SMALL, random_policy
from short_run import SHORT, contents, metrics, words_of

from tokaido_env import Game
from tokaido_env.agents import make
from tokaido_env.arena.executors import AgentCache
from tokaido_env.arena.game_runner import AgentFailed
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.cli.train import main
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.rng import agent_keys, episode_seed
from tokaido_env.learn import alphazero, run as runs
from tokaido_env.learn.alphazero import learn
from tokaido_env.learn.network import PolicyNetwork
from tokaido_env.learn.replay_buffer import Samples, load_samples, save_samples
from tokaido_env.learn.selfplay_games import SelfPlayGames, sample_rows
from tokaido_env.learn.settings import AlphaZeroSettings
from tokaido_env.learn.settings_schema import RunError

TINY = AlphaZeroSettings(
    **{"rounds": 2, "shards": 2, "games": 6, "first_sims": 3, "sims": 3, "width": 16},
    **{"minibatch_size": 256, "promotion_games": 12, "replay_rounds": 2},
)
POOL = BoardPool.load("shikoku")


# Games


def task(expert: str = "mcts:sims=3", **change: Any) -> SelfPlayGames:
    return SelfPlayGames(expert, "", POOL, 6, 50, 0.3, 0.1)._replace(**change)


def samples_of(one: SelfPlayGames) -> Samples:
    (samples,) = one.run(AgentCache())
    assert isinstance(samples, Samples)
    return samples


def test_a_shard_is_whole_games_and_their_results() -> None:
    """Without variety the search plays as it does in a game alone, of the seeds that follow."""
    samples = samples_of(task(visit_sampling=0.0, uniform_sampling=0.0))
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


def test_shards_of_other_seeds_are_other_games_and_variety_changes_them() -> None:
    first = samples_of(task())
    assert all((a == b).all() for a, b in zip(samples_of(task()), first, strict=True))
    for other in (task(seed=1050), task(uniform_sampling=0.5)):
        assert samples_of(other).states.tobytes() != first.states.tobytes()


def test_a_shard_on_a_pool_tells_its_boards() -> None:
    samples = samples_of(task(pool=BoardPool.load("family:train/3"), games=12))
    assert set(samples.boards.tolist()) == {0, 1, 2}


@pytest.mark.parametrize("led", [False, True])
def test_some_decisions_are_searched_in_full_and_learnt_from(tmp_path: Path, led: bool) -> None:
    """A policy that its own short search contradicts has the decision searched in full."""
    random_policy().save(tmp_path / "policy")
    expert = f"policy_search:{tmp_path / 'policy'},sims=24" if led else "mcts:sims=24"
    whole = samples_of(task(expert)).visits.sum(axis=1)
    shares = {}
    for full in (0.0, 0.5, 1.0):
        visits = samples_of(task(expert, full_search_share=full, cheap_sims=3)).visits.sum(axis=1)
        assert set(visits[visits > 0].tolist()) <= set(whole.tolist())
        shares[full] = float((visits > 0).mean())
    doubted = shares[0.0]
    assert (0.05 < doubted < 0.95) if led else doubted == 0
    assert shares[0.5] == pytest.approx(0.5 + doubted / 2, abs=0.1)
    assert shares[1.0] == 1


def test_what_is_no_search_plays_no_task() -> None:
    with pytest.raises(AgentFailed, match="search: expected mcts or policy_search, got 'greedy'"):
        samples_of(task("greedy"))


def test_actions_are_sample_rows_in_proportion() -> None:
    n = 20_000
    weights = np.zeros((n, N_ACTIONS), np.uint16)
    weights[:, [2, 7, 48]] = 1, 3, 4
    numbers = np.random.default_rng(0).random(n)
    counts = np.bincount(sample_rows(weights, numbers), minlength=N_ACTIONS)
    assert counts[[2, 7, 48]] / n == pytest.approx(np.array([1, 3, 4]) / 8, abs=0.015)
    assert counts.sum() == counts[[2, 7, 48]].sum()


# Files of samples


def test_samples_hold_positions_with_a_choice_and_what_was_played() -> None:
    samples = samples_of(task(uniform_sampling=0.5))
    for mask, visits, action in zip(
        samples.legal.tolist(), samples.visits, samples.actions.tolist(), strict=True
    ):
        assert mask & (mask - 1)
        assert visits.sum() == 3
        assert mask >> action & 1
    assert (samples.actions != samples.visits.argmax(axis=1)).mean() > 0.2


def test_samples_come_back_from_their_file(tmp_path: Path) -> None:
    pool, path = BoardPool.load("family:train/3"), tmp_path / "0001-0000.npz"
    samples = samples_of(task(pool=pool, games=12))
    save_samples(path, samples)
    loaded = load_samples(path, pool)
    assert all((one == other).all() for one, other in zip(loaded, samples, strict=True))
    for wrong in ((loaded.boards + 1) % 3, loaded.boards + 6, loaded.boards - 6):
        save_samples(path, samples._replace(boards=wrong.astype(np.int32)))
        with pytest.raises(RunError, match=r"broken samples: (game|boards: expected numbers) "):
            load_samples(path, pool)


def test_samples_that_are_pickled_are_not_loaded(tmp_path: Path) -> None:
    touched, path = tmp_path / "touched", tmp_path / "0001-0000.npz"

    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (touched,))

    np.savez(path, **dict.fromkeys(Samples._fields, np.array([Trap()], object)))
    with pytest.raises(RunError, match=r"npz: not a file of arrays: .*expected object of shape"):
        load_samples(path, "shikoku")
    path.write_bytes(pickle.dumps(Trap()))
    with pytest.raises(RunError, match="npz: not a file of arrays: File is not a zip file"):
        load_samples(path, "shikoku")
    assert not touched.exists()


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("states", lambda a: a | 0x55, "game 0: .*: expected"),
        ("states", lambda a: a[:, :5], r"states: expected uint8 of shape \(40, 75\), got uint8"),
        ("legal", lambda a: a * 0, "game 0: legal: expected the legal actions of its state"),
        ("legal", lambda a: a.astype(np.int64), "legal: expected uint64 of shape .* got int64"),
        ("visits", lambda a: a * 0, "visits: expected some, and of legal actions only"),
        ("visits", lambda a: a + 1, "visits: expected some, and of legal actions only"),
        ("actions", lambda a: a * 0 + 200, "actions: expected legal ones"),
        ("values", lambda a: a * np.nan, "values: expected numbers from -1 to 1"),
        ("results", lambda a: a + 2, "results: expected numbers from -1 to 1"),
    ],
)
def test_samples_of_a_stranger_are_looked_at_before_a_kernel_reads_them(
    tmp_path: Path, name: str, change: Any, message: str
) -> None:
    path = tmp_path / "0001-0000.npz"
    samples = Samples(*(column[:40] for column in samples_of(task())))
    arrays = samples._asdict() | {"states": samples.states.copy().view(np.uint8).reshape(40, -1)}
    np.savez(path, **arrays | {name: change(arrays[name])})
    with pytest.raises(RunError, match=f"broken samples: {message}.*: delete the file"):
        load_samples(path, "shikoku")


# Learning


def learnt(network: PolicyNetwork, samples: Samples, steps: int) -> tuple[float, float]:
    return learn(network, samples, steps, 1, replace(TINY, learning_rate=0.01))


def test_policy_and_value_learn_what_the_samples_say() -> None:
    """The policy also where nothing was visited in full, the value also at chance."""
    torch.manual_seed(0)
    network = PolicyNetwork(SMALL)
    samples = samples_of(task(games=24))
    half = samples.visits * (np.arange(len(samples.legal)) % 2 == 0)[:, None]
    first = learnt(PolicyNetwork(SMALL), samples, 1)
    last = learnt(network, samples._replace(visits=half.astype(np.uint16)), 150)
    assert last[0] < 0.8 * first[0]
    assert last[1] < 0.8 * np.log(2)
    logits, values = network.to_policy().evaluate(POOL.records, samples.states, samples.legal)
    hit = logits.argmax(axis=1) == samples.visits.argmax(axis=1)
    assert hit.mean() > 0.5
    assert np.corrcoef(values, (samples.results + samples.values) / 2)[0, 1] > 0.5


def test_without_weight_the_value_stays_as_it_is() -> None:
    policy, samples = random_policy(), samples_of(task())
    network = PolicyNetwork(SMALL)
    runs.load_weights(network, policy)
    learn(network, samples, 5, 1, replace(TINY, value_weight=0.0))
    units = SMALL.first
    for name, tensor in network.to_policy().tensors.items():
        same = tensor == policy.tensors[name]
        if name.startswith("trunk.0"):
            assert same[units:].all()
            assert not same[:units].all()
        else:
            assert same.all() == name.startswith("value")


# Runs


def test_two_processes_leave_the_same_bytes(
    finished_run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, words = tmp_path / "run", words_of(SHORT["alphazero"])
    assert main(["--run", str(run), *words, "--executor", "processes:2"]) == 0
    assert contents(run) == contents(finished_run("alphazero"))
    capsys.readouterr()
    assert main(["--resume", str(run), "--executor", "nobody"]) == 1
    error = capsys.readouterr().err
    assert "executor: expected serial, processes[:N] or ray[:ADDRESS], got" in error
    assert error.count("\n") == 1


def test_metrics_name_what_each_round_learnt_from(finished_run: Any) -> None:
    first, second, third = metrics(finished_run("alphazero"))
    assert list(first["shards"]) == ["0001-0000.npz", "0001-0001.npz", "0001-0002.npz"]
    assert list(third["shards"])[:3] == list(second["shards"])[3:]
    assert first["promoted"]
    assert second["promotion/games"] == 12
    for path in (finished_run("alphazero") / "shards").iterdir():
        assert len(load_samples(path, POOL).legal) > 300


def test_a_policy_that_is_shown_to_be_worse_is_not_promoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next round is played by the incumbent; the learner goes on from the newest."""
    real, played = alphazero.play_series, list[str]()

    def lost(pairs: Any, match_states: Any, **options: Any) -> Any:
        played.append(match_states[0].b)
        results, stopped = real(pairs, match_states, **options)
        return [results[0]._replace(decided="b")], stopped

    monkeypatch.setattr(alphazero, "play_series", lost)
    run = tmp_path / "run"
    runs.begin(run, replace(TINY, rounds=3))
    assert runs.train(run)
    assert [one["promoted"] for one in metrics(run)] == [True, False, False]
    assert [Path(spec).name for spec in played] == ["000000001", "000000001"]
    assert (run / "last").read_bytes() == (run / "policies" / "000000001").read_bytes()
