"""Tests of `tokaido_env.aec`: its usual wrappers as reference, masks, contracts."""

import copy
import importlib
import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pettingzoo
import pytest
from pettingzoo.utils.wrappers import (
    AssertOutOfBoundsWrapper,
    OrderEnforcingWrapper,
    TerminateIllegalWrapper,
)
from positions import position

import tokaido_env
from tokaido_env import IllegalMove, env, raw_env
from tokaido_env.core.actions import IDS, N_ACTIONS

AGENTS = ["player_0", "player_1"]
READ_AFTER_RESET = (
    *("agents", "num_agents", "agent_selection", "rewards"),
    *("terminations", "truncations", "infos", "_cumulative_rewards"),
)
CALLED_AFTER_RESET: list[Callable[[Any], Any]] = [
    lambda e: e.step(0),
    lambda e: e.observe("player_0"),
    lambda e: e.state(),
    lambda e: e.render(),
    lambda e: next(e.agent_iter()),
    lambda e: e.last(),
]


def stack(**options: Any) -> Any:
    """Return the environment in PettingZoo's usual wrappers."""
    terminating = TerminateIllegalWrapper(raw_env(**options), illegal_reward=-1)
    return OrderEnforcingWrapper(AssertOutOfBoundsWrapper(terminating))


def comparable(value: Any) -> Any:
    """Return arrays as lists, which `==` compares as a whole."""
    if isinstance(value, dict):
        return {key: comparable(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    return value


def facts(e: Any) -> dict[str, Any]:
    """Return all readable attributes of an environment."""
    read = {name: comparable(getattr(e, name)) for name in READ_AFTER_RESET}
    seen = {agent: comparable(e.observe(agent)) for agent in AGENTS}
    return copy.deepcopy(read) | seen | {"state": comparable(e.state())}


def raised(call: Callable[..., Any], *arguments: Any) -> type[Exception] | None:
    try:
        call(*arguments)
    except Exception as error:
        return type(error)
    return None


def some_action(e: Any, rng: random.Random) -> Any:
    """Return a legal action, or sometimes a wrong one."""
    if not e.agents:
        return rng.choice([None, 0])
    legal = e.unwrapped.game.legal_actions()
    wrong = [None, -1, N_ACTIONS, 10**9, "pilgrim", 0.5, np.float32(1.0), np.array([0]), *[0] * 3]
    if e.terminations[e.agent_selection]:
        return rng.choice([None, None, *wrong])
    if rng.random() < 0.01:
        return rng.choice([*wrong, rng.randrange(N_ACTIONS), np.int64(rng.randrange(N_ACTIONS))])
    return rng.choice([int, np.int64])(rng.choice(legal))


# Masks, and PettingZoo's registry; its own tests run in `tests/conformance`


@pytest.mark.parametrize(("observation", "see_board"), [("dict", True), ("afterstates", False)])
@pytest.mark.parametrize("mask", ["both", "observation", None, "infos"])
def test_mask__is_where_it_is_requested(observation: Any, see_board: bool, mask: Any) -> None:
    e = env("family:train/5", observation=observation, see_board=see_board, mask=mask)
    e.reset(seed=1)
    for _ in range(40):
        agent, other = e.agent_selection, AGENTS[1 - AGENTS.index(e.agent_selection)]
        seen, info = e.observe(agent), e.infos[agent]
        where = [one for one in (seen, info) if "action_mask" in one]
        places = {"both": [seen, info], "observation": [seen], None: [seen], "infos": [info]}
        assert where == places[mask]
        for one in where:
            assert np.flatnonzero(one["action_mask"]).tolist() == e.game.legal_actions()
        assert e.state_space.contains(e.state())
        for agent in AGENTS:
            assert e.observation_space(agent).contains(e.observe(agent))
            assert e.observation_space(agent) is e.observation_space(agent)
        for one in (e.observe(other), e.infos[other]):
            assert not one.get("action_mask", np.zeros(1)).any()
        e.step(e.game.legal_actions()[-1])


def test_box__has_its_mask_in_infos_only() -> None:
    e = env(observation="box")
    e.reset(seed=1)
    assert {"action_mask" in e.infos[agent] for agent in AGENTS} == {True}
    with pytest.raises(ValueError, match=r"^mask: "):
        env(observation="box", mask="observation")


@pytest.mark.skipif(not hasattr(pettingzoo, "make"), reason="PettingZoo has no registry")
def test_registry__makes_the_environment() -> None:
    for name in ("tokaido_duo_v0", "tokaido_duo-v0", "tokaido_duo"):
        e = pettingzoo.make("aec", name, mask="infos", board="family:7")
        assert (type(e), e.boards.name) == (env, "family:7")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        importlib.reload(tokaido_env)  # registers nothing twice


# Equality to the usual wrappers


@pytest.mark.parametrize("reward", ["win", "margin"])
@pytest.mark.parametrize("observation", ["dict", "box"])
def test_env__equals_the_usual_wrappers(observation: Any, reward: Any) -> None:
    options = {"observation": observation, "reward": reward}
    fused, wrapped = env(**options), stack(**options)
    rng = random.Random(f"{observation} {reward}")
    ends = set()
    for game in range(12):
        seed = rng.choice([None, game]) if game else 0
        for e in (fused, wrapped):
            e.reset(seed=seed)
        after_the_end = 0
        while after_the_end < 3:
            action = some_action(fused, rng)
            assert raised(fused.step, action) is raised(wrapped.step, action), repr(action)
            assert facts(fused) == facts(wrapped), repr(action)
            ends |= {(fused.game.end, *fused.rewards.values())}
            after_the_end += not fused.agents
    assert {end for end, *_ in ends} == {None, "triggers"}  # illegal actions and ordinary ends
    assert (None, -1.0, 0.0) in ends
    assert (None, 0.0, -1.0) in ends


def test_calls__before_reset_and_without_a_step_are_refused_like_the_wrappers() -> None:
    for e in (env(), stack()):
        for name in READ_AFTER_RESET:
            with pytest.raises(AttributeError):
                getattr(e, name)
        for call in CALLED_AFTER_RESET:
            assert raised(call, e) is not None
    for e in (env(), stack()):
        e.reset(seed=0)
        agents = iter(e.agent_iter())
        next(agents)
        with pytest.raises(AssertionError, match=r"need to call step\(\) or reset\(\)"):
            next(agents)


# Infos


def test_infos__have_player_and_next_player() -> None:
    last_movers = set()
    e = env()
    for seed in range(12):
        e.reset(seed=seed)
        rng, paid, twice = random.Random(seed), dict.fromkeys(AGENTS, 0.0), 0
        while e.game.legal_mask:
            mover = e.game.player
            e.step(rng.choice(e.game.legal_actions()))
            info = e.infos["player_1"]
            decides = -1 if e.game.player is None else e.game.player
            assert (info["player"], info["next_player"]) == (mover, decides)
            twice += mover == e.game.player
            paid = {agent: paid[agent] + e.rewards[agent] for agent in AGENTS}
        assert twice > 20
        assert paid == e._cumulative_rewards
        last_movers.add((e.game.winner(), mover))
    assert last_movers == {(0, 0), (0, 1), (1, 0), (1, 1)}


def test_step__raises_for_illegal_actions_if_requested() -> None:
    e = env(illegal="raise")
    e.reset(seed=3)
    e.step(e.game.legal_actions()[0])
    before = facts(e)
    with pytest.raises(IllegalMove, match="legal are"):
        e.step(IDS["discard:fan"])
    for outside in (N_ACTIONS, -1, None):
        with pytest.raises(AssertionError, match="action is not in action space"):
            e.step(outside)
    assert facts(e) == before


# Observations and spaces


def arrays_in(outputs: Any) -> list[Any]:
    """Return all arrays in nested dicts and sequences."""
    if isinstance(outputs, np.ndarray):
        return [outputs]
    inner = outputs.values() if isinstance(outputs, dict) else outputs
    return [array for one in inner for array in arrays_in(one)]


@pytest.mark.parametrize("observation", ["dict", "box", "afterstates"])
def test_outputs__belong_to_the_caller(observation: Any) -> None:
    """A caller that overwrites every array it receives changes no later one."""

    def outputs(e: Any) -> Any:
        return [*(e.observe(agent) for agent in AGENTS), e.state()]

    spoilt, kept = (env(observation=observation, mask="both") for _ in range(2))
    for e in (spoilt, kept):
        e.reset(seed=5)
    for _ in range(20):
        for _ in range(2):
            received = arrays_in(outputs(spoilt))
            expected = arrays_in(outputs(kept))
            assert [array.tobytes() for array in received] == [one.tobytes() for one in expected]
            for array in received:
                array[...] = 1 - array
        for e in (spoilt, kept):
            e.step(kept.game.legal_actions()[-1])


# Seeds, episodes, positions


def test_reset__from_a_final_position_is_done() -> None:
    over = position(phase="OVER", left=[], theirs={"temple": 9}, end="triggers")
    e = env()
    e.reset(options={"state": over})
    assert e.rewards == {"player_0": -1.0, "player_1": 1.0}
    assert all(e.terminations.values())
    e.step(None)
    e.step(None)
    assert e.agents == []
