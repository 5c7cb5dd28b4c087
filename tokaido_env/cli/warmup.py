"""`python -m tokaido_env warmup [WHAT ...]`: compile what is used, before it is used.

A kernel is compiled when it is first called and kept on disk from then on. This command calls each
once: a batch's also with many games, for which they have a second, parallel form. Several processes
may do this at the same time: one compiles, the others wait.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba.core import event

from tokaido_env.batch import Batch
from tokaido_env.cli.program import program
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
        use: uses it; given `arguments`.
        needs: modules without which it cannot be used.
    """

    group: str
    what: str
    use: Callable[..., None]
    arguments: tuple[Any, ...] = ()
    needs: tuple[str, ...] = ()


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
    from tokaido_env.arena import luck, tournament
    from tokaido_env.boards.board import Board

    match = tournament.play_match(make("random"), make("greedy"), FEW, 0)
    luck.with_luck(match, Board.load("shikoku"))


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
_SIZES = ((FEW, "few games"), (MANY, "many games"))
NETWORKS = ("champion", "generalist")

ROWS = (
    *(
        Row("game", f"Game, {chance} chance", play_game, (chance,))
        for chance in ("sampled", "explicit")
    ),
    Row("env", "env(), raw_env()", play_aec),
    *(Row("env", f"TokaidoDuo-v0, {seen}", play_gym, (seen,)) for seen in OBSERVATIONS),
    *(
        Row("env", f"TokaidoDuo-v0 as a vector, {seen}, {size}", play_gyms, (games, seen))
        for seen in OBSERVATIONS
        for games, size in _SIZES
    ),
    *(
        Row("batch", f"Batch, {seen or 'no observations'}, {size}", play_batch, (games, seen))
        for seen in (None, *OBSERVATIONS)
        for games, size in _SIZES
    ),
    *(Row("agents", spec, ask, (spec,)) for spec in ("random", "greedy", "heuristic")),
    Row("agents", "expectimax", ask, ("expectimax:depth=1",)),
    Row("agents", "a match", play_match),
    Row("search", "mcts", ask, ("mcts:sims=4",)),
    Row("search", "mcts with rollouts", ask, ("mcts:sims=4,rollout=full",)),
    *(Row(name, name, ask, (name,), POLICIES) for name in NETWORKS),
    *(Row(name, f"{name}'s search", ask, (f"{name}:sims=4",), POLICIES) for name in NETWORKS),
    Row("learn", "a training run", train, (), LEARNING),
)
GROUPS = tuple(dict.fromkeys(row.group for row in ROWS))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    parser = argparse.ArgumentParser(program("warmup"), description=__doc__)
    parser.add_argument("what", nargs="*", help=f"of {', '.join(GROUPS)}; all by default")
    asked = parser.parse_args(arguments).what
    refusal = _refusal(asked)
    if refusal is not None:
        print(f"warmup: {refusal}", file=sys.stderr)
        return 1
    rows = [row for row in ROWS if row.group in (asked or GROUPS) and not _missing(row)]
    print(f"compiled kernels are kept in {cache_folder()}", flush=True)
    began = time.perf_counter()
    made = warm(rows)
    spent = time.perf_counter() - began
    print(f"{made} compiled, {spent:.1f} s" if made else f"all was there already, {spent:.1f} s")
    return 0


def warm(rows: Sequence[Row]) -> int:
    """Use everything once, tell how long each took; return how many kernels were compiled."""
    total = 0
    with _bar(len(rows)) as (tell, advance), _muted():
        for row in rows:
            began = time.perf_counter()
            with event.install_recorder("numba:compile") as recorder:
                row.use(*row.arguments)
            made = _count(recorder)
            spent = time.perf_counter() - began
            done = f"{made} compiled" if made else "was there"
            tell(f"{row.group:<9} {row.what:<44} {spent:>6.1f} s  {done}")
            advance()
            total += made
    return total


def _refusal(asked: Sequence[str]) -> str | None:
    """Return why nothing can be done, None if something can."""
    unknown = [name for name in asked if name not in GROUPS]
    if unknown:
        return f"unknown {unknown[0][:40]!r}: expected some of {', '.join(GROUPS)}"
    for row in ROWS:
        if row.group in asked and _missing(row):
            return f"{row.group}: {_missing(row)[0]} is not installed"
    if INTERPRETED:
        return "nothing is compiled while NUMBA_DISABLE_JIT is set"
    if cache_folder() is None:
        return "no folder can be written to keep what is compiled: XDG_CACHE_HOME names another"
    return None


def _missing(row: Row) -> list[str]:
    return [module for module in row.needs if find_spec(module) is None]


def _count(recorder: Any) -> int:
    """Return how many entries were compiled; what they call is part of them."""
    begun = [each for _, each in recorder.buffer if each.is_start]
    return sum(isinstance(each.data["dispatcher"]._cache, KernelCache) for each in begun)


@contextmanager
def _muted() -> Iterator[None]:
    """Let the notice of slow compilation be quiet: that is what everybody waits for."""
    NOTICE.muted = True
    try:
        yield
    finally:
        NOTICE.muted = False


@contextmanager
def _bar(total: int) -> Iterator[tuple[Callable[[str], None], Callable[[], None]]]:
    """Give what tells a line and what moves the bar: on a terminal, if rich is there."""
    if find_spec("rich") is None or not sys.stderr.isatty():
        yield lambda line: print(line, flush=True), lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("warmup", total=total)
        yield lambda line: print(line, flush=True), lambda: progress.advance(task)


if __name__ == "__main__":
    sys.exit(main())
