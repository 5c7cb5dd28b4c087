"""Fuzz cases of arguments: calls are taken, or refused without a change of the object."""

import copy
import random
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import mutants
import numpy as np
from fuzz import Cases, allow_refusal
from fuzz_arguments import (
    POSITIONS,
    SEED,
    Give,
    N,
    Player,
    begins,
    size,
    some,
    spoilt,
    start,
    starts,
)
from garbage import check, check_bounds
from gymnasium.vector import AutoresetMode
from pettingzoo.utils.env_logger import EnvLogger

from tokaido_env import Game
from tokaido_env.aec import AGENTS, env, raw_env
from tokaido_env.batch import Batch
from tokaido_env.core.bots import GREEDY, NO_BOT, RANDOM
from tokaido_env.gym import TokaidoDuoEnv, TokaidoDuoVectorEnv
from tokaido_env.openspiel import TokaidoDuoGame, TokaidoDuoObserver
from tokaido_env.sb3 import TokaidoVecEnv
from tokaido_env.single_agent import SingleAgentBatch

CALLS = 6
ERRORS = (ValueError, IndexError, TypeError, RuntimeError)
REMEDIES = (
    *(
        "expected",
        "needs",
        "legal are",
        "possible are",
        "is over",
        "not begun",
        "reset",
        "nothing to",
    ),
    *("unknown", "does not fit", "action space", "follow from", "no outcome", "only valid"),
    *(
        "has no attribute",
        "is not a valid",
        "another board than",
        "no such board file",
        "has neither",
    ),
)


class Target(NamedTuple):
    """One type of object under test.

    Attributes:
        make: makes the object from given options.
        calls: its methods by name, in an order in which all can be called.
        state: returns all that a refusal must not change.
        finish: checks the object and plays on.
        weight: how often it is tried.
        errors: more error types that it may raise.
    """

    make: Callable[[Give], Any]
    calls: dict[str, Callable[[Any, Give], Any]]
    state: Callable[[Any], Any]
    finish: Callable[[Any, Give], None]
    weight: int
    errors: tuple[type[Exception], ...] = ()


class Objects(Cases):
    """Objects of all kinds, with a few calls each, some with wrong arguments."""

    def set_up(self) -> None:
        EnvLogger.suppress_output()
        warnings.simplefilter("ignore")

    def check_valid(self) -> None:
        for name, target in TARGETS.items():
            for seed in range(5):
                give = Give(random.Random(seed), 0)
                made = target.make(give)
                for call, method in target.calls.items():
                    refused = _refused(target, lambda m=method, o=made, g=give: m(o, g))  # type: ignore[misc]
                    assert refused is None, (name, call, refused)
                target.finish(made, give)
            check(Batch(1))

    def case(self, rng: random.Random) -> bool:
        target = rng.choices(list(TARGETS.values()), [each.weight for each in TARGETS.values()])[0]
        made: list[Any] = []
        give = Give(rng, 0.3 if rng.random() < 0.3 else 0)
        refused = _refused(target, lambda: made.append(target.make(give)))
        if refused is not None:
            return False
        taken = _call(target, made[0], Give(rng, 0.3), rng)
        target.finish(made[0], Give(rng, 0))
        return taken


def _call(target: Target, made: Any, give: Give, rng: random.Random) -> bool:
    """Call methods in any order; return whether all calls were taken."""
    taken = True
    for _ in range(rng.randint(1, CALLS)):
        before = target.state(made)
        name = rng.choice(list(target.calls))
        refused = _refused(target, lambda name=name: target.calls[name](made, give))  # type: ignore[misc]
        if refused is not None:
            assert target.state(made) == before, f"{name} refused and changed: {refused}"
            taken = False
    return taken


