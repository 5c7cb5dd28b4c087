"""Tables: what several pages see of one game, what they may do, and agents that think meanwhile."""

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

from tokaido_env import Game, record
from tokaido_env.agent import Agent
from tokaido_env.agents import make
from tokaido_env.arena.ladder import LADDER, Ladder
from tokaido_env.core.bitmask import actions_of
from tokaido_env.render.scene import scene_of
from tokaido_env.render.svg import panels_of
from tokaido_env.study.review import review
from tokaido_env.web.game_session import HUMAN, Session
from tokaido_env.web.live_game import LiveGame, levels

Seat = Callable[..., LiveGame]


class Slow(Agent):
    """Decides when it is told to."""

    spec = "slow"

    def __init__(self) -> None:
        self.asked, self.go = threading.Event(), threading.Event()

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
        self.asked.set()
        assert self.go.wait(20)
        return np.array([actions_of(int(mask))[0] for mask in legal], np.int64)


class Broken(Agent):
    """Fails."""

    spec = "broken"

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
        raise RuntimeError("no\nidea")


@pytest.fixture
def seat() -> Iterator[Callable[..., LiveGame]]:
    """Makes tables, which are closed at the end."""
    tables = []

    def made(session: Session, file: Path | None = None, **options: Any) -> LiveGame:
        tables.append(LiveGame(session, file, **{"advisor": "champion", "pace": 0.0, **options}))
        return tables[-1]

    yield made
    for table in tables:
        table.close()


@pytest.fixture
def table(seat: Seat, tmp_path: Path) -> LiveGame:
    return seat(Session((HUMAN, "greedy"), seed=7), tmp_path / "game.jsonl")


def reviewed(table: LiveGame) -> dict[str, Any]:
    """What there is to see once the game is reviewed."""
    told, end = table.look(), time.monotonic() + 120
    while told["review"] is None:
        assert time.monotonic() < end, told
        told = table.look(told["version"], 20)
    return told


def until(table: LiveGame, *waits: str) -> dict[str, Any]:
    """What there is to see once the game waits for one of these."""
    told = table.look()
    end = time.monotonic() + 20
    while told["waits_for"] not in waits:
        assert time.monotonic() < end
        told = table.look(told["version"], 1.0)
    return told


def plays(table: LiveGame, which: int = 0) -> dict[str, Any]:
    """What there is to see once a choice was made and it is a person's turn again."""
    table.do("play", {"move": table.look()["choices"][which]["label"]})
    return until(table, "human", "nobody")


def test_a_game_is_played_against_an_agent_and_kept(table: LiveGame, tmp_path: Path) -> None:
    told = until(table, "human", "nobody")
    while told["waits_for"] != "nobody":
        assert told["choices"]
        assert told["choices"][0]["words"]
        (kept,) = record.load(tmp_path / "game.jsonl")
        assert len(kept.events) == len(told["log"])
        table.do("play", {"move": told["choices"][-1]["label"], "events": len(told["log"])})
        told = until(table, "human", "nobody")
    game = record.read_line(table.ask("record", {}))
    assert record.load(tmp_path / "game.jsonl") == [game]
    assert (game.seed, game.players, game.end) == (7, (HUMAN, "greedy"), "triggers")
    assert len(told["log"]) == len(game.events)
    assert told["points"] == list(game.scores)
    json.dumps(told)


def test_what_is_seen_is_the_position(table: LiveGame) -> None:
    told = table.look()
    scene = table.session.scenes[-1]
    assert told["panels"] == {k: "".join(parts.values()) for k, parts in panels_of(scene).items()}
    game = Game(seed=7)
    assert [choice["label"] for choice in told["choices"]] == game.legal_labels()
    assert [len(told["log"]), told["player"], told["board"]] == [len(game.events()), 0, "shikoku"]
    assert told["log"][0][:2] == [0, None]
    assert told["log"][-1][2].startswith("human leads round 1 and rolls")


def test_levels_are_those_of_the_ladder() -> None:
    ladder = Ladder.load(LADDER, "shikoku")
    known = {rating.agent: round(rating.elo) for rating in ladder.agents}
    found = levels()
    rated = [level for level in found if level.elo is not None]
    assert {level.spec: level.elo for level in rated} == known
    assert [level.elo for level in rated] == sorted(known.values())
    assert all(Session((level.spec, HUMAN)).names[0] == level.spec for level in found)


