"""Tests of web/live_game.py: states, commands and queries while agents think."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from positions import verified

from tokaido_env import Game, record
from tokaido_env.agent import Agent
from tokaido_env.agents import make
from tokaido_env.arena.ladder import LADDER, Ladder
from tokaido_env.core.bitmask import actions_of
from tokaido_env.core.serialization import POINTS
from tokaido_env.render.scene import scene_of
from tokaido_env.render.svg import panels_of
from tokaido_env.study.review import review
from tokaido_env.web.game_file import GameFile
from tokaido_env.web.game_session import HUMAN, Session
from tokaido_env.web.live_game import LiveGame
from tokaido_env.web.opponents import LEVELS, opponents
from tokaido_env.web.page_state import PageState

StartGame = Callable[..., LiveGame]


class WaitingAgent(Agent):
    """Plays the first legal action, once the test allows it."""

    spec = "waiting"

    def __init__(self) -> None:
        self.called, self.allowed = threading.Event(), threading.Event()

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
        self.called.set()
        assert self.allowed.wait(20)
        return np.array([actions_of(int(mask))[0] for mask in legal], np.int64)


@pytest.fixture
def start() -> Iterator[StartGame]:
    """Starts live games and closes them at the end."""
    games = []

    def started(session: Session, file: GameFile | None = None, **options: Any) -> LiveGame:
        games.append(LiveGame(session, file, **{"advisor": "champion", "pace": 0.0, **options}))
        return games[-1]

    yield started
    for game in games:
        game.close()


@pytest.fixture
def live_game(start: StartGame, tmp_path: Path) -> LiveGame:
    return start(Session((HUMAN, "greedy"), seed=7), GameFile(tmp_path / "game.jsonl"))


def until(live_game: LiveGame, condition: Callable[[PageState], Any]) -> PageState:
    """Wait for a state that fulfils a condition."""
    state, end = live_game.state(), time.monotonic() + 120
    while not condition(state):
        assert time.monotonic() < end, state
        state = live_game.state(state["version"], 1.0)
    return state


def until_turn(live_game: LiveGame) -> PageState:
    """Wait until it is a person's turn, or the game is over."""
    return until(live_game, lambda state: state["waits_for"] in ("human", "nobody"))


def play(live_game: LiveGame, index: int = 0) -> PageState:
    """Play one of the choices and return the state right after it."""
    state = live_game.state()
    move, length = state["choices"][index]["label"], len(state["log"])
    return command(live_game, "play", {"move": move, "log_length": length})


def command(live_game: LiveGame, name: str, arguments: Any = None) -> PageState:
    """Send a command and return the state right after it."""
    live_game.command(name, arguments or {})
    return live_game.state()


def tasks(state: PageState) -> list[str]:
    return [job["task"] for job in state["jobs"]]


def reviewed(live_game: LiveGame) -> PageState:
    return until(live_game, lambda state: state["review"] and not state["jobs"])


def test_live_game__plays_a_game_and_saves_every_move(live_game: LiveGame, tmp_path: Path) -> None:
    state = until_turn(live_game)
    while state["waits_for"] != "nobody":
        assert state["choices"][0]["name"]
        (saved,) = record.load(tmp_path / "game.jsonl")
        assert len(saved.events) == len(state["log"])
        play(live_game, -1)
        state = until_turn(live_game)
    game = verified(live_game.query("record", {}))
    assert record.load(tmp_path / "game.jsonl") == [game]
    assert (game.seed, game.players, game.end) == (7, (HUMAN, "greedy"), "triggers")
    assert len(state["log"]) == len(game.events)
    last = [[one[key] for key in POINTS] for one in game.scores]
    assert state["points"][-1] == last
    json.dumps(state)


