"""The widget: messages do and ask at its table, and what happens there is shown."""

import functools
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tokaido_env import Game, record
from tokaido_env.web.game_session import HUMAN

pytest.importorskip("anywidget")
from tokaido_env.web.widget import TableWidget, go_on, play


class Sent(list[Any]):
    """What a widget has sent to its views."""

    def __init__(self, widget: TableWidget, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(widget, "send", lambda content, buffers=None: self.append(content))


@pytest.fixture
def widget() -> Iterator[TableWidget]:
    made = play("greedy", seed=7, advisor="champion")
    yield made
    made.close()


def until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not done():
        assert time.monotonic() < end
        time.sleep(0.01)


def has_moved_on(widget: TableWidget, version: int) -> bool:
    return widget.told["version"] >= version and widget.told["waits_for"] != "agent"


def say(widget: TableWidget, message: object) -> None:
    """Let a message come from a view."""
    widget._handle_custom_msg(message, [])


def test_a_game_is_played_by_messages(widget: TableWidget, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = Sent(widget, monkeypatch)
    while widget.told["waits_for"] != "nobody":
        move = widget.told["choices"][-1]["label"]
        arguments = {"move": move, "events": len(widget.told["log"])}
        say(widget, {"id": "a 1", "kind": "do", "name": "play", "arguments": arguments})
        answer = sent.pop()
        assert answer["id"] == "a 1"
        done = functools.partial(has_moved_on, widget, answer["answer"]["version"])
        until(done)
    kept = widget.record()
    assert (kept.seed, kept.players, kept.end) == (7, (HUMAN, "greedy"), "triggers")
    say(widget, {"id": "a 2", "kind": "ask", "name": "record", "arguments": {}})
    assert record.read_line(sent.pop()["answer"]) == kept
    json.dumps(widget.told)


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ({"id": 1, "kind": "do", "name": "sing", "arguments": {}}, "name: expected"),
        ({"id": 1, "kind": "do", "name": 3, "arguments": {}}, "expected a name and an object"),
        ({"id": 1, "kind": "ask", "name": "at"}, "expected a name and an object"),
    ],
)
def test_what_cannot_be_is_refused(
    widget: TableWidget, monkeypatch: pytest.MonkeyPatch, message: Any, error: str
) -> None:
    sent = Sent(widget, monkeypatch)
    say(widget, "not a message")
    say(widget, message)
    (answer,) = sent
    assert error in answer["error"]
    assert "answer" not in answer


def test_a_game_that_was_played_goes_on() -> None:
    game = Game("family:3", seed=4)
    for _ in range(9):
        game.play(game.legal_actions()[0])
    for given in (game, game.record((HUMAN, HUMAN))):
        widget = go_on(given)
        assert widget.session.game == game
        assert len(widget.told["log"]) == len(game.events())
        widget.close()


def test_who_plays_where() -> None:
    widget = play("greedy", "random", seat=1, board="shikoku_ring", seed=3)
    assert widget.told["seats"] == ["greedy", "random"]
    assert widget.told["board"] == "shikoku_ring"
    widget.close()
    with pytest.raises(ValueError, match="seat: expected 0 or 1, got 2"):
        play(seat=2)
    with pytest.raises(ValueError, match="unknown agent 'nobody'"):
        play("nobody")
