"""Python agents: found, made, given fair games, and refused with a reason."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from custom_agents import Highest, Settings
from positions import shikoku_data, write_board

from tokaido_env import Game
from tokaido_env.agent import Agent
from tokaido_env.agents import AgentError, make
from tokaido_env.agents.adapters import AgentAdapter, PerGameAdapter
from tokaido_env.arena.executors.base import SerialExecutor
from tokaido_env.arena.tournament import Match, play_match
from tokaido_env.batch import Batch
from tokaido_env.boards.board import Board
from tokaido_env.core.rng import arena_seed


class Recorder(Highest):
    """Records the games and the random numbers that `choose` gets."""

    def __init__(self) -> None:
        self.games: list[Game] = []
        self.numbers: list[float] = []

    def prepare(self, boards: Any) -> None:
        self.prepared = [board.max_rounds for board in boards]

    def choose(self, game: Game, rng: np.random.Generator) -> int:
        self.games.append(game)
        self.numbers.append(rng.random())
        return super().choose(game, rng)


def play(agent: Agent, opponent: str = "random", games: int = 2, seed: int = 4) -> Match:
    return play_match(agent, make(opponent), games, seed=seed, executor=SerialExecutor())


def recorded(games: int = 2) -> Recorder:
    recorder = Recorder()
    play(PerGameAdapter(recorder, "recorder"), games=games)
    return recorder


def test_choose__plays_the_same_games_as_act() -> None:
    one, many = make("python:custom_agents:Highest"), make("python:custom_agents:HighestAtOnce")
    assert isinstance(one, PerGameAdapter)
    assert isinstance(many, AgentAdapter)
    assert many.games_at_once == 6
    for opponent in ("random", "greedy"):
        a, b = (play(agent, opponent, 10) for agent in (one, many))
        assert (a.actions == b.actions).all()
        assert (a.games == b.games).all()


def test_choose__gets_the_game_that_is_played() -> None:
    """Games with the seed of the pair go through the same positions."""
    match, positions = play(PerGameAdapter(Highest(), "x")), []
    for swapped in range(2):
        game = Game(seed=int(arena_seed(4, 0)))
        for action in match.actions[0, swapped].tolist():
            if game.player == swapped:
                positions.append(str(game.to_dict()))
            if action >= 0:
                game.play(action)
    assert sorted(str(game.to_dict()) for game in recorded().games) == sorted(positions)
    assert len(positions) > 50


def test_choose__gets_no_luck_of_the_match() -> None:
    games, seed = recorded().games, int(arena_seed(4, 0))
    assert seed not in {game.seed for game in games}
    assert len({game.seed for game in games}) == len(games)
    rolls = [next_dice(game) for game in games if game.rounds == 1]
    assert len(rolls) > 4
    assert rolls.count(next_dice(Game(seed=seed))) < len(rolls) / 2


def next_dice(game: Game) -> Any:
    rounds = game.rounds
    while game.rounds == rounds:
        game.play(game.legal_actions()[0])
    return game.to_dict()["dice"]


def test_choose__gets_repeatable_random_numbers() -> None:
    numbers = recorded(4).numbers
    assert recorded(4).numbers == numbers
    assert len(set(numbers)) == len(numbers)


def test_per_game_adapter__plays_on_several_boards_at_once(tmp_path: Path) -> None:
    other = Board.load(write_board(tmp_path / "short.toml", shikoku_data() | {"max_rounds": 7}))
    batch = Batch(4, ["shikoku", other])
    batch.reset(seed=0)
    recorder, games = Recorder(), np.arange(4)
    agent = PerGameAdapter(recorder, "recorder")
    arguments = batch.boards_of(games), batch.states, batch.legal, batch.keys(games)
    with pytest.raises(AgentError, match="unknown board: call prepare"):
        agent.act(*arguments)
    recorder.games.clear()
    agent.prepare([other])
    actions = agent.act(*arguments)
    assert recorder.prepared == [7]
    assert [game.board.max_rounds for game in recorder.games] == [200, 7, 200, 7]
    assert not batch.check_moves(games, actions)[1].any()


def test_make__passes_parameters_as_literals_or_text() -> None:
    spec = "python:custom_agents:Settings,depth=3,rate=0.5,quick=True,name=tortoise,path=a/b.c,key="
    agent = make(spec)
    assert agent.spec == spec
    assert isinstance(agent, PerGameAdapter)
    assert isinstance(agent.wrapped, Settings)
    assert agent.wrapped.settings == {
        **{"depth": 3, "rate": 0.5, "quick": True},
        **{"name": "tortoise", "path": "a/b.c", "key": ""},
    }


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("python", "python:MODULE:CLASS"),
        ("python:custom_agents", "python:MODULE:CLASS"),
        ("python:no_bots.py:Dice", "no_bots.py"),
        ("python:no_bots:Dice", "no_bots"),
        ("python:custom_agents:Card", "Highest"),  # its classes
        ("python:custom_agents:Neither", "Neither"),
        ("python:custom_agents:Dice,pace=2", "Dice cannot be made: TypeError: "),
        ("python:custom_agents:Dice,pace=1,pace=2", "pace: expected once"),
        ("python:custom_agents:Dice,fast", "python:MODULE:CLASS"),
        ("python:test:Bot", "__init__.py"),  # Python's own, not that of the folder
    ],
)
def test_make__refuses_a_wrong_module_or_class(spec: str, name: str) -> None:
    with pytest.raises(AgentError) as error:
        make(spec)
    assert name in str(error.value)


def write_bot(path: Path, before: str = "", choice: str = "0") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"{before}\nclass Bot:\n    def choose(self, game, rng):\n        return {choice}\n",
        encoding="utf-8",
    )


def file_of(spec: str) -> Path:
    agent = make(spec)
    assert isinstance(agent, PerGameAdapter)
    assert agent.spec == spec
    return Path(sys.modules[type(agent.wrapped).__module__].__file__ or "")


def test_make__loads_a_file_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also two of one name, and one with the name of a module of Python or of this project."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr("sys.path", [*sys.path])
    names = ["v1/my bot.py", "v2/my bot.py", "json.py", "numpy.py", "tokaido_env.py"]
    names += ["ō, a b.py", "home/x.py"]
    for name in names:
        write_bot(tmp_path / name)
    modules = {name: sys.modules[name] for name in ("json", "numpy", "tokaido_env")}
    for location in [*names, str(tmp_path / "json.py"), "./v2/../json.py"]:
        assert file_of(f"python:{location}:Bot").samefile(location)
    assert file_of("python:~/x.py:Bot") == tmp_path / "home" / "x.py"
    assert {name: sys.modules[name] for name in modules} == modules


def test_make__runs_the_code_that_lies_next_to_a_file_now(tmp_path: Path) -> None:
    """Not a module of the same name in another folder, nor an older version."""

    def choice(name: str) -> int:
        agent: Any = make(f"python:{tmp_path / name / 'bot.py'}:Bot")
        return agent.wrapped.choose(None, None)  # type: ignore[no-any-return]

    for name, chosen in (("v1", 1), ("v2", 2)):
        write_bot(tmp_path / name / "bot.py", "from helper_of_a_bot import CHOICE", "CHOICE")
        (tmp_path / name / "helper_of_a_bot.py").write_text(f"CHOICE = {chosen}")
    assert [choice("v1"), choice("v2"), choice("v1")] == [1, 2, 1]
    (tmp_path / "v1" / "helper_of_a_bot.py").write_text("CHOICE = 10")
    write_bot(tmp_path / "v2" / "bot.py", "", "20")
    assert [choice("v1"), choice("v2")] == [10, 20]
    assert "helper_of_a_bot" not in sys.modules


def test_make__gives_each_folder_its_own_modules(tmp_path: Path) -> None:
    """Also a folder of modules, one with a name of Python's, and when the class is made."""
    bot = """
import tabnanny, helpers_of_a_bot.net

class Bot:
    level: int = 0

    def __init__(self):
        import late_helper_of_a_bot
        assert self.__annotations__ == {"level": int}
        self.found = [tabnanny.N, helpers_of_a_bot.net.N, late_helper_of_a_bot.N]

    def choose(self, game, rng):
        return "pass"
"""
    for name in "12":
        (tmp_path / name / "helpers_of_a_bot").mkdir(parents=True)
        for helper in ("tabnanny", "helpers_of_a_bot/net", "late_helper_of_a_bot"):
            (tmp_path / name / f"{helper}.py").write_text(f"N = {name}")
        (tmp_path / name / "bot.py").write_text(bot)
    for name in "1212":
        agent: Any = make(f"python:{tmp_path / name / 'bot.py'}:Bot")
        assert agent.wrapped.found == [int(name)] * 3


def test_make__imports_a_module_of_the_current_folder_and_reports_its_error_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", ["/nowhere", *sys.path[1:]])
    write_bot(tmp_path / "bots_of_this_folder.py")
    assert make("python:bots_of_this_folder:Bot").spec == "python:bots_of_this_folder:Bot"
    path = tmp_path / "broken.py"
    write_bot(path, "import nothing_of_this_name")
    for _ in range(2):
        with pytest.raises(AgentError, match="nothing_of_this_name"):
            make(f"python:{path}:Bot")


@pytest.mark.parametrize("choice", ["merchant:C9", None, 1.0, True, [0]])
def test_per_game_adapter__refuses_other_than_actions(choice: Any) -> None:
    class Bot:
        choose: Callable[..., Any] = lambda self, game, rng: choice

    batch = Batch(1)
    batch.reset(seed=0)
    keys = np.zeros(1, np.uint64)
    with pytest.raises(ValueError, match="choose: expected the id or the label of an action, got"):
        PerGameAdapter(Bot(), "bot").act(batch.boards, batch.states, batch.legal, keys)
