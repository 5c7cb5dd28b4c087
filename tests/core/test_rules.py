"""Worked examples of the rules of `docs/reference/rules.md`, named by rule number.

`test_reference.py` covers the remaining cases. Player 0 has the first pick unless a test says
otherwise; `mine` holds the entries of player 0. Spaces of the ring: 0 C1, 1 temple, 2 garden, 3 C2,
4 seashore, 5 temple, 6 C3, 7 temple, 8 hot spring, 9 garden, 10 C4, 14 C5, 27 seashore. The
boutiques are kimono/4 in C1 and C2, pottery/4 in C3, pottery/3 in C4, doll/3 in C5, doll/2 in C6,
fan/2 in C7 and C8.
"""

import dataclasses
from collections import Counter
from typing import Any

import numpy as np
import pytest
from positions import PAINTINGS, TOKENS, WARES, game_at, play, player, position

from tokaido_env import Board, Game
from tokaido_env.core.actions import IDS
from tokaido_env.core.constants import CHARACTERS, COASTAL_TOWNS
from tokaido_env.core.rng import LUCK
from tokaido_env.core.rules import legal_mask
from tokaido_env.core.state import Phase
from tokaido_env.core.stepping import advance_game

FAR_AWAY = {"pilgrim": 12, "merchant": "M4", "artist": "A4"}  # away from A1, A2 and A6 to A8
NO_WAVES_LEFT = {"pilgrim": ("tranquil", 0), "merchant": ("crafty", 1), "artist": ("inspired", 1)}


def moves(game: Game, die: str) -> list[str]:
    """Return the legal moves of a die, without its name."""
    return [label.partition(":")[2] for label in game.legal_labels() if label.startswith(die)]


def set_up() -> Game:
    """Return an explicit game before its first roll."""
    game = Game(chance="explicit")
    while game.phase == Phase.SETUP:
        game.play(game.outcomes()[0][0])
    return game


def finish(game: Game) -> int:
    """Pass, or play the first move, until the round ends; return the number of moves."""
    made = 0
    while game.phase not in (Phase.ROLL, Phase.OVER):
        made += game.phase == Phase.MOVE
        labels = game.legal_labels() or [label for label, _ in game.outcomes()]
        game.play("pass" if "pass" in labels else labels[0])
    return made


# R1 Setup


def test_r1_1__player_0_leads_the_first_round() -> None:
    game = set_up()
    game.play("roll:1/1/1")
    assert (game.player, game.to_dict()["lead"], game.rounds) == (0, 0, 1)


def test_r1_2__each_token_is_dealt_to_a_coastal_town() -> None:
    game = Game(chance="explicit")
    assert dict(game.outcomes())["boutique:C1=kimono/4"] == 2 / 8
    play(game, "boutique:C1=kimono/4", "boutique:C2=kimono/4")
    left = {"pottery/4": 1, "pottery/3": 1, "doll/3": 1, "doll/2": 1, "fan/2": 2}
    assert dict(game.outcomes()) == {f"boutique:C3={token}": n / 6 for token, n in left.items()}
    dealt = set_up().to_dict()["boutiques"]
    assert Counter(map(tuple, dealt.values())) == Counter(TOKENS)
    assert list(dealt) == list(COASTAL_TOWNS)


def test_r1_3_to_8__pieces_have_their_starting_places() -> None:
    begun = set_up().to_dict()
    assert begun["bag"] == {"kimono": 5, "pottery": 6, "doll": 7, "fan": 8}
    assert begun["hot_spring"] is None
    for seat, places in enumerate(([0, "M1", "A8"], [14, "M4", "A4"])):
        mine = begun["players"][seat]
        assert [mine[character] for character in CHARACTERS] == places
        assert (mine["temple"], mine["garden"], mine["coins"], mine["gold"]) == (1, 1, 0, 0)
        assert (mine["wares"], mine["easel"], mine["gifted"]) == (dict.fromkeys(WARES, 0), [], 0)
        assert mine["hidden"] == PAINTINGS[seat]


