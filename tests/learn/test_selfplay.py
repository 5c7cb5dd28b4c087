"""Self-play at scale: what games tell, the same bytes wherever a run stops, and what is refused."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cases import rest_slow
from networks import random_policy
from tokaido_env.learn.declared import RunError
from tokaido_env.learn.games import Played, play_games
from tokaido_env.learn.scale_settings import ScaleSettings
from tokaido_env.learn.sighted import SightedNetwork, frozen

from tokaido_env import Batch
from tokaido_env.agents.inputs import viewer
from tokaido_env.agents.policy import Policy, PolicyAgent, SightedSizes
from tokaido_env.arena.tournament import play_match
from tokaido_env.boards.pool import BoardPool
from tokaido_env.core.jit import entry
from tokaido_env.core.rules import apply, is_chance, scores_of
from tokaido_env.core.state import END_TRIGGERS
from tokaido_env.learn import scale
from tokaido_env.learn.checkpoint import checkpoints
from tokaido_env.learn.network import seed32
from tokaido_env.learn.settings import Settings, start_run
from tokaido_env.learn.update import minibatches, targets_of, update

SMALL = SightedSizes(16, 8, 4, 16, 8)
TINY = ScaleSettings(
    seed=3, updates=4, games=16, minibatch=256, width=8, checkpoint_every=2, freeze_every=3
)


ONCE = replace(TINY, updates=1)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of one update; not to be changed."""
    run = tmp_path_factory.mktemp("scale") / "run"
    scale.train(run, ONCE)
    return run


def network_of(pool: BoardPool, sizes: SightedSizes = SMALL) -> SightedNetwork:
    torch.manual_seed(0)
    return SightedNetwork(sizes, pool.records if len(pool) > 1 else None)


