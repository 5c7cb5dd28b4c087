"""Exact endings, against a plain search of the game with explicit chance."""

import numpy as np
import pytest
from networks import random_play, random_policy

from tokaido_env import Batch, Board, Game
from tokaido_env.agent import Legal, States
from tokaido_env.agents.ending_actions import improve_endings
from tokaido_env.agents.policy import PolicyAgent
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.jit import entry
from tokaido_env.core.state import EFFECT, REPEAT, ROLL
from tokaido_env.features.endings import (
    FRAME,
    FRAMES,
    NO_LINE,
    UNSOLVED,
    YES,
    best_ending,
    forces_win,
)
from tokaido_env.observers import masks
from tokaido_env.position import to_dict

BOARDS = "shikoku", "family:7"


@entry
def ending_of(boards, states, legal, frames, limit):
    frames[0]["state"] = states[0]
    return best_ending(boards[0], frames, legal, limit)


def solved(game: Game, limit: int = 100_000) -> float:
    frames = np.zeros(FRAMES, FRAME)
    return float(ending_of(game.boards, game.state, np.uint64(game.legal_mask), frames, limit))


@entry
def win_of(boards, states, legal, frames, seat):
    frames[0]["state"] = states[0]
    return forces_win(boards[0], frames, legal, seat, 1_000_000)


def forces(game: Game, seat: int) -> bool:
    """Return whether a seat can win in this round, whatever the other does and chance brings."""
    if game.is_over or game.state[0]["phase"] == ROLL:
        return game.is_over and game.winner() == seat
    moves = [label for label, _ in game.outcomes()] or list(game.legal_actions())
    wins = (forces(played(game, move), seat) for move in moves)
    return any(wins) if game.state[0]["player"] == seat else all(wins)


RESULTS: dict[tuple[str, bytes, int], float] = {}


def searched(game: Game, seat: int) -> float:
    """Return the result for player_0; a loss if the pick ends and no trigger was pulled."""
    key = game.board.hash, game.states.tobytes(), seat
    if key not in RESULTS:
        RESULTS[key] = searched_once(game, seat)
    return RESULTS[key]


def searched_once(game: Game, seat: int) -> float:
    if game.is_over:
        return {None: 0.0, 0: 1.0, 1: -1.0}[game.winner()]
    state = game.state[0]
    if game.outcomes():
        return sum(odds * searched(played(game, label), seat) for label, odds in game.outcomes())
    if not state["end_triggered"] and (
        state["player"] != seat or state["phase"] not in (EFFECT, REPEAT)
    ):
        return -float(NO_LINE) * (1 - 2 * seat)
    return best_of(game, seat)


def best_of(game: Game, seat: int) -> float:
    values = [searched(played(game, action), seat) for action in game.legal_actions()]
    return max(values) if game.state[0]["player"] == 0 else min(values)


def played(game: Game, move: int | str) -> Game:
    after = game.copy()
    after.play(move)
    return after


def late_decisions(board: str, most: int, picks_left: int = 0) -> list[Game]:
    """Decisions of games of `greedy` after a trigger, where the players are close."""
    batch = Batch(4096, board, observation=None, autoreset=False)
    batch.reset(seed=5)
    found: list[Game] = []
    while len(found) < most and not batch.over.all():
        batch.play("greedy")
        states = batch.states
        picks = np.bitwise_count(states["dice_left"].astype(np.uint8))
        last = (states["end_triggered"] != 0) & (picks == picks_left) & ~batch.over
        several = batch.legal & (batch.legal - np.uint64(1)) != 0
        for i in np.flatnonzero(last & several):
            game = Game.from_dict(to_dict(Board.load(board), states[i]), chance="explicit")
            one, other = (score["total"] for score in game.scores())
            if abs(one - other) <= 3:
                found.append(game)
    return found[:most]


@pytest.mark.parametrize("board", BOARDS)
def test_best_ending__is_exact_after_a_trigger(board: str) -> None:
    found = set()
    for game in late_decisions(board, 60) + late_decisions(board, 3, picks_left=1):
        expected = best_of(game, int(game.state[0]["player"]))
        assert solved(game) == pytest.approx(expected, abs=1e-6)
        found.add(round(expected, 3))
    assert found >= {-1, 1}


