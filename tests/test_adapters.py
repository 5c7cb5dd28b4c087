"""One game, whatever it is played through: same seed and same actions, same positions and ends.

What several adapters refuse alike is here too; what only one does, in the tests of that one.
"""

import random
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
import pytest
from positions import position

from tokaido_env import Batch, BoardError, Game, PositionError, SeedError, env, raw_env
from tokaido_env.agents import AgentError
from tokaido_env.core.actions import IDS
from tokaido_env.core.luck import episode_seed
from tokaido_env.gym import TokaidoDuoEnv, TokaidoDuoVectorEnv

approx = pytest.approx

GAMES: list[tuple[int, str, Any]] = [
    (3, "shikoku", "win"),
    (2**53 - 9, "family:train/50", "win"),
    (41, "shikoku", "margin"),
    (8, "family:train/50", "margin"),
    (5, "short", "margin"),  # ends at the cap
]


class Script:
    """A game that was played alone at random: who chose what where, and how it ended."""

    def __init__(self, seed: int, board: str, reward: Any) -> None:
        rng = random.Random(seed)
        self.game, self.seed, self.board, self.reward = Game(board, seed), seed, board, reward
        self.positions: list[bytes] = []
        self.players: list[int] = []
        self.actions: list[int] = []
        while not self.game.is_over:
            assert self.game.player is not None
            self.positions.append(self.game.states.tobytes())
            self.players.append(self.game.player)
            self.actions.append(rng.choice(self.game.legal_actions()))
            self.game.play(self.actions[-1])
        self.ended, self.cut = self.game.end == "triggers", self.game.end == "cap"
        first, second = (score["total"] for score in self.game.scores())
        lead: float = max(-1, min(1, (first - second) / 100))
        if reward == "win":
            lead = {0: 1, 1: -1, None: 0}[self.game.winner()]
        self.rewards = [0.0, 0.0] if self.cut else [lead, -lead]

    def of(self, seat: int) -> list[int]:
        return [a for p, a in zip(self.players, self.actions, strict=True) if p == seat]


class Replayer:
    """Plays what a seat played in a script, and after it what is lowest."""

    def __init__(self, script: Script, seat: int) -> None:
        self.rest = iter(script.of(seat))

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
        (mask,) = legal.tolist()
        return np.array([next(self.rest, (mask & -mask).bit_length() - 1)], np.int64)


@pytest.fixture(params=GAMES, ids=lambda game: "-".join(map(str, game)), scope="module")
def script(request: pytest.FixtureRequest, short: Path) -> Script:
    seed, board, reward = request.param
    return Script(seed, str(short) if board == "short" else board, reward)


def test_the_scripts_end_as_games_may() -> None:
    played = [Script(*game) for game in GAMES[:-1]]
    assert {script.rewards[0] > 0 for script in played} == {True, False}
    assert len({script.game.board.name for script in played}) == 3


def test_pettingzoo(script: Script) -> None:
    e = env(script.board, reward=script.reward)
    e.reset(seed=script.seed)
    assert e.infos["player_1"]["board"] == script.game.board.name
    for before, player, action in zip(
        script.positions, script.players, script.actions, strict=True
    ):
        assert e.agent_selection == f"player_{player}"
        assert e.game.states.tobytes() == before
        e.step(action)
    assert e.game == script.game
    assert [*e.rewards.values()] == [*e._cumulative_rewards.values()] == approx(script.rewards)
    assert {*e.terminations.values()} == {script.ended}
    assert {*e.truncations.values()} == {script.cut}


@pytest.mark.parametrize("place", [0, 2])
def test_a_batch(script: Script, place: int) -> None:
    batch = Batch(3, script.board, autoreset=False, reward=script.reward)
    batch.reset(seed=script.seed - place)
    here = np.array([place])
    assert batch.pool[batch.slots["board"][place]] == script.game.board
    for before, player, action in zip(
        script.positions, script.players, script.actions, strict=True
    ):
        assert batch.states["player"][place] == player
        assert batch.states[place].tobytes() == before
        batch.advance(here, [action])
    assert batch.states[place].tobytes() == script.game.states.tobytes()
    assert batch.slots["reward"][place].tolist() == approx(script.rewards)
    ends = batch.slots[["terminated", "truncated"]][place].tolist()
    assert ends == (script.ended, script.cut)


@pytest.mark.parametrize("seat", [0, 1])
def test_gymnasium(script: Script, seat: int) -> None:
    e: Any = gymnasium.make(
        "TokaidoDuo-v0",
        opponent=Replayer(script, 1 - seat),
        seat=seat,
        board=script.board,
        reward=script.reward,
    ).unwrapped
    _, info = e.reset(seed=script.seed)
    assert info["board"] == script.game.board.name
    for action in script.of(seat):
        assert action in np.flatnonzero(info["action_mask"])
        _, reward, *ends, info = e.step(action)
    assert ends == [script.ended, script.cut]
    assert reward == approx(script.rewards[seat])
    assert e.games.batch.states.tobytes() == script.game.states.tobytes()