def test_r1_4__each_wave_lies_on_the_board_on_a_random_side() -> None:
    game = Game(chance="explicit")
    while game.outcomes()[0][0].startswith("boutique"):
        game.play(game.outcomes()[0][0])
    sides = []
    while game.phase == Phase.SETUP:
        sides.append(game.outcomes())
        game.play(game.outcomes()[1][0])
    assert sides == [
        [("side:pilgrim=tranquil", 0.5), ("side:pilgrim=hasty", 0.5)],
        [("side:merchant=crafty", 0.5), ("side:merchant=robust", 0.5)],
        [("side:artist=proficient", 0.5), ("side:artist=inspired", 0.5)],
    ]
    assert game.to_dict()["waves"]["merchant"] == {"side": "robust", "owner": None}


# R2 Round


def test_r2_1__lead_other_lead_take_a_die_each() -> None:
    game = game_at(dice=(1, 1, 2), lead=1)
    assert game.player == 1
    game.play("artist:A2")
    assert game.player == 0
    assert {label.partition(":")[0] for label in game.legal_labels()} == {"pilgrim", "merchant"}
    play(game, "pilgrim", "visit")
    assert game.player == 1
    assert game.legal_labels() == ["merchant:C4", "merchant:M3"]


@pytest.mark.parametrize("lead", [0, 1])
def test_r2_2__the_other_player_leads_the_next_round(lead: int) -> None:
    game = game_at(lead=lead)
    assert finish(game) == 3
    assert (game.phase, game.to_dict()["lead"]) == (Phase.ROLL, 1 - lead)
    game.play("roll:2/2/2")
    assert (game.player, game.rounds) == (1 - lead, 2)


# R3 Artist


@pytest.mark.parametrize(
    ("start", "steps", "areas"),
    [
        *(("A2", 1, "A1 A3 A6"), ("A2", 2, "A4 A5 A7 A8"), ("A2", 3, "A1 A3 A4 A5 A6 A7 A8")),
        ("A1", 2, "A3 A6 A7 A8"),  # R2.3: with a 2 neither A1 itself nor its neighbour A2
    ],
)
def test_r3_1__the_artist_moves_exactly_the_dies_number_of_areas(
    start: str, steps: int, areas: str
) -> None:
    game = game_at(dice=(1, 1, steps), mine={"artist": start})
    assert moves(game, "artist") == areas.split()


def test_r3_2__an_artist_paints_or_gives_or_neither() -> None:
    at_a1 = {"artist": "A8", "easel": ["waterfall", "waterfall"]}
    for action, phase in (("gift", Phase.MOVE), ("paint", Phase.REVEAL), ("pass", Phase.MOVE)):
        game = game_at(dice=(1, 1, 1), mine=at_a1)
        game.play("artist:A1")
        assert game.legal_labels() == ["pass", "paint", "gift"]
        game.play(action)
        assert game.phase == phase


def reveals(area: str, **changes: Any) -> int:
    """Return the number of paintings that an artist reveals after a move by a 1 to an area."""
    start = {"A1": "A2", "A2": "A1", "A3": "A2", "A4": "A3", "A5": "A3", "A6": "A7"}.get(area, "A1")
    mine = {"artist": start} | changes.pop("mine", {})
    game = game_at(dice=(1, 1, 1), mine=mine, **changes)
    game.play(f"artist:{area}")
    if "paint" not in game.legal_labels():
        return 0
    game.play("paint")
    return int(game.to_dict()["pending"])


@pytest.mark.parametrize(
    ("seat", "place"),
    [
        *[(0, {"pilgrim": 3}), (0, {"pilgrim": 4}), (0, {"pilgrim": 6})],
        *[(0, {"merchant": "C2"}), (0, {"merchant": "M3"}), (1, {"merchant": "M2"})],
        *[(1, {"pilgrim": 5}), (1, {"merchant": "C3"}), (1, {"artist": "A2"})],
    ],
)
def test_r3_3__each_other_character_around_reveals_one(seat: int, place: dict[str, Any]) -> None:
    """In A2, from C2 (3) to C3 (6), with the mountain towns M2 and M3."""
    mine, theirs = FAR_AWAY | {"artist": "A1"}, {"artist": "A7"}
    players = [mine | place, theirs] if seat == 0 else [mine, theirs | place]
    assert reveals("A2", mine=players[0], theirs=players[1]) == 1


