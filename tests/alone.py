"""Games played alone: what environments of one learner against opponents are compared with."""

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
from positions import Position

from tokaido_env import Game, Phase
from tokaido_env.agents import Agent, make
from tokaido_env.core.actions import IDS
from tokaido_env.core.bitmask import actions_of
from tokaido_env.core.board_features import board_blocks
from tokaido_env.core.entities import board_entities, encode_entities_of_game, entity_arrays
from tokaido_env.core.observation import N_FEATURES, SCALES, encode_game
from tokaido_env.core.rng import agent_keys

Ints = npt.NDArray[np.int64]


class Alone:
    """One game played with `Game`: the learner's actions, and the opponent's answers to each.

    Attributes:
        decisions: how many the game has seen; `length` of them were the learner's.
        moments: how often "learner" or "opponent" decided "again", right after a decision of its
            own, or had to return a ware ("returns") inside the pick of the other.
    """

    def __init__(
        self,
        seed: int,
        seat: int,
        opponent: Agent,
        position: Position | None = None,
        board: Any = "shikoku",
    ) -> None:
        if position is None:
            self.game = Game(board, seed=seed)
        else:
            self.game = Game.from_dict(position, seed=seed, chance="sampled")
        self.seed, self.seat, self.opponent = seed, seat, opponent
        self.decisions = self.length = 0
        self.moments: Counter[str] = Counter()
        self._last: int | None = None
        self._answer()

    def play(self, action: int) -> None:
        assert self.game.player == self.seat
        self.length += 1
        self._decide(action)
        self._answer()

    def observation(self) -> list[float]:
        seen: list[float] = seen_by(self.game.boards, self.game.states, self.seat)
        return seen

    def reward(self, kind: str = "win") -> float:
        """What the game has brought the learner, 0 while it runs."""
        if self.game.end != "triggers":
            return 0.0
        if kind == "margin":
            totals = [score["total"] for score in self.game.scores()]
            return max(-1.0, min(1.0, (totals[self.seat] - totals[1 - self.seat]) / 100))
        return {None: 0.0, self.seat: 1.0}.get(self.game.winner(), -1.0)

    def _answer(self) -> None:
        key = np.empty(1, np.uint64)
        while self.game.player == 1 - self.seat:
            seats, numbers = np.array([1 - self.seat], np.int8), np.array([self.decisions])
            agent_keys(np.array([self.seed]), seats, numbers, key)
            legal = np.array([self.game.legal_mask], np.uint64)
            actions = self.opponent.act(self.game.boards, self.game.state, legal, key)
            self._decide(int(actions[0]))

    def _decide(self, action: int) -> None:
        who = "learner" if self.game.player == self.seat else "opponent"
        self.moments[f"{who} again"] += self._last == self.game.player
        if self.game.phase == Phase.DISCARD:
            self.moments[f"{who} returns"] += picker(self.game) != self.game.player
        self._last = self.game.player
        self.decisions += 1
        self.game.play(action)


class Recorder:
    """Plays like another agent, never inside the kernel; counts decisions and calls for them."""

    spec = "recorder"

    def __init__(self, agent: str = "random") -> None:
        self.agent = make(agent)
        self.asked = self.calls = 0

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> Ints:
        self.asked += len(states)
        self.calls += 1
        return self.agent.act(boards, states, legal, keys)


class Scripted:
    """Plays the first of some actions that is legal, else the lowest one; notes what it played."""

    spec = "scripted"

    def __init__(self, *labels: str) -> None:
        self.wishes = [IDS[label] for label in labels]
        self.played: list[int] = []

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> Ints:
        choices = [actions_of(int(mask)) for mask in legal]
        chosen = [next((a for a in self.wishes if a in mine), mine[0]) for mine in choices]
        self.played += chosen
        return np.array(chosen)


def picker(game: Game) -> int:
    """Whose pick it is: of three dice the roller takes the first and the last (R2.1)."""
    position = game.to_dict()
    dice = len(position["dice_left"]) + (position["die"] is not None)
    return int(position["lead"]) ^ (dice == 2)


def random_legal(masks: npt.NDArray[Any], rng: np.random.Generator) -> Ints:
    """A legal action for each mask (one, or rows of them); action 0 where there is none."""
    chosen: Ints = np.where(masks, rng.random(masks.shape), -1.0).argmax(axis=-1)
    return chosen


def seen_by(
    boards: Any, states: Any, seat: int, observation: str = "float32", see_board: bool = False
) -> Any:
    """What a seat of one game should see, from the encoders of one: `BOARD` (1,), `STATE` (1,)."""
    flat = np.empty(N_FEATURES, np.float32)
    if observation == "entities":
        (row,) = board_entities(boards)
        encode_entities_of_game(boards, states, 0, seat, flat, row)
        return as_lists(entity_arrays(row))
    encode_game(boards, states, 0, seat, flat)
    if observation == "uint8":
        flat = np.rint(flat * SCALES)
    block = board_blocks(boards, observation)[0].tolist() if see_board else []
    return [*flat.tolist(), *block]


def as_lists(seen: Any) -> Any:
    """An observation that `==` compares whole."""
    if isinstance(seen, dict):
        return {name: array.tolist() for name, array in seen.items()}
    return seen.tolist()