def _refused(target: Target, call: Callable[[], Any]) -> str | None:
    """Call; return the message of a correct refusal, None if the call was taken."""
    with allow_refusal(*ERRORS, *target.errors) as messages:
        with allow_refusal(RecursionError, NotImplementedError, UnicodeError) as undeclared:
            call()
        assert not undeclared, undeclared
    for message in messages:
        assert any(word in message for word in REMEDIES), f"names no remedy: {message}"
    return messages[0] if messages else None


# Batch


def _moves(batch: Batch, games: Any = None) -> np.ndarray[Any, Any]:
    """Return a legal move in each game."""
    offered = batch.masks(batch.all_games).argmax(axis=1)
    if batch._begun and not batch.legal.all():
        offered = np.where(batch.legal != 0, offered, batch.outcome_weights().argmax(axis=1))
    with_size = N if games is None else size(games)
    right = isinstance(games, np.ndarray) and games.dtype.kind == "i" and (games < N).all()
    return np.resize(offered[games] if right else offered, with_size)


def _batch(give: Give) -> Batch:
    rng = give.rng
    batch = Batch(
        give(N),
        give(rng.choice(("shikoku", ["shikoku", "shikoku_ring"]))),
        chance=give(rng.choice(("sampled", "explicit"))),
        autoreset=give(rng.random() < 0.5),
        reward=give(rng.choice(("win", "margin"))),
        **_observation_options(give, ("float32", "uint8", "entities", "afterstates", None)),
        check=give(True),
        copy=give(rng.random() < 0.5),
    )
    if rng.random() < 0.9 or not give.wrong:
        batch.reset(rng.randrange(100))
        for _ in range(rng.choice((0, 0, 5, 60))):
            batch.play("random")
    return batch


def _observation_options(give: Give, among: tuple[str | None, ...]) -> dict[str, Any]:
    """Return options of the observation; a wrong `see_board` is rare."""
    observation = give.rng.choice(among)
    has_none = observation in (None, "entities", "afterstates") and not give.wrong
    return {"observation": give(observation), "see_board": give(not has_none)}


def _contents(games: Any) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in games.snapshot().items()}


def _finish_batch(batch: Batch, give: Give) -> None:
    batch.reset(0) if (batch.episode_info["base_seed"] < 0).any() else None
    if give.rng.random() < 0.1:
        check(batch)
    batch.finish("random")


def _advance(batch: Batch, give: Give) -> None:
    games = some(give)
    batch.advance(games, give(_moves(batch, games)))


def _observe(batch: Batch, give: Give) -> None:
    games = some(give)
    seen = batch.observe(games, give(np.zeros(size(games), give.rng.choice((np.int8, np.int64)))))
    check_bounds(seen)


def _seat(batch: Batch, give: Give) -> None:
    games = some(give)
    bots = give.rng.choice(([NO_BOT, RANDOM], [GREEDY, NO_BOT], [NO_BOT, NO_BOT]))
    batch.set_bots(games, give(np.array([bots] * size(games))))


BATCH: dict[str, Callable[[Any, Give], Any]] = {
    "reset": lambda batch, give: batch.reset(
        give(give.rng.choice((5, SEED, None))), starts(batch, give)
    ),
    "step": lambda batch, give: batch.step(give(_moves(batch))),
    "play": lambda batch, give: batch.play(give("random")),
    "weights": lambda batch, give: batch.outcome_weights(),
    "sample": lambda batch, give: batch.sample_outcomes(),
    "begin": lambda batch, give: batch.begin(some(give), give(7)),
    "place": lambda batch, give: batch.initialize(
        give(batch.all_games), give(7), starts(batch, give)
    ),
    "settle": lambda batch, give: batch.advance_to_decision(some(give)),
    "seat_bots": _seat,
    "advance": _advance,
    "illegal": lambda batch, give: batch.check_moves(batch.all_games, give(_moves(batch))),
    "keys": lambda batch, give: batch.keys(some(give)),
    "observe": _observe,
    "masks": lambda batch, give: batch.masks(some(give)),
    "rewards": lambda batch, give: batch.rewards(some(give)),
    "boards_of": lambda batch, give: batch.boards_of(some(give)),
    "snapshot": lambda batch, give: batch.snapshot(some(give)),
    "restore": lambda batch, give: batch.restore(give(spoilt(give, batch.snapshot()))),
    "restore one": lambda batch, give: batch.restore(
        spoilt(give, batch.snapshot(np.array([0]))), give(np.array([0]))
    ),
    "copy": lambda batch, give: copy.deepcopy(batch).snapshot(),
    "finish": lambda batch, give: batch.finish(give("greedy")),
}