def test_r3_4__paintings_queue_and_gifts_leave_from_the_front() -> None:
    game = game_at(dice=(1, 1, 1), mine={"easel": ["moon"]})
    play(game, "artist:A1", "paint", "tile:bamboo", "tile:waterfall")
    assert player(game)["easel"] == ["moon", "bamboo", "waterfall"]
    assert player(game)["hidden"] == {"moon": 2, "waterfall": 2, "mountain": 2, "bamboo": 1}
    game = game_at(dice=(1, 1, 1), mine={"easel": ["waterfall", "moon", "waterfall"]})
    play(game, "artist:A1", "gift")
    assert (player(game)["easel"], player(game)["gifted"]) == (["moon", "waterfall"], 1)


def test_r3_5__passing_through_bamboo_to_a_waterfall_one_gives_a_waterfall() -> None:
    mine = {
        "artist": "A6",
        "easel": ["waterfall", "waterfall"],
    }  # to A1 through A2 or A7, both bamboo
    game = game_at(dice=(1, 1, 2), mine=mine)
    play(game, "artist:A1", "gift")
    assert (player(game)["easel"], player(game)["gifted"]) == (["waterfall"], 1)
    assert (game.phase, game.player) == (Phase.MOVE, 1)  # one per action
    game = game_at(dice=(1, 1, 2), mine=mine | {"easel": ["bamboo"]})
    game.play("artist:A1")
    assert "gift" not in game.legal_labels()


def test_r3_6__the_tenth_painting_triggers_the_end() -> None:
    game = game_at(dice=(1, 1, 1), mine={"easel": ["waterfall"], "hidden": {}})
    game.play("artist:A1")
    assert not game.to_dict()["end_triggered"]
    game.play("gift")
    assert game.to_dict()["end_triggered"]


def test_r3_7__an_artist_that_cannot_move_stays_and_has_no_action() -> None:
    """No valid board allows this, so a copy of the board gets empty tables."""
    board = dataclasses.replace(Board.load())
    board.record["area_reach"] = 0
    begun = position(hot_spring=0, mine={"easel": ["moon"]})
    game = Game.from_dict(begun, board=board, chance="explicit")
    assert moves(game, "artist") == ["stay"]
    game.play("artist:stay")
    assert (game.phase, game.player) == (Phase.MOVE, 1)  # no repeat either (R8.1)
    assert moves(game, "artist") == []
    assert player(game) == begun["players"][0]


# R4 Merchant


@pytest.mark.parametrize(
    ("steps", "towns"), [(1, "C2 C7 M1 M3"), (2, "C1 C3 C6 C8 M4"), (3, "C4 C5")]
)
def test_r4_1__the_merchant_moves_exactly_the_dies_number_of_routes(steps: int, towns: str) -> None:
    mine, theirs = {"pilgrim": 1, "merchant": "M2"}, {"pilgrim": 15}
    game = game_at(dice=(1, steps, 1), mine=mine, theirs=theirs)
    assert moves(game, "merchant") == towns.split()


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [({"pilgrim": "C7"}, {}), ({}, {"pilgrim": "C7"}), ({}, {"merchant": "C7"})],
    ids=["my pilgrim", "their pilgrim", "their merchant"],
)
def test_r4_1__an_occupied_coastal_town_is_closed(mine: Any, theirs: Any) -> None:
    game = game_at(dice=(1, 1, 1), mine={"merchant": "M2"} | mine, theirs=theirs)
    assert moves(game, "merchant") == ["C2", "M1", "M3"]


STUCK = {
    "dice": (1, 3, 1),  # from M2 to C4 or C5
    "mine": {"merchant": "M2"},
    "theirs": {"pilgrim": "C5", "merchant": "C4"},
}


def test_r4_2__a_merchant_that_cannot_move_stays_and_the_die_is_spent() -> None:
    game = game_at(hot_spring=0, **STUCK)
    assert moves(game, "merchant") == ["stay"]
    game.play("merchant:stay")
    assert (game.phase, game.player) == (Phase.MOVE, 1)
    assert game.to_dict()["dice_left"] == ["pilgrim", "artist"]
    assert (player(game)["merchant"], game.to_dict()["hot_spring"]) == ("M2", 0)  # R8.1


