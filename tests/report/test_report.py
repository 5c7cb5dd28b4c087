"""Tests of figures and the report page against the games."""

import re
import struct
import sys
from collections.abc import Iterator
from html import escape
from html.parser import HTMLParser
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest

from tokaido_env.arena.intervals import score_interval
from tokaido_env.arena.match import GAME, TRIGGERS, Match
from tokaido_env.arena.ratings import Rating
from tokaido_env.report.figures import write_plots
from tokaido_env.report.page import write_report
from tokaido_env.report.results import NAME_LENGTH, results_between, short_names

FIGURES = ("ratings", "scores", "points", "triggers", "rounds", "margins")
HOSTILE = "<script>alert('x')</script>&\"$a$\n"


def made_up(a: str, b: str, rng: np.random.Generator, pairs: int = 6) -> Match:
    games = np.zeros((pairs, 2), GAME)
    games["result"] = rng.choice([0.0, 0.5, 1.0], (pairs, 2))
    games["points"] = rng.integers(0, 40, (pairs, 2, 2, 3))
    games["triggers"] = rng.integers(0, 2, (pairs, 2, 2, 4))
    games["end"] = rng.integers(1, 3, (pairs, 2))
    games["rounds"] = rng.integers(5, 200, (pairs, 2))
    return Match(a, b, games, np.zeros((pairs, 2, 1), np.int8))


def ladder(specs: list[str]) -> tuple[list[Match], list[Rating]]:
    rng = np.random.default_rng(len(specs))
    matches = [made_up(a, b, rng) for a, b in combinations(specs, 2)]
    games = 12 * (len(specs) - 1)
    ratings = [Rating(spec, -50.4 * i, (-60 - 50 * i, 35.5), games) for i, spec in enumerate(specs)]
    return matches, ratings


def texts(path: Path) -> list[str]:
    """Return all texts of an SVG file, parsed as XML."""
    tree = ElementTree.parse(path)
    return [e.text or "" for e in tree.iter("{http://www.w3.org/2000/svg}text")]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Match], list[Rating], Path]:
    """Draw a ladder of four agents, one of them without a rating."""
    folder = tmp_path_factory.mktemp("plots") / "new" / "folder"
    matches, ratings = ladder(["strong", "middling", "weak", HOSTILE])
    write_plots(matches, ratings[:3], folder)
    return matches, ratings[:3], folder


Drawn = tuple[list[Match], list[Rating], Path]


def games_of(matches: list[Match], spec: str) -> Iterator[tuple[np.void, int]]:
    """Yield each game of an agent with its side there, naively."""
    for match in matches:
        if spec in (match.a, match.b):
            for game in match.games.reshape(-1):
                yield game, int(spec == match.b)


# Figures


def test_write_plots__writes_png_of_1200_pixels_and_svg(drawn: Drawn) -> None:
    _, _, folder = drawn
    expected = {f"{name}{suffix}" for name in FIGURES for suffix in (".png", ".svg")}
    assert {path.name for path in folder.iterdir()} == expected
    for name in FIGURES:
        header = (folder / f"{name}.png").read_bytes()[:24]
        assert header[1:4] == b"PNG"
        width, height = struct.unpack(">II", header[16:])
        assert width == 1200
        assert 200 < height < 1600


def test_scores_figure__has_every_score_and_interval(drawn: Drawn) -> None:
    matches, _, folder = drawn
    labels = texts(folder / "scores.svg")
    for match in matches:
        for results in (match.results, 1 - match.results):
            low, high = score_interval(results)
            assert f"{100 * sum(results.flat) / 12:.1f}" in labels
            assert f"{100 * low:.1f}–{100 * high:.1f}" in labels
    assert "12 games a match" in labels