def _decide(batch: Batch, give: Give) -> None:
    """Ask an agent at all decisions."""
    waiting = np.flatnonzero(batch.legal)
    if len(waiting):
        batch.decide(give(Player(give)), give(waiting))


# One game


def _game(give: Give) -> Game:
    game = Game(give("shikoku"), give(7), give(give.rng.choice(("sampled", "explicit"))))
    for _ in range(give.rng.choice((0, 12, 40))):
        game.play(_move(game))
    return game


def _move(game: Game) -> Any:
    return game.legal_actions()[0] if game.legal_mask else game.outcomes()[0][0]


def _state_of_game(game: Game) -> tuple[Any, ...]:
    return bytes(game.states), bytes(game._luck), game.legal_mask, bytes(game._history), game.player


def _finish_game(game: Game, give: Give) -> None:
    assert Game.from_dict(game.to_dict(), chance="explicit").to_dict() == game.to_dict()
    while not game.is_over and give.rng.random() < 0.98:
        game.play(_move(game))


def _play(game: Game, give: Give) -> None:
    if not game.is_over:
        game.play(give(_move(game)))


GAME: dict[str, Callable[[Any, Give], Any]] = {
    "play": _play,
    "label": lambda game, give: game.label(give(0)) if game.player else 0,
    "copy": lambda game, give: copy.copy(game).copy(give("same"), give(7)).play(_move(game)),
    "record": lambda game, give: game.record(give(("a", "b"))).to_json(),
    "record of": lambda game, give: game.record((give("a"), give("b"))).to_json(),
    "show": lambda game, give: game.show(theme=give("light")) if give.rng.random() < 0.1 else 0,
    "policy": lambda game, give: game.scene(give("random")) if give.rng.random() < 0.3 else 0,
    "from_dict": lambda game, give: Game.from_dict(
        give(POSITIONS[0]), board=give(None), seed=give(7), chance=give("sampled")
    ),
    "equal": lambda game, give: game == mutants.wrong_value(give.rng),
}

# A learner


def _opponents(give: Give) -> Any:
    return give.rng.choice(("random", ["greedy", "random"], Player(give), [Player(give), "random"]))


def _single_agent(give: Give) -> SingleAgentBatch:
    rng = give.rng
    games = SingleAgentBatch(
        give(N),
        give(_opponents(Give(rng, 0))),
        seat=give(rng.choice((0, 1, "alternate", "random"))),
        reward=give("win"),
        **_observation_options(give, ("float32", "uint8", "entities", "afterstates")),
        autoreset=give(rng.choice([*AutoresetMode])),
        illegal=give(rng.choice(("raise", "terminate"))),
    )
    if rng.random() < 0.9 or not give.wrong:
        games.reset(rng.randrange(100))
    return games


def _legal(games: SingleAgentBatch) -> np.ndarray[Any, Any]:
    return games.masks().argmax(axis=1)


def _finish_single_agent(games: SingleAgentBatch, give: Give) -> None:
    games.set_opponents("random")
    games.reset(0)
    for _ in range(3):
        games.step(_legal(games))
        if games.done.any():
            break
    _finish_batch(games.batch, give)


def _contents_of_single_agent(games: SingleAgentBatch) -> Any:
    facts = (games.reward, games.terminated, games.truncated)
    return _contents(games), [fact.tolist() for fact in facts], games.opponents


