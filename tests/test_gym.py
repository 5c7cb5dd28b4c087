"""Tests of `tokaido_env.gym`: `SyncVectorEnv` as reference, wrappers, infos."""

import sys
from copy import deepcopy
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import vector as wrappers
from learner_games import CountingAgent, random_legal_actions
from packaging.version import Version
from positions import game_at

from tokaido_env.core.actions import IDS, N_ACTIONS
from tokaido_env.core.observation import FEATURES, N_FEATURES
from tokaido_env.core.rng import episode_seed, game_seed
from tokaido_env.core.state import NO_PLAYER
from tokaido_env.gym import TokaidoDuoEnv, TokaidoDuoVectorEnv

SEAT = next(feature.start for feature in FEATURES if feature.name == "seat")
ID = "tokaido_env:TokaidoDuo-v0"
DISCARD = IDS["discard:fan"]  # never a game's first decision


# Gymnasium's own tests, and how environments are made


def test_id__is_known_in_a_worker_that_has_imported_nothing() -> None:
    envs = AsyncVectorEnv([partial(gymnasium.make, ID, opponent="random")], context="spawn")
    assert envs.reset(seed=3)[1]["seed"].tolist() == [3]
    envs.close()


def test_make__passes_options_by_name() -> None:
    agent = CountingAgent()
    env = gymnasium.make(ID, opponent=agent, seat=1, observation="uint8")
    observation, info = env.reset(seed=0)
    assert (observation.dtype, observation[SEAT], info["seat"]) == (np.uint8, 1, 1)
    assert agent.decisions > 0
    envs = gymnasium.make_vec(
        ID, num_envs=3, opponent=["greedy", agent], seat=0, autoreset_mode="Disabled"
    )
    assert envs.metadata["autoreset_mode"] is AutoresetMode.DISABLED
    assert [opponent.spec for opponent in envs.unwrapped.games.opponents] == [
        *["greedy", "recorder", "greedy"]
    ]
    assert envs.reset(seed=0)[1]["seat"].tolist() == [0, 0, 0]


# The native vector environment is Gymnasium's of single ones


def both(
    n: int, mode: AutoresetMode, limit: int | None = None, **options: Any
) -> tuple[SyncVectorEnv, TokaidoDuoVectorEnv]:
    single = partial(gymnasium.make, ID, max_episode_steps=limit, disable_env_checker=True)
    return SyncVectorEnv([partial(single, **options)] * n, autoreset_mode=mode), (
        TokaidoDuoVectorEnv(n, autoreset_mode=mode, max_episode_steps=limit, **options)
    )


def seeds_of(seed: Any, n: int) -> Any:
    """Return the seeds of `n` environments, as `SyncVectorEnv` takes them."""
    return [game_seed(seed, i) for i in range(n)] if isinstance(seed, int) else seed


def assert_same(outputs: Any, expected: Any, flags: npt.NDArray[np.bool_] | None = None) -> None:
    """Check keys, types, shapes and values; infos only where they are flagged."""
    assert type(outputs) is type(expected)
    if isinstance(expected, dict):
        assert outputs.keys() == expected.keys()
        for key in expected:
            if key.startswith("_"):
                assert_same(outputs[key], expected[key])
            else:
                assert_same(outputs[key], expected[key], expected.get(f"_{key}"))
        return
    assert (outputs.dtype, outputs.shape) == (expected.dtype, expected.shape)
    if flags is not None:
        outputs, expected = outputs[flags], expected[flags]
    if outputs.dtype == object:
        for one, other in zip(outputs, expected, strict=True):
            assert_same(one, other)
    else:
        assert outputs.tolist() == expected.tolist()


