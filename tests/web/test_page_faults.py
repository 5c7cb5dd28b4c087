"""Tests of faults that other pages of games have, against the state that the page sees."""

import json
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tokaido_env import Game
from tokaido_env.agents.registry import make
from tokaido_env.record import load
from tokaido_env.web.game_file import GameFile
from tokaido_env.web.game_session import HUMAN, Session
from tokaido_env.web.live_game import LiveGame
from tokaido_env.web.page_state import PageState


class Bot:
    """Plays the first legal action; some answers are others."""

    def __init__(self, answers: list[Any]) -> None:
        self.answers, self.asked = answers, 0

    def choose(self, game: Game, rng: np.random.Generator) -> Any:
        self.asked += 1
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, threading.Event):
            answer.wait(60)
            answer = None
        return game.legal_actions()[0] if answer is None else answer


def started(*seats: Any, file: GameFile | None = None, **options: Any) -> LiveGame:
    options = {"advisor": "champion", "pace": 0.0, **options}
    return LiveGame(Session(seats, seed=7), file, **options)


def until(game: LiveGame, condition: Any) -> PageState:
    state, end = game.state(), time.monotonic() + 60
    while not condition(state):
        assert time.monotonic() < end, {key: state[key] for key in ("status", "jobs", "failure")}  # type: ignore[literal-required]
        state = game.state(state["version"], 1.0)
    return state


def is_turn(state: PageState) -> bool:
    return state["waits_for"] in ("human", "nobody")


def play(game: LiveGame) -> None:
    """Play the first choice, for the position that is shown."""
    state = until(game, is_turn)
    move = {"move": state["choices"][0]["label"]}
    game.command("play", {**move, "game": state["game"], "log_length": len(state["log"])})


def play_until_asked(game: LiveGame, bot: Bot) -> PageState:
    while game.state()["waits_for"] == "human":
        play(game)
    until(game, lambda state: bot.asked)
    return game.state()


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("pass", "Bot answered pass, which is illegal here"),
        (77, "Bot answered the action 77, which is illegal here"),
        ("nonsense", "Bot: ValueError: choose: expected"),
        (SystemExit(), "Bot: SystemExit"),
        (RuntimeError("no\nidea"), "Bot: RuntimeError: no\\nidea"),
    ],
)
def test_wrong_answer__is_named_and_tried_again(answer: Any, text: str) -> None:
    bot = Bot([answer])
    game = started(bot, HUMAN)
    state = until(game, lambda state: state["failure"])
    assert state["failure"] == {"task": "move", "text": state["failure"]["text"]}  # type: ignore[index]
    assert state["failure"]["text"].startswith(text)  # type: ignore[index]
    game.command("run_agents", {"on": True})
    state = until(game, is_turn)
    assert (state["failure"], bot.asked > 1) == (None, True)
    game.close()


def test_wrong_answer__lets_another_agent_go_on() -> None:
    game = started(Bot([7.5]), HUMAN)
    state = until(game, lambda state: state["failure"])
    game.command("change_player", {"seat": 0, "player": "greedy", "game": state["game"]})
    then = until(game, is_turn)
    assert (then["failure"], then["seats"], then["game"]) == (
        None,
        ["greedy", HUMAN],
        state["game"],
    )
    assert then["log"][: len(state["log"])] == [
        (number, seat, text.replace("Bot", "greedy")) for number, seat, text in state["log"]
    ]
    game.close()


def test_hung_agent__does_not_delay_later_games_nor_the_end() -> None:
    hang = threading.Event()
    bot = Bot([hang])
    game = started(HUMAN, bot)
    play_until_asked(game, bot)
    began = time.monotonic()
    game.command("new_game", {"seats": [HUMAN, "greedy"]})
    until(game, is_turn)
    play(game)
    until(game, is_turn)
    game.close()
    assert time.monotonic() - began < 10
    hang.set()


def test_pause_and_error__end_with_their_game() -> None:
    game = started(Bot([7.5]), HUMAN)
    until(game, lambda state: state["failure"])
    game.command("new_game", {"seats": [HUMAN, "greedy"]})
    state = game.state()
    assert (state["failure"], state["agents_running"]) == (None, True)
    game.close()


@pytest.mark.parametrize("name", ["undo", "play_forced", "pause"])
def test_thought__is_kept_by_commands_that_leave_the_position(name: str) -> None:
    think = threading.Event()
    bot = Bot([think])
    game = started(bot, HUMAN)
    play_until_asked(game, bot)
    if name == "pause":
        game.command("run_agents", {"on": False})
        think.set()
        time.sleep(0.1)
        assert game.state()["waits_for"] == "agent"
        game.command("run_agents", {"on": True})
    else:
        game.command(name, {"on": True})
    think.set()
    until(game, is_turn)
    decided = sum(seat == 0 for _, seat, _ in game.state()["log"])
    assert bot.asked <= decided
    game.close()


def test_play__of_another_game_is_refused() -> None:
    game = started(HUMAN, HUMAN)
    state = game.state()
    game.command("new_game", {"seed": 7})
    move = {"move": state["choices"][0]["label"], "log_length": len(state["log"])}
    assert len(game.state()["log"]) == len(state["log"])
    with pytest.raises(ValueError, match="the game has changed"):
        game.command("play", {**move, "game": state["game"]})
    game.close()


def recorded(*players: str) -> str:
    game = Game(seed=5)
    for _ in range(9):
        game.play(game.legal_actions()[0])
    return game.record(players).to_json()


