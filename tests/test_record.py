"""Records: there and back, one clear error for each way to be broken, and the golden games.

The games of `golden/games.jsonl` were played at random. They change only together with the rules
version and a line in the changelog: that today's rules and luck still give them is their point.
"""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from positions import other_board_data, position, write_board

from tokaido_env import ACTIONS, Game, Record, RecordError
from tokaido_env.record import load, replay, save

GOLDEN = Path(__file__).parent / "golden" / "games.jsonl"
KEYS = [  # in the order of the file
    *("format", "version", "rules", "board", "board_hash", "seed", "start"),
    *("players", "events", "scores", "winner", "end", "rounds"),
]

Data = dict[str, Any]


def finished(game: Game, rng: random.Random) -> Game:
    while not game.is_over:
        game.play(rng.choice(game.legal_actions()))
    return game


def a_game(seed: int) -> Game:
    return finished(Game(seed=seed), random.Random(seed))


def data_of(game: Game) -> Data:
    data: Data = json.loads(game.record(["left", "right"]).to_json())
    return data


def written(path: Path, *games: Data) -> Path:
    path.write_text("".join(json.dumps(game) + "\n" for game in games), encoding="utf-8")
    return path


# Round trips


def test_load__inverts_save(tmp_path: Path) -> None:
    names = ("réseau", '"\\\n\t', "日本", "a\u2028b\u0085c\x1cd")
    records = [a_game(seed).record(["first", name]) for seed, name in enumerate(names)]
    save(records, tmp_path / "games.jsonl")
    assert load(tmp_path / "games.jsonl") == records
    save([], tmp_path / "none.jsonl")
    assert load(tmp_path / "none.jsonl") == []


def test_to_json__has_the_keys_in_order() -> None:
    game = a_game(7)
    data = data_of(game)
    assert list(data) == KEYS
    assert (data["format"], data["version"], data["rules"]) == ("tokaido-duo", 1, 2)
    assert (data["board"], data["board_hash"]) == ("shikoku", game.board.hash)
    assert (data["seed"], data["start"], data["players"]) == (7, None, ["left", "right"])
    assert (data["scores"], data["winner"]) == (game.scores(), game.winner())
    assert (data["end"], data["rounds"]) == ("triggers", game.rounds)
    assert "\n" not in game.record().to_json()


def test_record__of_a_copy_with_new_luck_has_no_seed() -> None:
    game = Game(seed=4)
    for _ in range(20):
        game.play(game.legal_actions()[0])
    same, fresh, other = game.copy(luck="same"), game.copy(luck="fresh"), game.copy(seed=9)
    assert [g.record().seed for g in (same, fresh, other)] == [4, None, None]
    for each in (fresh, other):
        finished(each, random.Random(1))
        assert each.record().events[: len(game.record().events)] == game.record().events
        assert replay(each.record()).ends.tobytes() == each.state.tobytes()


def with_points(data: Any) -> Any:
    """Return data with 1.0 for 1, as other programs write it."""
    if isinstance(data, dict):
        return {key: with_points(value) for key, value in data.items()}
    if isinstance(data, list):
        return [with_points(value) for value in data]
    return float(data) if type(data) is int else data


REWRITTEN: dict[str, Callable[[list[Data]], str]] = {
    "sorted keys": lambda games: "\n".join(json.dumps(game, sort_keys=True) for game in games),
    "reversed keys": lambda games: "\n".join(json.dumps(in_reverse(game)) for game in games),
    "points": lambda games: "\n".join(json.dumps(with_points(game)) for game in games),
    "escapes": lambda games: "\n".join(map(json.dumps, games)).replace("shi", "\\u0073hi"),
    "CRLF": lambda games: "".join(json.dumps(game) + "\r\n" for game in games),
    "byte order marks": lambda games: "".join("\ufeff" + json.dumps(g) + "\n" for g in games),
    "blank lines": lambda games: "\n\n" + "\n \t\n".join(map(json.dumps, games)) + "\n\r\n",
}


def in_reverse(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: in_reverse(value) for key, value in reversed(data.items())}
    return [in_reverse(value) for value in data] if isinstance(data, list) else data


@pytest.mark.parametrize("form", REWRITTEN)
def test_load__accepts_games_that_other_programs_wrote(tmp_path: Path, form: str) -> None:
    start = position(round=190, mine={"temple": 8}, hot_spring=1)
    games = [Game(seed=7), Game.from_dict(start, seed=5), Game.from_dict(start)]
    records = [finished(game, random.Random(1)).record(["réseau", "a"]) for game in games]
    path = tmp_path / "games.jsonl"
    text = REWRITTEN[form]([json.loads(record.to_json()) for record in records])
    path.write_bytes(text.encode())
    assert load(path) == records


def test_load__needs_the_board_file_of_a_custom_board(tmp_path: Path) -> None:
    board = write_board(tmp_path / "other.toml", other_board_data())
    record = finished(Game(board, seed=1), random.Random(1)).record()
    save([record], tmp_path / "games.jsonl")
    assert load(tmp_path / "games.jsonl", board) == [record]
    with pytest.raises(RecordError, match=r"line 1: board: unknown board 'other'.*its board file"):
        load(tmp_path / "games.jsonl")


# Invalid files


