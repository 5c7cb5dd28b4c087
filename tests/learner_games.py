"""Reference games of one learner against an opponent, played with `Game`."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from networks import inputs_of

from tokaido_env import Game, Phase
from tokaido_env.agents import Agent, make
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.bitmask import actions_of
from tokaido_env.core.board_features import board_features_of
from tokaido_env.core.entities import board_entities, encode_entities_of_game, entity_arrays
from tokaido_env.core.observation import N_FEATURES, SCALES, encode_game
from tokaido_env.core.rng import agent_keys
from tokaido_env.core.rules import legal_mask
from tokaido_env.features.eval_tables import N_TERMS
from tokaido_env.features.lookahead_features import N_LOOKAHEAD
from tokaido_env.features.network_inputs import N_AFTERSTATE, N_INPUTS

Ints = npt.NDArray[np.int64]


class LearnerGame:
    """One game played with `Game`: the learner's actions, each followed by the opponent's.

    Attributes:
        decisions: number of decisions in the game; `length` of them were the learner's.
        moments: counts of "learner again" and "opponent again" (a second decision in a row), and
            of "learner returns" and "opponent returns" (a ware, inside the other's pick).
    """

    def __init__(self, seed: int, seat: int, opponent: Agent, board: Any = "shikoku") -> None:
        self.game = Game(board, seed=seed)
        self.seed, self.seat, self.opponent = seed, seat, opponent
        self.decisions = self.length = 0
        self.moments: Counter[str] = Counter()
        self._last: int | None = None
        self._play_opponent()

    def play(self, action: int) -> None:
        assert self.game.player == self.seat
        self.length += 1
        self._decide(action)
        self._play_opponent()

    def observation(self) -> list[float]:
        observation: list[float] = expected_observation(
            self.game.boards, self.game.states, self.seat
        )
        return observation

    def reward(self, kind: str = "win") -> float:
        """Return the learner's reward, 0 before the end."""
        return reward_of(self.game, self.seat, kind)

    def _play_opponent(self) -> None:
        key = np.empty(1, np.uint64)
        while self.game.player == 1 - self.seat:
            seats, numbers = np.array([1 - self.seat], np.int8), np.array([self.decisions])
            agent_keys(np.array([self.seed]), seats, numbers, key)
            legal = np.array([self.game.legal_mask], np.uint64)
            actions = self.opponent.act(self.game.boards, self.game.state, legal, key)
            self._decide(int(actions[0]))

    def _decide(self, action: int) -> None:
        role = "learner" if self.game.player == self.seat else "opponent"
        self.moments[f"{role} again"] += self._last == self.game.player
        if self.game.phase == Phase.DISCARD:
            self.moments[f"{role} returns"] += picker(self.game.to_dict()) != self.game.player
        self._last = self.game.player
        self.decisions += 1
        self.game.play(action)


class CountingAgent:
    """Plays like another agent, but never inside the kernel; counts decisions and calls."""

    spec = "recorder"

    def __init__(self, agent: str = "random") -> None:
        self.agent = make(agent)
        self.decisions = self.calls = 0

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> Ints:
        self.decisions += len(states)
        self.calls += 1
        return self.agent.act(boards, states, legal, keys)


def reward_of(game: Game, seat: int, kind: str = "win") -> float:
    """Return the reward of a seat; 0 before the end and at the cap."""
    if game.end != "triggers":
        return 0.0
    if kind == "margin":
        totals = [score["total"] for score in game.scores()]
        return max(-1.0, min(1.0, (totals[seat] - totals[1 - seat]) / 100))
    return {None: 0.0, seat: 1.0}.get(game.winner(), -1.0)


def picker(position: Mapping[str, Any]) -> int:
    """Return the seat that picks: the roller takes the first and the last of three dice (R2.1)."""
    dice = len(position["dice_left"]) + (position["die"] is not None)
    return int(position["lead"]) ^ (dice == 2)


def random_legal_actions(masks: npt.NDArray[Any], rng: np.random.Generator) -> Ints:
    """Return a random legal action per mask (one mask or rows), 0 if nothing is legal."""
    chosen: Ints = np.where(masks, rng.random(masks.shape), -1.0).argmax(axis=-1)
    return chosen


def expected_observation(
    boards: Any, states: Any, seat: int, observation: str = "float32", see_board: bool = False
) -> Any:
    """Return the expected observation of a seat of one game: `BOARD` (1,), `STATE` (1,)."""
    flat = np.empty(N_FEATURES, np.float32)
    if observation == "afterstates":
        return as_lists(expected_afterstates(boards, states, seat))
    if observation == "entities":
        (row,) = board_entities(boards)
        encode_entities_of_game(boards, states, 0, seat, flat, row)
        return as_lists(entity_arrays(row))
    encode_game(boards, states, 0, seat, flat)
    if observation == "uint8":
        flat = np.rint(flat * SCALES)
    block = board_features_of(boards, observation)[0].tolist() if see_board else []
    return [*flat.tolist(), *block]


def expected_afterstates(boards: Any, states: Any, seat: int) -> dict[str, Any]:
    """Return the afterstate observation of a seat from `encode_positions`.

    That has the view of the seat that decides or picks. The other's view has the blocks of both
    players exchanged, the results of endings negated, and nothing about actions.
    """
    flat, inputs = np.empty(N_FEATURES, np.float32), np.zeros(N_INPUTS, np.float32)
    actions, mask = np.zeros((N_ACTIONS, N_AFTERSTATE), np.float32), np.zeros(N_ACTIONS, np.int8)
    encode_game(boards, states, 0, seat, flat)
    if states["phase"][0] not in (Phase.SETUP, Phase.OVER):
        legal = legal_mask(boards, states, 0)
        (inputs,), rows = inputs_of(boards, states, np.array([legal], np.uint64))
        if inputs[0] == seat:  # FEATURES begins with the seat
            actions[actions_of(legal)] = rows
            mask[actions_of(legal)] = 1
        else:
            (mine,) = inputs[None].copy()
            ends = N_INPUTS - 4
            terms, looks = N_FEATURES + N_TERMS, ends - N_LOOKAHEAD
            first_look = ends - 2 * N_LOOKAHEAD
            inputs[N_FEATURES:terms] = mine[terms : terms + N_TERMS]
            inputs[terms : terms + N_TERMS] = mine[N_FEATURES:terms]
            inputs[terms + N_TERMS : first_look] = 0
            inputs[first_look:looks], inputs[looks:ends] = mine[looks:ends], mine[first_look:looks]
            inputs[ends:] = mine[ends:][[2, 3, 0, 1]] * [-1, 1, -1, 1]
    inputs[:N_FEATURES] = flat
    return {"observation": inputs, "actions": actions, "action_mask": mask}


def as_lists(observation: Any) -> Any:
    """Return an observation as lists, which `==` compares as a whole."""
    if isinstance(observation, dict):
        return {name: array.tolist() for name, array in observation.items()}
    return observation.tolist()
