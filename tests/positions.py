"""Test data: positions with a few changes to a default one, random positions, boards."""

import copy
import json
import random
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reference import PAINTINGS, SIDES, WARES

from tokaido_env import Game, Record
from tokaido_env.boards.board import BOARDS_FOLDER
from tokaido_env.boards.board_pool import Boards
from tokaido_env.core.constants import AREAS, CHARACTERS, COASTAL_TOWNS, ICONS, TOWNS
from tokaido_env.record import check_outcomes_of_seed, replay

Position = dict[str, Any]

SHIKOKU = BOARDS_FOLDER / "shikoku.toml"
TOKENS = (
    *(("kimono", 4), ("kimono", 4), ("pottery", 4), ("pottery", 3)),
    *(("doll", 3), ("doll", 2), ("fan", 2), ("fan", 2)),
)
STARTS = (
    {"pilgrim": 0, "merchant": "M1", "artist": "A8"},
    {"pilgrim": 14, "merchant": "M4", "artist": "A4"},
)
RING: list[str] = tomllib.loads(SHIKOKU.read_text(encoding="utf-8"))["ring"]["stations"]
DECISIONS = ("MOVE", "EFFECT", "DISCARD", "REPEAT")


def position(
    *,
    dice: tuple[int, int, int] = (2, 2, 2),
    left: Sequence[str] = CHARACTERS,
    lead: int = 0,
    waves: Mapping[str, tuple[str, int | None]] | None = None,
    mine: Mapping[str, Any] | None = None,
    theirs: Mapping[str, Any] | None = None,
    **changes: Any,
) -> Position:
    """Return a consistent position: the first pick of round 1, with changes.

    The tokens are in the order of the board file (kimono/4 in C1 … fan/2 in C8). The wave tiles are
    on the board with their first sides up. The bag, the hidden paintings, `end_triggered` and the
    player to decide follow from the other entries.

    Args:
        dice: values of pilgrim, merchant, artist.
        left: the dice not taken yet.
        lead: the seat that rolled the dice.
        waves: side and owner, by character.
        mine: entries of player 0; a pilgrim may be a coastal town, and wares may be left out.
        theirs: entries of player 1.
        changes: other keys of the position.
    """
    players = [_player(seat, given or {}) for seat, given in enumerate((mine, theirs))]
    die = changes.get("die")
    picks_left = len(left) + (die is not None)
    asked = changes.get("phase", "MOVE") in DECISIONS
    default = {
        "board": "shikoku",
        "phase": "MOVE",
        "player": lead ^ (picks_left == 2) if asked else None,
        "lead": lead,
        "round": 1,
        "dice": dict(zip(CHARACTERS, dice, strict=True)),
        "dice_left": list(left),
        "die": die,
        "origin": None,
        "pending": 0,
        "end_triggered": any(_has_triggered(player) for player in players),
        "end": None,
        "boutiques": {town: list(token) for town, token in zip(COASTAL_TOWNS, TOKENS, strict=True)},
        "bag": {ware: n - sum(p["wares"][ware] for p in players) for ware, n in WARES.items()},
        "hot_spring": None,
        "waves": {
            character: {"side": SIDES[character][0], "owner": None} for character in CHARACTERS
        },
        "players": players,
    }
    for character, (side, owner) in (waves or {}).items():
        default["waves"][character] = {"side": side, "owner": owner}
    return default | changes


def game_at(**changes: Any) -> Game:
    """Return an explicit game at `position(**changes)`."""
    return Game.from_dict(position(**changes), chance="explicit")


def play(game: Game, *moves: str) -> None:
    for move in moves:
        game.play(move)


def player(game: Game, seat: int = 0) -> dict[str, Any]:
    return game.to_dict()["players"][seat]


def verified(line: str, board: Boards | None = None) -> Record:
    """Return the record of a line of a record file, verified."""
    record = Record.from_json(line)
    check_outcomes_of_seed(record, replay(record, board))
    return record


def random_move(game: Game, rng: random.Random) -> str:
    """Return a random legal action or, at chance, a sampled outcome."""
    outcomes = game.outcomes()
    if outcomes:
        labels, odds = zip(*outcomes, strict=True)
        return rng.choices(labels, odds)[0]
    return rng.choice(game.legal_labels())


