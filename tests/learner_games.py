"""Reference games of one learner against an opponent, played with `Game`."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from evaluated import reach_of, terms_of, value_of
from networks import inputs_of

from tokaido_env import Game, Phase
from tokaido_env.agents import Agent, make
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.board_features import board_features_of
from tokaido_env.core.observation import N_FEATURES, SCALES, encode_game
from tokaido_env.core.rng import agent_keys, seats_of_seeds
from tokaido_env.core.rules import legal_mask, scores_of
from tokaido_env.features.afterstate_observation import AFTERSTATE_INPUTS, GEOMETRY, N_AFTERSTATE
from tokaido_env.features.afterstates import Afterstates, afterstates_of
from tokaido_env.features.lookahead_features import N_LOOKAHEAD
from tokaido_env.features.network_inputs import N_INPUTS, TERM_SCALES
from tokaido_env.features.terms import N_TERMS

Ints = npt.NDArray[np.int64]


def drawn_seat(seed: int) -> int:
    """Return the seat of a learner with `seat="random"` in the game of a seed."""
    out = np.empty(1, np.int8)
    seats_of_seeds(np.array([seed]), out)
    return int(out[0])


class LearnerGame:
    """One game played with `Game`: the learner's actions, each followed by the opponent's.

    Attributes:
        decisions: number of decisions in the game; `length` of them were the learner's.
    """

    def __init__(self, seed: int, seat: int, opponent: Agent, board: Any = "shikoku") -> None:
        self.game = Game(board, seed=seed)
        self.seed, self.seat, self.opponent = seed, seat, opponent
        self.decisions = self.length = 0
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
    """Return the reward of a seat; 0 before the end."""
    if not game.is_over:
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
    if observation in ("afterstates", "geometry"):
        expected = expected_afterstates(boards, states, seat)
        if observation == "geometry":
            return _geometry(expected["observation"], scores_of(boards, states, 0), seat)
        return as_lists(expected)
    encode_game(boards, states, 0, seat, flat)
    if observation == "uint8":
        flat = np.rint(flat * SCALES)
    block = board_features_of(boards, observation)[0].tolist() if see_board else []
    return [*flat.tolist(), *block]


def expected_afterstates(boards: Any, states: Any, seat: int) -> dict[str, Any]:
    """Return the afterstate observation of a seat from `encode_positions` and afterstates.

    The inputs have the view of the seat that decides or picks. The other's view has the blocks of
    both players exchanged, the results of endings negated, and nothing about actions.
    """
    flat, inputs = np.empty(N_FEATURES, np.float32), np.zeros(N_INPUTS, np.float32)
    mask = np.zeros(N_ACTIONS, np.int8)
    actions = np.zeros((N_ACTIONS, N_AFTERSTATE), np.float32)
    encode_game(boards, states, 0, seat, flat)
    if states["phase"][0] not in (Phase.SETUP, Phase.OVER):
        (inputs,) = inputs_of(boards, states)
        if inputs[0] != seat:  # FEATURES begins with the seat
            inputs = _exchanged(inputs)
        elif legal := legal_mask(boards, states, 0):
            after = _afterstates(boards, states, legal)
            for i, action in enumerate(after.action):
                mask[action] = 1
                actions[action] = _described(boards, after, i, seat)
    inputs[:N_FEATURES] = flat
    return {
        "observation": inputs,
        "actions": actions,
        "action_mask": mask,
    }


def _geometry(inputs: npt.NDArray[np.float32], points: Any, seat: int) -> list[float]:
    """Return the numbers of the geometry, by name, from the inputs of networks and the scores."""
    numbers = {each.name: inputs[each.slice] for each in AFTERSTATE_INPUTS}
    numbers["my_points"] = np.array(points[seat]) / 4
    numbers["their_points"] = np.array(points[1 - seat]) / 4
    return [number for each in GEOMETRY for number in numbers[each.name].tolist()]


def _exchanged(inputs: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the inputs of the other seat, but for the observation."""
    blocks = np.cumsum([N_FEATURES, N_TERMS, N_TERMS, N_LOOKAHEAD, N_LOOKAHEAD])
    flat, mine, theirs, my_looks, their_looks, endings = np.split(inputs, blocks)
    endings = endings[[2, 3, 0, 1]] * np.float32([-1, 1, -1, 1])
    return np.concatenate([flat, theirs, mine, their_looks, my_looks, endings])


def _afterstates(boards: Any, states: Any, legal: int) -> Afterstates:
    mask, which = np.array([legal], np.uint64), np.zeros(1, np.int64)
    return afterstates_of(boards, which, states, mask, inputs=None, margin=False)


def _described(boards: Any, after: Afterstates, i: int, seat: int) -> Any:
    """Return the features of an afterstate, after its best effect by the heuristic."""
    sign, states = np.float32(1 - 2 * seat), after.states[i : i + 1]
    leaves = states
    if states["phase"][0] == Phase.EFFECT:
        leaves = _afterstates(boards, states, int(after.legal[i])).states
    values = [sign * np.float32(value_of(leaves[j : j + 1], boards)) for j in range(len(leaves))]
    best = int(np.argmax(values))
    terms, _ = terms_of(leaves[best : best + 1], boards)
    ahead = terms[seat].astype(int) - terms[1 - seat]
    features = [ahead.astype(np.float32) * TERM_SCALES, reach_of(states, boards, seat)]
    return np.concatenate(features)


def as_lists(observation: Any) -> Any:
    """Return an observation as lists, which `==` compares as a whole."""
    if isinstance(observation, dict):
        return {name: array.tolist() for name, array in observation.items()}
    return observation.tolist()
