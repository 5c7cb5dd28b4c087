"""Tests of `tokaido_env.openspiel`: `Game` as reference, copies and observers."""

import copy
import json
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pyspiel = pytest.importorskip("pyspiel")

from learner_games import expected_observation, reward_of  # noqa: E402
from open_spiel.python.observation import make_observation  # noqa: E402
from positions import other_board_data, random_move, write_board  # noqa: E402

import tokaido_env.openspiel  # noqa: E402, F401  registers the game
from tokaido_env import Board, BoardError, Game, IllegalMove  # noqa: E402
from tokaido_env.core.actions import IDS, LABELS, N_ACTIONS  # noqa: E402
from tokaido_env.core.board_features import N_BOARD_FEATURES  # noqa: E402
from tokaido_env.core.observation import N_FEATURES  # noqa: E402
from tokaido_env.position import PositionError  # noqa: E402

CHANCE, TERMINAL = pyspiel.PlayerId.CHANCE, pyspiel.PlayerId.TERMINAL


def load(**params: Any) -> Any:
    return pyspiel.load_game("tokaido_duo", params)


def some_action(state: Any, rng: random.Random) -> int:
    """Return a random legal action or, at chance, a sampled outcome."""
    if not state.is_chance_node():
        return rng.choice(state.legal_actions())
    outcomes, odds = zip(*state.chance_outcomes(), strict=True)
    return rng.choices(outcomes, odds)[0]


def walk(state: Any, rng: random.Random, steps: int = 10**6) -> Any:
    """Play up to n random actions and outcomes; return the state."""
    for _ in range(steps):
        if state.is_terminal():
            break
        state.apply_action(some_action(state, rng))
    return state


def seen(game: Game, seat: int, see_board: bool = False) -> Any:
    return expected_observation(game.boards, game.states, seat, see_board=see_board)


def facts(state: Any) -> dict[str, Any]:
    """Return all readable attributes of a state."""
    return {
        "text": str(state),
        "history": [(item.player, item.action) for item in state.full_history()],
        "moves": state.move_number(),
        "player": state.current_player(),
        "legal": state.legal_actions(),
        "returns": state.returns(),
        "game": str(state.get_game()),
        "seen": [state.observation_tensor(seat) for seat in (0, 1)],
    }


@pytest.fixture
def other_board(tmp_path: Path) -> str:
    """Return another board, with a cap of twelve rounds."""
    return str(write_board(tmp_path / "other.toml", other_board_data()))


# Starting positions


def test_new_initial_state__starts_from_positions(other_board: str) -> None:
    for board in ("shikoku", other_board):
        game = load(board=board)
        for steps in (3, 30, 31, 32, 33):  # at chance and at decisions
            there = walk(game.new_initial_state(), random.Random(steps), steps)
            state = game.new_initial_state(there.game.to_dict())
            assert state.game == there.game
            assert state.legal_actions() == there.legal_actions()
            walk(state, random.Random(7), 5)
            for same in (state.clone(), game.deserialize_state(state.serialize())):
                assert facts(same) == facts(state)
            walk(state, random.Random(7))
            assert sum(state.returns()) == 0


def test_new_initial_state__refuses_other_positions(other_board: str) -> None:
    there = walk(load(board=other_board).new_initial_state(), random.Random(1), 30)
    for position in (there.game.to_dict(), {}):
        with pytest.raises(PositionError):
            load().new_initial_state(position)


# The game's declarations


def test_game__declares_its_type_and_bounds() -> None:
    game = load()
    kind = game.get_type()
    assert kind.information == pyspiel.GameType.Information.PERFECT_INFORMATION
    assert (game.num_distinct_actions(), game.max_chance_outcomes()) == (N_ACTIONS, 216)
    assert game.observation_tensor_shape() == [N_FEATURES]
    assert str(pyspiel.load_game("tokaido_duo")) == "tokaido_duo(board=shikoku,reward=win)"


def test_max_game_length__is_an_upper_bound(short: Path) -> None:
    """With few rounds the bounds are tightest."""
    game = load(board=str(short))
    assert game.max_game_length() == 80
    rng = random.Random(0)
    for _ in range(50):
        played = [item.player for item in walk(game.new_initial_state(), rng).full_history()]
        assert sum(player >= 0 for player in played) <= game.max_game_length()
        assert 12 <= played.count(int(CHANCE)) <= game.max_chance_nodes_in_history()


# Equality to `Game`


@pytest.mark.parametrize(
    ("board", "reward", "see_board"),
    [("shikoku", "win", False), ("shikoku", "margin", True), ("other", "margin", False)],
)
def test_state__equals_an_explicit_game_at_every_node(
    board: str, reward: str, see_board: bool, other_board: str
) -> None:
    board = other_board if board == "other" else board
    rng, game = random.Random(len(reward)), Game(board, chance="explicit")
    state = load(board=board, reward=reward, see_board=see_board)
    state = state.new_initial_state()
    while True:
        check_position(state, game, see_board)
        outcomes = game.outcomes()
        assert_right = check_chance if outcomes else check_decision
        assert_right(state, game)
        if game.is_over:
            break
        move = random_move(game, rng)
        state.apply_action(state.string_to_action(move))
        game.play(move)
    assert state.is_terminal()
    assert state.returns() == state.rewards() == [reward_of(game, seat, reward) for seat in (0, 1)]
    assert [state.player_return(seat) for seat in (0, 1)] == state.returns()
    assert state.game.events() == game.events()