def test_opponents__are_those_of_the_ladder() -> None:
    ratings = Ladder.load(LADDER, "shikoku").agents
    known = {rating.agent: round(rating.value) for rating in ratings}
    found = opponents()
    rated = [one for one in found if one["elo"] is not None]
    assert {one["spec"]: one["elo"] for one in rated} == known
    assert [one["elo"] for one in rated] == sorted(known.values())
    assert all(one["ci95"][0] <= one["elo"] <= one["ci95"][1] for one in rated)
    levels = [one for one in found if one["level"]]
    assert [one["level"] for one in levels] == [*range(1, len(levels) + 1)]
    assert (levels[0], levels[-1]) == (rated[0], rated[-1])
    assert np.diff([one["elo"] for one in levels[:-1]]).min() >= 149  # scores about 70 %
    assert [one["name"] for one in levels] == [*LEVELS.values()]
    assert [one["spec"] for one in levels] == [*LEVELS]
    assert all(Session((one["spec"], HUMAN)).names[0] == one["spec"] for one in found)


def test_state__waits_for_a_newer_version(live_game: LiveGame) -> None:
    version = until_turn(live_game)["version"]
    began = time.monotonic()
    assert live_game.state(version, 0.2)["version"] == version
    assert time.monotonic() - began >= 0.2
    seen: list[int] = []
    clients = [
        threading.Thread(target=lambda: seen.append(live_game.state(version, 20)["version"]))
        for _ in range(2)
    ]
    for client in clients:
        client.start()
    play(live_game)
    for client in clients:
        client.join(20)
    assert min(seen) > version


def test_play__refuses_a_move_for_an_earlier_position(live_game: LiveGame) -> None:
    length = len(until_turn(live_game)["log"])
    play(live_game)
    move = until_turn(live_game)["choices"][0]["label"]
    with pytest.raises(ValueError, match="the game has changed in the meantime"):
        live_game.command("play", {"move": move, "log_length": length})


def test_undo__discards_the_decision_of_an_agent_that_still_thinks(start: StartGame) -> None:
    agent = WaitingAgent()
    live_game = start(Session((HUMAN, agent), seed=7))
    state = live_game.state()
    while state["waits_for"] == "human":
        state = play(live_game)
    assert agent.called.wait(20)
    began = time.monotonic()
    assert tasks(live_game.state()) == ["move"]
    assert time.monotonic() - began < 5
    before = command(live_game, "undo", {})
    agent.allowed.set()
    time.sleep(0.2)
    after = live_game.state()
    assert (after["waits_for"], after["log"]) == ("human", before["log"])


def test_run_agents__pauses_and_resumes_two_agents(start: StartGame) -> None:
    live_game = start(Session(("greedy", "random"), seed=1), pace=0.01)
    paused = command(live_game, "run_agents", {"on": False})
    time.sleep(0.1)
    assert live_game.state()["version"] == paused["version"]
    live_game.command("run_agents", {"on": True})
    until_turn(live_game)


def test_advice__is_shown_until_the_position_changes(live_game: LiveGame) -> None:
    until_turn(live_game)
    live_game.command("advise", {})
    advice = until(live_game, lambda state: state["advice"])["advice"]
    best = live_game.session.advice_task("champion")()
    assert advice == [{**move._asdict(), "text": move.describe()} for move in best]
    assert play(live_game)["advice"] is None


def test_save_error__is_shown_and_the_game_continues(start: StartGame, tmp_path: Path) -> None:
    live_game = start(Session((HUMAN, HUMAN), seed=3), GameFile(tmp_path / "gone" / "game.jsonl"))
    state = live_game.state()
    assert state["save_error"].startswith("not saved: ")
    assert len(play(live_game)["log"]) > len(state["log"])


