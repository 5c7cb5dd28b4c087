"""Tests of `tokaido_env.trajectory`, with `Game` as reference for each row."""

import random

import numpy as np
import numpy.typing as npt
import pytest
from positions import other_board_data, write_board

from tokaido_env import ACTIONS, Board, Game
from tokaido_env.core.actions import IDS, NO_ACTION
from tokaido_env.core.state import STATE
from tokaido_env.trajectory import Trajectory, replay_actions, replay_labels

Actions = npt.NDArray[np.int8]


def played(seed: int, board: Board | None = None) -> Game:
    game, rng = Game(board or "shikoku", seed=seed), random.Random(seed)
    while not game.is_over:
        game.play(rng.choice(game.legal_actions()))
    return game


def decisions(*games: Game) -> Actions:
    chosen = [[IDS[event] for event in game.events() if event in IDS] for game in games]
    actions = np.full((len(games), max(map(len, chosen)) + 1), -1, np.int8)
    for row, each in zip(actions, chosen, strict=True):
        row[: len(each)] = each
    return actions


@pytest.fixture(scope="module", params=["shikoku", "other"])
def board(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Board:
    if request.param == "shikoku":
        return Board.load()
    return Board.load(write_board(tmp_path_factory.mktemp("b") / "b.toml", other_board_data()))


def assert_plays(again: Game, one: Trajectory, game: int = 0) -> None:
    """Return a row per event of a game with explicit chance."""
    rows = range(*one.rows(game).indices(len(one.states)))
    labels = (*one.labels(game), None)
    assert len(labels) == len(rows)
    for row, label in zip(rows, labels, strict=True):
        assert one.states[row].tobytes() == again.state.tobytes()
        assert one.position(row) == again.to_dict()
        assert int(one.legal[row]) == again.legal_mask
        assert one.movers[row] == (-1 if again.player is None else again.player)
        decided = label is not None and again.player is not None
        assert one.decided[row] == decided
        assert (one.events[row] == NO_ACTION) == (label is None)
        if decided:
            assert ACTIONS[one.events[row]] == label
        elif label is not None:
            names = [again.label(k) for k in range(216) if again._weights()[0][k : k + 1].any()]
            assert label in names
            assert again.label(int(one.outcomes[row])) == label
        if label is not None:
            again.play(label)


def test_rows__equal_the_played_game(board: Board) -> None:
    games = [played(seed, board) for seed in (3, 4, 5)]
    one = replay_actions(board, np.array([3, 4, 5]), decisions(*games))
    assert len(one) == 3
    assert one.states.dtype == STATE
    assert one.games.tolist() == np.repeat([0, 1, 2], np.diff(one.offsets)).tolist()
    for number, game in enumerate(games):
        assert_plays(Game(board, seed=0, chance="explicit"), one, number)
        assert one.labels(number) == tuple(game.events())
        assert one.ends[number].tobytes() == game.state.tobytes()


def same(one: Trajectory, other: Trajectory) -> bool:
    columns = ("offsets", "states", "events", "legal")
    return all(getattr(one, name).tobytes() == getattr(other, name).tobytes() for name in columns)


def test_replays__from_labels_actions_and_ids_agree(board: Board) -> None:
    game = played(7, board)
    from_moves = replay_actions(board, np.array([7]), decisions(game))
    assert same(replay_labels(board, game.events()), from_moves)
    assert same(game.trajectory(), from_moves)


def test_replay_actions__ends_before_an_illegal_action() -> None:
    whole = played(9)
    actions = np.repeat(decisions(whole), 3, axis=0)
    actions[0, 5] = IDS["discard:fan"]
    actions[1, 5] = 100  # an unknown action
    actions[2, (actions[2] >= 0).sum()] = IDS["pass"]  # after the end
    one = replay_actions(whole.board, np.full(3, 9), actions)
    assert [int(one.decided[one.rows(game)].sum()) for game in range(2)] == [5, 5]
    assert one.labels(2) == tuple(whole.events())
    with pytest.raises(ValueError, match="broadcast"):
        replay_actions(whole.board, np.full(2, 9), actions)


def test_replay__accepts_no_games_and_no_events() -> None:
    board = Board.load()
    assert len(replay_actions(board, np.zeros(0, np.int64), np.zeros((0, 3), np.int8))) == 0
    one = replay_labels(board, [])
    assert (len(one), len(one.states), one.labels()) == (1, 1, ())
