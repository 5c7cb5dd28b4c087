"""Tests of render/svg.py: contents of pictures, themes and files."""

import itertools
import pathlib
import random
import re
import xml.etree.ElementTree as ET

import pytest
from test_map_layout import sites_of

from tokaido_env import Board, Game
from tokaido_env.agents import make
from tokaido_env.core.constants import AREAS, CHARACTERS, MOUNTAIN_TOWNS
from tokaido_env.core.state import Phase
from tokaido_env.render.map_layout import map_layout_of
from tokaido_env.render.scene import choices_of, place_of, scene_of
from tokaido_env.render.style import THEMES, style
from tokaido_env.render.svg import draw

Path = pytest.importorskip("matplotlib.path").Path
SVG = "{http://www.w3.org/2000/svg}"
DRAWN = {"svg", "style", "g", "title", "text", "path", "rect", "circle", "line"}
HOSTILE = "</title></svg><script>alert('1')</script>&\""


def played(moves: int, seed: int = 5, board: str | Board = "shikoku") -> Game:
    """Return a game after random decisions, without voluntary passes."""
    game, luck = Game(board, seed=seed), random.Random(seed)
    for _ in range(moves):
        if game.is_over:
            break
        labels = [label for label in game.legal_labels() if label != "pass"]
        game.play(luck.choice(labels or ["pass"]))
    return game


def first_pick(game: Game) -> Game:
    """Play to the first choice of a round, with all dice available."""
    while game.phase != Phase.MOVE or len(game.to_dict()["dice_left"]) < 3:
        game.play(game.legal_actions()[0])
    return game


def titles(svg: str) -> list[str]:
    return [str(title.text) for title in ET.fromstring(svg).iter(f"{SVG}title")]


def texts(svg: str) -> list[str]:
    return ["".join(text.itertext()) for text in ET.fromstring(svg).iter(f"{SVG}text")]


@pytest.mark.parametrize("moves", [20, 400])
def test_draw__has_a_title_for_everything(moves: int) -> None:
    game = played(moves)
    found = titles(draw(game.scene()))
    position = game.to_dict()
    for seat, score in enumerate(game.scores()):
        assert found.count(f"player_{seat}, {score['total']} points") == 1
        for part in ("faith", "commerce", "culture"):
            assert f"{part}: {score[part]} points" in found
    for seat, player in enumerate(position["players"]):
        for character in CHARACTERS:
            place = place_of(game.board, player, character)
            name = f"{game.board.stations[place]}, space {place}" if place in range(28) else place
            assert f"player_{seat}'s {character}, {name}" in found
        assert f"{player['gold']} gold slabs, {player['coins']} coins" in found
        assert any(t.startswith(f"temple: {player['temple']}, slot") for t in found)
        revealed = ", ".join(player["easel"]) or "none"
        gifted = f"{player['gifted']} paintings given; revealed, the front first: {revealed}"
        assert f"{gifted}; {sum(player['hidden'].values())} face down" in found
        held = sum(player["wares"].values())
        assert any(t.startswith("wares: ") and f"; {held} of at most " in t for t in found)
    for town, (ware, price) in position["boutiques"].items():
        assert f"boutique at {town}: {ware}, {price} coins" in found
    for town, number in zip(MOUNTAIN_TOWNS, game.board.mountain_numbers, strict=True):
        assert f"mountain town {town}, {number} wares" in found
    for area, icon in zip(AREAS, game.board.area_icons, strict=True):
        assert f"area {area}, {icon}" in found


def test_choices__are_marked_at_their_destinations() -> None:
    game = first_pick(played(33))
    marks = [title for title in titles(draw(game.scene())) if title.startswith("legal: ")]
    *places, everything = marks  # the list of all actions is drawn last
    assert everything == "legal: " + ", ".join(game.legal_labels())
    assert sorted(", ".join(places).replace("legal: ", "").split(", ")) == sorted(
        game.legal_labels()
    )
    for choice in choices_of(game.board, game.states):
        after = game.copy()
        after.play(choice.label)
        character = choice.label.partition(":")[0]
        player = after.to_dict()["players"][int(game.player or 0)]
        assert place_of(game.board, player, character) == choice.place


def test_scene__has_the_newest_move() -> None:
    game, luck = Game(seed=4), random.Random(4)
    assert game.scene().last == []
    moved, repeated = None, 0
    while repeated < 2:
        before, seat, phase = game.to_dict(), int(game.player or 0), game.phase
        label = luck.choice([label for label in game.legal_labels() if label != "pass"] or ["pass"])
        game.play(label)
        character = label.partition(":")[0]
        if character in CHARACTERS:
            start, end = (
                place_of(game.board, position["players"][seat], character)
                for position in (before, game.to_dict())
            )
            moved = (seat, character, start, end)
        if phase == Phase.REPEAT or luck.random() < 0.1:
            assert game.scene().last[-1] == moved
            repeated += phase == Phase.REPEAT


