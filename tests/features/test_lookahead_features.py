"""Look-ahead features against the naive reference's board and plain sums."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from learner_games import picker
from naive_reach import KINDS, NaiveReach
from networks import inputs_of, random_play
from reference import COASTAL, Board as NaiveBoard

from tokaido_env import Batch, Board, Game
from tokaido_env.core.constants import CHARACTERS
from tokaido_env.core.observation import N_FEATURES
from tokaido_env.core.state import CHANCE_PHASES, Phase
from tokaido_env.features.lookahead_features import N_LOOKAHEAD, N_REACH
from tokaido_env.features.network_inputs import encode_positions
from tokaido_env.features.terms import N_TERMS

POINTS = 16

LOOKAHEAD_AT = N_FEATURES + 2 * N_TERMS


class Naive(NaiveReach):
    """Computes all features of a seat."""

    def features(self) -> list[float]:
        """Return the features in the order of `LOOKAHEAD`."""
        by_next = np.zeros(N_REACH)
        for column, character in enumerate(CHARACTERS):
            for face in self.board.faces[character]:
                by_next += self.reach(column, face)
        scales = np.array([1] * 5 + [4] + [4] * 4 + [10, 4] + [1] * 4 + [5])
        now = np.zeros(N_REACH)
        for column, character in enumerate(CHARACTERS):
            if character in self.position["dice_left"]:
                now += self.reach(column, self.position["dice"][character])
        numbers = [*(by_next / scales / 6), *(now / scales)]
        stations = [self.station(step) for step in range(1, 9)]
        numbers += [float(kind == each) for kind, _ in stations for each in range(5)]
        numbers += [coins / 4 for _, coins in stations]
        for die in range(1, 7):
            both = np.zeros(N_REACH)
            for column in (1, 2):
                if die in self.board.faces[CHARACTERS[column]]:
                    both += self.reach(column, die)
            numbers += [*(both / scales)[6:]]
        return numbers + self.steps()

    def reach(self, character: int, die: int) -> npt.NDArray[np.float64]:
        """Return the raw reach features of one character with a die."""
        out = np.zeros(N_REACH)
        if character == 0:
            kind, coins = self.station(die)
            out[kind] = 1
            out[5] = coins
        elif character == 1:
            out[6:12] = self.market(die)
        else:
            out[12:17] = self.areas(die)
        return out

    def steps(self) -> list[float]:
        """Return the points of the next steps of the tracks and of all steps left."""
        board, mine = self.board, self.mine
        temples, gardens = [0, *board.temple, None], [0, *board.garden, None]
        temple, garden = temples[mine["temple"]], gardens[mine["garden"]]
        next_temple, next_garden = temples[mine["temple"] + 1], gardens[mine["garden"] + 1]
        points = [0 if next_temple is None else (next_temple - temple) * garden]
        points.append(0 if next_garden is None else (next_garden - garden) * temple)
        for track, at, count in ((board.culture, "gifted", 3), (board.commerce, "gold", 2)):
            gains = [*np.diff(track), *[0] * count]
            points += gains[mine[at] : mine[at] + count]
        coins = 10 - mine["coins"] if mine["gold"] < 6 else 0
        tracks = (board.culture, mine["gifted"]), (board.commerce, mine["gold"])
        left = [track[-1] - track[at] for track, at in tracks]
        kinds = [0 if name in COASTAL else KINDS.index(name) for name in board.ring]
        ring = [kinds.count(kind) / 16 for kind in range(5)]
        return [
            *(each / POINTS for each in points),
            coins / 10,
            *(each / 64 for each in left),
            *ring,
        ]


def positions_of(board: str, games: int = 6) -> Iterator[Game]:
    """Yield positions of random games, of each phase but the set-up."""
    for game, rng in random_play(board, games):
        share = 0.1 if game.phase in CHANCE_PHASES else 0.05
        if game.phase != Phase.SETUP and rng.random() < share:
            yield game.copy()


@pytest.mark.parametrize("name", ["shikoku", "shikoku_remix", "shikoku_dice", 7, 1_000_003])
def test_lookahead__agrees_with_the_reference(name: str | int, tmp_path: Path) -> None:
    path = tmp_path / "board.toml"
    (Board.load(name) if isinstance(name, str) else Board.generate(name)).save(path)
    board, phases = NaiveBoard(path), set()
    for game in positions_of(str(path)):
        (inputs,) = inputs_of(game.boards, game.state)
        at_chance = game.phase in CHANCE_PHASES
        position = game.to_dict()
        seat = picker(position) if at_chance else game.player
        for viewer, first in ((seat, LOOKAHEAD_AT), (1 - seat, LOOKAHEAD_AT + N_LOOKAHEAD)):
            expected = Naive(board, position, viewer).features()
            np.testing.assert_allclose(inputs[first : first + N_LOOKAHEAD], expected, atol=1e-6)
        phases.add(game.phase)
    assert phases >= {Phase.ROLL, Phase.MOVE, Phase.EFFECT, Phase.DRAW, Phase.REVEAL}


def test_encode_positions__fills_up_to_a_multiple_of_rows_with_zeros() -> None:
    batch = Batch(5, observation=None)
    batch.reset(seed=1)
    boards = batch.boards_of(np.arange(1))
    args = boards, np.zeros(5, np.int64), batch.states
    padded, unpadded = encode_positions(*args, step=16), encode_positions(*args)
    assert len(padded) == 16
    assert (padded[:5] == unpadded).all()
    assert not padded[5:].any()
