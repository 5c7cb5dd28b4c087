"""Fuzz cases of positions, as dictionaries and from JSON: played to the end, or refused."""

import json
import random
from collections.abc import Callable
from typing import Any

import mutants
from fuzz import Cases, allow_refusal, check_message
from garbage import check
from positions import (
    WARES,
    other_board_data,
    random_move,
    random_phase,
    random_position,
    random_walk,
    shikoku_data,
    write_board,
)

from tokaido_env import Board, BoardError, Game, PositionError
from tokaido_env.aec import env
from tokaido_env.batch import Batch
from tokaido_env.core.arguments import plain_data
from tokaido_env.files import parse_json
from tokaido_env.gym import TokaidoDuoEnv, TokaidoDuoVectorEnv
from tokaido_env.record import Record, RecordError, replay
from tokaido_env.render import ansi, svg
from tokaido_env.single_agent import SingleAgentBatch

WALKS = 12  # of each board
STEPS = 900


class Positions(Cases):
    """Positions of random games on three boards, and random positions."""

    def set_up(self) -> None:
        short = shikoku_data() | {"name": "short", "max_rounds": 7}
        other = write_board(self.folder / "other.toml", other_board_data())
        paths = ["shikoku", other, write_board(self.folder / "short.toml", short)]
        self.boards = [Board.load(path) for path in paths]
        self.batches = [Batch(1, board, autoreset=False) for board in self.boards]
        self.positions = [_positions_of_games(board) for board in self.boards]

    def check_valid(self) -> None:
        for which, positions in enumerate(self.positions):
            for given in positions[:: len(positions) // 40]:
                assert self._try(which, given, random.Random(0))
        for which, board in enumerate(self.boards):
            for start_from in STARTS.values():
                start_from(board, self.positions[which][0])
            _draw(Game(board, seed=0))  # the layout of a board is cached

    def case(self, rng: random.Random) -> bool:
        which = rng.choices((0, 1, 2), (4, 2, 1))[0]
        given = self._damaged(which, rng)
        if rng.random() < 0.02:
            self._compare_all(which, given)
        return self._try(which, given, rng)

    def _damaged(self, which: int, rng: random.Random) -> Any:
        right = rng.choice(self.positions[which])
        if which == 0 and rng.random() < 0.3:
            right = random_position(rng)
            if rng.random() < 0.8:
                right = random_phase(right, rng)
        how = rng.random()
        if how < 0.2:
            return _with_part_of_other(right, rng.choice(self.positions[which]), rng)
        if how < 0.3:
            return _with_changed_player(right, rng)
        if how < 0.6:
            return mutants.mutated_tree(rng, right, rng.choice((1, 3)))
        if how < 0.75:
            return mutants.with_lookalikes(rng, right)
        if how < 0.995:
            return _from_json(mutants.mutated_json(rng, right))
        return right | rng.choice(HUGE)

    def _try(self, which: int, given: Any, rng: random.Random) -> bool:
        """Make a game from a position; if it is taken, check it and play on."""
        board, named = self.boards[which], which == 0 and rng.random() < 0.2
        with allow_refusal(PositionError, *((BoardError,) if named else ())) as messages:
            game = Game.from_dict(given, board=None if named else board, chance="explicit")
        if messages:
            check_refused(messages[0])
            return False
        assert _canonical(game.to_dict()) == _canonical(given)
        self._play(which, game, rng)
        return True

    def _play(self, which: int, game: Game, rng: random.Random) -> None:
        """Play to the end in a batch; sometimes draw, and replay the record of a game."""
        batch = self.batches[which]
        batch.reset(rng.randrange(1000), game.states)
        if rng.random() < 0.2:
            check(batch)
        turn = batch.finish(rng.choice(("random", "greedy")))
        assert batch.over.all()
        assert turn.observation.min() >= 0
        assert turn.observation.max() <= 1
        if rng.random() < 0.05:
            check(batch)
        if rng.random() < 0.02:
            _draw(game)
        if rng.random() < 0.05:
            while not game.is_over:
                game.play(random_move(game, rng))
            replay(Record.from_json(game.record().to_json()), game.board)
            assert Game.from_dict(game.to_dict(), board=game.board) == game

    def _compare_all(self, which: int, given: Any) -> None:
        """Check that all objects that start from positions agree."""
        if given is None or isinstance(given, list | tuple):  # none, or one for each game
            return
        board, messages_of = self.boards[which], {}
        for name, start_from in STARTS.items():
            with allow_refusal(PositionError) as messages:
                start_from(board, given)
            messages_of[name] = messages
        assert len({bool(messages) for messages in messages_of.values()}) == 1, messages_of


def _draw(game: Game) -> None:
    svg.draw(game.scene())
    ansi.draw(game.scene())


def _positions_of_games(board: Board) -> list[dict[str, Any]]:
    """Return positions in all phases, early and late."""
    found = []
    for seed in range(WALKS):
        rng, game = random.Random(seed), random_walk(seed, 0, board)
        for _ in range(STEPS):
            if game.is_over:
                break
            if rng.random() < 0.2:
                found.append(game.to_dict())
            game.play(random_move(game, rng))
        found.append(game.to_dict())
    return found


def _with_part_of_other(given: dict[str, Any], other: dict[str, Any], rng: random.Random) -> Any:
    """Return a position with a key, or a player, of another one."""
    if rng.random() < 0.3:
        return given | {"players": [given["players"][0], other["players"][1]]}
    keys = rng.sample(sorted(given), rng.randint(1, 2))
    return given | {key: other[key] for key in keys}


def _with_changed_player(given: dict[str, Any], rng: random.Random) -> Any:
    """Return a position with plausible changes of a player's pegs, coins and wares."""
    seat = rng.randrange(2)
    player = dict(given["players"][seat])
    ware = rng.choice(sorted(WARES))
    moved = rng.choice((-1, 1, 2))
    player |= {"temple": rng.randint(1, 8), "garden": rng.randint(1, 5)}
    player |= {"coins": rng.choice((0, 9, 10, 63, 64)), "gold": rng.choice((0, 5, 6))}
    player["wares"] = player["wares"] | {ware: player["wares"][ware] + moved}
    players = [player if i == seat else each for i, each in enumerate(given["players"])]
    bag = given["bag"] | {ware: given["bag"][ware] - moved}
    return given | {"players": players, "bag": bag, "end_triggered": player["gold"] == 6}


def _from_json(line: bytes) -> Any:
    """Return the value of a JSON text, None if it is invalid."""
    with allow_refusal(ValueError):
        return parse_json(line.decode(errors="replace"))
    return None


HUGE: tuple[dict[str, Any], ...] = (
    {"players": [{}] * 10**6},
    {"dice_left": ["artist"] * 10**6},
    {"boutiques": {str(i): None for i in range(10**5)}},
    {"board": "x" * 10**7},
    {"phase": list(range(10**6))},
    {"round": 10**4000},
    {"x" * 10**6: 1},
    {"board": mutants.deep_list(900)},
)


def check_refused(message: str) -> None:
    """Check that a refusal names the key and the expected value."""
    assert "expected" in message, message
    where, _, _ = message.partition(": expected")
    assert any(key in where for key in KEYS), message


KEYS = (
    *("the position", "board", "phase", "player", "lead", "round", "dice", "die", "origin"),
    *("pending", "end", "boutiques", "bag", "hot_spring", "waves", "merchant"),
)


def _canonical(given: Any) -> str:
    """Return JSON with sorted dice."""
    position = plain_data(given)
    return json.dumps(position | {"dice_left": sorted(position["dice_left"])}, sort_keys=True)


def _start_record(board: Board, given: Any) -> None:
    fields = Game(board, seed=1).record().__dict__ | {"start": given, "events": (), "seed": None}
    try:
        replay(Record(**fields), board)
    except RecordError as error:
        if str(error).startswith("start: "):
            raise PositionError(str(error)) from None
        check_message(str(error))


STARTS: dict[str, Callable[[Board, Any], object]] = {
    "Game": lambda board, given: Game.from_dict(given, board=board),
    "Batch": lambda board, given: Batch(2, board).reset(0, [given, given]),
    "SingleAgentBatch": lambda board, given: SingleAgentBatch(1, "random", board=board).reset(
        0, given
    ),
    "env": lambda board, given: env(board).reset(0, {"state": given}),
    "Gymnasium": lambda board, given: TokaidoDuoEnv("random", board=board).reset(
        seed=0, options={"state": given}
    ),
    "Gymnasium vector": lambda board, given: TokaidoDuoVectorEnv(2, board=board).reset(
        seed=0, options={"state": given}
    ),
    "record": _start_record,
}
