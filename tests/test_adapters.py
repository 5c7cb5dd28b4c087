"""The same games through every adapter: same seed and actions, same positions and ends."""

import hashlib
import random
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
import pytest
from learner_games import as_lists, expected_observation, reward_of
from positions import position

from tokaido_env import Batch, Game, env, raw_env
from tokaido_env.core.rng import game_seed
from tokaido_env.gym import TokaidoDuoEnv, TokaidoDuoVectorEnv
from tokaido_env.web.game_session import Session

approx = pytest.approx

GAMES: list[tuple[int, str, Any, str, bool]] = [
    (3, "shikoku", "win", "float32", False),
    (2**53 - 9, "family:train/50", "win", "float32", True),
    (41, "shikoku", "margin", "uint8", False),
    (8, "family:train/50", "margin", "entities", False),
    (2, "family:train/50", "win", "afterstates", False),
    (5, "short", "margin", "uint8", True),  # ends at the cap
]


class Script:
    """A random game: players, actions and positions of each decision, and the end."""

    def __init__(self, seed: int, board: str, reward: Any, observation: str, see_board: bool):
        rng = random.Random(seed)
        self.game, self.seed, self.board, self.reward = Game(board, seed), seed, board, reward
        self.observation, self.see_board = observation, see_board
        self.moments: list[tuple[int, int, Any]] = []
        while not self.game.is_over:
            assert self.game.player is not None
            action = rng.choice(self.game.legal_actions())
            self.moments.append((self.game.player, action, self.game.states.copy()))
            self.game.play(action)
        self.ended = self.game.is_over
        self.rewards = [reward_of(self.game, seat, reward) for seat in (0, 1)]

    def of(self, seat: int) -> list[tuple[int, Any]]:
        return [(action, states) for player, action, states in self.moments if player == seat]

    def options(self, *observations: str) -> dict[str, Any]:
        """Return options of an adapter, with the vector for observations that it lacks."""
        known = self.observation if self.observation in observations else "float32"
        return {"reward": self.reward, "observation": known, "see_board": self.see_board}

    def seen(self, states: Any, seat: int, options: dict[str, Any]) -> Any:
        form = options["observation"], options["see_board"]
        return expected_observation(self.game.boards, states, seat, *form)


class Replayer:
    """Plays the actions of a script, then the lowest legal action."""

    def __init__(self, script: Script, seat: int) -> None:
        self.rest = iter([action for action, _ in script.of(seat)])

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
        (mask,) = legal.tolist()
        return np.array([next(self.rest, (mask & -mask).bit_length() - 1)], np.int64)


@pytest.fixture(params=GAMES, ids=lambda game: "-".join(map(str, game)), scope="module")
def script(request: pytest.FixtureRequest, short: Path) -> Script:
    seed, board, *options = request.param
    return Script(seed, str(short) if board == "short" else board, *options)


def test_scripts__cover_all_kinds_of_ends() -> None:
    played = [Script(*game) for game in GAMES[:-1]]
    assert {script.rewards[0] > 0 for script in played} == {True, False}
    assert len({script.game.board.name for script in played}) == 4


@pytest.mark.parametrize("make", [env, raw_env])
def test_pettingzoo__plays_the_scripts(script: Script, make: Any) -> None:
    options = script.options("entities", "afterstates")
    form = {"float32": "dict"}.get(options["observation"], options["observation"])
    whole = {"observation": "float32", "see_board": script.see_board or form == "entities"}
    e = make(script.board, **options | {"observation": form})
    e.reset(seed=script.seed)
    assert e.boards[e.infos["player_1"]["board"]] == script.game.board
    for player, action, states in script.moments:
        assert e.agent_selection == f"player_{player}"
        assert e.game.states.tobytes() == states.tobytes()
        for seat, agent in enumerate(e.possible_agents):
            observation = e.observe(agent)
            seen = observation if form == "afterstates" else observation["observation"]
            assert as_lists(seen) == script.seen(states, seat, options)
            assert observation["action_mask"].any() == (seat == player)
        assert e.state().tolist() == script.seen(states, 0, whole)
        e.step(action)
    assert e.game == script.game
    assert [*e.rewards.values()] == [*e._cumulative_rewards.values()] == approx(script.rewards)
    assert {*e.terminations.values()} == {script.ended}
    assert {*e.truncations.values()} == {False}