def test_new_game_and_load_record__replace_the_game(live_game: LiveGame) -> None:
    arguments: Any = {"seats": ["random", HUMAN], "board": "shikoku_ring", "seed": 5}
    state = command(live_game, "new_game", arguments)
    game = live_game.session.game
    assert (state["seats"], game.board.name, game.seed) == tuple(arguments.values())
    state = command(live_game, "new_game", {"seats": [HUMAN, HUMAN], "chance": "explicit"})
    assert (state["waits_for"], state["board"]) == ("chance", "shikoku_ring")
    total = sum(float(choice["text"].rstrip(" %")) for choice in state["choices"])
    assert total == pytest.approx(100, abs=0.5)
    game = Game(seed=4)
    for _ in range(9):
        game.play(game.legal_actions()[0])
    line = game.record((HUMAN, "greedy")).to_json()
    state = command(live_game, "load_record", {"record": line})
    assert state["seats"] == [HUMAN, "greedy"]
    assert len(state["log"]) >= len(game.events())


class Net:
    """Plays the lowest or the highest legal action; counts its decisions."""

    def __init__(self, at: int) -> None:
        self.at, self.decisions = at, 0

    def choose(self, game: Game, rng: np.random.Generator) -> int:
        self.decisions += 1
        return game.legal_actions()[self.at]


class greedy(Net):  # noqa: N801  the name of a listed opponent
    pass


def test_new_game__keeps_objects_of_one_name_apart(start: StartGame) -> None:
    first, second = Net(0), Net(-1)
    live_game = start(Session((first, second), seed=3))  # type: ignore[arg-type]
    assert live_game.state()["seats"] == ["Net", "Net 2"]
    seatings = ([HUMAN, "Net 2"], second, first), (["Net", HUMAN], first, second)
    for seats, playing, other in seatings:
        first.decisions = second.decisions = 0
        state = command(live_game, "new_game", {"seats": seats, "seed": 4})
        assert state["seats"] == seats
        for _ in range(5):
            until_turn(live_game)
            play(live_game)
        until_turn(live_game)
        assert playing.decisions > 3
        assert other.decisions <= 1  # of the game before


def test_queries__show_earlier_positions(live_game: LiveGame) -> None:
    until_turn(live_game)
    play(live_game)
    state = until_turn(live_game)
    played = record.replay(verified(live_game.query("record", {})))
    for at in (0, 12, len(state["log"])):
        panels = live_game.query("frame", {"at": at})["panels"]
        scene = scene_of(played.board, played.states[at : at + 1], names=state["names"])
        assert panels["supply"] == panels_of(scene)["supply"]
    assert panels["supply"] == state["panels"]["supply"]


def test_review__is_that_of_the_study(live_game: LiveGame) -> None:
    state = until_turn(live_game)
    assert not state["can_review"]
    while state["waits_for"] != "nobody":
        play(live_game, -1)
        state = until_turn(live_game)
    state = command(live_game, "review", {})
    assert state["jobs"] == [{"task": "review", "agent": "champion"}]
    state = reviewed(live_game)
    found, champion = state["review"], make("champion")
    expected = review(live_game.session.game.trajectory(), champion, champion)
    assert state["wins"] == pytest.approx(expected.values.tolist(), abs=1e-4)
    cells = "".join(f"<td>{one['choices']}</td>" for one in expected.totals())
    assert f'<th scope="row">choices</th>{cells}' in found["html"]
    marked = [row for row in expected.choices().tolist() if expected.mark(row)]
    assert sorted(found["remarks"]) == sorted(map(str, marked))
    json.dumps(found)
    assert command(live_game, "undo", {})["review"] is None


def test_review__waits_for_an_agent_that_decides(start: StartGame) -> None:
    agent = WaitingAgent()
    live_game = start(Session((HUMAN, agent), seed=3))
    while not agent.called.is_set():
        if play(live_game)["waits_for"] == "agent":
            assert agent.called.wait(20)
    state = command(live_game, "review", {})
    assert tasks(state) == ["move"]
    agent.allowed.set()
    state = reviewed(live_game)
    assert state["waits_for"] == "human"
    assert len(state["wins"]) == len(state["log"]) + 1


