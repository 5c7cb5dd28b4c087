"""Replay pages: words for every event, data that give every picture again, text that stays text."""

import base64
import gzip
import hashlib
import html
import itertools
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from positions import SIDES, game_at, other_board_data, random_walk, write_board

from tokaido_env import Game, Record, RecordError
from tokaido_env.__main__ import main
from tokaido_env.core.actions import IDS
from tokaido_env.record import load, save
from tokaido_env.render.narration import describe_event, display_names
from tokaido_env.render.scene import scene_of
from tokaido_env.render.svg import panels_of
from tokaido_env.web.replay_page import MAX_GAMES, replay_page, scrubber

GOLDEN = Path(__file__).parents[1] / "golden" / "games.jsonl"
HOSTILE = "</script><img src=x onerror=alert(1)>"

Data = dict[str, Any]
Output = pytest.CaptureFixture[str]


class Reader(HTMLParser):
    """The elements of a page, and the text in each."""

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

    def of(self, tag: str) -> list[str]:
        """The text at the beginning of each element of a kind."""
        named = zip(self.elements, self.texts, strict=True)
        return [text for (name, _), text in named if name == tag]


def films_of(page: str) -> list[Data]:
    return [json.loads(text) for text in Reader(page).of("script")[:-1]]


def played(steps: int, seed: int = 5) -> Game:
    """A game of so many events, chance among them."""
    return random_walk(seed, steps)


@pytest.fixture(scope="module")
def golden() -> list[Record]:
    return load(GOLDEN)


# Words


def sentence_of(game: Game, event: str) -> str:
    before = scene_of(game.board, game.states, names=("Ann", "Bob"))
    game.play(event)
    return describe_event(before, event, scene_of(game.board, game.states, names=("Ann", "Bob")))


def at(character: str, changes: Data | None = None, /, **mine: Any) -> Data:
    """An effect of a character of Ann's to choose, with what she has."""
    left = [who for who in ("pilgrim", "merchant", "artist") if who != character]
    plain: Data = {"phase": "EFFECT", "die": character, "left": left, "mine": mine}
    if character == "artist":
        plain["origin"] = "A8"
    return plain | (changes or {})


HASTY, CRAFTY, ROBUST, PROFICIENT = (
    {"waves": {who: (side, 0)}}
    for who, side in (
        *(("pilgrim", "hasty"), ("merchant", "crafty")),
        *(("merchant", "robust"), ("artist", "proficient")),
    )
)
CORNERED = {"dice": (2, 3, 2), "mine": {"merchant": "M2", "pilgrim": "C4"}}
DISCARD = at("merchant", {"phase": "DISCARD"}, merchant="M2", wares={"kimono": 2, "fan": 4})
REPEAT = at("merchant", {"phase": "REPEAT", "hot_spring": 0})
REVEAL = {"phase": "REVEAL", "pending": 1, "left": ["pilgrim"], "theirs": {"artist": "A2"}}
DRAW = {"phase": "DRAW", "pending": 1}
ROLL = {"phase": "ROLL", "lead": 1, "left": [], "round": 6}