def test_best_ending__finds_the_lines_of_a_pick_that_pull_a_trigger() -> None:
    values = []
    for game, _ in random_play(games=20):
        state = game.state[0]
        near = state["gifted"].max() >= 9 or state["temple"].max() >= 8
        few = int(state["dice_left"]).bit_count() <= 1
        if game.legal_mask and near and few and not state["end_triggered"]:
            values.append(solved(game))
            assert values[-1] == pytest.approx(best_of(game, int(state["player"])), abs=1e-6)
    assert min(map(abs, values)) <= 1 < max(map(abs, values))


def test_best_ending__stops_at_its_limit() -> None:
    game = late_decisions("shikoku", 1)[0]
    assert solved(game, limit=0) == UNSOLVED


def test_improve_endings__takes_the_best_action() -> None:
    changed = 0
    for game in late_decisions("shikoku", 150):
        seat = int(game.state[0]["player"])
        values = {a: (1 - 2 * seat) * searched(played(game, a), seat) for a in game.legal_actions()}
        for chosen in values:
            actions, legal = np.array([chosen]), np.array([game.legal_mask], np.uint64)
            scores = np.zeros((1, N_ACTIONS))
            improve_endings(actions, game.boards, game.state, legal, scores)
            assert values[int(actions[0])] == pytest.approx(max(values.values()), abs=1e-4)
            # An action that is as good stays.
            assert int(actions[0]) == chosen or values[chosen] < max(values.values()) - 1e-5
            changed += int(actions[0]) != chosen
    assert changed > 10


def near_triggers() -> tuple[States, Legal]:
    """Decisions of games of `greedy` a step from a trigger, with at most one pick to come."""
    batch = Batch(1024, "shikoku", observation=None, autoreset=False)
    batch.reset(seed=6)
    states, legal = [], []
    while not batch.over.all():
        s, several = batch.states, batch.legal & (batch.legal - np.uint64(1)) != 0
        near = (s["gifted"].max(axis=1) >= 9) | (s["temple"].max(axis=1) >= 8)
        few = np.bitwise_count(s["dice_left"].astype(np.uint8)) <= 1
        rows = np.flatnonzero(several & near & few & (s["end_triggered"] == 0))
        states.append(s[rows])
        legal.append(batch.legal[rows])
        batch.play("greedy")
    return np.concatenate(states), np.concatenate(legal)


def test_improve_endings__takes_and_avoids_forced_wins() -> None:
    states, legal = near_triggers()
    rng = np.random.default_rng(3)
    scores, board = rng.random((len(legal), N_ACTIONS)), Board.load("shikoku")
    before = np.array([rng.choice(np.flatnonzero(row)) for row in masks(legal)])
    actions = before.copy()
    improve_endings(actions, BoardPool.load("shikoku").records, states, legal, scores)
    rows = rng.permutation(np.flatnonzero(actions != before))[:70].tolist()
    won = lost = 0
    for i in rows + rng.permutation(len(legal))[:50].tolist():
        game = Game.from_dict(to_dict(board, states[i]), chance="explicit")
        seat = int(game.state[0]["player"])
        after = {action: played(game, action) for action in game.legal_actions()}
        winning = [action for action in after if forces(after[action], seat)]
        safe = [action for action in after if not forces(after[action], 1 - seat)]
        for own, wins in ((seat, bool(winning)), (1 - seat, not safe)):
            frames = np.zeros(FRAMES, FRAME)
            assert (win_of(game.boards, game.state, legal[i], frames, own) == YES) == wins
        if winning:
            assert actions[i] == before[i] if before[i] in winning else actions[i] in winning
        elif not safe or before[i] in safe:
            assert actions[i] == before[i]
        else:
            assert actions[i] == max(safe, key=lambda action: scores[i, action])
        won += bool(winning)
        lost += before[i] not in safe
    assert min(won, lost) > 10


def test_policy_agent__judges_exact_endings_as_it_plays_them() -> None:
    games = late_decisions("shikoku", 100) + late_decisions("shikoku", 40, picks_left=1)
    states = np.concatenate([game.state for game in games])
    legal = np.array([game.legal_mask for game in games], np.uint64)
    keys = np.zeros(len(games), np.uint64)
    results, best = [solved(game) for game in games], []
    for endings in ("exact", "network"):
        agent = PolicyAgent.from_policy(random_policy(), "p", endings=endings)
        shares, values = agent.judge(games[0].boards, states, legal, keys)
        assert np.allclose(values, results, atol=1e-6) == (endings == "exact")
        np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-5)
        best.append(shares.argmax(axis=1))
        assert (best[-1] == agent.act(games[0].boards, states, legal, keys)).all()
    assert (best[0] != best[1]).any()