def random_walk(seed: int, steps: int, board: Any = "shikoku") -> Game:
    """Return an explicit game after `steps` random moves, or at its end."""
    rng = random.Random(seed)
    game = Game(board, seed=seed, chance="explicit")
    for _ in range(steps):
        if game.is_over:
            break
        game.play(random_move(game, rng))
    return game


def random_position(rng: random.Random) -> Position:
    """Return a random position at MOVE; many are unlikely: rich, crowded or nearly over."""
    waves = {
        character: (rng.choice(SIDES[character]), rng.choice((None, 0, 1)))
        for character in CHARACTERS
    }
    pieces = [ware for ware in rng.sample(sorted(WARES), 4) for _ in range(WARES[ware])]
    hoarding = rng.random() < 0.5  # full hands of one or two kinds
    if not hoarding:
        rng.shuffle(pieces)
    players = []
    for seat in range(2):
        capacity = 6 if waves["merchant"] == ("robust", seat) else 5
        size = capacity if hoarding else rng.randint(0, capacity)
        held, pieces = pieces[:size], pieces[size:]
        wares = {ware: held.count(ware) for ware in WARES}
        players.append(_random_player(seat, rng) | {"wares": wares})
    while _crowded(players):
        players = [
            p | {"pilgrim": rng.randrange(28), "merchant": rng.choice(TOWNS)} for p in players
        ]
    left = [character for character in CHARACTERS if rng.random() < 0.7]
    return position(
        dice=(rng.randint(1, 4), rng.randint(1, 3), rng.randint(1, 3)),
        left=left or ["artist"],
        lead=rng.randint(0, 1),
        waves=waves,
        mine=players[0],
        theirs=players[1],
        round=rng.randint(1, 200),
        hot_spring=rng.choice((None, 0, 1)),
        boutiques=dict(zip(COASTAL_TOWNS, map(list, rng.sample(TOKENS, 8)), strict=True)),
    )


def random_phase(given: Position, rng: random.Random) -> Position:
    """Return a position at a random phase, possible or not, with wares drawn from the bag."""
    die = rng.choice(CHARACTERS)
    left = [character for character in given["dice_left"] if character != die]
    phase = rng.choice(["EFFECT", "DRAW", "REVEAL", "DISCARD", "REPEAT"])
    hands = [dict(player["wares"]) for player in given["players"]]
    bag = dict(given["bag"])
    for ware in WARES:
        drawn = rng.randint(0, min(2, bag[ware]))
        bag[ware] -= drawn
        rng.choice(hands)[ware] += drawn
    return given | {
        "phase": phase,
        "die": die,
        "dice_left": left,
        "player": rng.randint(0, 1) if phase in DECISIONS else None,
        "origin": rng.choice(AREAS) if die == "artist" and phase in ("EFFECT", "REVEAL") else None,
        "pending": rng.randint(1, 5) if phase in ("DRAW", "REVEAL") else 0,
        "bag": bag,
        "players": [p | {"wares": hand} for p, hand in zip(given["players"], hands, strict=True)],
    }


