"""Gymnasium: its own checks, its own vectoriser in lock step, and what infos tell."""

import itertools
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
import pytest
from alone import Alone, Recorder, Scripted, random_legal
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import RecordEpisodeStatistics
from gymnasium.wrappers.vector import RecordEpisodeStatistics as RecordVectorStatistics
from packaging.version import Version
from positions import game_at, other_board_data, position, shikoku_data, write_board

from tokaido_env import PositionError, SeedError
from tokaido_env.agents import AgentError, make
from tokaido_env.core.actions import IDS, N_ACTIONS
from tokaido_env.core.luck import episode_seed
from tokaido_env.core.observation import FEATURES
from tokaido_env.core.state import NOBODY
from tokaido_env.gym import TokaidoDuoEnv, TokaidoDuoVectorEnv

SEAT = next(feature.start for feature in FEATURES if feature.name == "seat")
DISCARD = IDS["discard:fan"]  # never a game's first decision


@pytest.fixture
def short(tmp_path: Path) -> Path:
    """A board on which games end after two rounds."""
    return write_board(tmp_path / "short.toml", shikoku_data() | {"max_rounds": 2})


def episode(env: TokaidoDuoEnv, rng: np.random.Generator) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Play at random from where the game stands to its end; yield actions and what steps tell."""
    done = False
    while not done:
        action = int(random_legal(env.action_masks(), rng))
        told = env.step(action)
        yield action, told
        done = told[2] or told[3]


def last_step(env: TokaidoDuoEnv) -> tuple[Any, ...]:
    *_, (_, told) = episode(env, np.random.default_rng(0))
    return told


# Gymnasium's own tests, and how environments are made


@pytest.mark.parametrize(
    ("seat", "observation"),
    [(0, "float32"), (1, "uint8"), ("alternate", "float32"), ("random", "uint8")],
)
def test_gymnasiums_checker_has_nothing_to_say(
    seat: Any, observation: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")  # it opens windows
    env = gymnasium.make("tokaido_env:TokaidoDuo-v0", seat=seat, observation=observation)
    check_env(env.unwrapped)


def test_environments_are_made_by_name_from_a_fresh_process() -> None:
    script = """
import gymnasium
env = gymnasium.make("tokaido_env:TokaidoDuo-v0", opponent="random", seat=1)
envs = gymnasium.make_vec("TokaidoDuo-v0", num_envs=2)
print(type(env.unwrapped).__name__, type(envs).__name__, env.spec.id)
"""
    command = [sys.executable, "-W", "error", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "TokaidoDuoEnv TokaidoDuoVectorEnv TokaidoDuo-v0\n", done.stderr


def test_options_reach_the_games_by_name() -> None:
    agent = Recorder()
    env = gymnasium.make("TokaidoDuo-v0", opponent=agent, seat=1, observation="uint8")
    observation, info = env.reset(seed=0)
    assert (observation.dtype, observation[SEAT], info["seat"]) == (np.uint8, 1, 1)
    assert agent.asked > 0
    envs = gymnasium.make_vec(
        "tokaido_env:TokaidoDuo-v0",
        num_envs=3,
        opponent=["greedy", agent],
        seat=0,
        autoreset_mode="Disabled",
    )
    assert envs.metadata["autoreset_mode"] is AutoresetMode.DISABLED
    assert [opponent.spec for opponent in envs.unwrapped.games.opponents] == [
        *["greedy", "recorder", "greedy"]
    ]
    assert envs.reset(seed=0)[1]["seat"].tolist() == [0, 0, 0]


def test_gymnasium_vectorises_single_environments_by_name() -> None:
    envs = gymnasium.make_vec(
        "TokaidoDuo-v0",
        num_envs=2,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": AutoresetMode.SAME_STEP},
    )
    native = gymnasium.make_vec("TokaidoDuo-v0", num_envs=2)
    assert isinstance(envs, SyncVectorEnv)
    assert np.array_equal(envs.reset(seed=4)[0], native.reset(seed=4)[0])


# The native vector environment is Gymnasium's of single ones


def both(n: int, mode: AutoresetMode, **options: Any) -> tuple[SyncVectorEnv, TokaidoDuoVectorEnv]:
    single = partial(TokaidoDuoEnv, **options)
    return SyncVectorEnv([single] * n, autoreset_mode=mode), TokaidoDuoVectorEnv(
        n, autoreset_mode=mode, **options
    )


def assert_same(told: Any, expected: Any, flags: npt.NDArray[np.bool_] | None = None) -> None:
    """The same keys, types, shapes and values; of infos, values where they are flagged."""
    assert type(told) is type(expected)
    if isinstance(expected, str):
        assert told == expected
        return
    if isinstance(expected, dict):
        assert told.keys() == expected.keys()
        for key in expected:
            if key.startswith("_"):
                assert_same(told[key], expected[key])
            else:
                assert_same(told[key], expected[key], expected[f"_{key}"])
        return
    assert (told.dtype, told.shape) == (expected.dtype, expected.shape)
    if flags is not None:
        told, expected = told[flags], expected[flags]
    if told.dtype == object:
        for one, other in zip(told, expected, strict=True):
            assert_same(one, other)
    else:
        assert told.tolist() == expected.tolist()


def some_actions(masks: npt.NDArray[np.bool_], rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Legal actions, but for one in fifty."""
    actions = random_legal(masks, rng)
    actions[rng.random(len(actions)) < 0.02] = rng.integers(N_ACTIONS)
    return actions