def test_who_has_seen_all_waits_for_the_next(table: LiveGame) -> None:
    told = until(table, "human")
    began = time.monotonic()
    assert table.look(told["version"], 0.2)["version"] == told["version"]
    assert time.monotonic() - began >= 0.2
    seen: list[int] = []
    others = [
        threading.Thread(target=lambda: seen.append(table.look(told["version"], 20)["version"]))
        for _ in range(2)
    ]
    for other in others:
        other.start()
    table.do("play", {"move": told["choices"][0]["label"]})
    for other in others:
        other.join(20)
    assert min(seen) > told["version"]


def test_what_was_seen_before_is_not_played_on(table: LiveGame) -> None:
    told = until(table, "human")
    table.do("play", {"move": told["choices"][0]["label"], "events": len(told["log"])})
    later = until(table, "human")
    with pytest.raises(ValueError, match="the game has gone on since"):
        table.do("play", {"move": later["choices"][0]["label"], "events": len(told["log"])})


def test_a_page_looks_while_an_agent_thinks_and_takes_back(seat: Seat) -> None:
    agent = Slow()
    table = seat(Session((HUMAN, HUMAN), seed=7))
    table.session = Session((HUMAN, agent), seed=7)
    told = table.do("skip", {"on": True})
    while told["waits_for"] == "human":
        told = table.do("play", {"move": told["choices"][0]["label"]})
    assert agent.asked.wait(20)
    began = time.monotonic()
    assert table.look()["thinks"]
    assert time.monotonic() - began < 5
    before = table.do("undo", {})  # what it is thinking about is gone
    agent.go.set()
    time.sleep(0.2)
    now = table.look()
    assert (now["waits_for"], now["log"]) == ("human", before["log"])


def test_agents_that_play_each_other_can_be_halted(seat: Seat) -> None:
    table = seat(Session(("greedy", "random"), seed=1), pace=0.01)
    told = table.do("run", {"on": False})
    time.sleep(0.1)
    assert table.look()["version"] == told["version"]
    table.do("run", {"on": True})
    assert until(table, "nobody")["waits_for"] == "nobody"


def test_an_agent_that_fails_is_told_and_halts(seat: Seat) -> None:
    table = seat(Session((Broken(), HUMAN), seed=1))
    told = table.look()
    while not told["failed"]:
        told = table.look(told["version"], 5)
    assert told["failed"] == "RuntimeError: no\\nidea"  # in one line
    assert not told["runs"]


def test_advice_is_given_and_gone_with_the_position(table: LiveGame) -> None:
    told = until(table, "human")
    table.do("advise", {})
    while told["advice"] is None:
        told = table.look(told["version"], 5)
    best = table.session.advise("champion")
    assert told["advice"]["wins"] == best.wins
    moves = [{**move._asdict(), "words": move.words()} for move in best.moves]
    assert told["advice"]["moves"] == moves
    assert table.do("play", {"move": told["choices"][0]["label"]})["advice"] is None


def test_advice_that_comes_too_late_is_not_given(seat: Seat) -> None:
    advisor = Slow()
    table = seat(Session((HUMAN, HUMAN), chance="explicit"), advisor=advisor)
    told = table.look()
    while told["waits_for"] == "chance":
        told = table.do("play", {"move": told["choices"][0]["label"]})
    table.do("advise", {})
    assert advisor.asked.wait(20)
    table.do("undo", {})  # nobody is to decide now
    advisor.go.set()
    time.sleep(0.2)
    told = table.look()
    assert (told["waits_for"], told["asked"], told["advice"]) == ("chance", "", None)
    table.do("play", {"move": told["choices"][0]["label"]})
    assert table._thread.is_alive()


def test_a_game_that_cannot_be_saved_goes_on(seat: Seat, tmp_path: Path) -> None:
    table = seat(Session((HUMAN, HUMAN), seed=3), tmp_path / "gone" / "game.jsonl")
    told = table.look()
    assert told["failed"].startswith("not saved: ")
    assert len(table.do("play", {"move": told["choices"][0]["label"]})["log"]) > len(told["log"])


