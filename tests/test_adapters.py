"""The contract of all adapters: a seed and actions give one game, its rewards, masks and ends."""

import hashlib
import random
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
import pytest
from learner_games import as_lists, expected_observation, reward_of
from positions import position

from tokaido_env import Batch, Game, env
from tokaido_env.core.rng import game_seed
from tokaido_env.gym import TokaidoDuoEnv, TokaidoDuoVectorEnv
from tokaido_env.web.game_session import Session

approx = pytest.approx

GAMES: list[tuple[int, str, Any, str, bool]] = [
    (3, "shikoku", "win", "float32", False),
    (2**53 - 9, "family:train/50", "win", "float32", True),
    (41, "shikoku", "margin", "uint8", False),
    (6, "family:train/50", "win", "geometry", False),
    (2, "family:train/50", "win", "afterstates", False),
    (5, "short", "margin", "uint8", True),  # ends at the cap
]


class Script:
    """A random game: players, actions and positions of each decision, and the end."""

    def __init__(self, seed: int, board: str, reward: Any, observation: str, see_board: bool):
        rng = random.Random(seed)
        self.base_seed, self.seed, self.board = seed, game_seed(seed, 0), board
        self.game = Game(board, self.seed)
        self.form = {"reward": reward, "observation": observation, "see_board": see_board}
        self.moments: list[tuple[int, int, Any]] = []
        while not self.game.is_over:
            assert self.game.player is not None
            action = rng.choice(self.game.legal_actions())
            self.moments.append((self.game.player, action, self.game.states.copy()))
            self.game.play(action)
        self.rewards = [reward_of(self.game, seat, reward) for seat in (0, 1)]

    def of(self, seat: int | None) -> list[tuple[int, int, Any]]:
        return [one for one in self.moments if seat in (None, one[0])]

    def options(self, *observations: str) -> dict[str, Any]:
        """Return options of an adapter, with the vector for observations that it lacks."""
        known = self.form["observation"] in observations
        return self.form | ({} if known else {"observation": "float32"})


class Replayer:
    """Plays the actions of a script, then the lowest legal action."""

    def __init__(self, script: Script, seat: int) -> None:
        self.rest = iter([action for _, action, _ in script.of(seat)])

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
        (mask,) = legal.tolist()
        return np.array([next(self.rest, (mask & -mask).bit_length() - 1)], np.int64)


class Played:
    """An adapter at a decision: what it shows of it, and what it returned for the last step.

    Attributes:
        form: the options for observations and rewards.
        seen: the observation.
        mask: of legal actions.
        rewards: of the last step, by seat.
        ended: whether the game has ended.
    """

    rewards: dict[int, float]
    form: dict[str, Any]
    seen: Any
    mask: Any
    ended = False


class PettingZoo(Played):
    def __init__(self, script: Script, seat: int | None) -> None:
        self.form = script.options("geometry", "afterstates")
        dict_form = {"float32": "dict"}.get(self.form["observation"], self.form["observation"])
        self.env = env(script.board, mask="both", **self.form | {"observation": dict_form})
        self.env.reset(seed=script.seed)
        self.read()

    def read(self) -> None:
        e = self.env
        agent = e.agent_selection
        seen, info = e.observe(agent), e.infos[agent]
        self.mask = seen["action_mask"]
        self.seen = seen if "actions" in seen else seen["observation"]
        assert info["action_mask"].tolist() == self.mask.tolist()
        other = e.observe({"player_0": "player_1", "player_1": "player_0"}[agent])
        assert not other["action_mask"].any()
        whole = {"observation": "float32", "see_board": self.form["see_board"]}
        assert e.state().tolist() == expected_observation(e.game.boards, e.game.states, 0, **whole)
        self.rewards = {int(name[-1]): reward for name, reward in e.rewards.items()}
        self.ended = all(e.terminations.values())
        assert not any(e.truncations.values())

    def play(self, action: int) -> None:
        self.env.step(action)
        self.read()


class Rllib(Played):
    def __init__(self, script: Script, seat: int | None) -> None:
        rllib = pytest.importorskip("tokaido_env.rllib", exc_type=ImportError)
        self.form = script.options("geometry", "afterstates")
        dict_form = {"float32": "dict"}.get(self.form["observation"], self.form["observation"])
        options = {"board": script.board} | self.form | {"observation": dict_form}
        self.env = rllib.TokaidoMultiAgentEnv(options)
        self.read(self.env.reset(seed=script.seed)[0])

    def read(self, seen: dict[str, Any]) -> None:
        self.agent, one = next(iter(seen.items()))
        self.mask = one["action_mask"]
        self.seen = one if "actions" in one else one["observation"]

    def play(self, action: int) -> None:
        seen, rewards, ended, truncated, _ = self.env.step({self.agent: action})
        self.read(seen)
        self.rewards = {int(name[-1]): reward for name, reward in rewards.items()}
        self.ended = ended["__all__"]
        assert not truncated["__all__"]