SETTINGS: list[dict[str, Any]] = [
    {"seat": "random", "opponent": "greedy"},
    {"seat": "random", "opponent": "random", "reward": "margin", "observation": "uint8"},
    {"seat": 1, "opponent": Recorder("random"), "board": "family:valid"},
]


@pytest.mark.parametrize("options", SETTINGS)
def test_same_step_equals_the_vectorised_single_environments(options: dict[str, Any]) -> None:
    sync, native = both(5, AutoresetMode.SAME_STEP, **options)
    rng = np.random.default_rng(0)
    for seed in (3, None, [8, 0, 2**53 - 1, 5, 5]):
        for told, expected in zip(native.reset(seed=seed), sync.reset(seed=seed), strict=True):
            assert_same(told, expected)
        ends, losses = 0, 0
        for _ in range(130):
            actions = some_actions(native.action_masks(), rng)
            told, expected = native.step(actions), sync.step(actions)
            for one, other in zip(told, expected, strict=True):
                assert_same(one, other)
            flags = told[2] | told[3]
            ends += flags.sum()
            losses += (told[1] == -1.0).sum()
            assert ("final_obs" in told[4]) == ("final_info" in told[4]) == flags.any()
        assert ends > losses / 2 > 1


@pytest.mark.parametrize("options", SETTINGS)
def test_disabled_equals_the_vectorised_single_environments(options: dict[str, Any]) -> None:
    """Games that have ended are reset by a mask, some with seeds of their own."""
    sync, native = both(5, AutoresetMode.DISABLED, **options)
    rng = np.random.default_rng(0)
    told, expected = native.reset(seed=0), sync.reset(seed=0)
    resets = 0
    for step in range(200):
        actions = some_actions(native.action_masks(), rng)
        told, expected = native.step(actions), sync.step(actions)
        for one, other in zip(told, expected, strict=True):
            assert_same(one, other)
        done = told[2] | told[3]
        if done.any():
            assert not told[4]["action_mask"][done].any()
            mask = done | (rng.random(5) < 0.2)
            for seed in (None, step, [step, 1, 2, 3, step]):
                told = native.reset(seed=seed, options={"reset_mask": mask.copy()})
                expected = sync.reset(seed=seed, options={"reset_mask": mask.copy()})
                for one, other in zip(told, expected, strict=True):
                    assert_same(one, other)
            masks = told[1]["action_mask"]  # of all games, also those that were not reset
            assert np.array_equal(masks, native.action_masks())
            resets += 1
    assert resets > 10


def test_the_cap_equals_that_of_the_vectorised_single_environments(short: Path) -> None:
    """R10.1: truncated, not terminated; nobody is paid."""
    sync, native = both(4, AutoresetMode.SAME_STEP, board=short, reward="margin")
    sync.reset(seed=0)
    native.reset(seed=0)
    rng, ends = np.random.default_rng(0), 0
    for _ in range(40):
        actions = random_legal(native.action_masks(), rng)
        told, expected = native.step(actions), sync.step(actions)
        for one, other in zip(told, expected, strict=True):
            assert_same(one, other)
        assert not told[1].any()
        assert not told[2].any()
        ends += told[3].sum()
    assert ends > 10


def test_spaces_and_modes_equal_those_of_the_vectorised_single_environments() -> None:
    for observation in ("float32", "uint8"):
        for mode in (AutoresetMode.SAME_STEP, AutoresetMode.DISABLED):
            sync, native = both(3, mode, observation=observation)
            for name in (
                *("observation_space", "action_space", "num_envs", "render_mode"),
                *("single_observation_space", "single_action_space"),
            ):
                assert getattr(native, name) == getattr(sync, name)
            assert native.metadata["autoreset_mode"] is sync.metadata["autoreset_mode"] is mode