@pytest.mark.parametrize(
    ("changes", "event", "sentence"),
    [
        ({}, "pilgrim", "Ann takes the pilgrim's 2 to the garden, space 2"),
        (HASTY, "pilgrim:wave", "Ann takes the pilgrim's 2 with hasty to C2"),
        ({}, "merchant:M3", "Ann takes the merchant's 2 to M3"),
        ({"lead": 1}, "artist:A3", "Bob takes the artist's 2 to A3"),
        (CORNERED, "merchant:stay", "Ann takes the merchant's 3, which cannot move"),
        (REPEAT, "pass", "Ann keeps the hot spring token"),
        (REPEAT, "merchant:M3", "Ann spends the hot spring token: the merchant's 2 again, to M3"),
        (at("pilgrim", pilgrim=1), "pass", "Ann does not use the temple, space 1"),
        (at("merchant", merchant="M2"), "pass", "Ann draws nothing"),
        (
            at("merchant", merchant="C1", pilgrim=2, wares={"kimono": 1}),
            "pass",
            "Ann sells nothing",
        ),
        (at("artist", artist="A1"), "pass", "Ann neither paints nor gives"),
        (at("pilgrim", pilgrim="C2"), "visit", "Ann gains 4 coins at C2"),
        (at("pilgrim", pilgrim=1, temple=3), "visit", "Ann moves the temple peg to 4"),
        (
            at("pilgrim", pilgrim=2, garden=5),
            "visit",
            "Ann moves the garden peg to 6; this round is the last",
        ),
        (at("pilgrim", pilgrim=8), "visit", "Ann takes the hot spring token"),
        (
            at("pilgrim", {"hot_spring": 1}, pilgrim=8),
            "visit",
            "Ann takes the hot spring token from Bob",
        ),
        (at("pilgrim", pilgrim=4), "take:merchant", "Ann takes the merchant's crafty wave"),
        (
            at("pilgrim", {"waves": {who: (side[0], 1) for who, side in SIDES.items()}}, pilgrim=4),
            "take:artist",
            "Ann takes the artist's proficient wave from Bob",
        ),
        (at("merchant", merchant="M2"), "draw", "Ann chooses to draw 2 wares"),
        (
            at("merchant", ROBUST, merchant="M2"),
            "draw:wave",
            "Ann chooses to draw 3 wares, one of them by robust",
        ),
        (
            at("merchant", merchant="C6", wares={"doll": 1}),
            "sell:1",
            "Ann sells 1 doll at C6 for 2 coins",
        ),
        (
            at("merchant", CRAFTY, merchant="C3", pilgrim=2, wares={"pottery": 4}),
            "sell:4:wave",
            "Ann sells 4 pottery at C3 with crafty for 20 coins, and gets 2 gold slabs",
        ),
        (
            at("artist", PROFICIENT, artist="A2", pilgrim=5),
            "paint:wave",
            "Ann chooses to reveal 2 paintings, one of them by proficient",
        ),
        (at("merchant", DRAW), "ware:pottery", "Ann draws pottery"),
        (at("merchant", DRAW | {"left": ["pilgrim"]}), "ware:fan", "Bob draws a fan"),
        (at("artist", REVEAL, artist="A2"), "tile:bamboo", "Bob reveals bamboo"),
        (ROLL, "roll:4/1/3", "Bob leads round 7 and rolls pilgrim 4, merchant 1, artist 3"),
        (DISCARD, "discard:kimono", "Ann returns a kimono to the bag"),
    ],
)
def test_an_event_in_words(changes: Data, event: str, sentence: str) -> None:
    assert sentence_of(game_at(**changes), event) == sentence


def test_every_event_of_a_game_is_told(golden: list[Record]) -> None:
    (film,) = films_of(replay_page(golden[1:2]))
    events = golden[1].events
    assert len(film["moves"]) == len(events)
    names = film["names"]
    for (number, seat, sentence), event in zip(film["moves"], events, strict=True):
        assert sentence.isprintable()
        assert (seat is None) == event.startswith(("boutique", "side"))
        assert sentence.startswith("The " if seat is None else f"{names[seat]} ")
        if event.startswith("roll:"):
            values = [f" {value}" for value in event.removeprefix("roll:").split("/")]
            assert re.findall(r" \d\b", sentence.partition("rolls")[2]) == values
            assert f"leads round {number} " in sentence
    rounds = [number for number, _, _ in film["moves"]]
    assert rounds == sorted(rounds)
    assert (rounds[0], rounds[-1]) == (0, golden[1].rounds)


def test_packed_games_are_the_same_games_in_less_space(golden: list[Record]) -> None:
    plain, packed = (replay_page(golden[1:3], packed=packed) for packed in (False, True))
    assert len(packed) < len(plain) / 5
    assert packed == replay_page(golden[1:3], packed=True)
    scripts = Reader(packed).of("script")[:-1]
    films = [json.loads(gzip.decompress(base64.b64decode(script))) for script in scripts]
    assert films == films_of(plain)


def test_the_set_up_in_words() -> None:
    game = Game(seed=1, chance="explicit")
    assert (
        sentence_of(game, "boutique:C1=doll/3") == "The boutique at C1 deals in dolls, 3 coins each"
    )
    for _ in range(2, 9):
        game.play(game.outcomes()[0][0])
    assert sentence_of(game, "side:pilgrim=hasty") == "The pilgrim's wave is hasty"


@pytest.mark.parametrize(
    ("players", "names"),
    [
        (("Ann", "Bob"), ("Ann", "Bob")),
        (("?", " "), ("player_0", "player_1")),
        (("greedy", "greedy"), ("greedy (player_0)", "greedy (player_1)")),
        (("a\u202eb\n c", "\ud800"), ("a\ufffdb c", "\ufffd")),
        (("x" * 24, "y" * 25), ("x" * 24, "y" * 23 + "…")),
        (("z" * 14, "z" * 14), (f"{'z' * 12}… (player_0)", f"{'z' * 12}… (player_1)")),
        ((HOSTILE, "Bob"), ("</script><img src=x one…", "Bob")),
    ],
)
def test_names_fit_on_a_line(players: tuple[str, str], names: tuple[str, str]) -> None:
    assert display_names(players) == names


# The data of the page


