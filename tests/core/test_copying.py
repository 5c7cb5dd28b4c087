"""Tests of `tokaido_env.core.copying`: copies of every object that holds a running game."""

import copy
import pickle
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import pytest

from tokaido_env import Batch, Game, env
from tokaido_env.record import replay
from tokaido_env.web.game_session import HUMAN, Session

COPIES: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda original: pickle.loads(pickle.dumps(original)),
}


class Case(NamedTuple):
    """How to make an object, play a random legal move in it, and compare it."""

    make: Callable[[], Any]
    play: Callable[[Any, random.Random], Any]
    facts: Callable[[Any], Any]


def begun(made: Any, *arguments: Any, **options: Any) -> Any:
    made.reset(*arguments, **options)
    return made


def of_games(make: Callable[[], Any], batch: Callable[[Any], Batch] = lambda e: e.batch) -> Case:
    """Return the case of an environment with a batch of games."""

    def play(e: Any, rng: random.Random) -> None:
        masks = batch(e).masks(batch(e).all_games)
        moves = [rng.choice(mask.nonzero()[0].tolist()) for mask in masks]
        e.step(moves if len(moves) > 1 else moves[0])

    def facts(e: Any) -> Any:
        return {name: array.tobytes() for name, array in batch(e).snapshot().items()}

    return Case(make, play, facts)


def of_game(make: Callable[[], Any], play: Callable[[Any, Any], Any] | None = None) -> Case:
    """Return the case of an object around one `Game`; its record has to verify."""

    def facts(e: Any) -> Any:
        game = e if isinstance(e, Game) else e.game
        assert replay(game.record()).states[-1].tobytes() == game.states[0].tobytes()
        return game.events(), game.legal_actions(), copy.deepcopy(getattr(e, "rewards", None))

    return Case(make, play or (lambda e, move: e.step(move)), facts)


def with_move(play: Callable[[Any, Any], Any]) -> Callable[[Any, random.Random], Any]:
    return lambda e, rng: play(e, rng.choice((e if isinstance(e, Game) else e.game).legal_labels()))


def action_of(e: Any, rng: random.Random) -> None:
    e.step(rng.choice(e.game.legal_actions()))


def made_by(module: str, name: str, *arguments: Any) -> Any:
    return getattr(pytest.importorskip(f"tokaido_env.{module}"), name)(*arguments)


def torchrl_case() -> Case:
    def play(e: Any, rng: random.Random) -> None:
        masks = e.games.masks(e.games.all_games)
        e.games.step([rng.choice(mask.nonzero()[0].tolist()) for mask in masks])

    case = of_games(lambda: begun(made_by("torchrl", "TokaidoDuoEnv", 3)), lambda e: e.games)
    return case._replace(play=play)


CASES: dict[str, Case] = {
    "Game": of_game(lambda: Game(seed=1), with_move(lambda game, label: game.play(label))),
    "TokaidoEnv": of_game(lambda: begun(env(mask="both"), 1), action_of),
    "Batch": of_games(lambda: begun(Batch(3), 1), lambda e: e),
    "Batch without copies": of_games(lambda: begun(Batch(3, copy=False), 1), lambda e: e),
    "gym": of_games(
        lambda: begun(gymnasium.make("TokaidoDuo-v0").unwrapped, seed=1), lambda e: e.games.batch
    ),
    "gym vector": of_games(lambda: begun(gymnasium.make_vec("TokaidoDuo-v0", 3), seed=1)),
    "sb3": of_games(
        lambda: begun(made_by("sb3", "TokaidoVecEnv", 3, "random", 1)), lambda e: e.games.batch
    ),
    "torchrl": torchrl_case(),
    "rllib": Case(
        lambda: begun(made_by("rllib", "TokaidoMultiAgentEnv"), seed=1),
        lambda e, rng: e.step({e.aec.agent_selection: rng.choice(e.aec.game.legal_actions())}),
        lambda e: (e.aec.game.events(), e.aec.game.legal_actions()),
    ),
    "Session": of_game(
        lambda: Session((HUMAN, HUMAN), seed=1),
        with_move(lambda session, label: session.play(label)),
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("kind", COPIES)
def test_copies__of_running_games_are_independent(name: str, kind: str) -> None:
    case = CASES[name]
    original, rng = case.make(), random.Random(0)
    for _ in range(5):
        case.play(original, rng)
    before = case.facts(original)
    other = COPIES[kind](original)
    assert case.facts(other) == before
    for seed in range(5, 15):
        case.play(other, random.Random(seed))
    assert case.facts(other) != before
    assert case.facts(original) == before
    for seed in range(5, 15):  # the same moves meet the same chance
        case.play(original, random.Random(seed))
    assert case.facts(other) == case.facts(original)


def test_copies__of_a_list_keep_its_objects_together() -> None:
    e = begun(env(mask="both"), 1)
    other, game = copy.deepcopy([e, e.game])
    assert other.game is game is not e.game
    other.infos[other.agent_selection]["action_mask"][:] = 0
    assert e.infos[e.agent_selection]["action_mask"].any()