def test_what_was_returned_does_not_change_afterwards(short: Path) -> None:
    envs = TokaidoDuoVectorEnv(8, "random", board=short)
    observation, infos = envs.reset(seed=0)
    rng, kept = np.random.default_rng(0), [observation, *infos.values()]
    before, ends = [array.tolist() for array in kept], 0
    for _ in range(40):
        *told, infos = envs.step(some_actions(envs.action_masks(), rng))
        last = [seen for seen in infos.pop("final_obs", ()) if seen is not None]
        infos |= infos.pop("final_info", {})
        arrays = [*told, *infos.values(), *last]
        kept += arrays
        before += [array.tolist() for array in arrays]
        ends += len(last)
    assert ends > 20
    assert [array.tolist() for array in kept] == before


# Rewards and ends


@pytest.mark.parametrize("reward", ["win", "margin"])
@pytest.mark.parametrize("opponent", ["random", "greedy"])
def test_episodes_are_the_games_of_their_seeds(opponent: str, reward: Any) -> None:
    """Each is played again with `Game` from what infos tell."""
    env = TokaidoDuoEnv(opponent, reward=reward)
    rng, seats, paid = np.random.default_rng(0), set(), set()
    for number in range(6):
        observation, info = env.reset(seed=30 if number == 0 else None)
        assert info["seed"] == int(episode_seed(30, number))
        alone = Alone(info["seed"], info["seat"], make(opponent))
        assert observation.tolist() == alone.observation()
        assert (info["player"], info["next_player"]) == (NOBODY, alone.seat)
        assert np.array_equal(info["action_mask"], env.action_masks())
        for action, told in episode(env, rng):
            alone.play(action)
            over = alone.game.is_over
            assert told[0].tolist() == alone.observation()
            assert told[1] == pytest.approx(alone.reward(reward))
            assert told[2:4] == (over, False)
            info = told[4]
            assert (info["seed"], info["seat"], info["player"]) == (alone.seed, *[alone.seat] * 2)
            assert info["next_player"] == (NOBODY if over else alone.seat)
            assert np.flatnonzero(info["action_mask"]).tolist() == alone.game.legal_actions()
            assert np.array_equal(info["action_mask"], env.action_masks())
        seats.add(alone.seat)
        paid.add(told[1])
    assert seats == {0, 1}
    assert reward == "margin" or paid <= {-1.0, 1.0}


def test_wins_and_losses_are_the_learners() -> None:
    """From positions one move before the end: seat 0 leads by far, and the learner sits at both."""
    nearly = {"temple": 8, "garden": 6, "gold": 6, "pilgrim": 3}
    state = position(left=["pilgrim"], dice=(1, 1, 1), mine=nearly)
    won = TokaidoDuoEnv("greedy", seat=0)
    won.reset(options={"state": state})
    told = last_step(won)
    assert told[1:4] == (1.0, True, False)
    assert [type(each) for each in told[1:4]] == [float, bool, bool]
    state = position(lead=1, left=["pilgrim", "merchant"], mine=nearly, dice=(1, 1, 1))
    lost = TokaidoDuoEnv("greedy", seat=1)
    lost.reset(options={"state": state})
    told = last_step(lost)
    assert told[1:4] == (-1.0, True, False)


def test_the_cap_truncates_and_pays_nobody(short: Path) -> None:
    env = TokaidoDuoEnv("greedy", board=short, reward="margin")
    env.reset(seed=0)
    assert last_step(env)[1:4] == (0.0, False, True)


@pytest.mark.parametrize("action", [DISCARD, N_ACTIONS, -1, 2**40])
@pytest.mark.parametrize("reward", ["win", "margin"])
def test_an_illegal_action_loses_the_game(action: int, reward: Any) -> None:
    env = TokaidoDuoEnv("random", seat=1, reward=reward)
    before, info = env.reset(seed=0)
    assert action not in np.flatnonzero(info["action_mask"])
    observation, *told, info = env.step(action)
    assert told == [-1.0, True, False]
    assert np.array_equal(observation, before)
    assert (info["player"], info["next_player"]) == (1, NOBODY)
    assert not info["action_mask"].any()
    assert not env.action_masks().any()
    with pytest.raises(RuntimeError, match="game 0 has ended or not begun: reset it"):
        env.step(action)


