"""Tests of web/widget.py: messages, their answers, and new states."""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from positions import verified

from tokaido_env import Game
from tokaido_env.web.game_session import HUMAN

pytest.importorskip("anywidget")
from tokaido_env.web.widget import LiveGameWidget, play, resume


@pytest.fixture
def widget() -> Iterator[LiveGameWidget]:
    made = play("greedy", seed=7, advisor="champion")
    yield made
    made.close()


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture
def answer(widget: LiveGameWidget, monkeypatch: pytest.MonkeyPatch) -> Callable[[object], Any]:
    """Passes a message of a view to the widget and returns the answer."""
    sent: list[Any] = []
    monkeypatch.setattr(widget, "send", lambda content, buffers=None: sent.append(content))

    def answered(message: object) -> Any:
        widget._handle_custom_msg(message, [])
        return sent.pop() if sent else None

    return answered


def test_widget__plays_a_game_by_messages(widget: LiveGameWidget, answer: Any) -> None:
    while widget.state["waits_for"] != "nobody":
        move = widget.state["choices"][-1]["label"]
        arguments = {"move": move, "log_length": len(widget.state["log"])}
        message = {"id": "a 1", "kind": "command", "name": "play", "arguments": arguments}
        answered = answer(message)
        assert answered["id"] == "a 1"
        version = answered["answer"]
        until(lambda version=version: widget.state["version"] >= version)  # type: ignore[misc]
        until(lambda: widget.state["waits_for"] != "agent")
    kept = widget.record()
    assert (kept.seed, kept.players, kept.end) == (7, (HUMAN, "greedy"), "triggers")
    query = {"id": "a 2", "kind": "query", "name": "record", "arguments": {}}
    assert verified(answer(query)["answer"]) == kept
    json.dumps(widget.state)


def test_widget__answers_an_impossible_command_with_an_error(answer: Any) -> None:
    answered = answer({"id": 1, "kind": "command", "name": "sing", "arguments": {}})
    assert (answered["id"], "answer" in answered) == (1, False)
    assert "sing" in answered["error"]


def test_resume__shows_a_game_or_a_record() -> None:
    game = Game("family:3", seed=4)
    for _ in range(9):
        game.play(game.legal_actions()[0])
    for given in (game, game.record((HUMAN, HUMAN))):
        widget = resume(given)
        assert widget.session.game == game
        assert len(widget.state["log"]) == len(game.events())
        widget.close()


def test_play__seats_the_players() -> None:
    widget = play("greedy", "random", seat=1, board="shikoku_ring", seed=3)
    assert widget.state["seats"] == ["greedy", "random"]
    assert widget.state["board"] == "shikoku_ring"
    widget.close()
    with pytest.raises(ValueError, match="seat: expected 0 or 1, got 2"):
        play(seat=2)