def not_numbers(infos: Any) -> list[str]:
    """Return the keys of infos with values that are no numbers or arrays of numbers."""
    found = []
    for key, value in infos.items():
        if isinstance(value, dict):
            found += not_numbers(value)
        elif np.asarray(value).dtype.kind not in "bif":
            found.append(key)
    return found


def test_infos__are_numbers_in_every_adapter() -> None:
    """Wrappers stack them into arrays and tensors."""
    board = "family:valid/3"
    infos: list[Any] = []
    for mask in ("both", "observation", "infos"):
        for e in (env(board, mask=mask), raw_env(board, mask=mask)):
            e.reset(seed=3)
            infos += e.infos.values()
            while e.game.legal_mask:
                e.step(e.game.legal_actions()[0])
            infos += e.infos.values()
    single = gymnasium.make("TokaidoDuo-v0", board=board, opponent="random")
    infos += [single.reset(seed=3)[1], single.step(0)[4]]
    many = gymnasium.make_vec("TokaidoDuo-v0", 2, board=board, opponent="random")
    infos.append(many.reset(seed=3)[1])
    final = many.step([0, 48])[4]
    assert [*map(type, final.pop("final_obs"))] == [type(None), np.ndarray]  # Gymnasium's form
    infos.append(final)
    sb3 = pytest.importorskip("tokaido_env.sb3")
    vec = sb3.TokaidoVecEnv(2, "random", 3, board=board)
    dones, last = np.zeros(2, np.bool_), []
    vec.reset()
    while not dones.any():
        _, _, dones, last = vec.step(vec.action_masks().argmax(1))
    assert [not_numbers(one) for one in [*infos, *last]] == [[]] * len([*infos, *last])


@pytest.mark.parametrize("seat", [0, 1])
def test_gymnasium__plays_the_scripts(script: Script, seat: int) -> None:
    options = script.options("uint8", "entities", "afterstates")
    opponent = Replayer(script, 1 - seat)
    made = gymnasium.make(
        "TokaidoDuo-v0", opponent=opponent, seat=seat, board=script.board, **options
    )
    e: Any = made.unwrapped
    seen, info = e.reset(seed=script.seed)
    assert e.games.boards[info["board"]] == script.game.board
    for action, states in script.of(seat):
        assert action in np.flatnonzero(info["action_mask"])
        assert as_lists(seen) == script.seen(states, seat, options)
        seen, reward, *ends, info = e.step(action)
    assert as_lists(seen) == script.seen(script.game.states, seat, options)
    assert ends == [script.ended, False]
    assert reward == approx(script.rewards[seat])
    assert e.games.batch.states.tobytes() == script.game.states.tobytes()


# Seeds and pictures


@pytest.mark.parametrize("seed", [2**53, 2**64 + 1, 10**400, np.uint64(2**64 - 1)])
def test_seeds__from_2_53_on_are_hashed_alike_by_every_api(seed: Any) -> None:
    number = int(seed)
    digest = hashlib.sha256(number.to_bytes(-(-number.bit_length() // 8), "little")).digest()
    hashed = int.from_bytes(digest[:8], "little") % 2**53
    assert Game(seed=seed).seed == hashed == Game.from_dict(position(), seed=seed).seed
    own, seeds = [hashed, Game(seed=number + 1).seed], []
    for e in (env(), raw_env(), TokaidoDuoEnv("random")):
        _, info = e.reset(seed=seed) or (None, getattr(e, "infos", {}).get("player_0"))
        seeds.append([info["seed"]])
    batch, vector = Batch(2), TokaidoDuoVectorEnv(2, "random")
    for given in ([seed, number + 1], np.array([seed, number + 1], object)):
        batch.reset(given)
        seeds.append(batch.episode_info["seed"].tolist())
    seeds.append(vector.reset(seed=[seed, number + 1])[1]["seed"].tolist())
    session = Session(("random", "random"), seed=seed)
    seeds.append([session.game.seed])
    assert all(each == own[: len(each)] for each in seeds)
    batch.reset(seed)
    assert batch.episode_info["seed"].tolist() == [game_seed(hashed, i) for i in range(2)]


@pytest.mark.parametrize("make", [env, partial(TokaidoDuoEnv, "random")])
def test_render__returns_text_or_warns(make: Any) -> None:
    e, silent = make(render_mode="ansi"), make()
    for each in (e, silent):
        each.reset(seed=0, options={"state": position(round=42)})
    assert "42" in e.render()
    with pytest.warns(UserWarning, match="render_mode"):
        assert silent.render() is None