def panels_at(film: Data, move: int) -> dict[str, dict[str, str]]:
    """The parts of each panel that the page shows at a move, read naively."""
    shown: dict[str, dict[str, str]] = {}
    for panel, parts in film["panels"].items():
        shown[panel] = {}
        for part, changes in parts:
            pairs = [changes[i : i + 2] for i in range(0, len(changes), 2)]
            newest = [index for first, index in pairs if first <= move][-1:]
            shown[panel][part] = film["markup"][newest[0]] if newest else ""
    return shown


def without_nothing(panels: dict[str, dict[str, str]]) -> dict[str, list[tuple[str, str]]]:
    return {name: [item for item in parts.items() if item[1]] for name, parts in panels.items()}


def test_the_page_gives_every_picture_again_in_drawing_order() -> None:
    record = played(110).record(["Ann", "Bob"])
    (film,) = films_of(replay_page([record]))
    again = Game(chance="explicit", seed=0)
    for move, event in enumerate([*record.events, None]):
        if move % 5 == 0 or event is None:
            scene = replace(again.scene(), names=("Ann", "Bob"))
            assert without_nothing(panels_at(film, move)) == without_nothing(panels_of(scene))
        if event is not None:
            again.play(event)


def test_points_rounds_and_graph_are_those_of_the_game(golden: list[Record]) -> None:
    record = golden[0]
    (film,) = films_of(replay_page([record]))
    game, totals, rounds = Game(seed=0, chance="explicit"), [], {}
    for move, event in enumerate([*record.events, None]):
        first, second = game.scores()
        pairs = zip(first.values(), second.values(), strict=True)
        assert film["cells"][move] == list(itertools.chain(*pairs))
        totals.append((first["total"], second["total"]))
        rounds.setdefault(game.rounds, move)
        if event is not None:
            game.play(event)
    assert film["rounds"] == [list(item) for item in rounds.items()]
    assert film["rows"] == [
        *("pilgrim: faith", "merchant: commerce", "artist: culture", "total"),
    ]
    top = max(itertools.chain(*totals))
    for seat in (0, 1):
        (path,) = re.findall(rf'<path d="([^"]*)" class="way{seat}"', film["graph"])
        heights = heights_of(path, len(totals) - 1)
        for move, height in enumerate(heights):
            assert abs(height * top - totals[move][seat]) < 0.1


def heights_of(path: str, moves: int) -> list[float]:
    """The height of a line of steps at each move, 0 to 1."""
    start, *steps = re.findall(r"[MHV]([\d.]+) ?([\d.]*)", path)
    known, level = {}, float(start[1])
    turns = [float(number) for number, _ in steps[:-1]]
    for across, down in zip(turns[::2], turns[1::2], strict=True):
        known[round(across * moves / 1000)] = down
    heights = []
    for move in range(moves + 1):
        level = known.get(move, level)
        heights.append(1 - level / 1000)
    return heights


def test_games_that_have_hardly_begun() -> None:
    (film,) = films_of(replay_page([Game(chance="explicit").record()]))
    assert (film["moves"], film["rounds"], len(film["cells"])) == ([], [[0, 0]], 1)
    assert "player_0 against player_1: unfinished, 0 rounds" in film["choice"]
    game = game_at(round=190)
    game.play("pilgrim")
    (film,) = films_of(replay_page([game.record()]))
    assert film["rounds"] == [[190, 0]]
    assert [sentence for _, _, sentence in film["moves"]] == [
        "player_0 takes the pilgrim's 2 to the garden, space 2",
    ]


class Temple:
    """An agent that expects what the temples say, and likes its first legal action best."""

    spec = "temple"

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> Any:
        raise AssertionError("asked to act")

    def judge(self, boards: Any, states: Any, legal: Any, keys: Any) -> tuple[Any, Any]:
        actions = np.arange(len(IDS), dtype=np.uint64)
        likes = (legal[:, None] >> actions & np.uint64(1)).astype(np.float32)
        return likes / likes.sum(axis=1, keepdims=True), self.value(states["temple"].astype(float))

    @staticmethod
    def value(temple: Any) -> Any:
        return (temple[:, 0] - temple[:, 1]) / 8


def test_a_policy_tells_what_it_expects_at_every_decision(golden: list[Record]) -> None:
    record = golden[4]
    page = replay_page([record], agent=Temple())
    (film,) = films_of(page)
    assert film["rows"][-1] == "win estimate"
    game, expected = Game(seed=0, chance="explicit"), None
    for move, event in enumerate([*record.events, None]):
        if game.player is not None:
            expected = float(Temple.value(game.state["temple"].astype(float))[0])
        cells, bar = film["cells"][move], panels_at(film, move)["heading"].get("value", "")
        assert len(cells) == 10
        if expected is None:
            assert [*cells[8:], bar] == ["–", "–", ""]
        else:
            shares = [f"{(1 + expected) / 2:.0%}", f"{(1 - expected) / 2:.0%}"]
            assert cells[8:] == shares
            assert shares[0] in bar
        if event is not None:
            game.play(event)
    assert film["graph"].count("<figure>") == 2
    with_none = films_of(replay_page([record]))[0]
    assert with_none["graph"].count("<figure>") == 1
    assert not any(part == "value" for part, _ in with_none["panels"]["heading"])