@pytest.mark.parametrize(("town", "number"), [("M1", 3), ("M2", 2), ("M3", 4), ("M4", 3)])
def test_r4_3__a_mountain_town_gives_its_number_of_wares(town: str, number: int) -> None:
    start = {"M1": "C8", "M2": "C2", "M3": "C3", "M4": "C4"}[town]
    game = game_at(dice=(1, 1, 1), mine={"merchant": start})
    play(game, f"merchant:{town}", "draw")
    assert game.to_dict()["pending"] == number
    assert game.outcomes()[0] == ("ware:kimono", 5 / 26)
    for left in range(number, 0, -1):
        assert game.to_dict()["pending"] == left
        game.play("ware:fan")
    assert player(game)["wares"]["fan"] == number
    assert game.to_dict()["bag"]["fan"] == 8 - number
    assert game.phase == Phase.MOVE


def test_r4_3__exactly_the_excess_over_5_is_returned() -> None:
    game = game_at(dice=(1, 1, 1), mine={"merchant": "C8", "wares": {"kimono": 3, "doll": 1}})
    play(game, "merchant:M1", "draw", "ware:fan", "ware:fan")
    assert game.phase == Phase.DRAW  # six in hand, but one more draw comes first
    game.play("ware:fan")
    assert (game.phase, game.player) == (Phase.DISCARD, 0)
    assert game.legal_labels() == ["discard:kimono", "discard:doll", "discard:fan"]
    play(game, "discard:doll", "discard:kimono")
    assert game.phase == Phase.MOVE
    assert player(game)["wares"] == {"kimono": 2, "pottery": 0, "doll": 0, "fan": 3}
    assert game.to_dict()["bag"] == {"kimono": 3, "pottery": 6, "doll": 7, "fan": 5}


@pytest.mark.parametrize("number", [1, 2, 3])
def test_r4_4__any_number_of_the_boutiques_wares_is_sold(number: int) -> None:
    mine = {"merchant": "M2", "wares": {"fan": 3, "doll": 2}}
    game = game_at(dice=(1, 1, 1), mine=mine)
    game.play("merchant:C7")
    assert game.legal_labels() == ["pass", "sell:1", "sell:2", "sell:3"]
    game.play(f"sell:{number}")
    assert player(game)["coins"] == 2 * number
    assert player(game)["wares"] == {"kimono": 0, "pottery": 0, "doll": 2, "fan": 3 - number}
    assert game.to_dict()["bag"]["fan"] == 5 + number


def sale(ware: str, number: int, town: str, side: str = "crafty", **mine: Any) -> Game:
    """Return a game after a merchant has moved to a coastal town with wares to sell."""
    start = {"C2": "M2", "C4": "M4", "C7": "M2"}[town]
    mine |= {"merchant": start, "wares": {ware: number}}
    game = game_at(dice=(1, 1, 1), mine=mine, waves={"merchant": (side, 0)})
    game.play(f"merchant:{town}")
    return game


@pytest.mark.parametrize(
    ("begun", "sold", "gold", "coins"),
    [
        (("pottery", 4, "C4", 0, 0), "sell:4", 1, 2),
        (("fan", 3, "C7", 4, 0), "sell:3", 1, 0),
        (("kimono", 5, "C2", 8, 0), "sell:5:wave", 3, 3),  # 8 + 5 × 5 = 33
        (("kimono", 5, "C2", 8, 5), "sell:5:wave", 6, 23),
        (("kimono", 5, "C2", 23, 6), "sell:5:wave", 6, 48),
    ],
    ids=["a slab", "exactly ten", "while ten remain", "the sixth slab", "no seventh"],
)
def test_r4_5__ten_coins_are_a_slab(begun: Any, sold: str, gold: int, coins: int) -> None:
    ware, number, town, held, slabs = begun
    game = sale(ware, number, town, coins=held, gold=slabs)
    game.play(sold)
    assert (player(game)["gold"], player(game)["coins"]) == (gold, coins)
    assert game.to_dict()["end_triggered"] == (gold == 6)


