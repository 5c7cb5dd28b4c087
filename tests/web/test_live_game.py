"""Tests of web/live_game.py: snapshots, commands and queries while agents think."""

import itertools
import json
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
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
from tokaido_env.web.game_session import HUMAN, Session
from tokaido_env.web.live_game import LiveGame
from tokaido_env.web.opponents import LEVEL_STEP, opponents

StartGame = Callable[..., LiveGame]
Snapshot = dict[str, Any]


class WaitingAgent(Agent):
    """Plays the first legal action, once the test allows it."""

    spec = "waiting"

    def __init__(self) -> None:
        self.called, self.allowed = threading.Event(), threading.Event()

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
        self.called.set()
        assert self.allowed.wait(20)
        return np.array([actions_of(int(mask))[0] for mask in legal], np.int64)


class FailingAgent(Agent):
    spec = "failing"

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
        raise RuntimeError("no\nidea")


@pytest.fixture
def start() -> Iterator[StartGame]:
    """Starts live games and closes them at the end."""
    games = []

    def started(session: Session, file: Path | None = None, **options: Any) -> LiveGame:
        games.append(LiveGame(session, file, **{"advisor": "champion", "pace": 0.0, **options}))
        return games[-1]

    yield started
    for game in games:
        game.close()


@pytest.fixture
def live_game(start: StartGame, tmp_path: Path) -> LiveGame:
    return start(Session((HUMAN, "greedy"), seed=7), tmp_path / "game.jsonl")


def until(live_game: LiveGame, condition: Callable[[Snapshot], Any]) -> Snapshot:
    """Wait for a snapshot that fulfils a condition."""
    snapshot, end = live_game.snapshot(), time.monotonic() + 120
    while not condition(snapshot):
        assert time.monotonic() < end, snapshot
        snapshot = live_game.snapshot(snapshot["version"], 1.0)
    return snapshot


def until_turn(live_game: LiveGame) -> Snapshot:
    """Wait until it is a person's turn, or the game is over."""
    return until(live_game, lambda snapshot: snapshot["waits_for"] in ("human", "nobody"))


def play(live_game: LiveGame, index: int = 0) -> Snapshot:
    """Play one of the choices and return the snapshot right after it."""
    move = live_game.snapshot()["choices"][index]["label"]
    return live_game.command("play", {"move": move})


def reviewed(live_game: LiveGame) -> Snapshot:
    return until(live_game, lambda snapshot: snapshot["review"])


def test_live_game__plays_a_game_and_saves_every_move(live_game: LiveGame, tmp_path: Path) -> None:
    snapshot = until_turn(live_game)
    while snapshot["waits_for"] != "nobody":
        assert snapshot["choices"][0]["name"]
        (saved,) = record.load(tmp_path / "game.jsonl")
        assert len(saved.events) == len(snapshot["log"])
        play(live_game, -1)
        snapshot = until_turn(live_game)
    game = verified(live_game.query("record", {}))
    assert record.load(tmp_path / "game.jsonl") == [game]
    assert (game.seed, game.players, game.end) == (7, (HUMAN, "greedy"), "triggers")
    assert len(snapshot["log"]) == len(game.events)
    last = [[one[key] for key in POINTS] for one in game.scores]
    assert snapshot["points"][-1] == last
    json.dumps(snapshot)


def test_snapshot__shows_the_position(live_game: LiveGame) -> None:
    snapshot, game = live_game.snapshot(), Game(seed=7)
    assert snapshot["panels"] == panels_of(live_game.session.scenes[-1])
    assert [choice["label"] for choice in snapshot["choices"]] == game.legal_labels()
    assert len(snapshot["log"]) == len(game.events())
    assert [snapshot["player"], snapshot["board"]] == [0, "shikoku"]
    assert snapshot["log"][0][:2] == [0, None]
    assert snapshot["log"][-1][2].startswith("human leads round 1 and rolls")


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
    assert np.diff([one["elo"] for one in levels[:-1]]).min() >= LEVEL_STEP - 1
    assert len({one["plays"] for one in levels}) == len(levels)
    assert all(Session((one["spec"], HUMAN)).names[0] == one["spec"] for one in found)


