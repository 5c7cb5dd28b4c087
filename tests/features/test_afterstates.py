"""Afterstates against positions that `Game` plays one by one, and their errors."""

import random

import numpy as np
import pytest
from learner_games import picker, reward_of
from networks import inputs_of
from positions import random_move, random_walk

from tokaido_env import Batch, Board, Game
from tokaido_env.core.observation import N_FEATURES
from tokaido_env.core.state import CHANCE_PHASES
from tokaido_env.features.afterstates import CHANCE, DECISION, END, Afterstates
from tokaido_env.features.network_inputs import N_INPUTS


def play_to_decision(game: Game, rng: random.Random) -> Game:
    """Play a random move, then chance, up to a decision; begin a new game after the end."""
    if game.is_over:
        game = Game(game.board, chance="explicit")
    game.play(random_move(game, rng))
    while game.phase in CHANCE_PHASES:
        game.play(random_move(game, rng))
    return play_to_decision(game, rng) if game.is_over else game


def check_row(found: Afterstates, row: int, before: Game, reward: str) -> int:
    """Compare a row with the position that `Game` reaches; return what follows it."""
    after, mover = before.copy(), before.player
    assert mover is not None
    after.play(int(found.action[row]))
    assert found.states[row].tobytes() == after.states.tobytes()
    assert found.legal[row] == after.legal_mask
    assert found.result[row] == np.float32(reward_of(after, mover, reward))
    kind, viewer = DECISION, after.player
    if viewer is None:
        kind, viewer = (END, mover) if after.is_over else (CHANCE, picker(after.to_dict()))
    assert (found.kind[row], found.viewer[row]) == (kind, viewer)
    assert (found.inputs[row, :N_FEATURES] == after.observation(viewer)).all()
    if kind == END:
        assert not found.inputs[row, N_FEATURES:].any()
    else:
        (inputs,) = inputs_of(after.boards, after.states)
        assert (found.inputs[row] == inputs).all()
    return kind


@pytest.mark.parametrize("reward", ["margin", "win"])
def test_afterstates__are_the_positions_after_each_action(reward: str) -> None:
    decisions, boards = 400, 10
    rng, kinds = random.Random(4), []
    pool = [Board.generate(number) for number in range(boards)]
    games = [play_to_decision(random_walk(n, 40 * n, board), rng) for n, board in enumerate(pool)]
    batch = Batch(boards, pool, reward=reward, observation=None)  # type: ignore[arg-type]
    for _ in range(decisions // boards):
        batch.reset(positions=[game.to_dict() for game in games])
        found, row = batch.afterstates(), 0
        for i, game in enumerate(games):
            for action in game.legal_actions():
                assert (found.game[row], found.action[row]) == (i, action)
                kinds.append(check_row(found, row, game, reward))
                row += 1
        assert row == len(found.game)
        games = [play_to_decision(game, rng) for game in games]
    assert {*kinds} == {CHANCE, DECISION, END}
    assert kinds.count(END) > 3


def test_afterstates__are_the_same_for_any_games_inputs_and_threads() -> None:
    batch = Batch(200, "family:train/9", observation=None)
    batch.reset(seed=3)
    for _ in range(300):
        batch.play("random")
    before, whole = batch.states.copy(), batch.afterstates()
    assert (batch.states == before).all()
    some = np.array([150, 7])
    few, seen = batch.afterstates(some), batch.afterstates(some, "float32")
    rows = np.concatenate([np.flatnonzero(whole.game == game) for game in some])
    assert some[few.game].tolist() == whole.game[rows].tolist()
    for one, other in zip(few[1:], whole[1:], strict=True):
        assert (one == other[rows]).all()
    assert few.inputs.shape == (len(rows), N_INPUTS)
    assert (seen.inputs == few.inputs[:, :N_FEATURES]).all()
    assert seen.inputs.shape[1] == N_FEATURES
    assert batch.afterstates(some, None).inputs is None


def test_afterstates_of_a_game__are_those_of_a_batch() -> None:
    game, batch = Game(seed=5), Batch(1)
    batch.reset(seed=[5])
    for one, other in zip(game.afterstates(), batch.afterstates(), strict=True):
        assert (one == other).all()
    assert game.afterstates(None).action.tolist() == game.legal_actions()


def test_afterstates__need_a_decision() -> None:
    batch = Batch(2, autoreset=False)
    with pytest.raises(RuntimeError, match="game 0 has not begun"):
        batch.afterstates()
    batch.reset(seed=0)
    with pytest.raises(ValueError, match=r"^inputs: "):
        batch.afterstates(inputs="afterstate")  # type: ignore[arg-type]
    batch.finish("random")
    with pytest.raises(ValueError, match=r"^game 1: nothing to decide at OVER"):
        batch.afterstates(np.array([1, 0]))
    explicit = Batch(1, chance="explicit")
    explicit.reset(seed=0)
    for seen in (explicit, Game(chance="explicit")):
        with pytest.raises(ValueError, match="nothing to decide at SETUP"):
            seen.afterstates()
