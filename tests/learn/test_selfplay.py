"""`selfplay`: what games tell, what an update learns, and what its runs alone have."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tokaido_env import Batch
from tokaido_env.agents.network_inputs import active_seat
from tokaido_env.agents.policy import LayerSizes, Policy, PolicyAgent
from tokaido_env.arena.tournament import play_match
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.core.jit import entry
from tokaido_env.core.rules import apply, is_chance, scores_of
from tokaido_env.core.state import END_TRIGGERS
from tokaido_env.learn import run as runs, selfplay
from tokaido_env.learn.checkpoint import checkpoints
from tokaido_env.learn.network import PolicyNetwork, seed32
from tokaido_env.learn.rollouts import Rollout, play_games
from tokaido_env.learn.run_folder import extend
from tokaido_env.learn.settings import SelfPlaySettings
from tokaido_env.learn.settings_schema import RunError
from tokaido_env.learn.update import minibatches, targets_of, update

SMALL = LayerSizes(16, 8, 4, 16, 8)
TINY = SelfPlaySettings(seed=3, updates=1, games=16, minibatch_size=256, width=8, snapshot_every=3)


def train(folder: Path, settings: SelfPlaySettings) -> Policy:
    """Train a run to its end; return its last policy."""
    runs.begin(folder, settings)
    assert runs.train(folder)
    return Policy.load(folder / "last")


def network_of(pool: BoardPool, sizes: LayerSizes = SMALL) -> PolicyNetwork:
    torch.manual_seed(0)
    return PolicyNetwork(sizes, pool.records if len(pool) > 1 else None)


@entry
def _after(boards: Any, states: Any, action: int) -> int:
    """Carry out an action; return by whom the state is seen if it is at chance then, else -1."""
    apply(boards[0], states[0], action)
    return int(active_seat(states[0])) if is_chance(states[0]) else -1


# Games


def test_what_is_noted_of_games_is_what_was_played() -> None:
    pool = BoardPool.load("family:train/4")
    network = network_of(pool)
    played = play_games(network, pool, 12, seed=5)
    d, c = played.decisions, played.chances
    agent = PolicyAgent.from_policy(network.to_policy(), "itself", temperature=1.0)
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
        assert (d.board[rows] == batch.episode_info["board"][running]).all()
        assert (d.mover[rows] == states["player"]).all()
        assert (d.round[rows] == states["round"]).all()
        actions = agent.act(boards, states, legal, batch.keys(running))
        assert (d.action[rows] == actions).all()  # the compiled network draws the same
        logits, values = agent.policy.evaluate(boards, states, legal)
        own = values * (1 - 2 * states["player"])
        np.testing.assert_allclose(d.value[rows], own, atol=1e-5)
        odds = logits[np.arange(len(running)), actions] - np.log(np.exp(logits).sum(axis=1))
        np.testing.assert_allclose(d.log_prob[rows], odds, atol=1e-4)
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


def check_ends(played: Rollout, batch: Batch) -> None:
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
    weights = targets_of(
        played, replace(TINY, late_round_weight=3.0, late_round_from=10)
    ).weights.numpy()
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
        update(network, optimizer, played, TINY, torch.Generator()).value_loss for _ in range(2)
    )
    assert second < 0.98 * first < 0.98 * np.log(2)


@pytest.mark.slow
def test_self_play_learns_what_wins() -> None:
    """Sixty steps of the optimizer gain clearly on the network that they began with."""
    pool = BoardPool.load("shikoku")
    settings = replace(TINY, games=256, minibatch_size=1024, learning_rate=3e-3)
    network = network_of(pool, LayerSizes(32, 16, 8, 32, 16))
    with torch.no_grad():
        network.outlook["weight"].fill_(0.0)  # it knows nothing
    before = PolicyAgent.from_policy(network.to_policy(), "before", temperature=1.0)
    optimizer = torch.optim.Adam(network.parameters(), settings.learning_rate)
    generator = torch.Generator()
    generator.manual_seed(0)
    for number in range(2):
        played = play_games(network, pool, settings.games, seed=1000 * number)
        losses = update(network, optimizer, played, settings, generator)
    assert losses.value_loss < 0.69  # what is known without looking is log 2
    after = PolicyAgent.from_policy(network.to_policy(), "after", temperature=1.0)
    assert play_match(after, before, 400, 1, "shikoku").score > 0.65


# Runs


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_layers_are_as_wide_as_asked_for_and_learn_in_any_precision(
    tmp_path: Path, precision: str
) -> None:
    settings = replace(TINY, games=8, second_width=24, move_width=12, precision=precision)
    policy = train(tmp_path / "run", settings)
    assert policy.sizes == settings.sizes == LayerSizes(8, 24, 12, 8, 24)
    before = PolicyNetwork(settings.sizes).to_policy().tensors
    assert all((policy.tensors[name] != tensor).any() for name, tensor in before.items())


def test_a_policy_file_holds_the_averaged_weights(tmp_path: Path) -> None:
    tensors = {}
    for name, decay in (("plain", 0.0), ("averaged", 0.75)):
        for updates in (1, 2):
            settings = replace(TINY, updates=updates, ema_decay=decay)
            policy = train(tmp_path / f"{name} {updates}", settings)
            tensors[name, updates] = policy.tensors["trunk.0.weight"]
    torch.manual_seed(seed32(TINY.seed))
    mean = PolicyNetwork(TINY.sizes).to_policy().tensors["trunk.0.weight"]
    for updates in (1, 2):
        mean = 0.75 * mean + 0.25 * tensors["plain", updates]
        np.testing.assert_allclose(tensors["averaged", updates], mean, atol=1e-6)


def test_extra_boards_are_for_networks_that_read_none(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="extra_boards: expected see_board = no"):
        replace(TINY, board="family:train/3", extra_boards="shikoku")
    settings = replace(TINY, board="family:train/3", see_board="no", extra_boards="family:valid")
    policy = train(tmp_path / "run", settings)
    assert policy.training["board"]["splits"] == ["train", "valid"]


def test_extra_boards_are_played_on_in_turn() -> None:
    pool = replace(TINY, extra_boards="shikoku_ring,shikoku_art,shikoku").extra_pool
    played = play_games(network_of(BoardPool.load()), pool, 7, seed=1)
    games = np.unique(np.stack([played.decisions.game, played.decisions.board]), axis=1)
    assert games.tolist() == [[0, 1, 2, 3, 4, 5, 6], [0, 1, 2, 0, 1, 2, 0]]


def test_a_number_that_is_not_finite_stops_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(tmp_path / "run", TINY)
    extend(tmp_path / "run", {"updates": 2})
    play = selfplay.play_games

    def spoilt(*args: Any) -> Rollout:
        played = play(*args)
        played.decisions.inputs[7, 3] = float("nan")
        return played

    newest = checkpoints(tmp_path / "run")[-1]
    with monkeypatch.context() as patch:
        patch.setattr(selfplay, "play_games", spoilt)
        message = rf"after 1 updates, minibatch \d+: the loss is nan: .*{newest.name} is the last"
        with pytest.raises(RunError, match=message):
            runs.train(tmp_path / "run")
    assert checkpoints(tmp_path / "run") == [newest]
    assert runs.train(tmp_path / "run")
