"""`tokaido warmup`: compile kernels before their first use."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numba.core import event

from tokaido_env.batch import Batch
from tokaido_env.cli import command as cli
from tokaido_env.core.jit import INTERPRETED, PARALLEL_FROM
from tokaido_env.core.kernel_cache import KernelCache, cache_folder
from tokaido_env.game import Game
from tokaido_env.observers import ObservationFormat

FEW = 2
MANY = PARALLEL_FROM  # games from which kernels run in parallel
STEPS = 8  # of an environment: enough for moves, chance and observations

POOL = "family:train/2"  # two boards: batches restart on either
POLICIES = ("safetensors",)
LEARNING = (*POLICIES, "torch", "stable_baselines3", "sb3_contrib")


def use_games() -> None:
    """Play games to their end, and call their methods."""
    for chance in ("sampled", "explicit"):
        game = Game(seed=0, chance=chance)
        while not game.is_over:
            game.play(game.legal_labels()[-1] if game.legal_actions() else game.outcomes()[0][0])
        seen = game.to_dict(), game.scores(), game.winner(), game.record(), game.copy(), repr(game)
        Game.from_dict(seen[0])


def use_environments() -> None:
    """Play games of PettingZoo's environment, and step Gymnasium's."""
    from tokaido_env.aec import FORMATS, env
    from tokaido_env.gym import TokaidoDuoEnv, TokaidoDuoVectorEnv

    for form in FORMATS:
        both = env(observation=form)
        both.reset(seed=0)
        for _ in both.agent_iter():
            both.state()
            seen, *_, info = both.last()
            mask = (info if form == "box" else seen)["action_mask"]
            both.step(int(mask.argmax()) if mask.any() else None)
    for observation in get_args(ObservationFormat):
        one = TokaidoDuoEnv("greedy", observation=observation)
        one.reset(seed=0)
        for _ in range(STEPS):
            one.step(int(one.action_masks().argmax()))
        for games in (FEW, MANY):
            many = TokaidoDuoVectorEnv(games, ["greedy", "random"], observation=observation)
            many.reset(seed=0)
            for _ in range(STEPS):
                many.step(many.action_masks().argmax(axis=1))


def use_batches() -> None:
    """Play batches of all sizes and observations."""
    for observation, games in product((None, *get_args(ObservationFormat)), (FEW, MANY)):
        play_batch(games, observation)
    for games in (FEW, MANY):
        play_batch(games, "float32", see_board=True)


def play_batch(games: int, observation: Any, *, see_board: bool = False) -> None:
    """Call all methods of a `Batch` with so many games and this observation."""
    board = POOL if see_board else "shikoku"
    batch = Batch(games, board, observation=observation, see_board=see_board)
    batch.reset(seed=0)
    turn = batch.play("random")
    everyone = np.arange(games)
    batch.step(turn.mask.argmax(axis=1))
    batch.rewards(everyone)
    batch.keys(everyone)
    batch.masks(everyone)
    batch.afterstates(everyone)
    batch.restore(batch.snapshot())
    if observation:
        batch.observe(everyone, np.zeros(games, np.int8))
    batch.reset(seed=1) if see_board else batch.reset(positions=batch.states)
    batch.finish("greedy")
    explicit = Batch(games, chance="explicit", observation=None)
    explicit.reset(seed=0)
    explicit.outcome_weights()
    explicit.step(explicit.sample_outcomes())


def use_session() -> None:
    """Play some moves as the play page does."""
    from tokaido_env.web.game_session import HUMAN, Session
    from tokaido_env.web.previews import previews_of

    session = Session((HUMAN, "random"), seed=0)
    for _ in range(STEPS):
        if session.waits_for == "agent":
            session.play_agent_move()
        else:
            previews_of(session.game.board, session.game.states)
            session.play(session.game.legal_labels()[-1])


def use_specs(*specs: str) -> None:
    """Let the agents of some specs decide and judge, once in each of a few games."""
    from tokaido_env.agents import make

    batch = Batch(FEW, observation=None)
    batch.reset(seed=0)
    for _ in range(20):
        batch.play("greedy")
    for spec in specs:
        agent, position = make(spec), (batch.boards, batch.states, batch.legal)
        agent.act(*position, batch.keys(np.arange(FEW)))
        agent.judge(*position, batch.keys(np.arange(FEW)))


def use_agents() -> None:
    """Let agents without deep search decide, and play a match with luck-adjusted scores."""
    from tokaido_env.agents import make
    from tokaido_env.arena.tournament import MatchState, games_as_completed

    use_specs("random", "greedy", "heuristic")
    match_state = MatchState("random", "greedy", FEW, 0, "shikoku")
    match_state.with_luck = True
    list(games_as_completed(match_state, make("random"), make("greedy")))


def use_training() -> None:
    """Train tiny networks by each method for one update or round."""
    from tokaido_env.learn import run
    from tokaido_env.learn.settings import AlphaZeroSettings, TdSettings

    alphazero = AlphaZeroSettings(rounds=1, shards=1, games=FEW, sims=2, width=8, promotion_games=0)
    for settings in (TdSettings(updates=1, games=FEW, width=8, board=POOL), alphazero):
        with tempfile.TemporaryDirectory() as folder:
            run.begin(Path(folder) / "run", settings)
            run.train(Path(folder) / "run")


GROUPS: dict[str, tuple[Callable[[], None], tuple[str, ...]]] = {
    "game": (use_games, ()),
    "env": (use_environments, ()),
    "batch": (use_batches, ()),
    "agents": (use_agents, ()),
    "page": (use_session, ()),
    "search": (partial(use_specs, "mcts:sims=4", "mcts:sims=4,rollout=full"), ()),
    "champion": (partial(use_specs, "champion", "champion:sims=4"), POLICIES),
    "generalist": (partial(use_specs, "generalist", "generalist:sims=4"), POLICIES),
    "learn": (use_training, LEARNING),
}
"""Calls of all kernels, in groups, with the modules that they need."""


@cli.command("warmup")
def main(options: cli.NoOptions) -> int:
    """Compile kernels before their first use.

    Compiling takes about a minute, the first time only: Numba stores kernels on disk. Kernels of
    extras that are not installed are left out. Several processes may run the command at the same
    time: one compiles, the others wait.
    """
    folder = cache_folder()
    if INTERPRETED:
        raise ValueError("NUMBA_DISABLE_JIT is set: unset it, it disables compiling")
    if folder is None or not os.access(folder, os.W_OK):
        raise ValueError("found no writable folder for compiled kernels: set XDG_CACHE_HOME to one")
    print(f"compiled kernels are stored in {folder}", flush=True)
    total = 0
    for name, (use, needs) in GROUPS.items():
        if all(map(find_spec, needs)):
            total += _warm(name, use)
    print(f"{total} compiled" if total else "nothing to compile")
    return 0


def _warm(name: str, use: Callable[[], None]) -> int:
    """Use a group, print the time, and return the number of compiled kernels."""
    began = time.perf_counter()
    with event.install_recorder("numba:compile") as recorder:
        use()
    starts = [each.data["dispatcher"] for _, each in recorder.buffer if each.is_start]
    made = sum(isinstance(each._cache, KernelCache) for each in starts)  # others are inlined
    spent = time.perf_counter() - began
    print(f"{name:<11} {spent:>6.1f} s  {made} compiled", flush=True)
    return made
