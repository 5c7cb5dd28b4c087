"""Compile what is used, before it is used.

A kernel is compiled when it is first called and kept on disk from then on. This command calls each
once: a batch's also with many games, for which they have a second, parallel form. Several processes
may do this at the same time: one compiles, the others wait.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba.core import event

from tokaido_env.batch import Batch
from tokaido_env.cli.program import parser_of, reports_errors
from tokaido_env.core.cache import NOTICE, KernelCache, cache_folder
from tokaido_env.core.jit import INTERPRETED, PARALLEL_FROM
from tokaido_env.game import Game

FEW = 2
MANY = PARALLEL_FROM  # games from which kernels run in threads
STEPS = 8  # of environments: moves, chance and observations come up in any two of them

POLICIES = ("safetensors",)
LEARNING = (*POLICIES, "torch", "stable_baselines3", "sb3_contrib")


class Row(NamedTuple):
    """Something that is used once.

    Attributes:
        group: the name by which it is asked for.
        what: what is used, in words.
        use: uses it.
        needs: modules without which it cannot be used.
    """

    group: str
    what: str
    use: Callable[[], None]
    needs: tuple[str, ...] = ()

    @property
    def missing(self) -> list[str]:
        """The modules that it needs and that are not installed."""
        return [module for module in self.needs if find_spec(module) is None]


def play_game(chance: Any) -> None:
    """Play a game to its end, and ask it for all that it tells."""
    game = Game(seed=0, chance=chance)
    while not game.is_over:
        game.play(game.legal_labels()[-1] if game.legal_actions() else game.outcomes()[0][0])
    seen = game.to_dict(), game.scores(), game.winner(), game.record(), game.copy(), repr(game)
    Game.from_dict(seen[0])


def play_aec() -> None:
    """Play a PettingZoo environment."""
    from tokaido_env.aec import env

    game = env()
    game.reset(seed=0)
    for _ in range(STEPS):
        game.state()
        game.step(int(game.last()[0]["action_mask"].argmax()))


def play_gym(observation: Any) -> None:
    """Play a Gymnasium environment of one game."""
    from tokaido_env.gym import TokaidoDuoEnv

    env = TokaidoDuoEnv("greedy", observation=observation)
    env.reset(seed=0)
    for _ in range(STEPS):
        env.step(int(env.action_masks().argmax()))


def play_gyms(games: int, observation: Any) -> None:
    """Play a Gymnasium environment of many games."""
    from tokaido_env.gym import TokaidoDuoVectorEnv

    env = TokaidoDuoVectorEnv(games, ["greedy", "random"], observation=observation)
    env.reset(seed=0)
    for _ in range(STEPS):
        env.step(env.action_masks().argmax(axis=1))


def play_batch(games: int, observation: Any) -> None:
    """Play a batch in all ways."""
    batch = Batch(games, observation=observation)
    batch.reset(seed=0)
    turn = batch.play("random")
    everyone = np.arange(games)
    batch.step(turn.mask.argmax(axis=1))
    batch.rewards(everyone)
    batch.keys(everyone)
    batch.masks(everyone)
    if observation:
        batch.observe(everyone, np.zeros(games, np.int8))
    batch.reset(positions=batch.states)
    batch.finish("greedy")
    explicit = Batch(games, chance="explicit", observation=None)
    explicit.reset(seed=0)
    explicit.weights()
    explicit.step(explicit.sample())


def ask(spec: str) -> None:
    """Ask an agent for decisions."""
    from tokaido_env.agents import make

    batch = Batch(FEW, observation=None)
    batch.reset(seed=0)
    for _ in range(20):
        batch.play("greedy")
    make(spec).act(batch.boards, batch.states, batch.legal, batch.keys(np.arange(FEW)))


def play_match() -> None:
    """Play a match and count its luck."""
    from tokaido_env.agents import make
    from tokaido_env.arena.tournament import Sheet, play

    sheet = Sheet("random", "greedy", FEW, 0, "shikoku")
    sheet.luck = True
    play(sheet, make("random"), make("greedy"))


def train() -> None:
    """Train a tiny network for one update."""
    from tokaido_env.learn import run
    from tokaido_env.learn.settings import PpoSettings

    settings = PpoSettings(
        steps=2 * FEW,
        games=FEW,
        rollout=2,
        minibatch=FEW,
        epochs=1,
        width=8,
        opponent_slots=2,
        rate_every=0,
        refit_games=0,
    )
    with tempfile.TemporaryDirectory() as folder:
        run.begin(Path(folder) / "run", settings)
        run.train(Path(folder) / "run")


OBSERVATIONS = ("float32", "uint8")
NETWORKS = ("champion", "generalist")
_SIZES = ((FEW, "few games"), (MANY, "many games"))


def rows() -> list[Row]:
    """Return all that can be warmed up."""
    found = [
        Row("game", f"Game, {chance} chance", partial(play_game, chance))
        for chance in ("sampled", "explicit")
    ]
    found.append(Row("env", "env(), raw_env()", play_aec))
    found += [Row("env", f"TokaidoDuo-v0, {o}", partial(play_gym, o)) for o in OBSERVATIONS]
    for seen, (games, size) in product(OBSERVATIONS, _SIZES):
        what = f"TokaidoDuo-v0 as a vector, {seen}, {size}"
        found.append(Row("env", what, partial(play_gyms, games, seen)))
    for shown, (games, size) in product((None, *OBSERVATIONS), _SIZES):
        what = f"Batch, {shown or 'no observations'}, {size}"
        found.append(Row("batch", what, partial(play_batch, games, shown)))
    for spec in ("random", "greedy", "heuristic", "expectimax:depth=1"):
        found.append(Row("agents", spec, partial(ask, spec)))
    found.append(Row("agents", "a match", play_match))
    for spec in ("mcts:sims=4", "mcts:sims=4,rollout=full"):
        found.append(Row("search", spec, partial(ask, spec)))
    for name in NETWORKS:
        for spec in (name, f"{name}:sims=4"):
            found.append(Row(name, spec, partial(ask, spec), POLICIES))
    return [*found, Row("learn", "a training run", train, LEARNING)]


GROUPS = tuple(dict.fromkeys(row.group for row in rows()))


@reports_errors("warmup")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    parser = parser_of("warmup", __doc__)
    parser.add_argument("what", nargs="*", help=f"of {', '.join(GROUPS)}; all by default")
    asked = parser.parse_args(arguments).what
    _check(asked)
    print(f"compiled kernels are kept in {cache_folder()}", flush=True)
    began = time.perf_counter()
    made = warm([row for row in rows() if row.group in (asked or GROUPS) and not row.missing])
    spent = time.perf_counter() - began
    print(f"{made} compiled, {spent:.1f} s" if made else f"all was there already, {spent:.1f} s")
    return 0


def _check(asked: Sequence[str]) -> None:
    """Refuse what cannot be done, before anything is compiled."""
    unknown = [name for name in asked if name not in GROUPS]
    if unknown:
        raise ValueError(f"unknown {unknown[0][:40]!r}: expected some of {', '.join(GROUPS)}")
    for row in rows():
        if row.group in asked and row.missing:
            raise ValueError(f"{row.group}: {row.missing[0]} is not installed")
    if INTERPRETED:
        raise ValueError("nothing is compiled while NUMBA_DISABLE_JIT is set")
    if cache_folder() is None:
        raise ValueError(
            "no folder can be written to keep what is compiled: XDG_CACHE_HOME names another"
        )


def warm(chosen: Sequence[Row]) -> int:
    """Use everything once, print how long each took; return how many kernels were compiled."""
    total = 0
    NOTICE.muted = True  # slow compilation is what the user waits for
    try:
        for row in chosen:
            began = time.perf_counter()
            with event.install_recorder("numba:compile") as recorder:
                row.use()
            made = _count(recorder)
            spent = time.perf_counter() - began
            done = f"{made} compiled" if made else "was there"
            print(f"{row.group:<9} {row.what:<44} {spent:>6.1f} s  {done}", flush=True)
            total += made
    finally:
        NOTICE.muted = False
    return total


def _count(recorder: Any) -> int:
    """Return how many entries were compiled; what they call is part of them."""
    begun = [each for _, each in recorder.buffer if each.is_start]
    return sum(isinstance(each.data["dispatcher"]._cache, KernelCache) for each in begun)