@pytest.mark.parametrize(
    ("bag", "drawn", "offered"),
    [
        ([0, 0, 0, 0], 0, {"draw": False, "draw:wave": False}),
        ([0, 1, 1, 0], 2, {"draw": True, "draw:wave": False}),
        ([1, 1, 1, 0], 3, {"draw": True, "draw:wave": False}),
        ([1, 1, 1, 1], 3, {"draw": True, "draw:wave": True}),
    ],
)
def test_r4_6__the_draw_stops_short_when_the_bag_runs_out(
    bag: list[int], drawn: int, offered: dict[str, bool]
) -> None:
    """No position allows this, so the state gets another bag; M1 gives 3, or 4 with robust."""
    board = Board.load().record
    robust = {"merchant": ("robust", 0)}
    state = game_at(dice=(1, 1, 1), mine={"merchant": "C8"}, waves=robust).state
    state["bag"] = bag
    luck, events = np.zeros(1, LUCK), np.zeros(99, np.int32)
    advance_game(board, state, luck, 0, IDS["merchant:M1"], False, events)
    legal = legal_mask(board, state, 0)
    assert {label: bool(legal >> IDS[label] & 1) for label in offered} == offered
    if drawn:
        advance_game(board, state, luck, 0, IDS["draw"], False, events)
    assert state["pending"][0] == drawn


# R5 Pilgrim


@pytest.mark.parametrize(
    ("start", "mine", "theirs", "end"),
    [
        (1, {}, {"pilgrim": 3}, 4),
        (1, {}, {"merchant": "C2"}, 4),
        (1, {"merchant": "C2"}, {}, 4),
        (1, {}, {"pilgrim": 4, "merchant": "C2"}, 5),
        (25, {}, {"pilgrim": 27}, 0),
        (25, {"merchant": "C1"}, {"pilgrim": 27}, 1),
        (26, {}, {"merchant": "C1"}, 1),
        (27, {}, {}, 1),
    ],
    ids=[
        *["their pilgrim", "their merchant", "my merchant", "a chain"],
        *[
            "over the end of the ring",
            "a chain over the end",
            "from the start of the ring",
            "over the end",
        ],
    ],
)
def test_r5_1__pilgrim_goes_on_to_the_next_empty_station(
    start: int, mine: dict[str, Any], theirs: dict[str, Any], end: int
) -> None:
    game = game_at(dice=(2, 1, 1), mine={"pilgrim": start} | mine, theirs=theirs)
    game.play("pilgrim")
    assert player(game)["pilgrim"] == end


def test_r5_2__coins_of_a_visit_are_traded_too() -> None:
    game = game_at(dice=(2, 1, 1), mine={"pilgrim": 1, "coins": 7, "gold": 5})
    play(game, "pilgrim", "visit")
    assert (player(game)["coins"], player(game)["gold"]) == (1, 6)
    assert game.to_dict()["end_triggered"]


@pytest.mark.parametrize(("steps", "peg", "last"), [(1, "temple", 9), (2, "garden", 6)])
def test_r5_3__a_visit_moves_the_peg(steps: int, peg: str, last: int) -> None:
    game = game_at(dice=(steps, 1, 1))
    play(game, "pilgrim", "visit")
    assert player(game)[peg] == 2
    assert not game.to_dict()["end_triggered"]
    game = game_at(dice=(steps, 1, 1), mine={peg: last - 1})
    play(game, "pilgrim", "visit")
    assert player(game)[peg] == last
    assert game.to_dict()["end_triggered"]
    game = game_at(dice=(steps, 1, 1), mine={peg: last})
    game.play("pilgrim")
    assert (game.phase, game.player) == (Phase.MOVE, 1)  # no effect to offer


@pytest.mark.parametrize("owner", [None, 1], ids=["the board", "the opponent"])
def test_r5_4__the_token_is_taken_from(owner: int | None) -> None:
    game = game_at(dice=(1, 1, 1), mine={"pilgrim": 7}, hot_spring=owner)
    play(game, "pilgrim", "visit")
    assert game.to_dict()["hot_spring"] == 0


def at_seashore(**owners: tuple[str, int | None]) -> Game:
    game = game_at(dice=(1, 1, 1), mine={"pilgrim": 3}, waves=owners)
    game.play("pilgrim")
    return game


def test_r5_5__a_wave_is_taken_from_the_board_or_else_from_the_opponent() -> None:
    for waves, legal in (
        ({"artist": ("inspired", 1)}, ["pass", "take:pilgrim", "take:merchant"]),
        (NO_WAVES_LEFT, ["pass", "take:merchant", "take:artist"]),
    ):
        game = at_seashore(**waves)
        assert game.legal_labels() == legal
        game.play(legal[-1])
        assert game.to_dict()["waves"][legal[-1].removeprefix("take:")]["owner"] == 0
    game = at_seashore(pilgrim=("hasty", 0), merchant=("robust", 0), artist=("inspired", 0))
    assert (game.phase, game.player) == (Phase.MOVE, 1)  # nothing to take


