"""Tests of `tokaido_env.gym`: `Game` and `SyncVectorEnv` as references, opponents."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from learner_games import CountingAgent, LearnerGame, drawn_seat, random_legal_actions
from positions import game_at, other_board_data, position, write_board

from tokaido_env import IllegalMove
from tokaido_env.agents import Agent, make
from tokaido_env.core.actions import IDS, N_ACTIONS
from tokaido_env.core.observation import FEATURES
from tokaido_env.core.rng import episode_seed, game_seed
from tokaido_env.core.state import NO_PLAYER
from tokaido_env.gym import TokaidoDuoEnv, TokaidoDuoVectorEnv
from tokaido_env.position import PositionError

SEAT = next(feature.start for feature in FEATURES if feature.name == "seat")
ID = "tokaido_env:TokaidoDuo-v0"
DISCARD = IDS["discard:fan"]  # never a game's first decision
NEEDS_RESET = "game 0 has ended or not begun: call reset"

# Game i is against "random" if i is even, else "greedy".
OPPONENTS: dict[str, Callable[[], list[Agent]]] = {
    "in the kernel": lambda: [make("random"), make("greedy")],
    "outside": lambda: [CountingAgent("random"), CountingAgent("greedy")],
    "mixed": lambda: [make("random"), CountingAgent("greedy")],
}


def test_make__passes_options_by_name() -> None:
    agent = CountingAgent()
    env = gymnasium.make(ID, opponent=agent, seat=1, observation="uint8")
    observation, info = env.reset(seed=0)
    assert (observation.dtype, observation[SEAT], info["seat"]) == (np.uint8, 1, 1)
    assert agent.decisions > 0
    options = {"opponent": ["greedy", agent], "seat": 0, "autoreset_mode": "Disabled"}
    envs = gymnasium.make_vec(ID, num_envs=3, **options)
    assert envs.metadata["autoreset_mode"] is AutoresetMode.DISABLED
    assert [one.spec for one in envs.unwrapped.opponents] == ["greedy", "recorder", "greedy"]
    assert envs.reset(seed=0)[1]["seat"].tolist() == [0, 0, 0]


# Games of a learner, with `Game` as reference


def walk(envs: Any, steps: int, seed: int = 0) -> Iterator[tuple[Any, ...]]:
    """Play random legal actions; yield the actions and the results of each step."""
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        actions = random_legal_actions(envs.action_masks(), rng)
        yield (actions, *envs.step(actions))


@pytest.mark.parametrize(
    ("kind", "seat", "reward", "boards"),
    [
        ("in the kernel", "random", "win", ["shikoku"]),
        ("mixed", "random", "margin", ["shikoku"]),
        ("outside", 1, "win", ["short"]),
        ("mixed", 0, "margin", ["short", "shorter"]),
    ],
    ids=str,
)
def test_step__runs_to_the_learners_next_decision(
    kind: str, seat: Any, reward: Any, boards: list[Any], short: Path, tmp_path: Path
) -> None:
    """Seats, rewards, observations, masks and ends, over several episodes of six games.

    On the short boards, handed out in turn, games end at the cap, and points decide (R10.1). Both
    opponents meet both boards.
    """
    shorter = write_board(tmp_path / "other.toml", other_board_data() | {"max_rounds": 1})
    pool = [{"short": short, "shorter": shorter}.get(name, name) for name in boards]
    n, base, opponents = 6, 53, OPPONENTS[kind]()
    envs = TokaidoDuoVectorEnv(n, opponents, seat, pool, reward)

    def begin(i: int, episode: int) -> LearnerGame:
        seed = int(episode_seed(game_seed(base, i), episode))
        own = drawn_seat(seed) if seat == "random" else seat
        opponent = opponents[((i // 2 if len(pool) == 2 else 0) + i) % 2]
        return LearnerGame(seed, own, opponent, board=pool[i % len(pool)])

    seen, _ = envs.reset(seed=base)
    games, episodes = [begin(i, 0) for i in range(n)], [0] * n
    steps = walk(envs, 420 if boards == ["shikoku"] else 60)
    for actions, seen, rewards, terminated, truncated, info in steps:
        assert not truncated.any()
        for i in range(n):
            alone, own = games[i], games[i].seat
            alone.play(int(actions[i]))
            assert rewards[i] == pytest.approx(alone.reward(reward))
            assert terminated[i] == alone.game.is_over
            if alone.game.is_over:
                final = {key: int(info["final_info"][key][i]) for key in ("seat", "seed", "board")}
                assert (final["seat"], final["seed"]) == (own, alone.seed)
                assert envs.boards[final["board"]] == alone.game.board
                assert info["final_obs"][i].tolist() == alone.observation()
                episodes[i] += 1
                games[i] = begin(i, episodes[i])
            assert info["player"][i] == (NO_PLAYER if terminated[i] else own)
            assert envs.lengths[i] == games[i].length
            assert (info["seat"][i], info["next_player"][i]) == (games[i].seat, games[i].seat)
            assert seen[i].tolist() == games[i].observation()
            legal = games[i].game.legal_actions()
            assert np.flatnonzero(info["action_mask"][i]).tolist() == legal
    assert min(episodes) >= 2


def test_opponents__decide_in_batches() -> None:
    opponent = CountingAgent()
    envs = TokaidoDuoVectorEnv(50, opponent)
    envs.reset(seed=0)
    assert len(list(walk(envs, 20))) == 20
    assert opponent.decisions > 10 * opponent.calls > 0


def test_random_seats__are_fair() -> None:
    assert 80 <= sum(drawn_seat(game_seed(0, i)) for i in range(200)) <= 120


# The native vector environment is Gymnasium's of single ones


def both(n: int, mode: AutoresetMode, **options: Any) -> tuple[SyncVectorEnv, TokaidoDuoVectorEnv]:
    single = partial(gymnasium.make, ID, disable_env_checker=True, **options)
    return SyncVectorEnv([single] * n, autoreset_mode=mode), (
        TokaidoDuoVectorEnv(n, autoreset_mode=mode, **options)
    )


def seeds_of(seed: Any, n: int) -> Any:
    """Return the seeds of `n` environments, as `SyncVectorEnv` takes them."""
    return [game_seed(seed, i) for i in range(n)] if isinstance(seed, int) else seed


def assert_same(outputs: Any, expected: Any, flags: npt.NDArray[np.bool_] | None = None) -> None:
    """Check keys, types, shapes and values; infos only where they are flagged."""
    assert type(outputs) is type(expected)
    if isinstance(expected, tuple):
        for one, other in zip(outputs, expected, strict=True):
            assert_same(one, other)
        return
    if isinstance(expected, dict):
        assert outputs.keys() == expected.keys()
        for key in expected:
            assert_same(outputs[key], expected[key], expected.get(f"_{key}"))
        return
    assert (outputs.dtype, outputs.shape) == (expected.dtype, expected.shape)
    if flags is not None:
        outputs, expected = outputs[flags], expected[flags]
    if outputs.dtype == object:
        assert_same(tuple(outputs), tuple(expected))
    else:
        assert outputs.tolist() == expected.tolist()


@pytest.fixture(
    params=[
        {"seat": "random", "opponent": "greedy"},
        {"opponent": "random", "board": "short", "reward": "margin", "observation": "uint8"},
        {"seat": 1, "opponent": CountingAgent(), "board": "family:valid", "see_board": True},
        {"opponent": "random", "board": "family:train/9", "observation": "afterstates"},
    ]
)
def options(request: pytest.FixtureRequest, short: Path) -> dict[str, Any]:
    """Return options of both environments; games on the short board end at the cap."""
    given: dict[str, Any] = request.param
    return given | {"board": short} if given.get("board") == "short" else given


@pytest.mark.parametrize("mode", AutoresetMode)
def test_vector_env__equals_sync_vector_env(mode: AutoresetMode, options: dict[str, Any]) -> None:
    """Spaces, and results of legal and illegal actions; without autoreset, a mask resets."""
    sync, native = both(5, mode, **options)
    spaces = ("single_observation_space", "single_action_space", "observation_space")
    for name in (*spaces, "action_space", "num_envs", "render_mode"):
        assert getattr(native, name) == getattr(sync, name)
    assert native.metadata["autoreset_mode"] is sync.metadata["autoreset_mode"] is mode
    rng, ends, losses = np.random.default_rng(0), 0, 0
    for seed in (3, None, [8, None, 2**53 - 1, 5, 5]):
        assert_same(native.reset(seed=seed), sync.reset(seed=seeds_of(seed, 5)))
        for step in range(130):
            actions = random_legal_actions(native.action_masks(), rng)
            actions[rng.random(len(actions)) < 0.02] = rng.integers(N_ACTIONS)
            outputs = native.step(actions)
            assert_same(outputs, sync.step(actions))
            done = outputs[2] | outputs[3]
            ends += done.sum()
            losses += (outputs[1] == -1.0).sum()
            if mode == AutoresetMode.DISABLED and done.any():
                mask = done | (rng.random(5) < 0.2)
                for again in (None, step, [step, None, 2, 3, step]):
                    reset = native.reset(seed=again, options={"reset_mask": mask.copy()})
                    seeds = seeds_of(again, 5)
                    assert_same(reset, sync.reset(seed=seeds, options={"reset_mask": mask.copy()}))
    assert ends > losses / 2 > 1


# Episodes


@pytest.mark.parametrize("action", [DISCARD, N_ACTIONS, -1, 2**40])
def test_step__loses_on_an_illegal_action_or_refuses_it(action: int) -> None:
    env = TokaidoDuoEnv("random", seat=1, reward="margin")
    strict = TokaidoDuoEnv("random", seat=1, illegal="raise")
    before, info = env.reset(seed=0)
    strict.reset(seed=0)
    assert action not in np.flatnonzero(info["action_mask"])
    observation, *outputs, info = env.step(action)
    assert outputs == [-1.0, True, False]
    assert np.array_equal(observation, before)
    assert (info["player"], info["next_player"]) == (1, NO_PLAYER)
    assert not info["action_mask"].any()
    assert not env.action_masks().any()
    with pytest.raises(RuntimeError, match=NEEDS_RESET):
        env.step(action)
    with pytest.raises(IllegalMove, match=f"game 0: illegal action {action}.*: legal are "):
        strict.step(action)
    assert strict.step(int(strict.action_masks().argmax()))[1] == 0


def test_reset__starts_from_a_position() -> None:
    game = game_at(left=["artist"], lead=1, round=7, mine={"coins": 5})
    envs = TokaidoDuoVectorEnv(2, "random", seat=1)
    for env, games in ((TokaidoDuoEnv("random", seat=1), 1), (envs, 2)):
        _, info = env.reset(seed=3, options={"state": game.to_dict()})
        for mask in np.atleast_2d(info["action_mask"]):
            assert np.flatnonzero(mask).tolist() == game.legal_actions()
        env.reset(seed=3)
        batch = env.batch if games == 2 else env.games.batch
        assert batch.states["round"].tolist() == [1] * games


def test_reset__refuses_a_game_that_the_opponent_ends() -> None:
    nearly = {"temple": 8, "garden": 6, "gold": 6, "pilgrim": 3}
    over = position(lead=0, left=["pilgrim"], dice=(1, 1, 1), mine=nearly, end_triggered=True)
    for opponent in (make("greedy"), CountingAgent("greedy")):
        envs = TokaidoDuoVectorEnv(1, opponent, seat=1, autoreset_mode="NextStep")
        with pytest.raises(PositionError, match="game 0 ends before the learner decides"):
            envs.reset(seed=0, options={"state": over})
        with pytest.raises(RuntimeError, match=NEEDS_RESET):
            envs.step([0])


def test_step__before_the_first_reset_is_refused() -> None:
    for mode in AutoresetMode:
        envs = TokaidoDuoVectorEnv(2, "random", autoreset_mode=mode)
        envs.reset(seed=0, options={"reset_mask": np.array([True, False])})
        with pytest.raises(RuntimeError, match="game 1 has ended or not begun: call reset"):
            envs.step([0, 0])


# Opponents


@pytest.mark.parametrize("when", ["now", "next game"])
def test_set_opponents__keeps_the_games(when: Any, short: Path) -> None:
    """Between compiled and Python opponents: each game equals the reference with that change."""
    coming: list[Any] = [make("random")] * 4
    envs = TokaidoDuoVectorEnv(4, coming[0], seat=0, board=short)
    envs.reset(seed=range(20, 24))
    games = [LearnerGame(20 + i, 0, coming[i], board=short) for i in range(4)]
    episodes, rng = [0] * 4, np.random.default_rng(0)
    for step in range(60):
        if step % 7 == 3:
            kind, chosen = ("greedy", "random")[step % 2], np.flatnonzero(rng.random(4) < 0.6)
            opponent: Any = make(kind) if step % 3 else CountingAgent(kind)
            playing = envs.opponents
            envs.set_opponents([opponent], chosen, when)
            assert when == "now" or envs.opponents == playing
            for i in chosen.tolist():
                coming[i] = opponent
                games[i].opponent = opponent if when == "now" else games[i].opponent
        actions = random_legal_actions(envs.action_masks(), rng)
        seen, _, terminated, *_ = envs.step(actions)
        for i in range(4):
            games[i].play(int(actions[i]))
            assert terminated[i] == games[i].game.is_over
            if terminated[i]:
                episodes[i] += 1
                games[i] = LearnerGame(episode_seed(20 + i, episodes[i]), 0, coming[i], board=short)
                assert envs.opponents[i] is coming[i]
            assert seen[i].tolist() == games[i].observation()
    assert min(episodes) > 2


class Breaking(CountingAgent):
    """Plays like random for five calls, then an unknown action."""

    spec = "breaking"

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> Any:
        return super().act(boards, states, legal, keys) + N_ACTIONS * (self.calls > 5)


@pytest.mark.parametrize("mode", AutoresetMode)
def test_opponent__that_fails_ends_all_games_until_a_reset(mode: AutoresetMode) -> None:
    envs = TokaidoDuoVectorEnv(3, [Breaking(), "greedy"], autoreset_mode=mode)
    envs.reset(seed=0)
    with pytest.raises(IllegalMove, match=r"agent 'breaking': game \d: illegal action \d+"):
        list(walk(envs, 40))
    assert not envs.action_masks().any()
    with pytest.raises(RuntimeError, match=NEEDS_RESET):
        envs.step([0, 0, 0])
    envs.set_opponents("random")
    fresh = TokaidoDuoVectorEnv(3, "random", autoreset_mode=mode)
    for games in (envs, fresh):
        games.reset(seed=1)
    assert_same([*walk(envs, 5)][-1], [*walk(fresh, 5)][-1])


# Seeds and frames


def test_vector_reset__takes_any_sequence_of_seeds() -> None:
    envs = TokaidoDuoVectorEnv(2, "random")
    for seeds in ([4, 9], range(4, 10, 5), np.array([4, 9], np.uint8), [np.int64(4), 9]):
        assert envs.reset(seed=seeds)[1]["seed"].tolist() == [4, 9]
    for seeds in ([None, 7], np.array([None, 7])):
        envs.reset(seed=[4, 9])
        assert envs.reset(seed=seeds)[1]["seed"].tolist() == [int(episode_seed(4, 1)), 7]
    assert envs.reset(seed=np.array(4))[1]["seed"].tolist() == seeds_of(4, 2)
    with pytest.raises(ValueError, match="seed: expected 2"):
        envs.reset(seed=[1, 2, 3])


def test_vector_render__returns_the_frames_of_sync_vector_env() -> None:
    sync, native = both(2, AutoresetMode.SAME_STEP, opponent="random", render_mode="ansi")
    assert (native.render_mode, native.metadata["render_fps"]) == ("ansi", 2)
    for envs in (sync, native):
        envs.reset(seed=[3, 4])
        envs.step(native.action_masks().argmax(axis=1))
    assert native.render() == sync.render()