def files(folder: Path) -> dict[str, bytes]:
    """All files of a run but for those that hold times."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "tb" not in path.parts and path.name != "times.jsonl"
    }


@entry
def _after(boards: Any, states: Any, action: int) -> int:
    """Carry out an action; return by whom the state is seen if it is at chance then, else -1."""
    apply(boards[0], states[0], action)
    return int(viewer(states[0])) if is_chance(states[0]) else -1


# Games


def test_what_is_noted_of_games_is_what_was_played() -> None:
    pool = BoardPool.load("family:train/4")
    network = network_of(pool)
    played = play_games(network, pool, 12, seed=5)
    d, c = played.decisions, played.chances
    agent = PolicyAgent.of(frozen(network), "itself", temperature=1.0)
    batch = Batch(12, pool, observation=None, autoreset=False)
    batch.reset(seed=5)
    row = chance = 0
    while not batch.over.all():
        running = np.flatnonzero(~batch.over)
        boards, states, legal = (
            batch.boards_of(running),
            batch.states[running],
            batch.legal[running],
        )
        rows = slice(row, row + len(running))
        assert (d.game[rows] == running).all()
        assert (d.legal[rows] == legal).all()
        assert (d.board[rows] == batch.slots["board"][running]).all()
        assert (d.mover[rows] == states["player"]).all()
        assert (d.round[rows] == states["round"]).all()
        actions = agent.act(boards, states, legal, batch.keys(running))
        assert (d.action[rows] == actions).all()  # the compiled network draws the same
        logits, values = agent.policy.evaluate(boards, states, legal)
        own = values * (1 - 2 * states["player"])
        np.testing.assert_allclose(d.value[rows], own, atol=1e-5)
        odds = logits[np.arange(len(running)), actions] - np.log(np.exp(logits).sum(axis=1))
        np.testing.assert_allclose(d.log_odds[rows], odds, atol=1e-4)
        for j in range(len(running)):
            seen_by = _after(boards[j : j + 1], states[j : j + 1].copy(), actions[j])
            assert d.chance[row + j] == (chance if seen_by >= 0 else -1)
            if seen_by >= 0:
                assert (c.decision[chance], c.viewer[chance]) == (row + j, seen_by)
                chance += 1
        batch.advance(running, actions)
        row += len(running)
    assert (row, chance) == (len(d.game), len(c.decision))
    assert chance > 0
    assert (played.results == batch.rewards(np.arange(12))[:, 0]).all()
    check_ends(played, batch)


def check_ends(played: Played, batch: Batch) -> None:
    for game in range(len(played.results)):
        one, boards = batch.states[game : game + 1], batch.boards_of(np.array([game]))
        first, second = scores_of(boards, one, 0)
        assert played.ends[game, :6].tolist() == [*first, *second]
        assert played.ends[game, 6] == one["round"][0]
        reached = [(one[name][0] == end).any() for name, end in _TRIGGERS]
        by_trigger = one["end"][0] == END_TRIGGERS
        assert by_trigger == any(reached) == (played.ends[game, 7] > 0)
        if by_trigger:
            assert reached[played.ends[game, 7] - 1]


_TRIGGERS = (("temple", 9), ("garden", 6), ("gold", 6), ("gifted", 10))


# Updates


def test_what_is_learnt_is_seen_by_whom_the_inputs_are() -> None:
    pool = BoardPool.load("shikoku")
    played = play_games(network_of(pool), pool, 8, seed=1)
    targets = targets_of(played, replace(TINY, value_lambda=1.0))
    d, c = played.decisions, played.chances
    seat = np.concatenate([d.mover, c.viewer]).astype(int)
    game = np.concatenate([d.game, d.game[c.decision]])
    np.testing.assert_allclose(targets.values, played.results[game] * (1 - 2 * seat), atol=1e-6)
    ends = played.ends[game].astype(float)
    margin = (ends[:, :3].sum(axis=1) - ends[:, 3:6].sum(axis=1)) * (1 - 2 * seat)
    np.testing.assert_allclose(targets.auxiliary[:, 0].numpy() * 20, margin, atol=1e-4)
    mine = np.where(seat[:, None] == 0, ends[:, :3], ends[:, 3:6])
    np.testing.assert_allclose(targets.auxiliary[:, 1:4].numpy() * 20, mine, atol=1e-4)
    assert (targets.auxiliary[:, -1].numpy() == ends[:, 7]).all()
    assert (targets.auxiliary[:, 7] >= 0).all()
    assert targets.weights.numpy() == pytest.approx(1.0)


def test_late_rounds_weigh_more_and_all_together_the_same() -> None:
    pool = BoardPool.load("shikoku")
    played = play_games(network_of(pool), pool, 8, seed=1)
    weights = targets_of(played, replace(TINY, late=3.0, late_from=10)).weights.numpy()
    late = np.concatenate([played.decisions.round, played.decisions.round[played.chances.decision]])
    assert weights.mean() == pytest.approx(1.0)
    assert weights[late >= 10] == pytest.approx(3 * weights[late < 10].max())


def test_minibatches_deal_each_row_once() -> None:
    generator = torch.Generator()
    generator.manual_seed(0)
    dealt = list(minibatches(1000, 300, 128, generator))
    assert [len(one.decisions) for one in dealt] == [128] * 7
    assert [len(one.chances) for one in dealt] == [42] * 7
    for name in ("decisions", "chances"):
        rows = torch.cat([getattr(one, name) for one in dealt])
        assert len(rows.unique()) == len(rows)


def test_an_update_learns_who_won() -> None:
    """What is known without looking is a loss of log 2."""
    pool = BoardPool.load("shikoku")
    network = network_of(pool)
    played = play_games(network, pool, 16, seed=1)
    optimizer = torch.optim.Adam(network.parameters(), 0.01)
    first, second = (
        update(network, optimizer, played, TINY, torch.Generator()).value for _ in range(2)
    )
    assert second < 0.98 * first < 0.98 * np.log(2)


@pytest.mark.slow
def test_self_play_learns_what_wins() -> None:
    """Sixty steps of the optimizer gain clearly on the network that they began with."""
    pool = BoardPool.load("shikoku")
    settings = replace(TINY, games=256, minibatch=1024, learning_rate=3e-3)
    network = network_of(pool, SightedSizes(32, 16, 8, 32, 16))
    with torch.no_grad():
        network.outlook["weight"].fill_(0.0)  # it knows nothing
    before = PolicyAgent.of(frozen(network), "before", temperature=1.0)
    optimizer = torch.optim.Adam(network.parameters(), settings.learning_rate)
    generator = torch.Generator()
    generator.manual_seed(0)
    for number in range(2):
        played = play_games(network, pool, settings.games, seed=1000 * number)
        losses = update(network, optimizer, played, settings, generator)
    assert losses.value < 0.69  # what is known without looking is log 2
    after = PolicyAgent.of(frozen(network), "after", temperature=1.0)
    assert play_match(after, before, 400, 1, "shikoku").score > 0.65


# Runs


@pytest.mark.parametrize(
    "settings",
    rest_slow(
        [
            replace(TINY, average=0.5, beside="shikoku_ring,shikoku_art", beside_every=2),
            replace(TINY, precision="bfloat16", board="family:train/3"),
            TINY,
        ]
    ),
)
def test_a_run_makes_the_same_bytes_wherever_it_stops(
    settings: ScaleSettings, tmp_path: Path
) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    told: list[dict[str, Any]] = []
    assert scale.train(whole, settings, told.append)
    assert [figures["update"] for figures in told] == [1, 2, 3, 4]
    assert scale.train(parts, replace(settings, updates=1))
    assert scale.train(parts, replace(settings, updates=3))
    assert scale.train(parts, settings)
    one, other = files(whole), files(parts)
    for name in ("last", "best", "metrics.jsonl", "settings.json"):
        assert one[name] == other[name], name
    assert [name for name in one if name.startswith("policies/")] == [
        name for name in other if name.startswith("policies/")
    ]
    newest = checkpoints(whole)[-1].name
    for name in ("learner.safetensors", "optimizer.safetensors"):
        assert one[f"checkpoints/{newest}/{name}"] == other[f"checkpoints/{newest}/{name}"]
    assert Policy.load(whole).training["updates"] == 4


def test_layers_are_as_wide_as_asked_for(tmp_path: Path) -> None:
    settings = replace(TINY, updates=1, games=8, second=24, move=12)
    scale.train(tmp_path, settings)
    assert Policy.load(tmp_path).sizes == settings.sizes == SightedSizes(8, 24, 12, 8, 24)
    for name in ("second", "move"):
        with pytest.raises(RunError, match=f"{name}: expected"):
            replace(TINY, **{name: 5000})


def test_a_policy_file_holds_the_averaged_weights(tmp_path: Path) -> None:
    tensors = {}
    for name, average in (("plain", 0.0), ("averaged", 0.75)):
        for updates in (1, 2):
            settings = replace(TINY, updates=updates, average=average)
            scale.train(tmp_path / name, settings)
            tensors[name, updates] = Policy.load(tmp_path / name).tensors["trunk.0.weight"]
    torch.manual_seed(seed32(TINY.seed))
    first = frozen(SightedNetwork(TINY.sizes)).tensors["trunk.0.weight"]
    mean = first
    for updates in (1, 2):
        mean = 0.75 * mean + 0.25 * tensors["plain", updates]
        np.testing.assert_allclose(tensors["averaged", updates], mean, atol=1e-6)


def test_a_second_board_is_for_networks_that_read_none(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="beside: expected see_board = no"):
        replace(TINY, board="family:train/3", beside="shikoku")
    settings = replace(TINY, board="family:train/3", see_board="no", beside="family:valid")
    scale.train(tmp_path, replace(settings, updates=1))
    assert Policy.load(tmp_path).training["board"]["splits"] == ["train", "valid"]


def test_boards_beside_are_played_on_in_turn() -> None:
    pool = replace(TINY, beside="shikoku_ring,shikoku_art,shikoku").pool_beside
    played = play_games(network_of(BoardPool.load()), pool, 7, seed=1)
    games = np.unique(np.stack([played.decisions.game, played.decisions.board]), axis=1)
    assert games.tolist() == [[0, 1, 2, 3, 4, 5, 6], [0, 1, 2, 0, 1, 2, 0]]


def test_a_finished_run_does_nothing_more(finished: Path) -> None:
    before = files(finished)
    assert scale.train(finished, ONCE, pytest.fail)
    assert files(finished) == before


def test_a_run_on_many_boards_begins_from_a_policy(tmp_path: Path) -> None:
    settings = replace(TINY, board="family:train/3", updates=1)
    scale.train(tmp_path / "first", settings)
    start = str(tmp_path / "first" / "last")
    scale.train(tmp_path / "second", replace(settings, start_from=start, seed=4))
    policy = Policy.load(tmp_path / "second")
    assert policy.sees_board
    assert policy.has_sight
    assert policy.training["board"]["splits"] == ["train"]


def test_a_number_that_is_not_finite_stops_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    twice = replace(TINY, updates=2)
    scale.train(tmp_path, ONCE)
    before = files(tmp_path)
    play = scale.play_games

    def spoilt(*args: Any) -> Played:
        played = play(*args)
        played.decisions.inputs[7, 3] = float("nan")
        return played

    monkeypatch.setattr(scale, "play_games", spoilt)
    message = (
        rf"update 2, minibatch \d+: the loss is nan: .*{checkpoints(tmp_path)[-1].name} is the"
    )
    with pytest.raises(RunError, match=message):
        scale.train(tmp_path, twice)
    monkeypatch.undo()
    assert {k: v for k, v in files(tmp_path).items() if k != "settings.json"} == {
        k: v for k, v in before.items() if k != "settings.json"
    }
    assert scale.train(tmp_path, twice)  # the same command goes on


def test_other_settings_other_methods_and_other_policies_are_refused(
    finished: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    with pytest.raises(RunError, match=r"cannot go on with other settings: games: the run has 16"):
        scale.train(finished, replace(TINY, games=32))
    start_run(other, Settings())
    with pytest.raises(RunError, match=r"is a run of another method: expected one of --method sca"):
        scale.train(other, TINY)
    plain = str(tmp_path / "plain")
    random_policy().save(plain)
    with pytest.raises(RunError, match="start_from: expected a policy with sight"):
        scale.train(tmp_path / "third", replace(TINY, start_from=plain))
    start = str(finished / "last")
    with pytest.raises(RunError, match=r"start_from: expected at most SightedSizes\(first=8, sec"):
        scale.train(tmp_path / "fourth", replace(TINY, start_from=start, second=1))


def test_a_folder_for_other_inputs_is_refused(finished: Path, tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    contents = json.loads((finished / "settings.json").read_text())
    assert contents["settings"] == asdict(ONCE)
    file.write_text(json.dumps(contents | {"inputs": "0123456789abcdef"}))
    with pytest.raises(RunError, match=r"made for inputs '0123456789abcdef', this version has '"):
        scale.train(tmp_path, TINY)


def test_the_command_trains_and_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--run", str(tmp_path), "--games", "8", "--minibatch", "128", "--width", "8"]
    assert scale.main([*asked, "--updates", "1"]) == 0
    assert scale.main([*asked, "--updates", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["update", "1", "update", "2"]
    assert scale.main([*asked, "--updates", "2", "--luck", "2"]) == 1
    assert "train: luck: expected" in capsys.readouterr().err