# The page as a file


def test_a_page_loads_nothing_and_runs_only_its_own_script(golden: list[Record]) -> None:
    page = replay_page(golden[4:6])
    assert page == replay_page(golden[4:6])
    decisions = sum(event in IDS for record in golden[4:6] for event in record.events)
    assert len(page.encode()) < 1.5e6 * decisions / 340
    reader = Reader(page)
    links = {"src", "href", "action", "data", "srcset", "poster", "background"}
    for tag, attributes in reader.elements:
        assert not links & attributes.keys()
        assert not [name for name in attributes if name.startswith("on")]
        assert tag not in ("link", "img", "iframe", "object", "embed", "base")
    assert "url(" not in page
    assert "@import" not in page
    assert set(re.findall(r"https?://[\w./]*", page)) == {"http://www.w3.org/2000/svg"}
    *data, script = reader.of("script")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = [a["content"] for t, a in reader.elements if a.get("http-equiv")]
    assert policy is not None
    assert policy.startswith(f"default-src 'none'; script-src 'sha256-{digest}'; ")
    assert len(data) == 2
    assert not re.search("[<>&\u2028\u2029]", "".join(data))


@pytest.mark.parametrize("name", [HOSTILE, "$title${script}", "\u2028--><!-- & &lt; '\""])
def test_a_hostile_name_stays_text(name: str) -> None:
    game = played(20)
    page = replay_page([game.record([name, "Bob"]), game.record(["plain", "Bob"])])
    plain = replay_page([game.record(["plain", "Bob"])] * 2)
    assert [tag for tag, _ in Reader(page).elements] == [tag for tag, _ in Reader(plain).elements]
    shown = display_names((name, "Bob"))[0]
    reader = Reader(page)
    assert reader.of("title")[0] == f"{shown} against Bob"
    assert f"1. {shown} against Bob: unfinished" in reader.of("option")[0]
    film = films_of(page)[0]
    assert film["names"] == [shown, "Bob"]
    markup = "".join(film["markup"])
    assert html.escape(shown) in markup
    drawn = {tag for tag, _ in Reader(markup).elements}
    assert drawn <= {"g", "title", "text", "path", "rect", "circle", "line", "svg"}


def test_a_scrubber_is_the_page_in_a_frame_of_its_own(tmp_path: Path) -> None:
    path = write_board(tmp_path / "other.toml", other_board_data())
    game = Game(path, seed=1)
    shown = scrubber(game)
    (around, _), (tag, attributes) = Reader(shown._repr_html_()).elements
    assert (around, tag) == ("div", "iframe")
    assert attributes["srcdoc"] == shown.page == replay_page([game.record()], path)
    assert attributes["sandbox"] == "allow-scripts"
    assert scrubber(game.record(), path).page == shown.page
    message = "^board: expected None, as the game has its board 'other', got 'greedy'; "
    with pytest.raises(ValueError, match=message):
        scrubber(game, "greedy")


# The command


def test_the_command_writes_a_page(tmp_path: Path, golden: list[Record], capsys: Output) -> None:
    out = tmp_path / "games.html"
    assert main(["replay", str(GOLDEN), "--game", "5", "--html", str(out)]) == 0
    assert out.read_text(encoding="utf-8") == replay_page([golden[4]])
    size = f"{out.stat().st_size / 1e6:.1f}"
    assert capsys.readouterr().out == f"{out}: games 1, {size} MB\n"
    assert list(tmp_path.iterdir()) == [out]
    save([played(30).record()], tmp_path / "games.jsonl")
    words = ["replay", str(tmp_path / "games.jsonl"), "--agent", "greedy", "--html", str(out)]
    assert main(words) == 0
    (film,) = films_of(out.read_text(encoding="utf-8"))
    assert "100%" in "".join(film["markup"])


@pytest.mark.parametrize("number", [0, MAX_GAMES + 1])
def test_too_few_and_too_many_games(number: int) -> None:
    with pytest.raises(ValueError, match=f"a page holds 1 to {MAX_GAMES} games, got {number}"):
        replay_page([played(1).record()] * number)


def test_an_untrue_record_gives_no_page() -> None:
    record = played(40).record()
    events = (*record.events[:30], "pilgrim:swim", *record.events[31:])
    with pytest.raises(RecordError, match="event 31 of 40"):
        replay_page([replace(record, events=events)])