SINGLE_AGENT: dict[str, Callable[[Any, Give], Any]] = {
    "reset": lambda games, give: games.reset(give(5), start(give)),
    "step": lambda games, give: games.step(give(_legal(games))),
    "assign": lambda games, give: games.set_opponents(give(_opponents(give))),
    "assign some": lambda games, give: games.set_opponents(_opponents(give), some(give)),
    "reset some": lambda games, give: games.reset(give(5), None, some(give)),
    "restore": lambda games, give: games.restore(give(spoilt(give, games.snapshot()))),
    "observe": lambda games, give: games.observe(),
}


# The adapters


def _env(give: Give) -> Any:
    rng = give.rng
    options = {
        "reward": give("win"),
        **_observation_options(give, ("dict", "box", "entities", "afterstates")),
    }
    if rng.random() < 0.3:
        made: Any = raw_env(give("shikoku"), render_mode=give(None), **options)
    else:
        made = env(give("shikoku"), illegal=give(rng.choice(("terminate", "raise"))), **options)
    if rng.random() < 0.9 or not isinstance(made, type(env())) or not give.wrong:
        made.reset(seed=rng.randrange(100))
    return made


def _state_of_env(made: Any) -> Any:
    if "game" not in made.__dict__:
        return None
    facts = (made.rewards, made.terminations, made.truncations, made.agents, made._seed)
    return *_state_of_game(made.game), copy.deepcopy(facts), made._episode


def _step_env(made: Any, give: Give) -> None:
    if "game" in made.__dict__ and made.game.legal_mask and made.agents:
        made.step(give(made.game.legal_actions()[0]))
    else:
        made.step(give(None))


def _finish_env(made: Any, give: Give) -> None:
    made.reset(seed=0)
    for _ in made.agent_iter(20):
        made.step(made.game.legal_actions()[0] if made.game.legal_mask else None)


ENV: dict[str, Callable[[Any, Give], Any]] = {
    "reset": lambda made, give: made.reset(seed=give(5), options=begins(give)),
    "step": _step_env,
    "observe": lambda made, give: made.observe(give(give.rng.choice(AGENTS))),
    "spaces": lambda made, give: (
        made.observation_space(give(AGENTS[0])),
        made.action_space(AGENTS[1]),
    ),
    "state": lambda made, give: made.state(),
    "last": lambda made, give: made.last() if "game" in made.__dict__ else 0,
    "copy": lambda made, give: copy.deepcopy(made),
    "close": lambda made, give: made.close(),
}


def _gym(give: Give) -> Any:
    rng = give.rng
    made = TokaidoDuoEnv(
        give("random"),
        seat=give(rng.choice((0, 1, "random", "alternate"))),
        board=give("shikoku"),
        reward=give("win"),
        **_observation_options(give, ("float32", "entities", "afterstates")),
        render_mode=give(None),
    )
    made.reset(seed=3)
    return made


def _vector(give: Give) -> Any:
    modes = ("SameStep", "NextStep", "Disabled")
    made = TokaidoDuoVectorEnv(
        give(N), give("random"), autoreset_mode=give(give.rng.choice(modes)), seat=give("random")
    )
    made.reset(seed=3)
    return made


def _options(give: Give) -> Any:
    return {"reset_mask": give(np.array([True, False, True]))}


GYM: dict[str, Callable[[Any, Give], Any]] = {
    "reset": lambda made, give: made.reset(seed=give(5), options=begins(give)),
    "step": lambda made, give: made.step(give(int(made.action_masks().argmax()))),
    "masks": lambda made, give: made.action_masks(),
    "close": lambda made, give: made.close(),
}
VECTOR: dict[str, Callable[[Any, Give], Any]] = {
    "reset": lambda made, give: made.reset(seed=give(5), options=begins(give)),
    "reset each": lambda made, give: made.reset(seed=give([5, 6, SEED])),
    "reset some": lambda made, give: made.reset(seed=give(None), options=_options(give)),
    "step": lambda made, give: made.step(give(_legal(made.games))),
    "close": lambda made, give: made.close(),
}