def test_snapshot__waits_for_a_newer_version(live_game: LiveGame) -> None:
    version = until_turn(live_game)["version"]
    began = time.monotonic()
    assert live_game.snapshot(version, 0.2)["version"] == version
    assert time.monotonic() - began >= 0.2
    seen: list[int] = []
    clients = [
        threading.Thread(target=lambda: seen.append(live_game.snapshot(version, 20)["version"]))
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
    snapshot = live_game.snapshot()
    while snapshot["waits_for"] == "human":
        snapshot = play(live_game)
    assert agent.called.wait(20)
    began = time.monotonic()
    assert live_game.snapshot()["thinking"]
    assert time.monotonic() - began < 5
    before = live_game.command("undo", {})
    agent.allowed.set()
    time.sleep(0.2)
    after = live_game.snapshot()
    assert (after["waits_for"], after["log"]) == ("human", before["log"])


def test_run_agents__pauses_and_resumes_two_agents(start: StartGame) -> None:
    live_game = start(Session(("greedy", "random"), seed=1), pace=0.01)
    paused = live_game.command("run_agents", {"on": False})
    time.sleep(0.1)
    assert live_game.snapshot()["version"] == paused["version"]
    live_game.command("run_agents", {"on": True})
    until_turn(live_game)


def test_agent_error__is_shown_and_pauses_agents(start: StartGame) -> None:
    live_game = start(Session((FailingAgent(), HUMAN), seed=1))
    snapshot = until(live_game, lambda snapshot: snapshot["error"])
    assert snapshot["error"] == "RuntimeError: no\\nidea"  # in one line
    assert not snapshot["agents_running"]


def test_advice__is_shown_until_the_position_changes(live_game: LiveGame) -> None:
    until_turn(live_game)
    live_game.command("advise", {})
    advice = until(live_game, lambda snapshot: snapshot["advice"])["advice"]
    best = live_game.session.advice_task("champion")()
    assert advice["win_probability"] == best.win_probability
    assert advice["moves"] == [{**move._asdict(), "text": move.describe()} for move in best.moves]
    assert play(live_game)["advice"] is None


def test_advice__for_an_earlier_position_is_dropped(start: StartGame) -> None:
    advisor = WaitingAgent()
    live_game = start(Session((HUMAN, HUMAN), chance="explicit"), advisor=advisor)
    snapshot = live_game.snapshot()
    while snapshot["waits_for"] == "chance":
        snapshot = play(live_game)
    live_game.command("advise", {})
    assert advisor.called.wait(20)
    live_game.command("undo", {})  # no player is to move now
    advisor.allowed.set()
    time.sleep(0.2)
    snapshot = live_game.snapshot()
    assert snapshot["waits_for"] == "chance"
    assert (snapshot["requested"], snapshot["advice"]) == ("", None)
    play(live_game)
    assert all(thread.is_alive() for thread in live_game._threads)


def test_save_error__is_shown_and_the_game_continues(start: StartGame, tmp_path: Path) -> None:
    live_game = start(Session((HUMAN, HUMAN), seed=3), tmp_path / "gone" / "game.jsonl")
    snapshot = live_game.snapshot()
    assert snapshot["error"].startswith("not saved: ")
    assert len(play(live_game)["log"]) > len(snapshot["log"])


def test_new_game_and_load_record__replace_the_game(live_game: LiveGame) -> None:
    arguments = {"seats": ["random", HUMAN], "board": "shikoku_ring", "seed": 5}
    snapshot = live_game.command("new_game", arguments)
    assert {name: snapshot[name] for name in arguments} == arguments
    snapshot = live_game.command("new_game", {"seats": [HUMAN, HUMAN], "chance": "explicit"})
    assert (snapshot["waits_for"], snapshot["board"]) == ("chance", "shikoku_ring")
    total = sum(float(choice["text"].rstrip(" %")) for choice in snapshot["choices"])
    assert total == pytest.approx(100, abs=0.5)
    game = Game(seed=4)
    for _ in range(9):
        game.play(game.legal_actions()[0])
    line = game.record(("python:os:system", "greedy")).to_json()
    snapshot = live_game.command("load_record", {"record": line})
    assert snapshot["seats"] == [HUMAN, "greedy"]
    assert len(snapshot["log"]) >= len(game.events())


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
    assert live_game.snapshot()["seats"] == ["Net", "Net 2"]
    seatings = ([HUMAN, "Net 2"], second, first), (["Net", HUMAN], first, second)
    for seats, playing, other in seatings:
        first.decisions = second.decisions = 0
        snapshot = live_game.command("new_game", {"seats": seats, "seed": 4})
        assert snapshot["seats"] == seats
        for _ in range(5):
            until_turn(live_game)
            play(live_game)
        until_turn(live_game)
        assert playing.decisions > 3
        assert other.decisions <= 1  # of the game before


def test_new_game__plays_an_object_with_the_name_of_a_listed_agent(start: StartGame) -> None:
    player = greedy(0)
    live_game = start(Session((HUMAN, player), seed=3))  # type: ignore[arg-type]
    assert "greedy" not in [one["spec"] for one in live_game.snapshot()["opponents"]]
    before = player.decisions
    live_game.command("new_game", {"seats": ["greedy", HUMAN], "seed": 4})
    until(live_game, lambda snapshot: player.decisions > before)


def test_file__keeps_earlier_games_with_decisions(start: StartGame, tmp_path: Path) -> None:
    file = tmp_path / "game.jsonl"
    session = Session((HUMAN, HUMAN), seed=3)
    session.earlier_records = [Game(seed=1).record(("?", "?"))]
    live_game = start(session, file)
    live_game.command("new_game", {"seed": 4})  # without a decision: not kept
    live_game.command("new_game", {"seed": 5})
    play(live_game)
    form = live_game.query("position_form", {})
    live_game.command("set_position", {"position": form["data"]})
    live_game.command("resign", {})
    saved = record.load(file)
    assert [one.seed for one in saved] == [1, 5, 5]
    assert [one.forfeit is None for one in saved] == [True, True, False]
    assert saved[2].start == live_game.session.game.start_position


def test_set_board__plays_on_a_corrected_board(start: StartGame, tmp_path: Path) -> None:
    live_game = start(Session((HUMAN, "greedy"), seed=3), tmp_path / "game.jsonl")
    until_turn(live_game)
    play(live_game)
    data = live_game.query("board_form", {})["data"]
    data["culture"]["points"][10] = 45
    correction = {"data": data, "compared": {"culture": "differs", "garden": "matches"}}
    checked = live_game.query("check_board", correction)
    assert checked["changes"] == [["culture.10", 40, 45]]
    snapshot = live_game.command("set_board", correction)
    assert (snapshot["board"], snapshot["seats"]) == ("my_shikoku", [HUMAN, "greedy"])
    board = live_game.session.game.board
    assert (board.culture[10], board.provenance_of("culture.10")) == (45, "box")
    until_turn(live_game)
    for _ in range(3):
        play(live_game)
        until_turn(live_game)
    live_game.command("review", {})
    reviewed(live_game)
    line = live_game.query("record", {})
    assert verified(line, board).board_hash == board.hash
    live_game.command("new_game", {"board": "shikoku"})
    assert live_game.command("load_record", {"record": line})["board"] == "my_shikoku"
    assert live_game.command("new_game", {"board": "my_shikoku"})["board"] == "my_shikoku"
    file = tmp_path / "corrected.toml"
    file.write_text(checked["toml"])
    saved = [one for _, one in record.read_unverified(tmp_path / "game.jsonl")]
    assert [one.board for one in saved[:2]] == ["shikoku", "my_shikoku"]
    assert record.replay(saved[1], file).board.hash == board.hash


def test_frame__shows_the_position_after_events(live_game: LiveGame) -> None:
    until_turn(live_game)
    play(live_game)
    snapshot = until_turn(live_game)
    played = record.replay(verified(live_game.query("record", {})))
    for at in (0, 12, len(snapshot["log"])):
        panels = live_game.query("frame", {"at": at})["panels"]
        scene = scene_of(played.board, played.states[at : at + 1], names=snapshot["names"])
        assert panels["supply"] == panels_of(scene)["supply"]


def test_review__is_that_of_the_study(live_game: LiveGame) -> None:
    snapshot = until_turn(live_game)
    assert not snapshot["can_review"]
    while snapshot["waits_for"] != "nobody":
        play(live_game, -1)
        snapshot = until_turn(live_game)
    snapshot = live_game.command("review", {})
    assert (snapshot["requested"], snapshot["task_agent"]) == ("review", "champion")
    snapshot = reviewed(live_game)
    found, champion = snapshot["review"], make("champion")
    expected = review(live_game.session.game.trajectory(), champion, champion)
    assert snapshot["wins"] == pytest.approx(expected.values.tolist(), abs=1e-4)
    cells = "".join(f"<td>{one['choices']}</td>" for one in expected.totals())
    assert f'<th scope="row">choices</th>{cells}' in found["html"]
    marked = [row for row in expected.choices().tolist() if expected.mark(row)]
    assert sorted(found["remarks"]) == sorted(map(str, marked))
    json.dumps(found)
    assert live_game.command("undo", {})["review"] is None


def test_review__waits_for_an_agent_that_decides(start: StartGame) -> None:
    agent = WaitingAgent()
    live_game = start(Session((HUMAN, agent), seed=3))
    while not agent.called.is_set():
        if play(live_game)["waits_for"] == "agent":
            assert agent.called.wait(20)
    snapshot = live_game.command("review", {})
    assert [snapshot[name] for name in ("requested", "task", "task_agent")] == [
        *("review", "", "waiting")
    ]
    agent.allowed.set()
    snapshot = reviewed(live_game)
    assert snapshot["waits_for"] == "human"
    assert len(snapshot["wins"]) == len(snapshot["log"]) + 1


def test_review__pauses_two_agents(start: StartGame) -> None:
    live_game = start(Session(("greedy", "random"), seed=3), pace=0.01)
    until(live_game, lambda snapshot: snapshot["can_review"])
    snapshot = live_game.command("review", {})
    assert (snapshot["agents_running"], snapshot["task"]) == (False, "review")
    assert len(reviewed(live_game)["log"]) == len(snapshot["log"])
    live_game.command("run_agents", {"on": True})
    until_turn(live_game)
    snapshot = live_game.command("review", {})
    assert (snapshot["agents_running"], snapshot["task"]) == (True, "review")


def test_review__request_ends_with_the_last_decision(start: StartGame) -> None:
    advisor = WaitingAgent()
    live_game = start(Session((HUMAN, "greedy"), seed=3), advisor=advisor)
    until_turn(live_game)
    play(live_game)
    until_turn(live_game)
    assert live_game.command("review", {})["requested"] == "review"
    while live_game.snapshot()["can_undo"]:
        snapshot = live_game.command("undo", {})
    assert (snapshot["requested"], snapshot["can_review"]) == ("", False)
    advisor.allowed.set()


def test_probabilities__are_those_of_the_game(start: StartGame) -> None:
    live_game = start(Session((HUMAN, HUMAN), chance="explicit"))
    snapshot, rng = live_game.snapshot(), np.random.default_rng(1)
    seen = set()
    while len(seen) < 4 or len(snapshot["log"]) < 80:
        game = live_game.session.game
        *dice, bag, first, second = (dict(one["outcomes"]) for one in snapshot["probabilities"])
        if snapshot["waits_for"] == "chance":
            seen.add(game.phase.name)
            rolls = itertools.product(*dice)
            expected = {
                "ROLL": [{f"roll:{'/'.join(roll)}": probability(roll, dice) for roll in rolls}],
                "DRAW": [{f"ware:{ware}": share for ware, share in bag.items()}],
                "REVEAL": [{f"tile:{k}": v for k, v in of.items()} for of in (first, second)],
            }.get(game.phase.name)
            assert expected is None or pytest.approx(dict(game.outcomes())) in expected
        snapshot = play(live_game, rng.integers(len(snapshot["choices"])))
    assert seen == {"SETUP", "ROLL", "DRAW", "REVEAL"}


def probability(roll: Sequence[str], dice: Sequence[dict[str, float]]) -> float:
    return math.prod(die[face] for die, face in zip(dice, roll, strict=True))


def test_coach__asks_before_a_move_that_loses(start: StartGame) -> None:
    live_game = start(Session((HUMAN, HUMAN), seed=7), is_chosen=False)
    assert not live_game.snapshot()["is_chosen"]
    snapshot = live_game.command("coach", {"loss": 0.01})
    for _ in range(40):  # people who decline every effect
        length = len(snapshot["log"])
        play(live_game, -1)
        snapshot = until(live_game, lambda snapshot: not snapshot["thinking"])
        if snapshot["objection"]:
            break
    objection = snapshot["objection"]
    assert objection["loss"] >= max(0.01, objection["error"])
    assert len(snapshot["log"]) == length
    assert {objection["label"], objection["best"]} <= {one["label"] for one in snapshot["choices"]}
    assert live_game.command("coach", {"loss": 0.01})["objection"] is None  # choose again
    snapshot = live_game.command("play", {"move": objection["best"]})
    snapshot = until(live_game, lambda snapshot: not snapshot["thinking"])
    assert (snapshot["objection"], len(snapshot["log"]) > length) == (None, True)
    live_game.command("undo", {})
    snapshot = live_game.command("play", {"move": objection["label"], "anyway": True})
    assert len(snapshot["log"]) > length
    assert snapshot["is_chosen"]


def test_coach__that_fails_turns_itself_off(start: StartGame) -> None:
    live_game = start(Session((HUMAN, HUMAN), seed=7), advisor=FailingAgent())
    live_game.command("coach", {"loss": 0.01})
    length = len(live_game.snapshot()["log"])
    play(live_game)
    snapshot = until(live_game, lambda snapshot: snapshot["error"])
    assert (snapshot["coach"], len(snapshot["log"]) > length) == (None, True)


def test_end__is_reviewed_and_gives_exercises(start: StartGame) -> None:
    live_game = start(Session((HUMAN, "random"), seed=7))
    for _ in range(40):
        play(live_game, -1)
        until_turn(live_game)
    live_game.command("resign", {})
    snapshot = reviewed(live_game)
    assert snapshot["winner"] == 1
    assert snapshot["wins"][-1] == 0  # of player_0, who resigned
    moments = snapshot["review"]["moments"]
    assert moments[0]["title"] == "Largest loss"
    assert all(snapshot["log"][one["event"]][2] in one["text"] for one in moments)
    assert snapshot["log"][moments[0]["event"]][1] == 0  # the person's own
    assert snapshot["exercises"]
    for exercise in snapshot["exercises"]:
        odds, key = exercise["odds"], {"board": exercise["board"]}
        key |= {"board_hash": exercise["board_hash"], "position": exercise["position"]}
        answer = live_game.query("exercise", key)
        assert sorted(one["label"] for one in answer["choices"]) == sorted(odds)
        assert not odds[exercise["played"]][2]
        assert max(odds.values())[2]
        assert max(odds.values())[0] > odds[exercise["played"]][0]
    for change in ({"board": "gone"}, {"board_hash": "changed"}, {"position": {}}):
        with pytest.raises(ValueError, match=r"board|position"):
            live_game.query("exercise", key | change)
    json.dumps(snapshot)


def test_end__without_values_of_the_advisor_shows_no_error(start: StartGame) -> None:
    live_game = start(Session((HUMAN, "random"), seed=7), advisor="greedy")
    play(live_game)
    until_turn(live_game)
    live_game.command("resign", {})
    snapshot = until(live_game, lambda snapshot: not snapshot["thinking"])
    assert (snapshot["error"], snapshot["review"]) == ("", None)
    live_game.command("review", {})
    assert until(live_game, lambda snapshot: snapshot["error"])


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
    snapshot = live_game.command("new_game", {"seats": ["greedy", HUMAN]})
    assert len(until_turn(live_game)["log"]) > len(snapshot["log"])
    advisor.allowed.set()
    time.sleep(0.2)
    assert live_game.snapshot()["review"] is None


def test_map__shows_a_board(live_game: LiveGame) -> None:
    maps = {name: live_game.query("map", {"board": name}) for name in ("shikoku", "family:7")}
    assert len(set(maps.values())) == 2
    with pytest.raises(ValueError, match="board: expected"):
        live_game.query("map", {"board": "/etc/passwd"})


def test_load_record__keeps_a_built_in_opponent(live_game: LiveGame) -> None:
    for spec, seat in (("champion:sims=2", "champion:sims=2"), ("policy:a", HUMAN)):
        line = Game(seed=4).record((HUMAN, spec)).to_json()
        assert live_game.command("load_record", {"record": line})["seats"] == [HUMAN, seat]


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("sing", {}, "name: expected"),
        ("play", {}, "move: expected a label"),
        ("play", {"move": "merchant:X"}, "legal are"),
        ("undo", {}, "there is no decision to undo"),
        ("review", {}, "the game has no decisions yet"),
        ("coach", {"loss": 2}, "loss: expected a number between 0 and 1"),
        ("new_game", {"seats": ["python:os:system", HUMAN]}, "expected human or a listed agent"),
        ("new_game", {"seats": [HUMAN]}, "seats: expected two"),
        ("new_game", {"seats": [HUMAN, {}]}, "expected human or a listed agent"),
        ("new_game", {"board": "/etc/passwd"}, "board: expected"),
        ("new_game", {"board": 7}, "board: expected"),
        ("new_game", {"seed": -1}, "seed"),
        ("new_game", {"seed": "a"}, "seed"),
        ("load_record", {"record": "{}"}, "format"),
        ("load_record", {"record": 3}, "record: expected a line"),
        (
            "load_record",
            {"record": Game(seed=4).record().to_json().replace('"seed": 4', '"seed": 5')},
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
    assert {**live_game.snapshot(), "version": 0} == {**before, "version": 0}
