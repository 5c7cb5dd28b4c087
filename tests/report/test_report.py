"""Tests of standings, figures and the page of a result against its scores."""

import re
import struct
import sys
from base64 import b64decode
from html import escape
from html.parser import HTMLParser
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib
import msgspec
import numpy as np
import pytest
from msgspec import structs
from valid_files import generalisation

from tokaido_env.arena.match import GAME, Match
from tokaido_env.arena.result import BoardsEntry, Measure, Result, Score
from tokaido_env.core.arguments import escape_text
from tokaido_env.report.figures import write_figures
from tokaido_env.report.page import write_page
from tokaido_env.report.standings import Standing, standings

FIGURES = ("ratings", "scores")
HOSTILE = "<script>alert('x')</script>&\"$a$\n"


def made_up(a: str, b: str, rng: np.random.Generator, pairs: int = 6) -> Match:
    games = np.zeros((pairs, 2), GAME)
    games["result"] = rng.choice([0.0, 0.5, 1.0], (pairs, 2))
    games["points"] = rng.integers(0, 40, (pairs, 2, 2, 3))
    return Match(a, b, games, np.zeros((pairs, 2, 1), np.int8))


def result_of(matches: list[Match], ratings: list[Measure], **changes: Any) -> Result:
    agents = tuple(dict.fromkeys(name for match in matches for name in (match.a, match.b)))
    result = Result.made(
        "matches",
        agents=agents,
        boards=(BoardsEntry("shikoku", "0" * 16, 1),),
        seed=7,
        scores=tuple(Score.of(match, "shikoku", 7) for match in matches),
        estimates=tuple(ratings),
        anchor=ratings[0].agent if ratings else "",
    )
    return structs.replace(result, **changes)


def tournament(specs: list[str], rated: int | None = None, **changes: Any) -> Result:
    """A round robin of made-up games, with falling ratings of the first agents."""
    rng = np.random.default_rng(len(specs))
    matches = [made_up(a, b, rng) for a, b in combinations(specs, 2)]
    games = 12 * (len(specs) - 1)
    ratings = [
        Measure(-50.4 * i, -60.0 - 50 * i if i else 0.0, 35.5 if i else 0.0, "Elo", spec, games)
        for i, spec in enumerate(specs[:rated])
    ]
    return result_of(matches, ratings, **changes)


# Standings


def match(a: str, b: str, results: list[list[float]], points: tuple[int, int]) -> Match:
    games = np.zeros((len(results), 2), GAME)
    games["result"] = results
    games["points"][:, :, 0, 0] = points[0]
    games["points"][:, :, 1, 2] = points[1]
    return Match(a, b, games, np.zeros((len(results), 2, 1), np.int8))


THREE = [
    match("a", "b", [[1.0, 0.5], [0.0, 1.0]], (30, 20)),
    match("a", "c", [[1.0, 1.0]], (60, 10)),
    match("c", "b", [[0.0, 0.5]], (40, 50)),
]
# By hand. In the first game of a pair the first named is player_0, in the second player_1.
BY_HAND = [
    # 1 + 0.5 + 0 + 1 and 1 + 1; as player_0 1, 0 and 1, as player_1 0.5, 1 and 1
    Standing(1, "a", 6, 4.5 / 6, (2 / 3, 2.5 / 3), (3 * 30 + 2 * 60) / 5, 0),
    # 0 + 0.5 + 1 + 0 and 1 + 0.5; as player_0 0.5, 0 and 0.5, as player_1 0, 1 and 1
    Standing(2, "b", 6, 3 / 6, (1 / 3, 2 / 3), (3 * 20 + 50) / 4, 1),
    # 0 + 0 and 0 + 0.5; as player_0 0 and 0, as player_1 0 and 0.5
    Standing(3, "c", 4, 0.5 / 4, (0.0, 0.25), (2 * 10 + 40) / 3, 1),
]