def test_ratings_figure__has_intervals(drawn: Drawn) -> None:
    _, _, folder = drawn
    labels = [" ".join(text.split()) for text in texts(folder / "ratings.svg")]
    assert {"0 (−60 to 36)", "−50 (−110 to 36)", "−101 (−160 to 36)"} <= set(labels)
    assert "36 games an agent" in labels
    assert [text for text in labels if text in ("weak", "strong", "middling")] == [
        *("strong", "middling", "weak"),
    ]


def test_points_figure__has_means_over_all_games(drawn: Drawn) -> None:
    matches, _, folder = drawn
    labels = texts(folder / "points.svg")
    for spec in ("strong", "middling", "weak", HOSTILE):
        points = [game["points"][side] for game, side in games_of(matches, spec)]
        assert len(points) == 36
        means = [sum(int(p[i]) for p in points) / 36 for i in range(3)]
        for value in (*means, sum(means)):
            assert f"{value:.1f}" in labels


def test_triggers_figure__has_shares_of_games(drawn: Drawn) -> None:
    matches, _, folder = drawn
    labels = texts(folder / "triggers.svg")
    assert {f"{trigger} trigger" for trigger in TRIGGERS} < set(labels)
    numbers = [text for text in labels if re.fullmatch(r"\d+", text)]
    for spec in ("strong", "middling", "weak", HOSTILE):
        games = list(games_of(matches, spec))
        for i in range(len(TRIGGERS)):
            share = sum(int(game["triggers"][side][i]) for game, side in games) / 36
            assert f"{100 * share:.0f}" in numbers
        assert f"{100 * sum(int(game['end']) == 2 for game, _ in games) / 36:.0f}" in numbers


def test_rounds_figure__has_medians(drawn: Drawn) -> None:
    matches, _, folder = drawn
    labels = texts(folder / "rounds.svg")
    for spec in ("strong", "middling", "weak", HOSTILE):
        rounds = sorted(int(game["rounds"]) for game, _ in games_of(matches, spec))
        assert f"median {(rounds[17] + rounds[18]) / 2:.0f}" in labels
    assert "72 games in all" in labels


def test_margins_figure__has_shares_of_wins(drawn: Drawn) -> None:
    matches, _, folder = drawn
    labels = texts(folder / "margins.svg")
    names = short_names(["strong", "middling", "weak", HOSTILE])
    for match in matches:
        margins = [int(g["points"][0].sum() - g["points"][1].sum()) for g in match.games.flat]
        ahead, behind = sum(m > 0 for m in margins) / 12, sum(m < 0 for m in margins) / 12
        assert f"{names[match.a]} {100 * ahead:.0f} %" in labels
        assert f"{100 * behind:.0f} % {names[match.b]}" in labels


def test_write_plots__is_reproducible_with_any_settings(drawn: Drawn, tmp_path: Path) -> None:
    matches, ratings, folder = drawn
    with matplotlib.rc_context({"font.size": 30, "savefig.dpi": 10, "axes.grid": True}):
        paths = write_plots(matches, ratings, tmp_path)
        assert matplotlib.rcParams["font.size"] == 30
    for path in paths:
        assert path.read_bytes() == (folder / path.name).read_bytes(), path.name
        assert b"matplotlib.org" not in path.read_bytes(), "a version"


def test_results_between__joins_matches_of_the_same_agents() -> None:
    rng = np.random.default_rng(0)
    there, back = made_up("a", "b", rng), made_up("b", "a", rng)
    results = results_between([there, back, made_up("a", "c", rng)], "a", "b")
    assert results is not None
    assert results.tolist() == [*there.results.tolist(), *(1 - back.results).tolist()]
    assert results_between([there], "a", "c") is None


# Names


def test_short_names__keep_the_differing_parts() -> None:
    specs = ["mcts:sims=400,c=1.4,depth=20", "mcts:sims=1600,c=1.4,depth=20", "greedy"]
    assert list(short_names(specs).values()) == ["mcts:sims=400,…", "mcts:sims=1600,…", "greedy"]