# R6 Effects are optional


@pytest.mark.parametrize(
    ("move", "dice", "mine"),
    [
        ("pilgrim", (1, 1, 1), {"temple": 8}),
        ("pilgrim", (1, 1, 1), {"pilgrim": 3}),
        ("pilgrim", (3, 1, 1), {"coins": 9}),
        ("merchant:C8", (1, 1, 1), {"wares": {"fan": 2}}),
        ("artist:A1", (1, 1, 1), {}),
    ],
    ids=["temple", "seashore", "town", "sale", "painting"],
)
def test_r6_1__pass_declines_any_effect(move: str, dice: Any, mine: dict[str, Any]) -> None:
    game = game_at(dice=dice, mine=mine)
    game.play(move)
    moved = game.to_dict()
    play(game, "pass")
    after = game.to_dict()
    assert (game.phase, game.player) == (Phase.MOVE, 1)
    assert not after["end_triggered"]
    for key in ("players", "bag", "waves", "hot_spring"):
        assert after[key] == moved[key]


def test_r6_2__an_effect_is_offered_only_if_there_is_one() -> None:
    game = game_at(dice=(1, 1, 1))
    game.play("merchant:C8")  # no fan to sell
    assert (game.phase, game.player) == (Phase.MOVE, 1)


def test_r6_2__a_repeat_is_offered_only_if_there_is_a_move() -> None:
    """A valid board always has a way back, so a copy of the board gets no route out of M2."""
    board = dataclasses.replace(Board.load())
    board.record["town_reach"][0, 1, 9] = 0  # [die 1, M2]
    game = Game.from_dict(position(dice=(1, 1, 1), hot_spring=0), board=board, chance="explicit")
    play(game, "merchant:M2", "pass")
    assert (game.phase, game.player, game.to_dict()["hot_spring"]) == (Phase.MOVE, 1, 0)


# R7 Wave tiles


@pytest.mark.parametrize(("side", "end"), [("tranquil", 4), ("hasty", 6)])
def test_r7_1__the_pilgrims_wave_is_a_step_less_or_more(side: str, end: int) -> None:
    game = game_at(dice=(3, 1, 1), mine={"pilgrim": 2}, waves={"pilgrim": (side, 0)})
    assert game.legal_labels()[:2] == ["pilgrim", "pilgrim:wave"]
    without_wave = game.copy()
    without_wave.play("pilgrim")
    game.play("pilgrim:wave")
    assert (player(without_wave)["pilgrim"], player(game)["pilgrim"]) == (5, end)


@pytest.mark.parametrize(("side", "offered"), [("tranquil", False), ("hasty", True)])
def test_r7_1__tranquil_has_no_use_with_a_1(side: str, offered: bool) -> None:
    game = game_at(dice=(1, 1, 1), waves={"pilgrim": (side, 0)})
    assert ("pilgrim:wave" in game.legal_labels()) == offered


def test_r7_2__proficient_reveals_one_more() -> None:
    game = game_at(dice=(1, 1, 1), waves={"artist": ("proficient", 0)})
    game.play("artist:A1")
    assert game.legal_labels() == ["pass", "paint", "paint:wave"]
    game.play("paint:wave")
    assert game.to_dict()["pending"] == 3  # my pilgrim in C1, my merchant in M1, and one


def can_give(icon: str, start: str, end: str, steps: int, side: str = "inspired") -> bool:
    mine = {"artist": start, "easel": [icon]}
    game = game_at(dice=(1, 1, steps), mine=mine, waves={"artist": (side, 0)})
    game.play(f"artist:{end}")
    return "gift" in game.legal_labels()


