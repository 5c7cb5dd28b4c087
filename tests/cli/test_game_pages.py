"""Tests of the game pages that a report links."""

import base64
import gzip
import json
import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest

from tokaido_env.__main__ import main
from tokaido_env.agents import make
from tokaido_env.arena.match import GAME, Match
from tokaido_env.arena.tournament import MatchState, play_remaining
from tokaido_env.cli.evaluate import choose_games, write_games
from tokaido_env.record import load

AGENTS = ["random", "greedy", "heuristic"]


class Links(HTMLParser):
    """Links of a page to other files, with their text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []
        self.inside = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        href = dict(attrs).get("href") or "#"
        self.inside = tag == "a" and not href.startswith("#")
        if self.inside:
            self.found.append((href, ""))

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.found[-1] = (self.found[-1][0], data)
            self.inside = False


def test_choose_games__takes_closest_and_clearest() -> None:
    games = np.zeros((3, 2), GAME)
    games["points"][:, :, 0, 0] = [[50, 10], [31, 30], [0, 34]]
    games["points"][:, :, 1, 1] = 30  # a is ahead by 20, -20, 1, 0, -30 and 4 points
    match = Match("a", "b", games, np.zeros((3, 2, 1), np.int8))
    assert choose_games(match, 1) == [3]
    assert choose_games(match, 2) == [3, 4]
    assert choose_games(match, 3)[::2] == [3, 4]
    assert choose_games(match, 6) == choose_games(match, 100) == [3, 2, 5, 0, 1, 4]


@pytest.fixture(scope="module")
def tournament(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with records and a report with special characters in its name."""
    folder = tmp_path_factory.mktemp("a report")
    files = ["--report", str(folder / "50% #1.html"), "--records", str(folder / "games.jsonl")]
    assert main(["evaluate", *AGENTS, "--games", "6", "--seed", "2", *files]) == 0
    return folder


def test_report__links_two_games_of_each_match(tournament: Path) -> None:
    links = Links((tournament / "50% #1.html").read_text(encoding="utf-8")).found
    files = [unquote(href.partition("#")[0]) for href, _ in links]
    assert len(files) == 2 * len(set(files)) == 6
    for name in files:
        assert (tournament / name).stat().st_size < 200_000
    written = {f"50% #1-games/{path.name}" for path in (tournament / "50% #1-games").iterdir()}
    assert written == set(files)
    assert {href.partition("#")[2] for href, _ in links} == {"game=1", "game=2"}


def test_report__links_name_their_games(tournament: Path) -> None:
    games = set()
    for href, text in Links((tournament / "50% #1.html").read_text(encoding="utf-8")).found:
        file, _, number = unquote(href).rpartition("#game=")
        page = (tournament / file).read_text(encoding="utf-8")
        packed = re.findall(r'"application/gzip">(.*?)<', page)[int(number) - 1]
        film = json.loads(gzip.decompress(base64.b64decode(packed)))
        (first, second), (points, others) = film["names"], map(sum, film["points"][-1])
        assert text.startswith(f"{first} {points} – {second} {others}, ")
        games.add(text)
    recorded = {
        f"{r.players[0]} {r.scores[0]['total']} – {r.players[1]} {r.scores[1]['total']}, "
        f"{r.rounds} rounds"
        for r in load(tournament / "games.jsonl")
    }
    assert len(games) == 6
    assert games <= recorded


def test_write_games__skips_games_after_the_decision(tmp_path: Path) -> None:
    """As with --until-decided: the records contain more games."""
    match_state = MatchState("greedy", "random", 8, 3, "shikoku")
    play_remaining(match_state, make("greedy"), make("random"))
    match = match_state.to_match(4)
    (links,) = write_games([match], [match_state], tmp_path / "r.html", 4)
    page = (tmp_path / "r-games" / "match-1.html").read_text(encoding="utf-8")
    choices = [unescape(text) for text in re.findall(r"<option>(.*?)</option>", page)]
    assert [text[-8:] for text, _ in links] == [choice.split(", ")[-1][-8:] for choice in choices]
    for choice, place in zip(choices, choose_games(match, 4), strict=True):
        game = match.games.reshape(-1)[place]
        assert f"{int(game['rounds'])} rounds" in choice
        first = "random" if game["seat_of_a"] else "greedy"
        assert re.match(rf"\d\. {first} against", choice)


def test_report__refuses_a_file_in_place_of_the_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "r-games").write_text("mine", encoding="utf-8")
    assert (
        main(["evaluate", "greedy", "random", "--games", "2", "--report", str(tmp_path / "r.html")])
        == 1
    )
    assert "r-games: expected a folder, got a file" in capsys.readouterr().err
    assert (tmp_path / "r-games").read_text(encoding="utf-8") == "mine"
