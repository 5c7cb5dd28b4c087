"""One game, whatever it is played through: same seed and same actions, same positions and ends."""

import itertools
import random
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
import pytest

from tokaido_env import Batch, Game, env
from tokaido_env.core.actions import IDS
from tokaido_env.core.luck import episode_seed

SEEDS = (3, 2**53 - 9, 41)
BOARDS = ("shikoku", "family:train/50")


class Script:
    """A game that was played alone at random: who chose what where, and how it ended."""

    def __init__(self, seed: int, board: str) -> None:
        rng = random.Random(seed)
        self.game, self.board = Game(board, seed=seed), board
        self.positions: list[bytes] = []
        self.players: list[int] = []
        self.actions: list[int] = []
        while not self.game.is_over:
            assert self.game.player is not None
            self.positions.append(self.game.states.tobytes())
            self.players.append(self.game.player)
            self.actions.append(rng.choice(self.game.legal_actions()))
            self.game.play(self.actions[-1])
        winner = self.game.winner()
        self.rewards = [
            0.0 if winner is None else 1.0 if winner == seat else -1.0 for seat in (0, 1)
        ]

    def of(self, seat: int) -> list[int]:
        return [a for p, a in zip(self.players, self.actions, strict=True) if p == seat]


class Replayer:
    """Plays what a seat played in a script, and after it what is lowest."""

    def __init__(self, script: Script, seat: int) -> None:
        self.rest = iter(script.of(seat))

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
        (mask,) = legal.tolist()
        return np.array([next(self.rest, (mask & -mask).bit_length() - 1)], np.int64)


@pytest.fixture(
    params=itertools.product(SEEDS, BOARDS),
    ids=lambda param: f"seed {param[0]} on {param[1]}",
    scope="module",
)
def script(request: pytest.FixtureRequest) -> Script:
    return Script(*request.param)


def test_pettingzoo(script: Script) -> None:
    e = env(script.board)
    e.reset(seed=script.game.seed)
    assert e.infos["player_1"]["board"] == script.game.board.name
    for position, player, action in zip(
        script.positions, script.players, script.actions, strict=True
    ):
        assert e.agent_selection == f"player_{player}"
        assert e.game.states.tobytes() == position
        e.step(action)
    assert e.game == script.game
    assert [e.rewards[agent] for agent in ("player_0", "player_1")] == script.rewards


@pytest.mark.parametrize("place", [0, 2])
def test_a_batch(script: Script, place: int) -> None:
    assert script.game.seed is not None
    batch = Batch(3, script.board, autoreset=False)
    batch.reset(seed=script.game.seed - place)
    here = np.array([place])
    assert batch.pool[batch.slots["board"][place]] == script.game.board
    for position, player, action in zip(
        script.positions, script.players, script.actions, strict=True
    ):
        assert batch.states["player"][place] == player
        assert batch.states[place].tobytes() == position
        batch.advance(here, [action])
    assert batch.states[place].tobytes() == script.game.states.tobytes()
    assert batch.slots["reward"][place].tolist() == script.rewards


@pytest.mark.parametrize("seat", [0, 1])
def test_gymnasium(script: Script, seat: int) -> None:
    e: Any = gymnasium.make(
        "TokaidoDuo-v0", opponent=Replayer(script, 1 - seat), seat=seat, board=script.board
    ).unwrapped
    _, info = e.reset(seed=script.game.seed)
    assert info["board"] == script.game.board.name
    for action in script.of(seat):
        assert action in np.flatnonzero(info["action_mask"])
        _, reward, terminated, _, info = e.step(action)
    assert terminated
    assert reward == script.rewards[seat]
    assert e.games.batch.states.tobytes() == script.game.states.tobytes()


@pytest.mark.parametrize("seat", [0, 1])
def test_stable_baselines(script: Script, seat: int) -> None:
    sb3 = pytest.importorskip("tokaido_env.sb3")
    assert script.game.seed is not None
    opponent = Replayer(script, 1 - seat)
    e = sb3.TokaidoVecEnv(1, opponent, script.game.seed, seat=seat, board=script.board)
    e.reset()
    for action in script.of(seat):
        _, rewards, dones, infos = e.step(np.array([action]))
    assert dones.all()
    assert rewards.tolist() == [script.rewards[seat]]
    assert infos[0]["seed"] == script.game.seed
    assert infos[0]["board"] == script.game.board.name
    assert e.games.batch.slots["seed"].tolist() == [episode_seed(script.game.seed, 1)]


def test_rllib(script: Script) -> None:
    rllib = pytest.importorskip(
        "tokaido_env.rllib", reason="RLlib is not installed", exc_type=ImportError
    )
    e = rllib.TokaidoMultiAgentEnv({"board": script.board})
    seen, infos = e.reset(seed=script.game.seed)
    assert [info["board"] for info in infos.values()] == [script.game.board.name]
    for position, player, action in zip(
        script.positions, script.players, script.actions, strict=True
    ):
        assert list(seen) == [f"player_{player}"]
        assert e.aec.game.states.tobytes() == position
        seen, rewards, ended, _, _ = e.step({f"player_{player}": action})
    assert e.aec.game == script.game
    assert ended["__all__"]
    assert rewards == {"player_0": script.rewards[0], "player_1": script.rewards[1]}


def test_openspiel(script: Script) -> None:
    pyspiel = pytest.importorskip("pyspiel")
    pytest.importorskip("tokaido_env.openspiel")
    state = pyspiel.load_game("tokaido_duo", {"board": script.game.board.name}).new_initial_state()
    played = []
    for event in script.game.record().events:
        if state.is_chance_node():
            player = state.current_player()
            outcomes = [outcome for outcome, _ in state.chance_outcomes()]
            labels = [state.action_to_string(player, outcome) for outcome in outcomes]
            state.apply_action(outcomes[labels.index(event)])
        else:
            played.append((state.current_player(), IDS[event]))
            state.apply_action(IDS[event])
    assert played == list(zip(script.players, script.actions, strict=True))
    assert state.game == script.game
    assert state.returns() == script.rewards