class Many(Played):
    """A batch of one game."""

    def __init__(self, script: Script, seat: int | None) -> None:
        self.form = script.options("uint8", "geometry", "afterstates")
        self.batch = Batch(1, script.board, autoreset=False, **self.form)
        self.read(self.batch.reset(seed=script.base_seed))

    def read(self, timestep: Any) -> None:
        seen = timestep.observation
        self.seen = first(seen)
        self.mask, (self.ended,) = timestep.mask[0], timestep.terminated
        self.rewards = dict(enumerate(timestep.reward[0].tolist()))

    def play(self, action: int) -> None:
        self.read(self.batch.step([action]))


class TorchRl(Played):
    def __init__(self, script: Script, seat: int | None) -> None:
        module = pytest.importorskip("tokaido_env.torchrl", exc_type=ImportError)
        self.form = script.options("geometry", "afterstates")
        self.env = module.TokaidoDuoEnv(1, board=script.board, **self.form)
        self.env.set_seed(script.base_seed)
        self.read(self.env.reset())

    def read(self, data: Any) -> None:
        self.data, self.mask = data, data["action_mask"][0].numpy()
        self.seen = data["observation"][0].numpy()
        if "actions" in data.keys():  # noqa: SIM118  of a TensorDict
            parts = {name: data[name][0].numpy() for name in ("observation", "actions")}
            self.seen = parts | {"action_mask": self.mask.astype(np.int8)}

    def play(self, action: int) -> None:
        player = self.data["player"].item()
        self.data["action"] = self.data["player"].new_tensor([action])
        after = self.env.step(self.data)["next"]
        self.read(after)
        self.rewards, self.ended = {player: after["reward"].item()}, after["terminated"].item()
        assert not after["truncated"].item()


class Gymnasium(Played):
    def __init__(self, script: Script, seat: int) -> None:
        self.form, self.seat = script.options("uint8", "geometry", "afterstates"), seat
        opponent = Replayer(script, 1 - seat)
        options = {"opponent": opponent, "seat": seat, "board": script.board, **self.form}
        self.env: Any = gymnasium.make("TokaidoDuo-v0", **options)
        self.seen, info = self.env.reset(seed=script.seed)
        assert self.env.unwrapped.games.boards[info["board"]] == script.game.board
        self.mask = info["action_mask"]

    def play(self, action: int) -> None:
        self.seen, reward, self.ended, truncated, info = self.env.step(action)
        self.mask, self.rewards = info["action_mask"], {self.seat: reward}
        assert not truncated


class Vector(Played):
    def __init__(self, script: Script, seat: int) -> None:
        self.form, self.seat = script.options("uint8", "geometry", "afterstates"), seat
        options = {"opponent": Replayer(script, 1 - seat), "seat": seat, "board": script.board}
        self.env = gymnasium.make_vec("TokaidoDuo-v0", 1, **options, **self.form)
        seen, info = self.env.reset(seed=script.base_seed)
        self.seen, self.mask = first(seen), info["action_mask"][0]

    def play(self, action: int) -> None:
        seen, (reward,), (self.ended,), (truncated,), info = self.env.step(np.array([action]))
        self.seen, self.mask = first(seen), info["action_mask"][0]
        if self.ended:
            self.seen, self.mask = info["final_obs"][0], info["final_info"]["action_mask"][0]
        self.rewards = {self.seat: reward}
        assert not truncated


class Sb3(Played):
    def __init__(self, script: Script, seat: int) -> None:
        sb3 = pytest.importorskip("tokaido_env.sb3")
        self.form, self.seat = script.options("uint8", "geometry", "afterstates"), seat
        options = {"seat": seat, "board": script.board, **self.form}
        self.env = sb3.TokaidoVecEnv(1, [Replayer(script, 1 - seat)], script.base_seed, **options)
        self.seen, self.mask = first(self.env.reset()), self.env.action_masks()[0]

    def play(self, action: int) -> None:
        seen, (reward,), (self.ended,), (info,) = self.env.step(np.array([action]))
        self.seen, self.mask = first(seen), self.env.action_masks()[0]
        if self.ended:
            self.seen, self.mask = info["terminal_observation"], np.zeros(1)
            assert info["episode"]["r"] == reward
        self.rewards = {self.seat: reward}