def test_the_learner_is_told_of_a_ware_to_return_inside_the_opponents_pick() -> None:
    """R7.4: losing *robust* with six wares."""
    waves = {"pilgrim": ("tranquil", 0), "merchant": ("robust", 1), "artist": ("inspired", 1)}
    six = {"wares": {"fan": 4, "doll": 2}}
    state = position(dice=(2, 1, 1), waves=waves, mine={"pilgrim": 2}, theirs=six)
    env = TokaidoDuoEnv(Scripted("take:merchant", "pilgrim"), seat=1)
    _, info = env.reset(options={"state": state})
    assert np.flatnonzero(info["action_mask"]).tolist() == [IDS["discard:doll"], DISCARD]
    told = env.step(IDS["discard:doll"])
    assert told[1:4] == (0.0, False, False)
    assert (told[4]["player"], told[4]["next_player"]) == (1, 1)


# Resets


def test_a_reset_without_a_seed_begins_the_next_episode() -> None:
    env = TokaidoDuoEnv("random")
    first = [env.reset(seed=5)[1]["seed"], *(env.reset()[1]["seed"] for _ in range(3))]
    assert first == [int(episode_seed(5, number)) for number in range(4)]
    again = [env.reset(seed=5)[1]["seed"], *(env.reset()[1]["seed"] for _ in range(3))]
    assert again == first


def test_the_first_reset_needs_no_seed() -> None:
    seeds = set()
    for _ in range(2):
        env, envs = TokaidoDuoEnv("random"), TokaidoDuoVectorEnv(3, "random")
        observation, info = env.reset()
        assert (
            observation.tolist() == Alone(info["seed"], info["seat"], make("random")).observation()
        )
        seeds |= {info["seed"], *envs.reset()[1]["seed"].tolist()}
    assert len(seeds) == 8


def test_a_game_begins_from_a_position() -> None:
    game = game_at(left=["artist"], lead=1, round=7, mine={"coins": 5})
    envs = [TokaidoDuoEnv("random", seat=1), TokaidoDuoVectorEnv(2, "random", seat=1)]
    for env in envs:
        _, info = env.reset(seed=3, options={"state": game.to_dict()})
        for mask in np.atleast_2d(info["action_mask"]):
            assert np.flatnonzero(mask).tolist() == game.legal_actions()
        env.reset(seed=3)
        assert env.games.batch.states["round"].tolist() == [1] * len(env.games)


def test_luck_after_a_position_follows_from_the_seed() -> None:
    state, env = position(left=["artist"]), TokaidoDuoEnv("greedy", seat=0)
    told = []
    for seed in (1, 1, 2):
        env.reset(seed=seed, options={"state": state})
        rng = np.random.default_rng(0)
        steps = itertools.islice(episode(env, rng), 9)
        told.append([(action, step[0].tolist()) for action, step in steps])
    assert told[0] == told[1] != told[2]


# Observations, boards, rendering


@pytest.mark.parametrize("observation", ["float32", "uint8"])
def test_spaces_contain_what_is_observed(observation: Any) -> None:
    env = TokaidoDuoEnv("random", observation=observation)
    assert env.observation_space.dtype == np.dtype(observation)
    seen, _ = env.reset(seed=1)
    assert env.observation_space.contains(seen)
    for _, (seen, *_) in episode(env, np.random.default_rng(0)):
        assert env.observation_space.contains(seen)


def test_raw_observations_are_the_scaled_ones() -> None:
    scaled, raw = TokaidoDuoEnv("greedy"), TokaidoDuoEnv("greedy", observation="uint8")
    pairs = [(scaled.reset(seed=2)[0], raw.reset(seed=2)[0])]
    rng = np.random.default_rng(0)
    for action, told in episode(scaled, rng):
        pairs.append((told[0], raw.step(action)[0]))
    scales = np.repeat([f.scale for f in FEATURES], [f.size for f in FEATURES])
    for seen, counted in pairs:
        assert np.allclose(seen, np.minimum(counted / scales, 1.0))


def test_another_board(tmp_path: Path) -> None:
    board = write_board(tmp_path / "other.toml", other_board_data())
    env = TokaidoDuoEnv("greedy", seat=0, board=board)
    observation, _ = env.reset(seed=4)
    assert observation.tolist() == Alone(4, 0, make("greedy"), board=board).observation()