def test_review__pauses_two_agents(start: StartGame) -> None:
    live_game = start(Session(("greedy", "random"), seed=3), pace=0.01)
    until(live_game, lambda state: state["can_review"])
    state = command(live_game, "review", {})
    assert (state["agents_running"], "review" in tasks(state)) == (False, True)
    state = until(live_game, lambda state: state["review"] and "review" not in tasks(state))
    assert len(state["wins"] or ()) == len(state["log"]) + 1
    live_game.command("run_agents", {"on": True})
    until_turn(live_game)
    state = command(live_game, "review", {})
    assert (state["agents_running"], tasks(state)) == (True, ["review"])


def test_end__without_values_of_the_advisor_shows_no_error(start: StartGame) -> None:
    live_game = start(Session((HUMAN, "random"), seed=7), advisor="greedy")
    play(live_game)
    until_turn(live_game)
    live_game.command("resign", {})
    state = until(live_game, lambda state: not state["jobs"])
    assert (state["failure"], state["review"]) == (None, None)
    live_game.command("review", {})
    assert until(live_game, lambda state: state["failure"])


class SlowAdvisor(WaitingAgent):
    """Judges once the test allows it."""

    def judge(self, boards: Any, states: Any, legal: Any, keys: Any) -> Any:
        self.act(boards, states, legal, keys)
        return make("champion").judge(boards, states, legal, keys)


def test_rematch__does_not_wait_for_the_review(start: StartGame) -> None:
    advisor = SlowAdvisor()
    live_game = start(Session((HUMAN, "greedy"), seed=7), advisor=advisor)
    play(live_game)
    until_turn(live_game)
    live_game.command("resign", {})
    assert advisor.called.wait(20)
    live_game.command("new_game", {"seats": ["greedy", HUMAN]})
    assert until_turn(live_game)["log"]
    advisor.allowed.set()
    time.sleep(0.2)
    assert live_game.state()["review"] is None


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("sing", {}, "sing"),
        ("play", {"move": "merchant:X", "log_length": 12}, "legal are"),
        ("new_game", {"seats": ["python:os:system", HUMAN]}, "seats"),
        ("new_game", {"board": "/etc/passwd"}, "board"),
        ("new_game", {"seed": -1}, "seed"),
        ("load_record", {"record": "{}"}, "format"),
        (
            "load_record",
            {
                "record": Game(seed=4)
                .record((HUMAN, HUMAN))
                .to_json()
                .replace('"seed": 4', '"seed": 5')
            },
            "from seed 5, got",
        ),
    ],
)
def test_command__refuses_invalid_arguments_and_changes_nothing(
    live_game: LiveGame, name: str, arguments: dict[str, Any], error: str
) -> None:
    before = until_turn(live_game)
    with pytest.raises(ValueError, match=error):
        live_game.command(name, arguments)
    assert {**live_game.state(), "version": 0} == {**before, "version": 0}


def test_continue_from__starts_a_game_at_an_earlier_position(live_game: LiveGame) -> None:
    until_turn(live_game)
    play(live_game)
    session = live_game.session
    row = next(at for at, scene in enumerate(session.scenes) if scene.position["phase"] == "MOVE")
    state = command(live_game, "continue_from", {"at": row})
    assert live_game.session.game.start_position == session.scenes[row].position
    assert (state["seats"], state["can_undo"]) == ([HUMAN, "greedy"], False)


def test_end__is_reviewed_by_itself(start: StartGame) -> None:
    live_game = start(Session((HUMAN, "random"), seed=7))
    for _ in range(40):
        play(live_game, -1)
        until_turn(live_game)
    live_game.command("resign", {})
    state = reviewed(live_game)
    assert (state["winner"], state["wins"] and state["wins"][-1]) == (1, 0)
    moments = state["review"]["moments"] if state["review"] else []
    assert moments[0]["title"] == "Largest loss"
    assert all(state["log"][one["event"]][2] in one["text"] for one in moments)
    assert state["log"][moments[0]["event"]][1] == 0  # the person's own
    json.dumps(state)
