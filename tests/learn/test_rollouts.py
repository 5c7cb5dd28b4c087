"""Rollouts of self-play: every recorded entry against a replay of the games."""

from typing import Any

import numpy as np
import torch
from networks import ROUNDING

from tokaido_env import Batch
from tokaido_env.agents.policy import LayerSizes, PolicyAgent
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.core.jit import entry
from tokaido_env.core.rules import apply, is_chance, scores_of
from tokaido_env.core.state import END_TRIGGERS
from tokaido_env.features.network_inputs import active_seat
from tokaido_env.learn.network import PolicyNetwork
from tokaido_env.learn.rollouts import Rollout, play_games

SMALL = LayerSizes(16, 8, 4, 16, 8)


def network_of(pool: BoardPool, sizes: LayerSizes = SMALL) -> PolicyNetwork:
    torch.manual_seed(0)
    return PolicyNetwork(sizes, pool.records if len(pool) > 1 else None)


@entry
def viewer_after(boards: Any, states: Any, action: int) -> int:
    """Apply an action; return the viewer of the chance node after it, or -1."""
    apply(boards[0], states[0], action)
    return int(active_seat(states[0])) if is_chance(states[0]) else -1


def test_play_games__records_what_was_played() -> None:
    pool = BoardPool.load("family:train/4")
    network = network_of(pool)
    rollout = play_games(network, pool, 12, seed=5)
    d, c = rollout.decisions, rollout.chances
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
        assert (d.action[rows] == actions).all()  # the compiled network samples the same
        logits, values = agent.policy.evaluate(boards, states, legal)
        own = values * (1 - 2 * states["player"])
        np.testing.assert_allclose(d.value[rows], own, atol=ROUNDING)
        odds = logits[np.arange(len(running)), actions] - np.log(np.exp(logits).sum(axis=1))
        np.testing.assert_allclose(d.log_prob[rows], odds, atol=ROUNDING)
        for j in range(len(running)):
            viewer = viewer_after(boards[j : j + 1], states[j : j + 1].copy(), actions[j])
            assert d.chance[row + j] == (chance if viewer >= 0 else -1)
            if viewer >= 0:
                assert (c.decision[chance], c.viewer[chance]) == (row + j, viewer)
                chance += 1
        batch.advance(running, actions)
        row += len(running)
    assert (row, chance) == (len(d.game), len(c.decision))
    assert chance > 0
    assert (rollout.results == batch.rewards(np.arange(12))[:, 0]).all()
    check_ends(rollout, batch)


_TRIGGERS = (("temple", 9), ("garden", 6), ("gold", 6), ("gifted", 10))


def check_ends(rollout: Rollout, batch: Batch) -> None:
    for game in range(len(rollout.results)):
        one, boards = batch.states[game : game + 1], batch.boards_of(np.array([game]))
        first, second = scores_of(boards, one, 0)
        assert rollout.ends[game, :6].tolist() == [*first, *second]
        assert rollout.ends[game, 6] == one["round"][0]
        reached = [(one[name][0] == end).any() for name, end in _TRIGGERS]
        by_trigger = one["end"][0] == END_TRIGGERS
        assert by_trigger == any(reached) == (rollout.ends[game, 7] > 0)
        if by_trigger:
            assert reached[rollout.ends[game, 7] - 1]