def some_actions(masks: npt.NDArray[np.bool_], rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return legal actions, except for one in fifty."""
    actions = random_legal_actions(masks, rng)
    actions[rng.random(len(actions)) < 0.02] = rng.integers(N_ACTIONS)
    return actions


@pytest.fixture(
    params=[
        {"seat": "random", "opponent": "greedy"},
        {"opponent": "random", "reward": "margin", "observation": "uint8", "limit": 9},
        {
            "seat": 1,
            "opponent": CountingAgent("random"),
            "board": "family:valid",
            "see_board": True,
        },
        {"opponent": "greedy", "board": "short", "reward": "margin", "observation": "entities"},
        {"opponent": "random", "board": "family:train/9", "observation": "afterstates"},
    ]
)
def options(request: pytest.FixtureRequest, short: Path) -> dict[str, Any]:
    """Return options of both environments; games on the short board end at the cap."""
    given: dict[str, Any] = request.param
    return given | {"board": short} if given.get("board") == "short" else given


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP])
def test_vector_env__autoreset_equals_sync_vector_env(
    mode: AutoresetMode, options: dict[str, Any]
) -> None:
    sync, native = both(5, mode, **options)
    rng = np.random.default_rng(0)
    for seed in (3, None, [8, None, 2**53 - 1, 5, 5]):
        begun = native.reset(seed=seed), sync.reset(seed=seeds_of(seed, 5))
        for outputs, expected in zip(*begun, strict=True):
            assert_same(outputs, expected)
        ends, losses = 0, 0
        for _ in range(130):
            actions = some_actions(native.action_masks(), rng)
            outputs, expected = native.step(actions), sync.step(actions)
            for one, other in zip(outputs, expected, strict=True):
                assert_same(one, other)
            flags = outputs[2] | outputs[3]
            ends += flags.sum()
            losses += (outputs[1] == -1.0).sum()
            final = mode == AutoresetMode.SAME_STEP and flags.any()
            assert ("final_obs" in outputs[4]) == ("final_info" in outputs[4]) == final
        assert ends > losses / 2 > 1


def test_vector_env__disabled_equals_sync_vector_env(options: dict[str, Any]) -> None:
    """Ended games are reset by a mask, some with new seeds."""
    sync, native = both(5, AutoresetMode.DISABLED, **options)
    rng = np.random.default_rng(0)
    outputs, expected = native.reset(seed=0), sync.reset(seed=seeds_of(0, 5))
    resets = 0
    for step in range(200):
        actions = some_actions(native.action_masks(), rng)
        outputs, expected = native.step(actions), sync.step(actions)
        for one, other in zip(outputs, expected, strict=True):
            assert_same(one, other)
        done = outputs[2] | outputs[3]
        if done.any():
            assert options.get("limit") or not outputs[4]["action_mask"][done].any()
            mask = done | (rng.random(5) < 0.2)
            for seed in (None, step, [step, None, 2, 3, step]):
                outputs = native.reset(seed=seed, options={"reset_mask": mask.copy()})
                seeds = seeds_of(seed, 5)
                expected = sync.reset(seed=seeds, options={"reset_mask": mask.copy()})
                for one, other in zip(outputs, expected, strict=True):
                    assert_same(one, other)
            masks = outputs[1]["action_mask"]  # of all games, also without a reset
            assert np.array_equal(masks, native.action_masks())
            resets += 1
    assert resets > 10


def test_vector_env__has_the_spaces_of_sync_vector_env() -> None:
    for observation in ("float32", "uint8", "entities", "afterstates"):
        for mode in AutoresetMode:
            see_board = observation == "uint8"
            sync, native = both(3, mode, observation=observation, see_board=see_board)
            for name in (
                *("observation_space", "action_space", "num_envs", "render_mode"),
                *("single_observation_space", "single_action_space"),
            ):
                assert getattr(native, name) == getattr(sync, name)
            assert native.metadata["autoreset_mode"] is sync.metadata["autoreset_mode"] is mode
            assert native.autoreset_mode is mode


# Episodes


@pytest.mark.parametrize("action", [DISCARD, N_ACTIONS, -1, 2**40])
def test_step__loses_on_an_illegal_action(action: int) -> None:
    env = TokaidoDuoEnv("random", seat=1, reward="margin")
    before, info = env.reset(seed=0)
    assert action not in np.flatnonzero(info["action_mask"])
    observation, *outputs, info = env.step(action)
    assert outputs == [-1.0, True, False]
    assert np.array_equal(observation, before)
    assert (info["player"], info["next_player"]) == (1, NO_PLAYER)
    assert not info["action_mask"].any()
    assert not env.action_masks().any()
    with pytest.raises(RuntimeError, match="game 0 has ended or not begun: call reset"):
        env.step(action)


def test_reset__starts_from_a_position() -> None:
    game = game_at(left=["artist"], lead=1, round=7, mine={"coins": 5})
    envs = [TokaidoDuoEnv("random", seat=1), TokaidoDuoVectorEnv(2, "random", seat=1)]
    for env in envs:
        _, info = env.reset(seed=3, options={"state": game.to_dict()})
        for mask in np.atleast_2d(info["action_mask"]):
            assert np.flatnonzero(mask).tolist() == game.legal_actions()
        env.reset(seed=3)
        assert env.games.batch.states["round"].tolist() == [1] * len(env.games)


# Gymnasium's wrappers

SAME = {"func": lambda value: value}
WRAPPERS: dict[str, dict[str, Any]] = {
    "FilterObservation": {"filter_keys": ["areas"]},
    "FlattenObservation": {},
    "ReshapeObservation": {"shape": (N_FEATURES, 1)},
    "RescaleObservation": {"min_obs": np.float32(-1), "max_obs": np.float32(1)},
    "DtypeObservation": {"dtype": np.int32},
    "NormalizeObservation": {},
    "TransformReward": SAME,
    "ClipReward": {"min_reward": -0.5, "max_reward": 0.5},
    "NormalizeReward": {},
    "RecordEpisodeStatistics": {},
    "VectorizeTransformObservation": SAME
    | {"wrapper": gymnasium.wrappers.TransformObservation, "observation_space": None},
    "VectorizeTransformAction": SAME
    | {"wrapper": gymnasium.wrappers.TransformAction, "action_space": None},
    "VectorizeTransformReward": SAME | {"wrapper": gymnasium.wrappers.TransformReward},
    "DictInfoToList": {},
    "TransformObservation": SAME,
    "TransformAction": SAME,
    "HumanRendering": {},
}
OTHERS = {
    *("GrayscaleObservation", "ResizeObservation"),  # of images
    *("ClipAction", "RescaleAction"),  # actions that are no ids
    *("ArrayConversion", "JaxToNumpy", "JaxToTorch", "NumpyToTorch", "RecordVideo"),  # packages
}


def small_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")  # windows that nobody sees
    pixels = np.zeros((40, 60, 3), np.uint8)
    monkeypatch.setattr("tokaido_env.render.modes._pixels", lambda picture: pixels)


@pytest.mark.parametrize("mode", AutoresetMode)
def test_vector_env__works_in_all_wrappers_of_gymnasium(
    mode: AutoresetMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some wrappers refuse an autoreset mode: those that also refuse `SyncVectorEnv`."""
    small_pictures(monkeypatch)
    monkeypatch.setitem(sys.modules, "cv2", SimpleNamespace(resize=resized))
    names = set(wrappers.__all__)
    assert names <= WRAPPERS.keys() | OTHERS  # a new wrapper needs a row
    for name in names & WRAPPERS.keys():
        options = {
            "observation": "entities" if name == "FilterObservation" else "float32",
            "render_mode": "rgb_array" if name == "HumanRendering" else None,
        }
        sync, native = both(3, mode, 6, opponent="random", **options)
        native.metadata = native.metadata | {"render_fps": 1000}  # a window would wait
        wrapped = wrap(name, native)
        assert (wrapped is None) == (wrap(name, sync) is None)
        if wrapped is not None:
            check_wrapped(wrapped, mode)
        assert wrapped is not None or mode != AutoresetMode.NEXT_STEP


def wrap(name: str, envs: Any) -> Any:
    try:
        return getattr(wrappers, name)(envs, **WRAPPERS[name])
    except (ValueError, AssertionError):
        return None


def resized(picture: npt.NDArray[np.uint8], size: tuple[int, int]) -> npt.NDArray[np.uint8]:
    """Stand in for OpenCV's `resize`."""
    return np.zeros((size[1], size[0], 3), np.uint8)


def check_wrapped(envs: Any, mode: AutoresetMode) -> None:
    """Play 15 steps in a wrapper."""
    observations, _ = envs.reset(seed=0)
    old = Version(gymnasium.__version__) < Version("1.4")  # its normalised space has bounds
    for _ in range(15):
        in_space = envs.observation_space.contains(observations)
        assert in_space or (old and isinstance(envs, wrappers.NormalizeObservation)), envs
        actions = envs.unwrapped.action_masks().argmax(axis=1)
        observations, _, terminations, truncations, infos = envs.step(actions)
        assert isinstance(infos, list | dict)
        if mode == AutoresetMode.DISABLED and (ended := terminations | truncations).any():
            envs.reset(options={"reset_mask": ended.copy()})
    envs.close()


# Seeds, specs, frames


def test_vector_reset__takes_any_sequence_of_seeds() -> None:
    envs = TokaidoDuoVectorEnv(2, "random")
    each = envs.reset(seed=[4, 9])[1]["seed"].tolist()
    assert each == [4, 9]
    for seeds in ((4, 9), range(4, 10, 5), np.array([4, 9], np.uint8), [np.int64(4), 9]):
        assert envs.reset(seed=seeds)[1]["seed"].tolist() == each
    for seeds in ([None, 7], (None, 7), np.array([None, 7])):
        envs.reset(seed=each)
        assert envs.reset(seed=seeds)[1]["seed"].tolist() == [int(episode_seed(4, 1)), 7]
    envs.reset(seed=each)
    follow = [int(episode_seed(seed, 1)) for seed in each]
    assert envs.reset(seed=[None, None])[1]["seed"].tolist() == follow
    assert envs.reset(seed=np.array(4))[1]["seed"].tolist() == seeds_of(4, 2)


def test_spec__makes_the_same_environments_again() -> None:
    options: dict[str, Any] = {"opponent": "random", "seat": 1, "max_episode_steps": 7}
    env = gymnasium.make(ID, **options)
    vector_options = options | {"autoreset_mode": "NextStep", "disable_env_checker": True}
    envs = gymnasium.make_vec(ID, num_envs=3, **vector_options)
    for one, make_again in ((env, gymnasium.make), (envs, gymnasium.make_vec)):
        assert one.spec is not None
        for spec in (one.spec, EnvSpec.from_json(one.spec.to_json()), deepcopy(one.spec)):
            again = make_again(spec)
            assert again.spec == one.spec
            assert np.array_equal(again.reset(seed=2)[0], one.reset(seed=2)[0])


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP])
@pytest.mark.parametrize("kind", ["ansi", "rgb_array", "ansi_list"])
def test_vector_render__returns_the_frames_of_sync_vector_env(
    kind: str, mode: AutoresetMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every third step the first game is lost; pictures of pixels stand for themselves."""
    if kind == "rgb_array":
        monkeypatch.setattr("tokaido_env.render.modes._pixels", lambda picture: picture)
    sync, native = both(2, mode, opponent="random", render_mode=kind)
    assert (native.render_mode, native.metadata["render_fps"]) == (kind, 2)
    for envs in (sync, native):
        envs.reset(seed=[3, 4])
    for step in range(8):
        actions = native.action_masks().argmax(axis=1)
        actions[0] = DISCARD if step % 3 == 0 else actions[0]
        for envs in (sync, native):
            envs.step(actions)
        if step not in (2, 3):
            frames, expected = native.render(), sync.render()
            assert isinstance(frames, tuple)
            assert frames == expected


# Refusals


@pytest.mark.parametrize(
    "mask", [[0, 2], [True, False], np.ones(3, np.int8), np.ones((3, 1), bool), True]
)
def test_reset__refuses_a_wrong_reset_mask(mask: Any) -> None:
    envs = TokaidoDuoVectorEnv(3, "random", autoreset_mode="Disabled")
    envs.reset(seed=0)
    with pytest.raises(ValueError, match=r"reset_mask: expected bool of shape \(3,\)"):
        envs.reset(options={"reset_mask": mask})