def test_resume__names_the_missing_player_or_plays_both_seats() -> None:
    game, line = started(HUMAN, "greedy"), recorded(HUMAN, "python:my_bot:Bot")
    assert game.query("missing", {"record": line}) == ["python:my_bot:Bot"]
    with pytest.raises(ValueError, match="--opponent python:my_bot:Bot, or play both seats"):
        game.command("load_record", {"record": line})
    game.command("load_record", {"record": line, "plays_both": True, "id": "one"})
    state = game.state()
    assert (state["seats"], state["game"]) == ([HUMAN, HUMAN], "one")
    assert state["names"] == [HUMAN, "python:my_bot:Bot"]
    assert '"python:my_bot:Bot"' in game.query("record", {})
    game.close()


def test_resume__of_the_saved_game_does_not_double_it(tmp_path: Path) -> None:
    path = tmp_path / "games.jsonl"
    game = started(HUMAN, "greedy", file=GameFile(path))
    for _ in range(3):
        play(game)
    until(game, is_turn)
    line = game.query("record", {})
    game.close()
    again = LiveGame(
        Session.from_record(load(path)[0], (HUMAN, "greedy")),
        GameFile(path, resumes=True),
        advisor="champion",
    )
    again.command("load_record", {"record": line})
    play(again)
    until(again, is_turn)
    assert len(load(path)) == 1
    with path.open("a") as file:  # another program
        file.write(recorded(HUMAN, "greedy") + "\n")
    play(again)
    until(again, is_turn)
    again.close()
    assert recorded(HUMAN, "greedy") in path.read_text().splitlines()


@pytest.mark.parametrize("seed", [2**53 + 1, 2**62 + 3])
def test_seed__of_the_page_is_that_of_the_command(seed: int) -> None:
    game = started(HUMAN, HUMAN)
    game.command("new_game", {"seed": str(seed)})
    assert game.session.record() == Session((HUMAN, HUMAN), seed=seed).record()
    game.close()


def test_rematch_and_load__keep_an_opponent_that_is_an_object() -> None:
    bot = Bot([])
    game = started(HUMAN, bot)
    play(game)
    until(game, is_turn)
    line = game.query("record", {})
    for name, arguments in (("new_game", {}), ("load_record", {"record": line})):
        game.command(name, arguments)
        before = bot.asked
        while bot.asked == before:
            play(game)
        until(game, is_turn)
    game.close()


def test_review__grows_and_can_be_skipped() -> None:
    advisor, looks = make("champion:sims=4"), threading.Semaphore(0)
    act = advisor.act

    def act_after_a_look(*positions: Any) -> Any:
        assert looks.acquire(timeout=60)
        return act(*positions)

    advisor.act = act_after_a_look  # type: ignore[method-assign]
    game = started(HUMAN, "random", advisor=advisor)
    for _ in range(20):
        play(game)
    until(game, is_turn)
    game.command("resign", {})
    state, seen = until(game, lambda state: state["review"]), []
    while state["jobs"]:
        seen.append(state["review_progress"])
        looks.release()
        state = game.state(state["version"], 5.0)
    seen.append(state["review_progress"])
    done = [judged for judged, _ in seen]
    assert done[0] < done[-1] == seen[0][1]
    assert done == sorted(done)
    game.command("undo", {})
    game.command("review", {})
    until(game, lambda state: state["review"])
    game.command("skip_review", {})
    state = game.state()
    assert (state["jobs"], state["review_progress"][0] < state["review_progress"][1]) == ([], True)  # type: ignore[index]
    looks.release(1000)
    game.close()


def test_review__survives_a_move_and_advice() -> None:
    game = started(HUMAN, HUMAN, advisor="champion:sims=4")
    for _ in range(4):
        play(game)
    game.command("review", {})
    game.command("advise", {})
    play(game)
    state = until(game, lambda state: state["review"] and not state["jobs"])
    assert state["review_progress"][0] == state["review_progress"][1]  # type: ignore[index]
    game.close()


BOTS = {
    "hung python": "class Bot:\n  def choose(self, game, rng):\n    while True: pass",
    "hung exec": "import time\ntime.sleep(999)",
    "review": "",
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", BOTS)
def test_ctrl_c__ends_within_a_second(kind: str, tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text(BOTS[kind])
    spec = {"hung exec": f"exec:{sys.executable} bot.py", "review": "random"}
    opponent = spec.get(kind, "python:bot.py:Bot")
    words = [sys.executable, "-m", "tokaido_env", "play", "--no-browser", "--port", "0"]
    words += ["--opponent", opponent, "--seat", "1"]
    play = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert play.stdout is not None
    page, _, token = play.stdout.readline().strip().partition("#")
    state = request(page, token, "state")
    while kind == "review" and state["waits_for"] != "nobody":
        if state["waits_for"] == "human":
            request(page, token, "command/resign", "{}")
        state = request(page, token, f"state?version={state['version']}")
    if kind == "review":
        while not state["jobs"]:
            state = request(page, token, f"state?version={state['version']}")
    assert state["jobs"]
    time.sleep(0.5)
    began = time.monotonic()
    play.send_signal(signal.SIGINT)
    assert (play.wait(20), play.communicate()[0]) == (0, "Ctrl-C stops the server\n")
    print("ended in", time.monotonic() - began)
    assert time.monotonic() - began < 5  # under a second on a quiet machine


def request(page: str, token: str, path: str, body: str | None = None) -> Any:
    data = None if body is None else body.encode()
    asked = urllib.request.Request(page + path, data, {"X-Token": token})
    with urllib.request.urlopen(asked, timeout=60) as answer:
        return json.load(answer)
