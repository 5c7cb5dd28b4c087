"""Tests of the game pages that a report links."""

import re
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest
from game_pages import games_of
from matches import play_remaining

from tokaido_env.__main__ import main
from tokaido_env.agents import make
from tokaido_env.arena.match import GAME, Match
from tokaido_env.arena.tournament import MatchState
from tokaido_env.cli.evaluate import choose_games, write_games
from tokaido_env.record import load

AGENTS = ["random", "greedy", "heuristic"]


def links_of(page: str) -> list[tuple[str, str]]:
    """Return the links of a page to other files, with their text."""
    found = re.findall(r'<a href="([^"#][^"]*)">([^<]*)</a>', page)
    return [(unescape(href), unescape(text)) for href, text in found]


def test_choose_games__takes_closest_and_clearest() -> None:
    games = np.zeros((3, 2), GAME)
    games["points"][:, :, 0, 0] = [[50, 10], [31, 30], [0, 34]]
    games["points"][:, :, 1, 1] = 30  # a is ahead by 20, -20, 1, 0, -30 and 4 points
    match = Match("a", "b", games, np.zeros((3, 2, 1), np.int8))
    assert choose_games(match) == [3, 4]


@pytest.fixture(scope="module")
def tournament(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with records and a report with special characters in its name."""
    folder = tmp_path_factory.mktemp("a report")
    files = ["--report", str(folder / "50% #1.html"), "--records", str(folder / "games.jsonl")]
    assert main(["evaluate", *AGENTS, "--games", "6", "--seed", "2", *files]) == 0
    return folder


def test_report__links_two_games_of_each_match(tournament: Path) -> None:
    links = links_of((tournament / "50% #1.html").read_text(encoding="utf-8"))
    files = [unquote(href.partition("#")[0]) for href, _ in links]
    assert len(files) == 2 * len(set(files)) == 6
    for name in files:
        assert (tournament / name).stat().st_size < 200_000
    written = {f"50% #1-games/{path.name}" for path in (tournament / "50% #1-games").iterdir()}
    assert written == set(files)
    assert {href.partition("#")[2] for href, _ in links} == {"game=1", "game=2"}


def test_report__links_name_their_games(tournament: Path) -> None:
    games = set()
    for href, text in links_of((tournament / "50% #1.html").read_text(encoding="utf-8")):
        file, _, number = unquote(href).rpartition("#game=")
        page = (tournament / file).read_text(encoding="utf-8")
        film = games_of(page)[int(number) - 1]
        (first, second), (points, others) = film["names"], map(sum, film["points"][-1])
        assert text.startswith(f"{first} {points} – {second} {others}, ")
        games.add(text)
    recorded = {
        f"{r.players[0]} {r.scores[0]['total']} – {r.players[1]} {r.scores[1]['total']}, "
        f"{'shared victory' if r.winner is None else r.players[r.winner] + ' won'}, "
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
    (links,) = write_games([match], [match_state], tmp_path / "r.html")
    page = (tmp_path / "r-games" / "match-1.html").read_text(encoding="utf-8")
    choices = [unescape(text) for text in re.findall(r"<option>(.*?)</option>", page)]
    assert [text[-8:] for text, _ in links] == [choice.split(", ")[-1][-8:] for choice in choices]
    for choice, place in zip(choices, choose_games(match), strict=True):
        game = match.games.reshape(-1)[place]
        assert f"{int(game['rounds'])} rounds" in choice
        first = "random" if game["seat_of_a"] else "greedy"
        assert re.match(rf"\d\. {first} against", choice)