@pytest.mark.parametrize("length", [8, NAME_LENGTH])
def test_short_names__are_short_and_unique(length: int) -> None:
    rng = np.random.default_rng(length)
    parts = ["mcts", "policy", ":", "/", ",", "sims=400", "x" * 30, "…", "\n", "é", " #2"]
    specs = ["".join(rng.choice(parts, rng.integers(0, 9))) for _ in range(300)]
    names = short_names(specs, length)
    assert names.keys() == set(specs)
    assert len(set(names.values())) == len(names)
    for name in names.values():
        assert 0 < len(name) <= length
        assert name.isprintable()


# The page


class Page(HTMLParser):
    """Tags, attributes and text of a page; every tag must be closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def page(matches: list[Match], ratings: list[Rating], path: Path, **facts: Any) -> Page:
    write_report(matches, ratings, path, title=f"A title {HOSTILE}", **facts)
    return Page(path.read_text(encoding="utf-8"))


def test_write_report__escapes_names(tmp_path: Path) -> None:
    matches, ratings = ladder([HOSTILE, "javascript:alert(1)"])
    parsed = page(matches, ratings, tmp_path / "report.html", command=HOSTILE, board=HOSTILE)
    assert not {"script", "iframe", "object", "embed", "link", "base"} & set(parsed.tags)
    assert not [name for name, _ in parsed.attributes if name.startswith("on")]
    in_a_line = HOSTILE.replace("\n", "\\n")
    assert parsed.text.count(in_a_line) >= 3
    assert ("title", in_a_line) in parsed.attributes


def test_write_report__is_self_contained(drawn: Drawn, tmp_path: Path) -> None:
    matches, ratings, _ = drawn
    path = tmp_path / "report.html"
    parsed = page(matches, ratings, path)
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"https?:|//[a-z]|@import|url\((?!#)", text)
    assert parsed.tags.count("svg") == len(FIGURES) - 1  # the scores are a table
    ids = [value for name, value in parsed.attributes if name == "id"]
    assert len(ids) == len(set(ids)) > 0
    links = [value for name, value in parsed.attributes if name in ("href", "src", "xlink:href")]
    assert links
    assert set(links) | set(re.findall(r"url\((#[^)]*)\)", text)) <= {f"#{name}" for name in ids}


def test_write_report__has_standings_and_matches(drawn: Drawn, tmp_path: Path) -> None:
    matches, ratings, _ = drawn
    facts = {"command": "tokaido a b", "seed": 7, "board": "shikoku", "scale": "probit, b = 0"}
    parsed = page(matches, ratings, tmp_path / "report.html", **facts)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<code>tokaido a b</code>" in text
    for fact in ("<dt>seed</dt><dd>7</dd>", "<dt>board</dt><dd>shikoku</dd>"):
        assert fact in text
    assert "relative, from these matches only (probit, b = 0)" in text
    titles = ("Standings", "Figures", "All pairs", "Matches", "Command")
    places = [text.index(f"<h2>{title}</h2>") for title in titles]
    assert places == sorted(places)
    found = cells(text)
    for match in matches:
        data = match.to_dict()
        low, high = data["ci95"]
        lines = (
            ["score", f"{data['score']:.1%}", f"{1 - data['score']:.1%}"],
            ["95 % interval", f"{low:.1%} to {high:.1%}", f"{1 - high:.1%} to {1 - low:.1%}"],
            ["wins", f"{data['wins']}", f"{data['losses']}"],
            ["points, total", *(f"{data['mean'][side]['total']:.1f}" for side in "ab")],
        )
        assert all(line in found for line in lines)
    middling = next(row for row in found if row[:3] == ["2", "middling", "36"])
    points = [game["points"][side].sum() for game, side in games_of(matches, "middling")]
    assert middling[4:7] == ["−50", "−110 – 36", f"{sum(points) / 36:.1f}"]
    unrated = [row for row in found if row[0] == "4"]
    assert [row[4:6] for row in unrated] == [["–", "–"]]
    assert parsed.tags.count("details") == 1 + len(matches)
    assert "forfeit" not in text


def cells(text: str) -> list[list[str]]:
    """Return the rows of all tables of a page as text."""
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", text, re.S)
    tags = re.compile(r"<[^>]*>")
    return [
        [tags.sub("", cell) for cell in re.findall(r"<t[dh]\b[^>]*>(.*?)</t[dh]>", row)]
        for row in rows
    ]


def test_matrix__has_every_score_with_a_link(drawn: Drawn, tmp_path: Path) -> None:
    matches, ratings, _ = drawn
    page(matches, ratings, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    links = dict(re.findall(r'<a href="#(match-\d+)" title="([^"]*)"', text))
    names = short_names(["strong", "middling", "weak", HOSTILE])
    assert len(links) == text.count('<div id="match-') == len(matches)
    for number, match in enumerate(matches, start=1):
        for agent in (match.a, match.b):
            assert escape(names[agent]) in links[f"match-{number}"]
    rows = {row[0]: row[1:] for row in cells(text) if row and re.match(r"\d \w", row[0])}
    (strong, weak) = (rows["1 strong"], rows["3 weak"])
    (met,) = (match for match in matches if (match.a, match.b) == ("strong", "weak"))
    low, high = (round(100 * end) for end in score_interval(met.results))
    assert strong[0] == weak[2] == ""
    assert strong[2] == f"{100 * met.score:.1f}{low}–{high}"
    assert weak[0].startswith(f"{100 - 100 * met.score:.1f}")


def test_write_report__links_games(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    match = made_up("one", "other", rng)
    match.games["seat_of_a"] = [0, 1]
    there = {3: "folder/game.html#game=1", 0: 'a"b'}
    parsed = page([match], [], tmp_path / "report.html", games=[there])
    links = [value for name, value in parsed.attributes if name == "href"]
    assert links[-2:] == list(there.values())
    game = match.games[1, 1]  # with `other` as player_0
    one, other = (sum(int(points) for points in game["points"][side]) for side in (0, 1))
    assert f"other {other} – one {one}, {game['rounds']} rounds" in parsed.text


def test_write_report__has_forfeits_only_if_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("standings", "page_tables"):
        name = f"tokaido_env.report.{module}.forfeits_of"
        monkeypatch.setattr(name, lambda match, side: 3 if side else 0)
    page(*ladder(["one", "other"]), tmp_path / "report.html")
    found = cells((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert found[0][-1] == "forfeits"
    assert [row[-1] for row in found[1:3]] == ["0", "3"]
    assert ["lost by forfeit", "0", "3"] in found


def test_write_report__is_reproducible(drawn: Drawn, tmp_path: Path) -> None:
    matches, ratings, _ = drawn
    for name in ("a.html", "b.html"):
        page(matches, ratings, tmp_path / name)
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "b.html"]


def test_write_report__handles_twelve_agents_and_infinite_intervals(tmp_path: Path) -> None:
    matches, ratings = ladder([f"agent-{i}" for i in range(11)] + ["日本"])
    ratings[-1] = Rating("日本", -800, (-np.inf, -600), 132)
    parsed = page(matches[:11], ratings, tmp_path / "report.html")  # the first against each
    assert parsed.tags.count("details") == 1 + 1 + 11  # the matrix, all matches, and each
    assert "−∞ – −600" in parsed.text
    dots = [value for name, value in parsed.attributes if value.startswith("background:")]
    assert len(set(dots[:12])) == 12


@pytest.mark.parametrize("write", [write_plots, write_report])
def test_write__refuses_no_match_and_missing_matplotlib(
    write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = {"title": "t"} if write is write_report else {}
    with pytest.raises(ValueError, match="expected one match or more, got none"):
        write([], [], tmp_path / "out", **facts)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install '\.\[plots\]'"):
        write(*ladder(["a", "b"]), tmp_path / "out", **facts)
    assert not list(tmp_path.iterdir())