@pytest.mark.parametrize("seat", [0, 1])
def test_stable_baselines(script: Script, seat: int) -> None:
    sb3 = pytest.importorskip("tokaido_env.sb3")
    e = sb3.TokaidoVecEnv(
        1,
        Replayer(script, 1 - seat),
        script.seed,
        seat=seat,
        board=script.board,
        reward=script.reward,
    )
    e.reset()
    for action in script.of(seat):
        _, rewards, dones, infos = e.step(np.array([action]))
    assert dones.all()
    assert infos[0]["TimeLimit.truncated"] == script.cut
    assert rewards.tolist() == approx([script.rewards[seat]])
    assert infos[0]["seed"] == script.seed
    assert infos[0]["board"] == script.game.board.name
    assert e.games.batch.slots["seed"].tolist() == [episode_seed(script.seed, 1)]


def test_openspiel(script: Script) -> None:
    pyspiel = pytest.importorskip("pyspiel")
    pytest.importorskip("tokaido_env.openspiel")
    board = script.board if script.cut else script.game.board.name
    params = {"board": board, "reward": script.reward}
    state, played = pyspiel.load_game("tokaido_duo", params).new_initial_state(), []
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
    assert state.returns() == approx(script.rewards)


# What several refuse alike

MAKERS: dict[str, Any] = {
    "pettingzoo": env,
    "pettingzoo raw": raw_env,
    "gymnasium": partial(TokaidoDuoEnv, "random"),
    "gymnasium vector": partial(TokaidoDuoVectorEnv, 2, "random"),
}


@pytest.mark.parametrize(
    ("seed", "options", "error", "message"),
    [
        (-1, None, (SeedError, gymnasium.error.Error), "[Ss]eed"),
        (2**53, None, SeedError, "^seed: expected an integer from 0"),
        ("7", None, SeedError, "^seed: expected an integer from 0"),
        (3, {"state": {"board": "shikoku"}}, PositionError, "expected"),
        (None, {"state": position(mine={"temple": 10})}, PositionError, "temple"),
        (None, 5, ValueError, "^options: expected None or a dict such as"),
        (None, [("state", None)], ValueError, "^options: expected None or a dict such as"),
    ],
)
@pytest.mark.parametrize("kind", MAKERS)
def test_a_wrong_reset_changes_nothing(
    kind: str, seed: Any, options: Any, error: Any, message: str
) -> None:
    both = MAKERS[kind](), MAKERS[kind]()
    for each in both:
        each.reset(seed=6)
    with pytest.raises(error, match=message):
        both[0].reset(seed=seed, options=options)
    for _ in range(2):
        played = [getattr(each, "game", None) or each.games.batch for each in both]
        assert played[0].states.tobytes() == played[1].states.tobytes()
        for each in both:
            each.reset()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"reward": "points"}, ValueError, "reward: expected one of 'win', 'margin', got 'points'"),
        ({"observation": "image"}, ValueError, "observation: expected one of .*, got 'image'"),
        ({"render_mode": "sixel"}, ValueError, "render_mode: expected one of None.*, got 'sixel'"),
        ({"board": "honshu"}, BoardError, "unknown board 'honshu': expected one of shikoku"),
        ({"opponent": "grumpy"}, AgentError, "unknown agent 'grumpy': expected one of"),
        ({"opponent": []}, ValueError, "opponents: expected one or more, got none"),
        ({"seat": 2}, ValueError, "seat: expected one of 0, 1, 'alternate', 'random', got 2"),
    ],
)
@pytest.mark.parametrize("kind", MAKERS)
def test_wrong_options_are_refused(kind: str, options: Any, error: Any, message: str) -> None:
    make = getattr(MAKERS[kind], "func", MAKERS[kind])
    if kind.startswith("pettingzoo") and {"opponent", "seat"} & options.keys():
        error, message = TypeError, "unexpected keyword"
    with pytest.raises(error, match=message):
        make(**options)


@pytest.mark.parametrize("kind", ["pettingzoo", "gymnasium"])
def test_rendering_gives_text_or_warns(kind: str) -> None:
    e, silent = MAKERS[kind](render_mode="ansi"), MAKERS[kind]()
    for each in (e, silent):
        each.reset(seed=0, options={"state": position(round=42)})
    assert "42" in e.render()
    with pytest.warns(UserWarning, match="render_mode"):
        assert silent.render() is None