def test_rendering_shows_where_the_game_stands() -> None:
    env = gymnasium.make("TokaidoDuo-v0", render_mode="ansi", seat=0)
    env.reset(seed=0, options={"state": position(round=42)})
    picture = env.render()
    assert isinstance(picture, str)
    assert "42" in picture
    env.step(env.unwrapped.games.batch.legal[0].item().bit_length() - 1)
    assert env.render() != picture
    silent = TokaidoDuoEnv()
    silent.reset(seed=0)
    with pytest.warns(UserWarning, match="render_mode"):
        assert silent.render() is None


# Gymnasium's wrappers


def test_statistics_are_recorded_of_single_environments(short: Path) -> None:
    env = RecordEpisodeStatistics(TokaidoDuoEnv("random", board=short))
    rng = np.random.default_rng(0)
    for _ in range(3):
        env.reset(seed=int(rng.integers(100)))
        done, length = False, 0
        while not done:
            mask = env.get_wrapper_attr("action_masks")()
            *_, terminated, truncated, info = env.step(int(random_legal(mask, rng)))
            length += 1
            done = terminated or truncated
        assert (info["episode"]["r"], info["episode"]["l"]) == (0.0, length)
    assert len(env.length_queue) == 3


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.DISABLED])
def test_statistics_are_recorded_of_many_environments(mode: AutoresetMode) -> None:
    """One in fifty actions is illegal, so that there are many ends."""
    if mode == AutoresetMode.SAME_STEP and Version(gymnasium.__version__) < Version("1.4"):
        pytest.skip("Gymnasium's own wrapper counts a step less")
    envs = RecordVectorStatistics(TokaidoDuoVectorEnv(4, "random", autoreset_mode=mode))
    envs.reset(seed=0)
    rng, lengths, told = np.random.default_rng(0), np.zeros(4, np.int64), 0
    for _ in range(150):
        masks = envs.unwrapped.action_masks()  # type: ignore[attr-defined]
        _, rewards, terminations, truncations, infos = envs.step(some_actions(masks, rng))
        lengths += 1
        done = terminations | truncations
        if done.any():
            assert infos["_episode"].tolist() == done.tolist()
            assert infos["episode"]["l"][done].tolist() == lengths[done].tolist()
            assert infos["episode"]["r"][done].tolist() == rewards[done].tolist()
            lengths[done] = 0
            told += done.sum()
            if mode == AutoresetMode.DISABLED:
                envs.reset(options={"reset_mask": done.copy()})
    assert told > 5
    assert envs.episode_count == told


# Refusals