def rounded(rows: list[Standing]) -> list[Any]:
    return [(*row[:3], *np.round([row.score, *row.seats, row.points], 5), row[-1]) for row in rows]


def test_standings__equal_counts_by_hand() -> None:
    THREE[0].games["forfeit"][0, 0] = 1  # that `b` lost
    THREE[2].games["forfeit"][0, 0] = 2  # that `c` lost
    itself = match("a", "a", [[1.0, 0.0]], (9, 9))
    found = standings(result_of([*THREE, itself], []))
    assert rounded(found) == rounded(BY_HAND)
    assert standings(result_of([itself], [])) == []


def test_standings__are_ordered_by_rating_with_shared_ranks() -> None:
    ratings = [Measure(10.0, -5.0, 30.0, "Elo", "c"), Measure(10.001, 0.0, 20.0, "Elo", "a")]
    rows = standings(result_of(THREE, ratings))
    assert [(row.rank, row.agent) for row in rows] == [(1, "a"), (1, "c"), (3, "b")]


# Figures


def texts(path: Path) -> list[str]:
    """Return all texts of an SVG file, parsed as XML."""
    tree = ElementTree.parse(path)
    return [e.text or "" for e in tree.iter("{http://www.w3.org/2000/svg}text")]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path]:
    """Draw a tournament of four agents, one of them without a rating."""
    folder = tmp_path_factory.mktemp("plots") / "new" / "folder"
    result = tournament(["strong", "middling", "weak", HOSTILE], 3)
    write_figures(result, folder)
    return result, folder


def test_figures__have_every_name_and_score(drawn: tuple[Result, Path]) -> None:
    result, folder = drawn
    labels = texts(folder / "scores.svg")
    for score in result.scores:
        for own in (score, score.reversed()):
            assert f"{100 * own.value:.1f}" in labels
            assert f"{100 * own.low:.1f}–{100 * own.high:.1f}" in labels
    labels = [" ".join(text.split()) for text in texts(folder / "ratings.svg")]
    assert {"0 reference", "−50 (−110 to 36)", "−101 (−160 to 36)"} <= set(labels)
    assert [text for text in labels if text in ("weak", "strong", "middling")] == [
        *("strong", "middling", "weak")
    ]


def test_write_figures__is_reproducible_with_any_settings(
    drawn: tuple[Result, Path], tmp_path: Path
) -> None:
    result, folder = drawn
    with matplotlib.rc_context({"font.size": 30, "savefig.dpi": 10, "axes.grid": True}):
        paths = write_figures(result, tmp_path)
        assert matplotlib.rcParams["font.size"] == 30
    assert {path.stem for path in paths} == {*FIGURES}
    for path in paths:
        assert path.read_bytes() == (folder / path.name).read_bytes(), path.name
        assert b"matplotlib.org" not in path.read_bytes(), "a version"
    for name in FIGURES:
        width, height = struct.unpack(">II", (folder / f"{name}.png").read_bytes()[16:24])
        assert width == 1200
        assert 200 < height < 1600


# The page