def check_position(state: Any, game: Game, see_board: bool) -> None:
    assert json.loads(str(state)) == game.to_dict()
    assert state.game == game
    assert state.game.scores() == game.scores()
    assert state.is_terminal() == game.is_over
    for seat in (0, 1):
        assert state.observation_tensor(seat) == seen(game, seat, see_board)
        assert state.observation_string(seat) == str(state)
        assert state.information_state_string(seat) == state.history_str()


def check_chance(state: Any, game: Game) -> None:
    ids, odds = zip(*state.chance_outcomes(), strict=True)
    labels = [state.action_to_string(outcome) for outcome in ids]
    assert list(zip(labels, odds, strict=True)) == game.outcomes()
    assert sum(odds) == pytest.approx(1)
    assert state.current_player() == CHANCE
    assert state.is_chance_node()
    assert state.legal_actions() == list(ids) == sorted(ids)
    assert max(ids) < state.get_game().max_chance_outcomes()
    assert state.returns() == [0, 0]


def check_decision(state: Any, game: Game) -> None:
    """Check a state at a decision or at the end."""
    player = state.current_player()
    assert player == (TERMINAL if game.is_over else game.player)
    assert not state.is_chance_node()
    assert state.chance_outcomes() == []
    assert state.legal_actions() == game.legal_actions()
    for seat in (0, 1):
        assert state.legal_actions(seat) == (game.legal_actions() if seat == player else [])
    assert [state.action_to_string(action) for action in state.legal_actions()] == (
        game.legal_labels()
    )
    assert game.is_over or state.returns() == state.rewards() == [0, 0]


def test_action_to_string__returns_labels_at_any_node() -> None:
    state = load().new_initial_state()
    assert state.action_to_string(CHANCE, 0).startswith("boutique:C1=")
    for seat in (0, 1):
        assert tuple(state.action_to_string(seat, a) for a in range(N_ACTIONS)) == LABELS


@pytest.mark.parametrize(
    ("steps", "action", "message"), [(11, 215, "no outcome"), (12, IDS["discard:fan"], "legal are")]
)
def test_apply_action__refuses_illegal_moves(steps: int, action: int, message: str) -> None:
    state = walk(load().new_initial_state(), random.Random(0), steps)
    assert state.is_chance_node() == (steps == 11)
    assert action not in state.legal_actions()
    before = facts(state)
    with pytest.raises(IllegalMove, match=message):
        state.apply_action(action)
    assert facts(state) == before


# Parameters


def test_load_game__accepts_the_string_of_a_game(other_board: str) -> None:
    text = f"tokaido_duo(board={other_board},reward=margin)"
    game = pyspiel.load_game(text)
    assert str(game) == text
    assert game == load(board=other_board, reward="margin")
    assert game != load(board=other_board)
    assert game.board == Board.load(other_board)
    seeing = pyspiel.load_game("tokaido_duo(see_board=True)")
    assert seeing.observation_tensor_shape() == [N_FEATURES + N_BOARD_FEATURES]
    assert pyspiel.load_game(str(seeing)).get_parameters()["see_board"] is True


@pytest.mark.parametrize(
    ("params", "error"), [({"board": "honshu"}, BoardError), ({"see_board": "maybe"}, Exception)]
)
def test_load_game__refuses_wrong_parameters(
    params: dict[str, str], error: type[Exception]
) -> None:
    with pytest.raises(error, match=next(iter(params.values()))):
        load(**params)


# Copies

COPIES: dict[str, Callable[[Any], Any]] = {
    "clone": lambda state: state.clone(),
    "deepcopy": copy.deepcopy,
    "pickle": lambda state: pickle.loads(pickle.dumps(state)),
    "serialize": lambda state: state.get_game().deserialize_state(state.serialize()),
    "with the game": lambda state: pyspiel.deserialize_game_and_state(
        pyspiel.serialize_game_and_state(state.get_game(), state)
    )[1],
    "pickled game": lambda state: pickle.loads(pickle.dumps(state.get_game())).deserialize_state(
        state.serialize()
    ),
    "copied game": lambda state: copy.deepcopy(state.get_game()).deserialize_state(
        state.serialize()
    ),
}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_clone__continues_identically_and_independently(
    copied: Callable[[Any], Any], other_board: str
) -> None:
    game = load(board=other_board, reward="margin")
    state = walk(game.new_initial_state(), random.Random(2), 90)
    before = facts(state)
    other = copied(state)
    assert facts(other) == before
    after = facts(walk(other, random.Random(3), 40))
    assert facts(state) == before
    assert facts(walk(state, random.Random(3), 40)) == after


# Observers


def test_observer__writes_its_tensor_for_both_seats() -> None:
    game = load()
    observation = make_observation(game)
    state = walk(game.new_initial_state(), random.Random(6), 60)
    for seat in (0, 1):
        observation.set_from(state, seat)
        assert observation.tensor.dtype == np.float32
        assert observation.tensor.tolist() == seen(state.game, seat)
        assert observation.dict["observation"].tolist() == observation.tensor.tolist()
        assert observation.string_from(state, seat) == str(state)
    for player in (2, -1):
        with pytest.raises(ValueError, match=r"^player: "):
            observation.set_from(state, player)
    of_history = make_observation(game, pyspiel.IIGObservationType(perfect_recall=True))
    assert of_history.tensor is None
    assert of_history.string_from(state, 0) == state.history_str()