def test_r7_2__inspired_gives_by_the_start_and_by_any_path_to_the_arrival() -> None:
    """From A2 (bamboo) to A7 (bamboo) over A1 (waterfall) or A6 (mountain)."""
    assert can_give("moon", "A8", "A1", 1)
    assert can_give("waterfall", "A8", "A1", 1)
    assert not can_give("bamboo", "A8", "A1", 1)
    assert not can_give("moon", "A8", "A1", 1, side="proficient")
    assert can_give("waterfall", "A2", "A7", 2)
    assert can_give("mountain", "A2", "A7", 2)
    assert not can_give("moon", "A2", "A7", 2)


def test_r7_3__crafty_brings_a_coin_more_for_each_ware_of_a_sale_or_none() -> None:
    game = sale("fan", 3, "C7")
    assert game.legal_labels() == [
        *["pass", "sell:1", "sell:2", "sell:3", "sell:1:wave", "sell:2:wave", "sell:3:wave"]
    ]
    without_wave = game.copy()
    without_wave.play("sell:3")
    game.play("sell:3:wave")
    assert (player(without_wave)["coins"], player(game)["coins"]) == (6, 9)


@pytest.mark.parametrize("draw", ["draw", "draw:wave"])
def test_r7_3__robust_holds_six_also_after_a_plain_draw(draw: str) -> None:
    held = {"draw": 4, "draw:wave": 3}[draw]
    mine = {"merchant": "C2", "wares": {"doll": held}}
    game = game_at(dice=(1, 1, 1), mine=mine, waves={"merchant": ("robust", 0)})
    play(game, "merchant:M2", draw)
    while game.phase == Phase.DRAW:
        game.play("ware:fan")
    assert sum(player(game)["wares"].values()) == 6
    assert game.phase == Phase.MOVE


def test_r7_4__a_player_who_loses_robust_with_six_wares_returns_one() -> None:
    """Player 0 takes robust from player 1, and repeats afterwards."""
    game = game_at(
        dice=(1, 1, 1),
        mine={"pilgrim": 3},
        theirs={"wares": {"doll": 4, "fan": 2}},
        waves={"pilgrim": ("hasty", 1), "merchant": ("robust", 1), "artist": ("inspired", 1)},
        hot_spring=0,
    )
    play(game, "pilgrim", "take:merchant")
    assert (game.phase, game.player) == (Phase.DISCARD, 1)
    assert game.legal_labels() == ["discard:doll", "discard:fan"]
    game.play("discard:doll")
    assert player(game, 1)["wares"] == {"kimono": 0, "pottery": 0, "doll": 3, "fan": 2}
    assert game.to_dict()["bag"]["doll"] == 4
    assert (game.phase, game.player) == (Phase.REPEAT, 0)
    assert game.legal_labels() == ["pilgrim", "pass"]


def test_r7_5__a_wave_works_in_the_repeat_of_the_pick_that_took_it() -> None:
    mine = {"pilgrim": 3}
    game = game_at(dice=(1, 1, 1), mine=mine, hot_spring=0, waves={"pilgrim": ("hasty", None)})
    play(game, "pilgrim", "take:pilgrim")
    assert game.legal_labels() == ["pilgrim", "pilgrim:wave", "pass"]


# R8 Hot spring token


def test_r8_1__the_holder_uses_the_same_die_again_with_the_same_character() -> None:
    game = game_at(dice=(2, 1, 1), hot_spring=0)
    play(game, "pilgrim", "visit")
    assert (game.phase, game.player, game.legal_labels()) == (Phase.REPEAT, 0, ["pilgrim", "pass"])
    play(game, "pilgrim", "take:pilgrim")
    assert (player(game)["pilgrim"], player(game)["garden"]) == (4, 2)
    assert (game.phase, game.player) == (Phase.MOVE, 1)  # once in a pick (R8.3)
    assert game.to_dict()["dice_left"] == ["merchant", "artist"]


@pytest.mark.parametrize("owner", [None, 1])
@pytest.mark.parametrize("effect", ["visit", "pass"])
def test_r8_1__the_token_is_not_used_in_the_pick_that_gained_it(
    owner: int | None, effect: str
) -> None:
    game = game_at(dice=(1, 1, 1), mine={"pilgrim": 7}, hot_spring=owner)
    play(game, "pilgrim", effect)
    assert (game.phase, game.player) == (Phase.MOVE, 1)


