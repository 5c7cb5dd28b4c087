"""Agents from outside: found, made, asked fairly, and refused in plain words."""

import copy
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from outsiders import Dice, Highest, Settings
from positions import shikoku_data, write_board

from tokaido_env import Game
from tokaido_env.agent import AgentAdapter
from tokaido_env.agents import AgentError, make
from tokaido_env.agents.python_agent import GameFromState, PerGameAdapter
from tokaido_env.agents.registry import Parameter
from tokaido_env.arena.executors import SerialExecutor
from tokaido_env.arena.tournament import play_match
from tokaido_env.batch import Batch
from tokaido_env.boards.board import Board
from tokaido_env.core.rng import arena_seed


class Watch(Highest):
    """Keeps the games that it is shown, and what its generator gives."""

    def __init__(self) -> None:
        self.games: list[Game] = []
        self.numbers: list[float] = []

    def choose(self, game: Game, rng: np.random.Generator) -> int:
        self.games.append(game)
        self.numbers.append(rng.random())
        return super().choose(game, rng)


def watched(games: int = 2) -> Watch:
    watch = Watch()
    play_match(
        PerGameAdapter(watch, "watch"), make("random"), games, seed=4, executor=SerialExecutor()
    )
    return watch


def test_one_game_at_a_time_is_the_same_as_many_at_once() -> None:
    one, many = make("python:outsiders:Highest"), make("python:outsiders:HighestAtOnce")
    assert isinstance(one, PerGameAdapter)
    assert isinstance(many, AgentAdapter)
    assert many.games_at_once == 6
    for opponent in ("random", "greedy"):
        a, b = (
            play_match(x, make(opponent), 10, seed=2, executor=SerialExecutor())
            for x in (one, many)
        )
        assert (a.actions == b.actions).all()
        assert (a.games == b.games).all()


def test_the_game_that_is_shown_is_the_game_that_is_played() -> None:
    """Followed in a game of its own, from the seed of the pair."""
    shown = iter(watched().games)
    match = play_match(
        PerGameAdapter(Highest(), "x"), make("random"), 2, seed=4, executor=SerialExecutor()
    )
    positions = []
    for swapped in range(2):
        game = Game(seed=int(arena_seed(4, 0)))
        for action in match.actions[0, swapped].tolist():
            if game.player == swapped:
                positions.append(game.to_dict())
            if action >= 0:
                game.play(action)
    told = [game.to_dict() for game in shown]
    assert sorted(map(str, told)) == sorted(map(str, positions))
    assert len(told) > 50


def test_the_game_that_is_shown_does_not_tell_the_luck_to_come() -> None:
    watch = watched()
    seed = int(arena_seed(4, 0))
    assert seed not in {game.seed for game in watch.games}
    assert len({game.seed for game in watch.games}) == len(watch.games)
    told = [next_dice(game) for game in watch.games if game.rounds == 1]
    assert len(told) > 4
    assert told.count(next_dice(Game(seed=seed))) < len(told) / 2


def next_dice(game: Game) -> Any:
    rounds = game.rounds
    while game.rounds == rounds:
        game.play(game.legal_actions()[0])
    return game.to_dict()["dice"]


def test_the_generator_is_another_for_each_decision_and_the_same_again() -> None:
    once, again = watched(4), watched(4)
    assert once.numbers == again.numbers
    assert len(set(once.numbers)) == len(once.numbers)


def test_the_game_that_is_shown_can_be_tried_out() -> None:
    game = watched().games[20]
    before = game.to_dict()
    tried = game.copy()
    while not tried.is_over:
        tried.play(tried.legal_actions()[0])
    assert game.to_dict() == before
    for other in (copy.deepcopy(game), pickle.loads(pickle.dumps(game))):
        assert isinstance(other, GameFromState)
        assert other == game
    assert game.record().start == before


def test_a_board_of_ones_own(tmp_path: Path) -> None:
    path = write_board(tmp_path / "short.toml", shikoku_data() | {"max_rounds": 7})
    match = play_match(
        make("python:outsiders:Dice"), make("random"), 4, 0, path, executor=SerialExecutor()
    )
    assert match.games["rounds"].max() <= 7
    batch = Batch(1, path)
    batch.reset(seed=0)
    with pytest.raises(AgentError, match="unknown board: call prepare"):
        PerGameAdapter(Dice(), "dice").act(batch.boards, batch.states, batch.legal, batch.legal)


