"""Tests of web/replay_page.py: the data and the HTML of replay pages."""

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from game_pages import GameData, games_of
from positions import game_at, random_walk

from tokaido_env import Game, Record, RecordError
from tokaido_env.__main__ import main
from tokaido_env.core.actions import IDS
from tokaido_env.core.serialization import POINTS
from tokaido_env.record import load, save
from tokaido_env.render.narration import display_names
from tokaido_env.render.svg import panels_of
from tokaido_env.web.replay_page import MAX_GAMES, replay_page

GOLDEN = Path(__file__).parents[1] / "golden" / "games.jsonl"
HOSTILE = "</script><img src=x onerror=alert(1)>$title & '\""


class Reader(HTMLParser):
    """Parser that collects the elements of a page and their texts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.inside = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.texts.append("")
        self.inside = True

    def handle_endtag(self, tag: str) -> None:
        self.inside = False

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.texts[-1] += data

    def of(self, *tags: str) -> list[str]:
        """Return the text at the beginning of each element with one of the tags."""
        named = zip(self.elements, self.texts, strict=True)
        return [text for (name, _), text in named if name in tags]


def played(steps: int, seed: int = 5) -> Game:
    """Return a game after a number of events, including chance."""
    return random_walk(seed, steps)


@pytest.fixture(scope="module")
def golden() -> list[Record]:
    return load(GOLDEN)


def panels_at(game_data: GameData, move: int) -> dict[str, dict[str, str]]:
    """Return the parts of each panel at a move, found naively."""
    parts_of: dict[str, dict[str, str]] = {}
    for panel, parts in game_data["panels"].items():
        parts_of[panel] = {}
        for part, changes in parts:
            pairs = [changes[i : i + 2] for i in range(0, len(changes), 2)]
            newest = [index for first, index in pairs if first <= move][-1:]
            parts_of[panel][part] = game_data["markup"][newest[0]] if newest else ""
    return parts_of


def nonempty_parts(panels: dict[str, dict[str, str]]) -> dict[str, list[tuple[str, str]]]:
    return {name: [item for item in parts.items() if item[1]] for name, parts in panels.items()}


def test_panels__give_every_picture_in_drawing_order() -> None:
    record = played(110).record(["Ann", "Bob"])
    (game_data,) = games_of(replay_page([record]))
    again = Game(chance="explicit", seed=0)
    for move, event in enumerate([*record.events, None]):
        if move % 5 == 0 or event is None:
            scene = replace(again.scene(), names=("Ann", "Bob"))
            assert nonempty_parts(panels_at(game_data, move)) == nonempty_parts(panels_of(scene))
        if event is not None:
            again.play(event)


def test_log_points_and_rounds__are_those_of_the_game(golden: list[Record]) -> None:
    record = golden[0]
    (game_data,) = games_of(replay_page([record]))
    game = Game(seed=0, chance="explicit")
    for move, event in enumerate([*record.events, None]):
        expected = [[one[key] for key in POINTS] for one in game.scores()]
        assert game_data["points"][move] == expected
        if event is not None:
            game.play(event)
            number, seat, sentence = game_data["log"][move]
            assert number == game.rounds
            assert (seat is None) == event.startswith(("boutique", "side"))
            assert sentence.startswith("The " if seat is None else game_data["names"][seat])
    assert game_data["wins"] is None


def test_page__of_games_that_have_hardly_begun() -> None:
    (game_data,) = games_of(replay_page([Game(chance="explicit").record()]))
    assert (game_data["log"], len(game_data["points"])) == ([], 1)
    assert "player_0 against player_1: unfinished, 0 rounds" in game_data["choice"]
    game = game_at(round=190)
    game.play("pilgrim")
    (game_data,) = games_of(replay_page([game.record()]))
    assert [number for number, _, _ in game_data["log"]] == [190]


class TempleAgent:
    """Agent with values from the temple tracks and equal probabilities for legal actions."""

    spec = "temple"

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> Any:
        raise AssertionError("unexpected call")

    def judge(self, boards: Any, states: Any, legal: Any, keys: Any) -> tuple[Any, Any]:
        actions = np.arange(len(IDS), dtype=np.uint64)
        probabilities = (legal[:, None] >> actions & np.uint64(1)).astype(np.float32)
        return probabilities / probabilities.sum(axis=1, keepdims=True), self.value(
            states["temple"].astype(float)
        )

    @staticmethod
    def value(temple: Any) -> Any:
        return (temple[:, 0] - temple[:, 1]) / 8


def test_agent__shows_its_win_estimates(golden: list[Record]) -> None:
    record = golden[4]
    (game_data,) = games_of(replay_page([record], agent=TempleAgent()))
    game, expected = Game(seed=0, chance="explicit"), None
    for move, event in enumerate([*record.events, None]):
        if game.player is not None:
            expected = float(TempleAgent.value(game.state["temple"].astype(float))[0])
        win = game_data["wins"][move]
        bar = panels_at(game_data, move)["heading"].get("value", "")
        if expected is None:
            assert (win, bar) == (None, "")
        else:
            assert win == pytest.approx((1 + expected) / 2, abs=1e-4)
            assert f"{(1 + expected) / 2:.0%}" in bar
        if event is not None:
            game.play(event)


# The page as a file


def test_page__loads_nothing_and_runs_only_its_script(golden: list[Record]) -> None:
    page = replay_page(golden[4:6])
    assert page == replay_page(golden[4:6])
    assert len(page.encode()) < 5e5
    reader = Reader(page)
    links = {"src", "href", "action", "data", "srcset", "poster", "background"}
    for tag, attributes in reader.elements:
        assert not links & attributes.keys()
        assert not [name for name in attributes if name.startswith("on")]
        assert tag not in ("link", "img", "iframe", "object", "embed", "base")
    assert not re.search(r"url\(|@import|https?://", page)
    *data, script = reader.of("script")
    assert len(data) == 2
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = [a["content"] for t, a in reader.elements if a.get("http-equiv")]
    assert str(policy).startswith(f"default-src 'none'; script-src 'sha256-{digest}'; ")


def test_page__shows_a_hostile_name_as_text() -> None:
    game = played(20)
    page, harmless = (
        Reader(replay_page([game.record([name, "Bob"]), game.record(["plain", "Bob"])]))
        for name in (HOSTILE, "plain")
    )
    assert [tag for tag, _ in page.elements] == [tag for tag, _ in harmless.elements]
    displayed = display_names((HOSTILE, "Bob"))[0]
    assert page.of("title")[0] == f"{displayed} against Bob"
    assert f"1. {displayed} against Bob: unfinished" in page.of("option")[0]
    (game_data,) = games_of(replay_page([game.record([HOSTILE, "Bob"])]))
    drawn = {tag for tag, _ in Reader("".join(game_data["markup"])).elements}
    assert drawn <= {"g", "title", "text", "path", "rect", "circle", "line", "svg"}


# The command


def test_command__writes_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "games.html"
    assert main(["replay", str(GOLDEN), "--game", "5", "--html", str(out)]) == 0
    assert out.read_text(encoding="utf-8") == replay_page(load(GOLDEN)[4:5])
    assert capsys.readouterr().out.startswith(f"{out}: games 1, ")
    save([played(30).record()], tmp_path / "games.jsonl")
    words = ["replay", str(tmp_path / "games.jsonl"), "--value-agent", "greedy", "--html", str(out)]
    assert main(words) == 0
    (game_data,) = games_of(out.read_text(encoding="utf-8"))
    assert "100%" in "".join(game_data["markup"])


def test_page__refuses_wrong_games() -> None:
    record = played(40).record()
    for number in (0, MAX_GAMES + 1):
        with pytest.raises(ValueError, match=f"a page holds 1 to {MAX_GAMES} games, got {number}"):
            replay_page([record] * number)
    events = (*record.events[:30], "pilgrim:swim", *record.events[31:])
    with pytest.raises(RecordError, match="event 31 of 40"):
        replay_page([replace(record, events=events)])