def test_draw__shows_a_merchants_move_along_routes() -> None:
    seen = 0
    for seed in range(3):
        game = Game(seed=seed)
        sites = sites_of(game.board, map_layout_of(game.board))
        routes = {frozenset((sites[a], sites[b])) for a, b in game.board.routes}
        luck = random.Random(seed)
        for _ in range(60):
            before = len(game.events())
            game.play(luck.choice(game.legal_labels()))
            if not (last := game.scene().last) or (step := last[-1])[1] != "merchant" or not before:
                continue
            lines = re.findall(r'<path d="M([^"]*)" class="way[01]"', draw(game.scene(), "light"))
            points = [tuple(map(float, point.split())) for point in lines[-1].split("L")]
            assert {frozenset(two) for two in itertools.pairwise(points[1:-1])} <= routes
            ends = [game.board.stations[at] if isinstance(at, int) else at for at in step[2:]]
            assert [points[1], points[-2]] == [sites[end] for end in ends]
            seen += len(points) > 4
    assert seen > 5


def test_draw__shows_an_agents_probabilities_and_value() -> None:
    game = played(33)
    scene = game.scene(make("mcts:sims=50"))
    assert sum(choice.probability or 0 for choice in scene.choices) == pytest.approx(1)
    assert scene.value is not None
    assert -1 <= scene.value <= 1
    found = " ".join(texts(draw(scene)))
    share = (scene.value + 1) / 2
    assert f"{share:.0%} win estimate {1 - share:.0%}" in found
    assert f"win estimate: player_0 {share:.0%}, player_1 {1 - share:.0%}" in titles(draw(scene))
    best = max(scene.choices, key=lambda choice: choice.probability or 0)
    assert f"{best.label} {best.probability:.0%}" in found
    assert first_pick(game).scene(make("greedy")).value is None


@pytest.mark.parametrize("name", [HOSTILE, "\x00", "\ud800", "名前"])
def test_draw__accepts_any_name(name: str) -> None:
    game = played(10)
    svg = draw(scene_of(game.board, game.states, names=(name, "b")))
    assert any(text.startswith(name[:1] if name.isprintable() else "\ufffd") for text in texts(svg))
    assert {tag.tag.removeprefix(SVG) for tag in ET.fromstring(svg).iter()} == DRAWN
    svg.encode()


def test_theme__styles_only_its_pictures() -> None:
    for theme in THEMES:
        assert f'class="tokaido tokaido-{theme}"' in draw(played(10).scene(), theme)  # type: ignore[arg-type]
        rules = re.sub(r"@media[^{]*\{", "", style(theme))  # type: ignore[arg-type]
        assert all(
            rule.startswith(f".tokaido-{theme}") for rule in re.findall(r"([^{}]+)\{", rules)
        )


def test_show__returns_the_picture_of_a_game(tmp_path: pathlib.Path) -> None:
    game = played(33)
    picture = game.show()
    assert game._repr_svg_() == picture.svg == picture._repr_svg_()
    picture.save(tmp_path / "board.svg")
    assert (tmp_path / "board.svg").read_text(encoding="utf-8") == picture.svg + "\n"
    with pytest.raises(ValueError, match="path: "):
        picture.save(tmp_path / "board.png")
    assert "%" not in "".join(texts(picture.svg))
    assert "%" in "".join(texts(game.show(make("random")).svg))


def test_next_steps__are_worth_the_scores_of_the_board() -> None:
    game = played(90)
    scene, commerce, culture = game.scene(), game.board.commerce, game.board.culture
    for seat, player in enumerate(game.to_dict()["players"]):
        temple, garden, gold = player["temple"], player["garden"], player["gold"]
        given = player["gifted"]
        worth = {
            "temple": (garden, 9 - temple),
            "garden": (temple, 6 - garden),
            "gold": (commerce[gold + 1] - commerce[gold], 6 - gold),
            "gifted": (culture[given + 1] - culture[given], 10 - given),
        }
        assert scene.next_points[seat] == {track: points for track, (points, _) in worth.items()}
        for track, (points, left) in worth.items():
            name = {"gold": "gold slabs", "gifted": "paintings given"}.get(track, track)
            brings = f"the next step brings {points} point{'s' * (points != 1)}"
            assert f"{name}: {brings}, {left} left to the end of the game" in titles(draw(scene))


def test_picks__are_lead_other_lead() -> None:
    game = Game(seed=3)
    for _ in range(60):
        lead, left = game.to_dict()["lead"], {3: 0, 2: 1, 1: 2}
        dice = len(game.to_dict()["dice_left"]) + (game.to_dict()["die"] is not None)
        order = [f"player_{seat}" for seat in (lead, 1 - lead, lead)][left[dice] :]
        assert f"picks left in the round: {', '.join(order)}" in titles(draw(game.scene()))
        game.play(game.legal_actions()[-1])