def test_games_on_several_boards_at_once(tmp_path: Path) -> None:
    other = Board.load(write_board(tmp_path / "short.toml", shikoku_data() | {"max_rounds": 7}))
    batch = Batch(4, ["shikoku", other])
    batch.reset(seed=0)
    watch = Watch()
    agent = PerGameAdapter(watch, "watch")
    agent.prepare([other])
    games = np.arange(4)
    actions = agent.act(batch.boards_of(games), batch.states, batch.legal, batch.keys(games))
    assert [game.board.max_rounds for game in watch.games] == [200, 7, 200, 7]
    assert not batch.find_illegal(games, actions).any()


def test_parameters_are_literals_or_text() -> None:
    spec = "python:outsiders:Settings,depth=3,rate=0.5,quick=True,name=tortoise,path=a/b.c,key="
    agent = make(spec)
    assert agent.spec == spec
    assert isinstance(agent, PerGameAdapter)
    assert isinstance(agent.wrapped, Settings)
    assert agent.wrapped.settings == {
        **{"depth": 3, "rate": 0.5, "quick": True},
        **{"name": "tortoise", "path": "a/b.c", "key": ""},
    }


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("python", "expected python:MODULE:CLASS"),
        ("python:outsiders", "expected python:MODULE:CLASS, as python:my_bots:Careful"),
        ("python:outsiders:", "expected python:MODULE:CLASS"),
        ("python::Dice", "expected python:MODULE:CLASS"),
        ("python:no_bots:Dice", "no module 'no_bots': expected no_bots.py in "),
        ("python:no.bots:Dice", "no module 'no.bots': expected no/bots.py in "),
        ("python:outsiders:Card", "no class 'Card' in module 'outsiders': its classes are Highest"),
        ("python:outsiders:np", "no class 'np'"),
        ("python:outsiders:Neither", "Neither has neither choose(game, rng) nor act(boards, "),
        ("python:outsiders:Dice,pace=2", "Dice cannot be made: TypeError: "),
        ("python:outsiders:Dice,pace=1,pace=2", "cannot read 'pace=2'"),
        ("python:outsiders:Dice,fast", "cannot read 'fast': expected python:MODULE:CLASS"),
        ("python:outsiders:Dice,1=2", "cannot read '1=2'"),
    ],
)
def test_what_makes_no_agent_is_refused(spec: str, message: str) -> None:
    with pytest.raises(AgentError) as error:
        make(spec)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import nothing_of_this_name", "needs 'nothing_of_this_name', which is not installed"),
        ("def", "cannot be imported: SyntaxError"),
        ("1 / 0", "cannot be imported: ZeroDivisionError: division by zero"),
    ],
)
def test_a_module_that_cannot_be_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, message: str
) -> None:
    name = f"broken_{abs(hash(source))}"
    (tmp_path / f"{name}.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(AgentError) as error:
        make(f"python:{name}:Bot")
    assert message in str(error.value)


def test_a_module_is_found_where_the_command_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bots_of_this_folder.py").write_text(
        "class Bot:\n    def choose(self, game, rng):\n        return 0\n", encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", ["/nowhere"])
    assert make("python:bots_of_this_folder:Bot").spec == "python:bots_of_this_folder:Bot"


@pytest.mark.parametrize("choice", ["merchant:C9", None, 1.0, True, [0]])
def test_what_is_no_action_is_refused(choice: Any) -> None:
    class Bot:
        choose: Callable[..., Any] = lambda self, game, rng: choice

    batch = Batch(1)
    batch.reset(seed=0)
    keys = np.zeros(1, np.uint64)
    with pytest.raises(ValueError, match="choose: expected the id or the label of an action, got"):
        PerGameAdapter(Bot(), "bot").act(batch.boards, batch.states, batch.legal, keys)


# Parameters of all kinds


@pytest.mark.parametrize(
    ("parameter", "text", "message"),
    [
        (Parameter(int, 1, 4), "5", "expected an integer from 1 to 4, got '5'"),
        (Parameter(int, 1, 4), "1.5", "expected an integer from 1 to 4, got '1.5'"),
        (Parameter(int, 1), "0", "expected an integer from 1, got '0'"),
        (Parameter(int, 0, 9, ("full",)), "all", "expected an integer from 0 to 9 or 'full', got"),
        (Parameter(float, 0, 10), "nan", "expected a number from 0 to 10, got 'nan'"),
        (Parameter(int, 1, 4), "9" * 400, "expected an integer from 1 to 4, got '9999"),
        (Parameter(float), "1e999", "expected a number, got '1e999'"),
        (Parameter(float), "much", "expected a number, got 'much'"),
    ],
)
def test_a_parameter_out_of_range_is_refused(parameter: Parameter, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        parameter.parse(text)