def test_a_new_game_and_a_record(table: LiveGame) -> None:
    told = table.do("new", {"seats": ["random", HUMAN], "board": "shikoku_ring", "seed": 5})
    assert (told["seats"], told["board"], told["seed"]) == (["random", HUMAN], "shikoku_ring", 5)
    told = table.do("new", {"seats": [HUMAN, HUMAN], "chance": "explicit"})
    assert (told["waits_for"], told["board"]) == ("chance", "shikoku_ring")
    assert sum(float(one["words"].rstrip("%")) for one in told["choices"]) == pytest.approx(
        100, abs=0.5
    )
    game = Game(seed=4)
    for _ in range(9):
        game.play(game.legal_actions()[0])
    line = game.record(("python:os:system", "greedy")).to_json()
    told = table.do("load", {"record": line})
    assert told["seats"] == [HUMAN, "greedy"]
    assert len(told["log"]) >= len(game.events())


def test_games_that_are_left_stay_in_the_file(seat: Seat, tmp_path: Path) -> None:
    file, first = tmp_path / "game.jsonl", Game(seed=1).record(("?", "?"))
    session = Session((HUMAN, HUMAN), seed=3)
    session.earlier = [first]
    table = seat(session, file)
    table.do("new", {"seed": 4})  # nobody has decided anything: not kept
    told = table.do("new", {"seed": 5})
    table.do("play", {"move": told["choices"][0]["label"]})
    form = table.ask("position", {})
    table.do("put", {"position": form["data"]})
    table.do("resign", {})
    kept = record.load(file)
    assert [one.seed for one in kept] == [1, 5, 5]
    assert [one.forfeit is None for one in kept] == [True, True, False]
    assert kept[2].start == table.session.game.start_position


def test_a_corrected_board_is_played_on_at_once(seat: Seat, tmp_path: Path) -> None:
    table = seat(Session((HUMAN, "greedy"), seed=3), tmp_path / "game.jsonl")
    told = until(table, "human")
    table.do("play", {"move": told["choices"][0]["label"]})
    data = table.ask("board", {})["data"]
    data["culture"]["points"][10] = 45
    compared = {"culture": "different", "garden": "same"}
    found = table.ask("check", {"data": data, "compared": compared})
    assert found["changes"] == [["culture.10", 40, 45]]
    told = table.do("board", {"data": data, "compared": compared})
    assert (told["board"], told["seats"]) == ("my_shikoku", [HUMAN, "greedy"])
    board = table.session.game.board
    assert (board.culture[10], board.provenance_of("culture.10")) == (45, "box")
    until(table, "human")
    for _ in range(3):
        plays(table)
    table.do("review", {})
    reviewed(table)
    line = table.ask("record", {})
    assert record.read_line(line, board).board_hash == board.hash
    table.do("new", {"board": "shikoku"})
    assert table.do("load", {"record": line})["board"] == "my_shikoku"
    assert table.do("new", {"board": "my_shikoku"})["board"] == "my_shikoku"
    file = tmp_path / "own.toml"
    file.write_text(found["toml"])
    kept = [one for _, one in record.read_unverified(tmp_path / "game.jsonl")]
    assert [one.board for one in kept[:2]] == ["shikoku", "my_shikoku"]
    assert record.replay(kept[1], file).board.hash == board.hash


def test_how_it_looked_is_asked_for(table: LiveGame) -> None:
    until(table, "human")
    told = plays(table)
    played = record.replay(record.read_line(table.ask("record", {})))
    for event in (0, 12, len(told["log"])):
        picture = table.ask("at", {"event": event})
        scene = scene_of(played.board, played.states[event : event + 1], names=told["names"])
        parts = panels_of(scene)["table"]
        assert picture["panels"]["table"] == "".join(parts.values())


def test_the_game_is_reviewed(table: LiveGame) -> None:
    told = until(table, "human")
    assert not told["can_review"]
    while told["waits_for"] != "nobody":
        told = plays(table, -1)
    told = table.do("review", {})
    assert (told["asked"], told["thinker"]) == ("review", "champion")
    told = reviewed(table)
    champion = make("champion")
    found = review(table.session.game.trajectory(), champion, champion)
    assert told["review"]["wins"] == pytest.approx(found.values.tolist(), abs=1e-4)
    assert told["review"]["totals"][0] == [
        "choices",
        *(str(one["choices"]) for one in found.totals()),
    ]
    marked = [row for row in found.choices().tolist() if found.mark(row)]
    assert sorted(told["review"]["remarks"]) == sorted(map(str, marked))
    json.dumps(told)
    assert table.do("undo", {})["review"] is None