def _player(seat: int, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a player's entries; hidden, gifted and easel add up to ten paintings."""
    default = dict.fromkeys(("temple", "garden"), 1) | dict.fromkeys(("coins", "gold"), 0)
    entries = STARTS[seat] | default | {"easel": []} | given
    if isinstance(entries["pilgrim"], str):
        entries["pilgrim"] = RING.index(entries["pilgrim"])
    entries["wares"] = dict.fromkeys(WARES, 0) | given.get("wares", {})
    if "hidden" in given:
        hidden = dict.fromkeys(ICONS, 0) | given["hidden"]
    else:
        hidden = dict(PAINTINGS[seat])
        for icon in entries["easel"]:
            hidden[icon] -= 1
        for _ in range(given.get("gifted", 0)):
            hidden[max(ICONS, key=hidden.__getitem__)] -= 1
    gifted = 10 - len(entries["easel"]) - sum(hidden.values())
    return entries | {"hidden": hidden, "gifted": gifted}


def _has_triggered(entries: Mapping[str, Any]) -> bool:
    last = {"temple": 9, "garden": 6, "gold": 6, "gifted": 10}
    return any(entries[key] == value for key, value in last.items())


def _random_player(seat: int, rng: random.Random) -> dict[str, Any]:
    paintings = [icon for icon, n in PAINTINGS[seat].items() for _ in range(n)]
    rng.shuffle(paintings)
    revealed = rng.randint(0, 10)
    easel, face_down = paintings[rng.randint(0, revealed) : revealed], paintings[revealed:]
    gold = rng.randint(0, 6)
    return {
        "pilgrim": 0,
        "merchant": "C1",
        "artist": rng.choice(AREAS),
        "temple": rng.randint(1, 9),
        "garden": rng.randint(1, 6),
        "coins": rng.randint(0, 9 if gold < 6 else 30),  # 33 more stay below 64
        "gold": gold,
        "easel": easel,
        "hidden": {icon: face_down.count(icon) for icon in ICONS},
    }


def _crowded(players: Sequence[Mapping[str, Any]]) -> bool:
    stations = [entries["pilgrim"] for entries in players]
    stations += [RING.index(p["merchant"]) for p in players if p["merchant"] in COASTAL_TOWNS]
    return len(set(stations)) < len(stations)


def shikoku_data() -> dict[str, Any]:
    """Return the parsed default board file."""
    return tomllib.loads(SHIKOKU.read_text(encoding="utf-8"))


def other_board_data() -> dict[str, Any]:
    """Return a valid board that differs from the default one in every entry."""
    data = shikoku_data()
    data |= {"name": "other", "max_rounds": 12}
    data["dice"]["pilgrim"]["faces"] = [1, 2, 3, 4, 5, 6]
    data["dice"]["merchant"]["faces"] = [1, 2, 2, 4, 5, 6]
    data["dice"]["artist"]["faces"] = [1, 1, 3, 4, 5, 6]
    data["ring"]["stations"] = [
        *["C1", "garden", "seashore", "C2", "C3", "temple", "hot spring", "temple"],
        *["C4", "seashore", "garden", "C5", "temple", "hot spring", "C6", "C7"],
        *["temple", "seashore", "garden", "temple", "C8", "hot spring", "seashore", "garden"],
    ]
    data["routes"]["pairs"] = [  # M1 and M4 are hubs, M3 has no coastal town
        *[["M1", "C1"], ["M1", "C2"], ["M1", "C8"], ["M3", "M1"], ["M2", "M3"], ["C3", "M2"]],
        *[["M2", "M4"], ["M4", "C4"], ["M4", "C5"], ["M4", "C6"], ["M4", "C7"]],
    ]
    data["mountains"]["numbers"] = {"M1": 2, "M2": 4, "M3": 4, "M4": 2}
    icons = ["moon", "moon", "bamboo", "waterfall", "bamboo", "mountain", "moon", "waterfall"]
    data["areas"]["icons"] = dict(zip(AREAS, icons, strict=True))
    data["starts"]["player_0"] = {"pilgrim": 6, "merchant": "C1", "artist": "A3"}
    data["starts"]["player_1"] = {"pilgrim": "C6", "merchant": "M3", "artist": "A3"}
    data["boutiques"]["tokens"] = [
        *[["fan", 4], ["fan", 3], ["doll", 4], ["fan", 4]],
        *[["kimono", 2], ["doll", 4], ["fan", 4], ["pottery", 2]],
    ]
    data["commerce"]["points"] = [1, 4, 9, 16, 25, 36, 49]
    data["culture"]["points"] = [0, 0, 1, 1, 2, 3, 5, 8, 13, 21, 34]
    data["temple"]["numbers"] = [0, 1, 2, 2, 4, 5, 5, 7, 12]
    data["garden"]["numbers"] = [2, 2, 3, 4, 4, 9]
    return data


def write_board(path: Path, data: Mapping[str, Any]) -> Path:
    """Write parsed board data as a TOML file."""
    path.write_text(toml_text(data), encoding="utf-8")
    return path


def toml_text(data: Mapping[str, Any]) -> str:
    """Return a table as TOML, one line for each key."""
    return "".join(f"{json.dumps(key)} = {_inline(value)}\n" for key, value in data.items())


def changed(data: Mapping[str, Any], where: str, value: Any) -> dict[str, Any]:
    """Return a deep copy with the value at a path, such as `players.0.coins`, set or `DROP`ped."""
    other = copy.deepcopy(dict(data))
    *parents, last = (int(key) if key.lstrip("-").isdigit() else key for key in where.split("."))
    table: Any = other
    for key in parents:
        table = table[key]
    if value is DROP:
        del table[last]
    else:
        table[last] = value
    return other


DROP = object()


def _inline(value: Any) -> str:
    """Return a value as inline TOML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {_inline(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return json.dumps(value)