def at_decision(data: Data) -> int:
    """Return the index of a MOVE decision in the middle of the events."""
    events = data["events"]
    middle = range(len(events) // 2, len(events))
    return next(i for i in middle if events[i].startswith("merchant:"))


def at_roll(data: Data) -> int:
    return next(i for i, event in enumerate(data["events"]) if event.startswith("roll:"))


def with_event(data: Data, index: int, event: Any) -> Data:
    events = data["events"]
    return data | {"events": [*events[:index], event, *events[index + 1 :]]}


def with_scores(data: Data, key: str) -> Data:
    first, second = data["scores"]
    return data | {"scores": [first, second | {key: second[key] + 1}]}


UNTRUE: dict[str, tuple[Callable[[Data], Data], str]] = {
    "an action that is not legal": (
        lambda d: with_event(d, at_decision(d), "merchant:stay"),
        r"event \d+ of \d+: illegal action 'merchant:stay': legal are .*merchant:[CM]\d.* at MOVE",
    ),
    "an outcome that cannot be": (
        lambda d: with_event(d, at_roll(d), "roll:5/1/1"),
        r"event 12 of \d+: no outcome 'roll:5/1/1' at ROLL: possible are roll:1/1/1 \(0\), ",
    ),
    "an event left out": (
        lambda d: d | {"events": d["events"][:11] + d["events"][12:]},
        r"event 12 of \d+: no outcome .* at ROLL",
    ),
    "an event after the end": (
        lambda d: d | {"events": [*d["events"], "pass"]},
        r"event (\d+) of \1: illegal action 'pass': the game is over",
    ),
    "the last event lost": (
        lambda d: d | {"events": d["events"][:-1]},
        r": expected .* after the last event \(\d+\), got",
    ),
    "another winner": (
        lambda d: d | {"winner": 1 - d["winner"]},
        r"winner: expected \d after the last event \(\d+\), got \d",
    ),
    "another score": (lambda d: with_scores(d, "faith"), r"scores: expected .* got"),
    "another end": (lambda d: d | {"end": "cap"}, "end: expected 'triggers' .* got 'cap'"),
    "another length": (lambda d: d | {"rounds": 1}, r"rounds: expected \d+ .* got 1"),
    "another format": (lambda d: d | {"format": "chess"}, "format: expected tokaido-duo"),
    "another version": (lambda d: d | {"version": 2}, "version: expected 1, got 2"),
    "other rules": (lambda d: d | {"rules": 1}, "rules: expected 2, got 1"),
    "another board": (lambda d: d | {"board": "honshu"}, "board: unknown board 'honshu'"),
    "a changed board": (lambda d: d | {"board_hash": "0"}, "board_hash: expected .* got '0'"),
    "a key too many": (lambda d: d | {"weather": 1}, "keys missing or unknown: weather"),
    "three players": (lambda d: d | {"players": list("abc")}, "players: "),
    "a start that is no position": (lambda d: d | {"start": {}}, "start: board"),
    "a winner that is no seat": (lambda d: d | {"winner": bool(d["winner"])}, "winner"),
}


@pytest.mark.parametrize("how", UNTRUE)
def test_load__refuses_incorrect_records(tmp_path: Path, how: str) -> None:
    change, message = UNTRUE[how]
    right = data_of(a_game(1))
    path = written(tmp_path / "games.jsonl", right, change(right), right)
    with pytest.raises(RecordError, match=rf"games\.jsonl, line 2: .*{message}"):
        load(path)


@pytest.mark.parametrize("line", [b"games", b"[1, 2]", b"\x0b", b'{"format": 1', b"\x80\x04\x95\0"])
def test_load__refuses_invalid_lines(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "games.jsonl"
    path.write_bytes(a_game(1).record().to_json().encode() + b"\n" + line + b"\n")
    with pytest.raises(RecordError, match="line 2: "):
        load(path)


# Golden games


def test_golden_games__are_correct_and_varied() -> None:
    records = load(GOLDEN)
    assert len(records) == 6
    assert {record.winner for record in records} == {0, 1}
    assert {record.end for record in records} == {"triggers", "cap"}
    events = {event for record in records for event in record.events}
    assert {"visit", "draw:wave", "paint:wave", "gift", "discard:fan", "pilgrim:wave"} <= events


@pytest.mark.parametrize("line", range(6))
def test_golden_games__follow_from_their_seeds(line: int) -> None:
    """Seed and decisions reproduce every outcome."""
    record = Record.from_json(GOLDEN.read_text(encoding="utf-8").splitlines()[line])
    game = Game(seed=record.seed) if record.start is None else None
    if game is None:
        game = Game.from_dict(record.start, seed=record.seed, chance="sampled")
    for event in record.events:
        if event in ACTIONS:
            game.play(event)
    assert game.record(record.players) == record


# Untrusted records


def with_seed(data: Data, seed: int) -> Data:
    return data | {"seed": seed}


@pytest.mark.parametrize(
    "game",
    [a_game(1), finished(Game.from_dict(position(round=190), seed=5), random.Random(5))],
    ids=["from the start", "from a position"],
)
def test_load__refuses_outcomes_that_differ_from_the_seed(tmp_path: Path, game: Game) -> None:
    right = data_of(game)
    path = written(tmp_path / "games.jsonl", right, with_seed(right, 77))
    message = r"line 2: event \d+ of \d+: expected '.*' from seed 77, got '.*'$"
    with pytest.raises(RecordError, match=message):
        load(path)
    assert load(written(path, right, right | {"seed": None}))


def test_load__checks_the_seed_of_an_unfinished_game(tmp_path: Path) -> None:
    game = Game(seed=2)
    for _ in range(9):
        game.play(game.legal_actions()[0])
    data = data_of(game)
    assert load(written(tmp_path / "games.jsonl", data))
    with pytest.raises(RecordError, match="from seed 3, got"):
        load(written(tmp_path / "games.jsonl", with_seed(data, 3)))
