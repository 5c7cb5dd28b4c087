"""Tests of observations: their layout, a decoder written from the table, no hidden facts."""

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from positions import (
    SIDES,
    WARES,
    Position,
    game_at,
    other_board_data,
    random_move,
    random_position,
    random_walk,
    write_board,
)

from tokaido_env import Board, Game
from tokaido_env.core.constants import AREAS, CHARACTERS, COASTAL_TOWNS, ICONS, TOWNS
from tokaido_env.core.jit import INTERPRETED
from tokaido_env.core.observation import FEATURES, N_FEATURES, Feature, encode_game
from tokaido_env.core.state import Phase

Vector = npt.NDArray[np.float32]


def observe(game: Game, seat: int) -> Vector:
    out = np.full(N_FEATURES, 9, np.float32)  # must be overwritten
    encode_game(game.board.record, game.state, 0, seat, out)
    return out


def many_games() -> Iterator[Game]:
    """Yield thousands of positions: those of random games, and random positions."""
    for seed in range(1 if INTERPRETED else 4):
        rng = random.Random(seed)
        game = Game(chance="explicit")
        while not game.is_over:
            yield game
            game.play(random_move(game, rng))
        yield game
    for seed in range(100 if INTERPRETED else 600):
        yield Game.from_dict(random_position(random.Random(seed)), chance="explicit")
    yield game_at(phase="OVER", left=[], round=200, end="cap")


def numbers(vector: Vector, feature: Feature) -> list[int]:
    """Return the raw values of a feature; assert that they are whole numbers."""
    raw = vector[feature.start : feature.start + feature.size] * feature.scale
    whole = np.rint(raw)
    assert np.abs(raw - whole).max() < 1e-4, feature.name
    values: list[int] = whole.astype(int).tolist()
    return values


# A decoder, written from the table's meanings alone.


class Decoder:
    """Reads a position from an observation."""

    def __init__(self, vector: Vector, board: Board) -> None:
        self.board = board
        self.values = {feature.name: numbers(vector, feature) for feature in FEATURES}
        self.seat = self.number("seat")

    def number(self, name: str) -> int:
        (value,) = self.values[name]
        return value

    def pick(self, name: str, names: Any, part: slice = slice(None)) -> Any:
        """Return the name with a set bit in a one-hot feature, None for none."""
        bits = self.values[name][part]
        assert set(bits) <= {0, 1}
        assert sum(bits) <= 1
        return names[bits.index(1)] if any(bits) else None

    def counts(self, name: str, names: Any) -> dict[str, int]:
        return dict(zip(names, self.values[name], strict=True))

    def seat_of(self, name: str, part: slice = slice(None)) -> int | None:
        """Return the seat of a one-hot of mine and theirs."""
        chosen: int | None = self.pick(name, (self.seat, 1 - self.seat), part)
        return chosen

    def position(self) -> Position:
        phases = [phase.name for phase in Phase]
        dice = [self.pick("dice", range(1, 7), slice(6 * i, 6 * i + 6)) for i in range(3)]
        left = zip(CHARACTERS, self.values["dice_left"], strict=True)
        return {
            "board": self.board.name,
            "phase": self.pick("phase", phases),
            "player": self.seat_of("decides"),
            "lead": self.seat_of("leads"),
            "round": self.number("round"),
            "dice": dict(zip(CHARACTERS, dice, strict=True)) if any(dice) else None,
            "dice_left": [character for character, is_left in left if is_left],
            "die": self.pick("die", CHARACTERS),
            "origin": self.pick("origin", AREAS),
            "pending": self.number("pending"),
            "end_triggered": bool(self.number("end_triggered")),
            "end": self.pick("end", ("triggers", "cap")),
            "boutiques": {town: self.token(i) for i, town in enumerate(COASTAL_TOWNS)},
            "bag": self.counts("bag", WARES),
            "hot_spring": self.seat_of("hot_spring"),
            "waves": {character: self.wave(i, character) for i, character in enumerate(CHARACTERS)},
            "players": [self.player("my" if s == self.seat else "their") for s in (0, 1)],
        }

    def token(self, coast: int) -> list[Any] | None:
        ware = self.pick("boutique_ware", list(WARES), slice(4 * coast, 4 * coast + 4))
        price = self.values["boutique_price"][coast]
        assert (ware is None) == (price == 0)
        return ware and [ware, price]

    def wave(self, i: int, character: str) -> dict[str, Any]:
        part = slice(2 * i, 2 * i + 2)
        return {
            "side": self.pick("wave_side", SIDES[character], part),
            "owner": self.seat_of("wave_owner", part),
        }

    def player(self, prefix: str) -> dict[str, Any]:
        easel = [
            self.pick(f"{prefix}_easel", ICONS, slice(4 * place, 4 * place + 4))
            for place in range(10)
        ]
        coins = self.number(f"{prefix}_coins") + self.number(f"{prefix}_coins_beyond")
        pegs = ("temple", "garden", "gold", "gifted")
        return {
            "pilgrim": self.pick(f"{prefix}_pilgrim", range(40)),
            "merchant": self.pick(f"{prefix}_merchant", TOWNS),
            "artist": self.pick(f"{prefix}_artist", AREAS),
            "wares": self.counts(f"{prefix}_wares", WARES),
            "hidden": self.counts(f"{prefix}_hidden", ICONS),
            "easel": [icon for icon in easel if icon],
            "coins": coins,
            **{key: self.number(f"{prefix}_{key}") for key in pegs},
        }


def test_encode__can_be_decoded_from_either_seat() -> None:
    phases = set()
    for game in many_games():
        for seat in (0, 1):
            decoder = Decoder(observe(game, seat), game.board)
            assert decoder.seat == seat
            assert decoder.position() == game.to_dict()
        phases.add(game.phase)
    assert phases == set(Phase)


def test_encode__can_be_decoded_on_another_board(tmp_path: Any) -> None:
    path = write_board(tmp_path / "other.toml", other_board_data())
    for seed in range(15):
        game = random_walk(seed, 10 * seed, path)
        for seat in (0, 1):
            assert Decoder(observe(game, seat), game.board).position() == game.to_dict()