ADAPTERS = (PettingZoo, Rllib, Many, TorchRl)
LEARNERS = (Gymnasium, Vector, Sb3)


def first(seen: Any) -> Any:
    """Return the observation of the first game."""
    return {k: v[0] for k, v in seen.items()} if isinstance(seen, dict) else seen[0]


@pytest.fixture(params=GAMES, ids=lambda game: "-".join(map(str, game)), scope="module")
def script(request: pytest.FixtureRequest, short: Path) -> Script:
    seed, board, *options = request.param
    return Script(seed, str(short) if board == "short" else board, *options)


@pytest.mark.parametrize(
    ("adapter", "seat"),
    [*((one, None) for one in ADAPTERS), *((one, seat) for one in LEARNERS for seat in (0, 1))],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_adapter__plays_the_game_of_its_seed(script: Script, adapter: Any, seat: Any) -> None:
    played = adapter(script, seat)
    form = {name: played.form[name] for name in ("observation", "see_board")}
    moments = script.of(seat)
    for number, (player, action, states) in enumerate(moments):
        assert as_lists(played.seen) == expected_observation(
            script.game.boards, states, player, **form
        )
        game = Game.from_states(script.game.board, states, 0, "sampled")
        assert np.flatnonzero(played.mask).tolist() == game.legal_actions()
        assert not played.ended
        played.play(action)
        if number + 1 < len(moments):
            assert not any(played.rewards.values())
    assert played.ended
    assert played.rewards == {one: approx(script.rewards[one]) for one in played.rewards}
    assert seat is None or as_lists(played.seen) == expected_observation(
        script.game.boards, script.game.states, seat, **form
    )


# Infos, seeds and pictures


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
    infos: list[Any] = []
    e = env("family:valid/3", mask="both")
    e.reset(seed=3)
    infos += e.infos.values()
    single = gymnasium.make("TokaidoDuo-v0", board="family:valid/3", opponent="random")
    infos += [single.reset(seed=3)[1], single.step(0)[4]]
    many = gymnasium.make_vec("TokaidoDuo-v0", 2, board="family:valid/3", opponent="random")
    infos.append(many.reset(seed=3)[1])
    final = many.step([0, 48])[4]
    assert [*map(type, final.pop("final_obs"))] == [type(None), np.ndarray]  # Gymnasium's form
    assert [not_numbers(one) for one in [*infos, final]] == [[]] * (len(infos) + 1)


@pytest.mark.parametrize("seed", [2**53, 10**400, np.uint64(2**64 - 1)])
def test_seeds__from_2_53_on_are_hashed_alike_by_every_api(seed: Any) -> None:
    number = int(seed)
    digest = hashlib.sha256(number.to_bytes(-(-number.bit_length() // 8), "little")).digest()
    hashed = int.from_bytes(digest[:8], "little") % 2**53
    assert Game(seed=seed).seed == hashed == Game.from_dict(position(), seed=seed).seed
    own, seeds = [hashed, Game(seed=number + 1).seed], []
    for e in (env(), TokaidoDuoEnv("random")):
        _, info = e.reset(seed=seed) or (None, getattr(e, "infos", {}).get("player_0"))
        seeds.append([info["seed"]])
    batch, vector = Batch(2), TokaidoDuoVectorEnv(2, "random")
    batch.reset([seed, number + 1])
    seeds.append(batch.episode_info["seed"].tolist())
    seeds.append(vector.reset(seed=[seed, number + 1])[1]["seed"].tolist())
    seeds.append([Session(("random", "random"), seed=seed).game.seed])
    assert all(each == own[: len(each)] for each in seeds)
    batch.reset(seed)
    assert batch.episode_info["seed"].tolist() == [game_seed(hashed, i) for i in range(2)]


@pytest.mark.parametrize("make", [env, partial(TokaidoDuoEnv, "random")])
def test_render__returns_text_or_warns(make: Any) -> None:
    e, silent = make(render_mode="ansi"), make()
    for each in (e, silent):
        each.reset(seed=0, options={"state": position(round=42)})
    assert "42" in e.render()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert silent.render() is None
    assert "render_mode" in str(caught[0].message)