class Page(HTMLParser):
    """Tags, attributes and text of a page; every tag must be closed."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def page(result: Result, path: Path, **facts: Any) -> Page:
    write_page(result, path, **facts)
    return Page(path)


def test_write_page__escapes_names(tmp_path: Path) -> None:
    result = tournament([HOSTILE, "javascript:alert(1)"], command=HOSTILE)
    parsed = page(result, tmp_path / "report.html", note=HOSTILE)
    assert not {"script", "iframe", "object", "embed", "link", "base"} & set(parsed.tags)
    assert not [name for name, _ in parsed.attributes if name.startswith("on")]
    assert parsed.text.count(HOSTILE.replace("\n", "\\n")) >= 5


def test_write_page__is_self_contained_and_reproducible(
    drawn: tuple[Result, Path], tmp_path: Path
) -> None:
    path, again = tmp_path / "report.html", tmp_path / "again.html"
    parsed = page(drawn[0], path)
    assert not re.search(r"https?:|//[a-z]|@import|url\(", path.read_text(encoding="utf-8"))
    addresses = dict.fromkeys(value for name, value in parsed.attributes if name == "src")
    for address, name in zip(addresses, FIGURES, strict=True):
        kind, _, picture = address.partition(",")
        assert kind == "data:image/svg+xml;base64"
        assert b64decode(picture) == (drawn[1] / f"{name}.svg").read_bytes()
    write_page(drawn[0], again)
    assert path.read_bytes() == again.read_bytes()


def cells(path: Path) -> list[list[str]]:
    """Return the rows of all tables of a page as text."""
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", path.read_text(encoding="utf-8"), re.S)
    tags = re.compile(r"<[^>]*>")
    return [
        [tags.sub("", cell) for cell in re.findall(r"<t[dh]\b[^>]*>(.*?)</t[dh]>", row)]
        for row in rows
    ]


def test_write_page__has_standings_matches_and_facts(
    drawn: tuple[Result, Path], tmp_path: Path
) -> None:
    result, path = structs.replace(drawn[0], command="tokaido a b"), tmp_path / "report.html"
    parsed, found = page(result, path), cells(path)
    for text in ("tokaido a b", "from these matches only (probit, strong = 0)", result.hash):
        assert text in parsed.text
    first, second, _, last = (row for row in found if row[2:3] == ["36"])
    assert first[4:6] == ["0", "reference"]
    assert second[4:6] == ["−50", "−110 – 36"]
    assert last[4:6] == ["–", "–"]
    for score in result.scores:
        names = [escape(escape_text(name)) for name in (score.a, score.b)]
        row = next(row for row in found if row[:2] == names)
        assert row[2:6:2] == ["12", f"{score.value:.1%}"]
        assert row[5] == f"{score.low:.1%} – {score.high:.1%}"
    assert "forfeit" not in parsed.text


def test_write_page__links_games(tmp_path: Path) -> None:
    result = tournament(["one", "other"])
    links = [("other 7 – one 5, 9 rounds", "folder/game.html#game=1"), ("x", 'a"b')]
    parsed = page(result, tmp_path / "report.html", games=[links])
    assert [to for name, to in parsed.attributes if name == "href"][-2:] == [x[1] for x in links]
    assert "other 7 – one 5, 9 rounds" in parsed.text


def test_write_page__refuses_missing_matplotlib(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ModuleNotFoundError, match="plots"):
        write_page(tournament(["a", "b"]), tmp_path / "out")
    assert not list(tmp_path.iterdir())


# Other protocols


def other_results() -> list[Result]:
    """Results of `generalise` and `regret`."""
    generalised = generalisation()
    del generalised["hash"]
    found = msgspec.convert(generalised, Result)
    regrets = [
        Measure.named(name, agent, 0.02, (0.01, 0.03), group=group)
        for agent in ("x", "y")
        for name in ("regret", "regret at most", "errors", "blunders")
        for group in ("", "boards shikoku", "phase MOVE", "rounds 1–6")
    ]
    about: dict[str, Any] = {"agents": ("x",), "boards": found.boards[:1], "seed": 0}
    return [found, Result.made("regret", **about, estimates=tuple(regrets))]


@pytest.mark.parametrize(
    ("number", "figure", "words"),
    [
        (0, "boards", "Gap, family:test/2 less family:train/1"),
        (1, "regret", "20.0 (10.0 to 30.0)"),
    ],
)
def test_write_page__shows_every_protocol(
    number: int, figure: str, words: str, tmp_path: Path
) -> None:
    result = other_results()[number]
    parsed = page(result, tmp_path / "page.html")
    assert parsed.tags.count("img") == 1
    assert all(word in parsed.text for word in words.split())
    assert [path.stem for path in write_figures(result, tmp_path)] == [figure, figure]