def test_a_review_waits_for_the_agent_that_is_about_to_decide(seat: Seat) -> None:
    agent = Slow()
    table = seat(Session((HUMAN, agent), seed=3))
    told = until(table, "human")
    while not agent.asked.is_set():
        table.do("play", {"move": told["choices"][0]["label"]})
        told = until(table, "human", "agent")
        if told["waits_for"] == "agent":
            assert agent.asked.wait(20)
    told = table.do("review", {})
    assert (told["asked"], told["does"], told["thinker"]) == ("review", "", "slow")
    agent.go.set()
    told = reviewed(table)
    assert told["waits_for"] == "human"
    assert len(told["review"]["wins"]) == len(told["log"]) + 1


def test_agents_pause_while_their_game_is_reviewed(seat: Seat) -> None:
    table = seat(Session(("greedy", "random"), seed=3), pace=0.01)
    while not table.look()["can_review"]:
        table.look(table.look()["version"], 20)
    told = table.do("review", {})
    assert (told["runs"], told["does"]) == (False, "review")
    assert len(reviewed(table)["log"]) == len(told["log"])
    table.do("run", {"on": True})
    until(table, "nobody")
    told = table.do("review", {})
    assert (told["runs"], told["does"]) == (True, "review")


def test_a_review_is_forgotten_with_the_last_decision(seat: Seat) -> None:
    advisor = Slow()
    table = seat(Session((HUMAN, "greedy"), seed=3), advisor=advisor)
    until(table, "human")
    plays(table)
    assert table.do("review", {})["asked"] == "review"
    while table.look()["can_undo"]:
        told = table.do("undo", {})
    assert (told["asked"], told["can_review"]) == ("", False)
    advisor.go.set()


def test_odds_are_those_of_what_comes_next(seat: Seat) -> None:
    table = seat(Session((HUMAN, HUMAN), chance="explicit"))
    told, rng = table.look(), np.random.default_rng(1)
    seen = set()
    while told["waits_for"] != "nobody":
        game = table.session.game
        *dice, bag, first, second = (dict(one["shares"]) for one in told["odds"])
        if told["waits_for"] == "chance":
            seen.add(game.phase.name)
            rolls = itertools.product(*dice)
            expected = {
                "ROLL": [{f"roll:{'/'.join(roll)}": share_of(roll, dice) for roll in rolls}],
                "DRAW": [{f"ware:{ware}": share for ware, share in bag.items()}],
                "REVEAL": [{f"tile:{k}": v for k, v in of.items()} for of in (first, second)],
            }.get(game.phase.name)
            assert expected is None or pytest.approx(dict(game.outcomes())) in expected
        labels = [one["label"] for one in told["choices"]]
        told = table.do("play", {"move": labels[rng.integers(len(labels))]})
    assert seen == {"SETUP", "ROLL", "DRAW", "REVEAL"}


def share_of(roll: Sequence[str], dice: Sequence[dict[str, float]]) -> float:
    return math.prod(die[face] for die, face in zip(dice, roll, strict=True))


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("sing", {}, "name: expected"),
        ("play", {}, "move: expected a label"),
        ("play", {"move": "merchant:X"}, "legal are"),
        ("undo", {}, "nothing to take back"),
        ("new", {"seats": ["python:os:system", HUMAN]}, "expected human or a listed agent"),
        ("new", {"seats": [HUMAN]}, "seats: expected two"),
        ("new", {"seats": [HUMAN, {}]}, "expected human or a listed agent"),
        ("new", {"board": "/etc/passwd"}, "board: expected"),
        ("new", {"board": 7}, "board: expected"),
        ("new", {"seed": -1}, "seed"),
        ("new", {"seed": "a"}, "seed"),
        ("load", {"record": "{}"}, "format"),
        ("load", {"record": 3}, "record: expected a line"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(
    table: LiveGame, name: str, arguments: dict[str, Any], error: str
) -> None:
    before = until(table, "human")
    with pytest.raises(ValueError, match=error):
        table.do(name, arguments)
    after = table.look()
    assert {**after, "version": 0} == {**before, "version": 0}


def test_the_luck_of_a_record_is_that_of_its_seed(table: LiveGame) -> None:
    data = json.loads(Game(seed=4).record().to_json())
    with pytest.raises(ValueError, match="the luck of seed 5 gives"):
        table.do("load", {"record": json.dumps(data | {"seed": 5})})