def _sb3(give: Give) -> Any:
    made = TokaidoVecEnv(
        give(N), give("random"), give(3), seat=give("random"), reward=give("margin")
    )
    made.reset()
    return made


def _step_sb3(made: Any, give: Give) -> None:
    made.step_async(give(_legal(made.games)))
    made.step_wait()


SB3: dict[str, Callable[[Any, Give], Any]] = {
    "seed": lambda made, give: made.seed(give(5)),
    "reset": lambda made, give: made.reset(),
    "step": _step_sb3,
    "assign": lambda made, give: made.set_opponents(_opponents(give), give([0, 2])),
    "set_attr": lambda made, give: made.set_attr("opponent", "greedy", give(np.array([1]))),
    "get_attr": lambda made, give: made.get_attr(give("opponent"), give([0])),
    "seats": lambda made, give: made.get_attr("seat", give(np.array([1]))),
    "masks": lambda made, give: made.env_method(give("action_masks"), indices=give([0, 1])),
    "wrapped": lambda made, give: made.env_is_wrapped(give(int), give([1])),
    "restore": lambda made, give: made.restore(give(spoilt(give, made.snapshot()))),
    "close": lambda made, give: made.close(),
}


def _finish_adapter(made: Any, give: Give) -> None:
    _finish_single_agent(made.games, give)


def _state_of_adapter(made: Any) -> Any:
    return _contents_of_single_agent(made.games)


# OpenSpiel: our methods; calls through C++ get arguments that C++ accepts


def _open_spiel(give: Give) -> Any:
    return TokaidoDuoGame(
        {"board": give("shikoku"), "reward": give("win")}
        if give.rng.random() < 0.8
        else give({"reward": "win"})
    ).new_initial_state()


def _step_open_spiel(state: Any, give: Give) -> None:
    move = give(state.game.legal_actions()[0] if state.game.legal_mask else 0)
    state._apply_action(move) if not state.is_terminal() else None


def _finish_open_spiel(state: Any, give: Give) -> None:
    for _ in range(20):
        if state.is_terminal():
            break
        chances = state.chance_outcomes()
        state.apply_action(chances[0][0] if chances else state.legal_actions()[0])


SPIEL: dict[str, Callable[[Any, Give], Any]] = {
    "apply": _step_open_spiel,
    "observer": lambda state, give: TokaidoDuoObserver(give(None)).set_from(state, give(0)),
    "label": lambda state, give: state._action_to_string(0, give(3)),
    "make": lambda state, give: state.get_game().make_py_observer(None, give(None)),
    "clone": lambda state, give: state.clone(),
    "str": lambda state, give: Game.from_dict(mutants.json.loads(str(state))),
}


TARGETS: dict[str, Target] = {
    "Batch": Target(_batch, BATCH | {"decide": _decide}, _contents, _finish_batch, 6),
    "Game": Target(_game, GAME, _state_of_game, _finish_game, 3),
    "SingleAgentBatch": Target(
        _single_agent, SINGLE_AGENT, _contents_of_single_agent, _finish_single_agent, 3
    ),
    "env": Target(_env, ENV, _state_of_env, _finish_env, 2, (AssertionError,)),
    "Gymnasium": Target(_gym, GYM, _state_of_adapter, _finish_adapter, 2),
    "Gymnasium vector": Target(_vector, VECTOR, _state_of_adapter, _finish_adapter, 2),
    "SB3": Target(_sb3, SB3, _state_of_adapter, _finish_adapter, 2, (AttributeError,)),
    "OpenSpiel": Target(
        _open_spiel, SPIEL, lambda state: _state_of_game(state.game), _finish_open_spiel, 1
    ),
}
