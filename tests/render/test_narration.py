"""Tests of render/narration.py: sentences for events and names for players."""

from typing import Any

import pytest
from positions import SIDES, game_at

from tokaido_env import Game
from tokaido_env.render.narration import describe_event, display_names
from tokaido_env.render.scene import scene_of

Data = dict[str, Any]


def sentence_of(game: Game, event: str) -> str:
    before = scene_of(game.board, game.states, names=("Ann", "Bob"))
    game.play(event)
    return describe_event(before, event, scene_of(game.board, game.states, names=("Ann", "Bob")))


def at(character: str, changes: Data | None = None, /, **mine: Any) -> Data:
    """Return the arguments of `game_at` for Ann's choice of an effect; `mine` are her values."""
    left = [one for one in ("pilgrim", "merchant", "artist") if one != character]
    position: Data = {"phase": "EFFECT", "die": character, "left": left, "mine": mine}
    if character == "artist":
        position["origin"] = "A8"
    return position | (changes or {})


HASTY, CRAFTY, ROBUST, PROFICIENT = (
    {"waves": {character: (side, 0)}}
    for character, side in (
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
            at(
                "pilgrim",
                {"waves": {name: (side[0], 1) for name, side in SIDES.items()}},
                pilgrim=4,
            ),
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
            at("merchant", CRAFTY, merchant="C3", pilgrim=2, gold=1, wares={"pottery": 4}),
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
def test_describe_event__of_decisions_and_outcomes(
    changes: Data, event: str, sentence: str
) -> None:
    assert sentence_of(game_at(**changes), event) == sentence


def test_describe_event__of_the_set_up() -> None:
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
        (("z" * 14, "z" * 14), (f"{'z' * 12}… (player_0)", f"{'z' * 12}… (player_1)")),
    ],
)
def test_display_names__are_short_printable_and_different(
    players: tuple[str, str], names: tuple[str, str]
) -> None:
    assert display_names(players) == names