@pytest.mark.parametrize("kind", [TokaidoDuoEnv, TokaidoDuoVectorEnv])
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"opponent": "grumpy"}, AgentError, "unknown agent 'grumpy': expected one of"),
        ({"opponent": []}, ValueError, "opponents: expected one or more, got none"),
        ({"seat": 2}, ValueError, "seat: expected one of 0, 1, 'alternate', 'random', got 2"),
        ({"reward": "points"}, ValueError, "reward: expected one of 'win', 'margin'"),
        ({"observation": "int8"}, ValueError, "observation: expected one of"),
        ({"render_mode": "sixel"}, ValueError, "render_mode: expected one of None"),
    ],
)
def test_wrong_options_are_refused(
    kind: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        kind(**options)


def test_wrong_options_of_vector_environments_are_refused() -> None:
    with pytest.raises(ValueError, match=r"autoreset_mode: expected one of .*SAME_STEP"):
        TokaidoDuoVectorEnv(2, autoreset_mode=AutoresetMode.NEXT_STEP)
    with pytest.raises(ValueError, match="autoreset_mode"):
        TokaidoDuoVectorEnv(2, autoreset_mode="NextStep")
    with pytest.raises(ValueError, match=r"mode: expected one of .*'SameStep', .*got 'Never'"):
        TokaidoDuoVectorEnv(2, autoreset_mode="Never")
    with pytest.raises(ValueError, match="render_mode"):
        TokaidoDuoVectorEnv(2, render_mode="ansi")
    with pytest.raises(ValueError, match=r"one game or more, .*got 0"):
        TokaidoDuoVectorEnv(0)


@pytest.mark.parametrize(
    "mask", [[0, 2], [True, False], np.ones(3, np.int8), np.ones((3, 1), bool), True]
)
def test_a_wrong_reset_mask_is_refused(mask: Any) -> None:
    envs = TokaidoDuoVectorEnv(3, "random", autoreset_mode="Disabled")
    envs.reset(seed=0)
    with pytest.raises(ValueError, match=r"reset_mask: expected bool of shape \(3,\)"):
        envs.reset(options={"reset_mask": mask})


def test_wrong_seeds_are_refused() -> None:
    for env in (TokaidoDuoEnv("random"), TokaidoDuoVectorEnv(3, "random")):
        with pytest.raises((SeedError, gymnasium.error.Error), match=r"[Ss]eed"):
            env.reset(seed=-1)
        with pytest.raises(SeedError, match="seed: expected an integer from 0"):
            env.reset(seed=2**53)
    envs = TokaidoDuoVectorEnv(3, "random")
    with pytest.raises(SeedError):
        envs.reset(seed=2**53 - 2)  # the third game would have a seed past the last one
    with pytest.raises(SeedError, match="game 1"):
        envs.reset(seed=[0, -1, 2])
    for seeds in ([0, 1], [0, 1, 2, 3], []):
        with pytest.raises(ValueError, match="seed: expected one for each of 3 environments"):
            envs.reset(seed=seeds)
    with pytest.raises(ValueError, match="seed: expected an integer or integers"):
        envs.reset(seed=[0, 1, None])  # type: ignore[list-item]


def test_wrong_actions_are_refused() -> None:
    env, envs = TokaidoDuoEnv("random"), TokaidoDuoVectorEnv(2, "random")
    env.reset(seed=0)
    envs.reset(seed=0)
    for action in (0.0, np.float32(0.0), True, "pilgrim", None):
        with pytest.raises(ValueError, match="expected integers"):
            env.step(action)
    for actions in ([0.0, 0.0], [0], 0, [[0, 0]], None):
        with pytest.raises(ValueError, match=r"expected integers of shape \(2,\)"):
            envs.step(actions)
    assert env.reset(seed=0)[1]["player"] == NOBODY


def test_wrong_positions_are_refused() -> None:
    crowded = position(mine={"temple": 10})
    for env in (TokaidoDuoEnv("random"), TokaidoDuoVectorEnv(2, "random")):
        with pytest.raises(PositionError, match="temple"):
            env.reset(options={"state": crowded})


def test_steps_before_the_first_reset_are_refused() -> None:
    with pytest.raises(RuntimeError, match="game 0 has ended or not begun: reset it"):
        TokaidoDuoEnv("random").step(0)
    with pytest.raises(RuntimeError, match="game 0 has ended or not begun: reset it"):
        TokaidoDuoVectorEnv(2, "random").step([0, 0])


def test_an_opponent_that_breaks_the_rules_is_named() -> None:
    class Rogue(Recorder):
        spec = "rogue"

        def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> Any:
            return np.full(len(states), -1)

    env = TokaidoDuoEnv(Rogue(), seat=1)
    with pytest.raises(ValueError, match="agent 'rogue': game 0: illegal action -1"):
        env.reset(seed=0)


@pytest.mark.parametrize("options", [5, [], "state", [("state", None)]], ids=str)
def test_options_that_are_none_are_refused(options: Any) -> None:
    for env in (TokaidoDuoEnv("random"), TokaidoDuoVectorEnv(2, "random")):
        with pytest.raises(ValueError, match=r"^options: expected None or a dict such as"):
            env.reset(seed=0, options=options)


@pytest.mark.parametrize("seed", [-1, "7", 1.5, True, {}], ids=str)
def test_a_seed_that_is_none_changes_nothing(seed: Any) -> None:
    env = TokaidoDuoEnv("random")
    env.reset(seed=3)
    before = env.np_random.bit_generator.state
    with pytest.raises(SeedError, match=r"^seed: expected an integer from 0"):
        env.reset(seed=seed)
    assert env.np_random.bit_generator.state == before


@pytest.mark.parametrize("action", [[1, 2], [], [[1], [2, 3]], None, "x", 0.5], ids=str)
def test_an_action_that_is_none_is_refused(action: Any) -> None:
    env = TokaidoDuoEnv("random")
    env.reset(seed=3)
    with pytest.raises(ValueError, match=r"^(action|moves): expected"):
        env.step(action)


@pytest.mark.parametrize("mode", ["SameStep", "Disabled"])
def test_the_autoreset_mode_is_an_attribute(mode: str) -> None:
    envs = gymnasium.make_vec("TokaidoDuo-v0", num_envs=2, autoreset_mode=mode)
    assert envs.unwrapped.autoreset_mode == AutoresetMode(mode)  # type: ignore[attr-defined]
    assert envs.metadata["autoreset_mode"] == AutoresetMode(mode)