def test_r8_2__a_second_move_to_a_hot_spring_takes_the_token_again() -> None:
    game = game_at(dice=(1, 1, 1), mine={"pilgrim": 6}, hot_spring=0)
    play(game, "pilgrim", "visit", "pilgrim")
    assert (player(game)["pilgrim"], game.legal_labels()) == (8, ["pass", "visit"])
    game.play("visit")
    assert game.to_dict()["hot_spring"] == 0
    assert (game.phase, game.player) == (Phase.MOVE, 1)  # R8.3


# R9 End and score


@pytest.mark.parametrize(
    ("plays", "mine"),
    [
        (["pilgrim", "visit"], {"temple": 8}),
        (["pilgrim", "visit"], {"pilgrim": 1, "garden": 5}),
        (["pilgrim", "visit"], {"pilgrim": 2, "coins": 6, "gold": 5}),
        (["artist:A1", "gift"], {"easel": ["waterfall"], "hidden": {}}),
    ],
    ids=["temple", "garden", "gold", "paintings"],
)
def test_r9_1__a_trigger_ends_the_game_with_its_round(plays: list[str], mine: Any) -> None:
    game = game_at(dice=(1, 1, 1), mine=mine)
    play(game, *plays)
    assert (game.phase, game.player) == (Phase.MOVE, 1)
    assert game.to_dict()["end_triggered"]
    assert finish(game) == 2
    assert (game.phase, game.end, game.is_over) == (Phase.OVER, "triggers", True)
    assert game.legal_labels() == game.outcomes() == []


def over(mine: dict[str, Any], theirs: dict[str, Any]) -> Game:
    return game_at(phase="OVER", left=[], mine=mine, theirs=theirs, end="triggers")


def test_r9_2__the_score_of_the_rulebooks_example() -> None:
    game = over({"temple": 7, "garden": 6, "gold": 5, "gifted": 6}, {"gold": 4})
    assert game.scores() == [
        {"faith": 42, "commerce": 35, "culture": 18, "total": 95},
        {"faith": 1, "commerce": 26, "culture": 0, "total": 27},
    ]
    assert game.winner() == 0


def test_r9_2__the_tables_of_points() -> None:
    gold = [game_at(mine={"gold": n}).scores()[0]["commerce"] for n in range(7)]
    given = [game_at(mine={"gifted": n}).scores()[0]["culture"] for n in range(11)]
    assert gold == [0, 5, 11, 18, 26, 35, 45]
    assert given == [0, 2, 4, 7, 10, 14, 18, 23, 28, 34, 40]
    for temple in range(1, 10):
        for garden in range(1, 7):
            mine = {"temple": temple, "garden": garden}
            assert game_at(mine=mine).scores()[0]["faith"] == temple * garden


@pytest.mark.parametrize(
    ("coins", "winner"), [((5, 3), 0), ((3, 5), 1), ((4, 4), None)], ids=["0", "1", "shared"]
)
def test_r9_3__a_tie_is_decided_by_coins_or_shared(coins: Any, winner: int | None) -> None:
    mine, theirs = ({"temple": 9, "coins": n} for n in coins)
    assert over(mine, theirs).winner() == winner


def test_r9_4__leftovers_score_nothing() -> None:
    rich = {"temple": 9, "coins": 0, "wares": {"fan": 5}, "easel": ["moon", "moon"]}
    game = over(rich, {"temple": 9})
    assert game.scores()[0] == game.scores()[1]
    assert game.winner() is None
    assert over({"temple": 9, "coins": 9}, {"temple": 9}).scores()[0]["total"] == 9


# R10 Not in the rulebook


@pytest.mark.parametrize(
    ("mine", "theirs", "winner"),
    [
        ({"temple": 5}, {}, 0),
        ({"temple": 5}, {"temple": 6}, 1),
        ({"coins": 1}, {"coins": 2}, 1),
        ({}, {}, None),
    ],
    ids=str,
)
def test_r10_1__points_decide_at_the_cap(mine: Any, theirs: Any, winner: int | None) -> None:
    game = game_at(round=200, mine=mine, theirs=theirs)
    assert finish(game) == 3
    assert (game.phase, game.end, game.is_over) == (Phase.OVER, "cap", True)
    assert game.winner() == winner


def test_r10_1__a_trigger_in_the_last_round_is_the_reason_of_the_end() -> None:
    game = game_at(round=200, mine={"temple": 9})
    finish(game)
    assert game.end == "triggers"
