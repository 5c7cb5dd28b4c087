"""`tokaido warmup`: compile kernels before their first use."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import field
from functools import partial
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_args

import numpy as np
from cyclopts import Parameter
from numba.core import event

from tokaido_env.batch import Batch
from tokaido_env.cli import command as cli
from tokaido_env.core.arguments import unknown_name
from tokaido_env.core.jit import INTERPRETED, PARALLEL_FROM
from tokaido_env.core.kernel_cache import COMPILE_NOTICE, KernelCache, cache_folder
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
    """Call all methods of a batch."""
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
    """Let agents decide."""
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
    from tokaido_env.arena.tournament import MatchState, play_remaining

    use_specs("random", "greedy", "heuristic")
    match_state = MatchState("random", "greedy", FEW, 0, "shikoku")
    match_state.with_luck = True
    play_remaining(match_state, make("random"), make("greedy"))


def use_training() -> None:
    """Train tiny networks by each method for one update or round."""
    from tokaido_env.learn import run
    from tokaido_env.learn.settings import AlphaZeroSettings, PpoSettings, TdSettings

    ppo = PpoSettings(
        steps=2 * FEW,
        games=FEW,
        n_steps=2,
        minibatch_size=FEW,
        epochs=1,
        width=8,
        opponent_slots=2,
        rate_every=0,
    )
    alphazero = AlphaZeroSettings(rounds=1, shards=1, games=FEW, sims=2, width=8, promotion_games=0)
    for settings in (TdSettings(updates=1, games=FEW, width=8, board=POOL), ppo, alphazero):
        with tempfile.TemporaryDirectory() as folder:
            run.begin(Path(folder) / "run", settings)
            run.train(Path(folder) / "run")


class Group(NamedTuple):
    """Kernels that are used together.

    Attributes:
        use: calls them.
        needs: modules that the calls import.
    """

    use: Callable[[], None]
    needs: tuple[str, ...] = ()

    @property
    def missing(self) -> list[str]:
        """Needed modules that are not installed."""
        return [module for module in self.needs if find_spec(module) is None]


GROUPS = {
    "game": Group(use_games),
    "env": Group(use_environments),
    "batch": Group(use_batches),
    "agents": Group(use_agents),
    "page": Group(use_session),
    "search": Group(partial(use_specs, "mcts:sims=4", "mcts:sims=4,rollout=full")),
    "champion": Group(partial(use_specs, "champion", "champion:sims=4"), POLICIES),
    "generalist": Group(partial(use_specs, "generalist", "generalist:sims=4"), POLICIES),
    "learn": Group(use_training, LEARNING),
}


@cli.options
class Warmup:
    """Options of `tokaido warmup`."""

    groups: Annotated[
        tuple[str, ...], Parameter(help=f"groups of kernels: {', '.join(GROUPS)} [default: all]")
    ] = field(default=(), kw_only=False)


@cli.command("warmup")
def main(options: Warmup) -> int:
    """Compile kernels before their first use.

    Compiling everything takes a few minutes, the first time only: Numba stores kernels on disk.
    Several processes may run the command at the same time: one compiles, the others wait.

    Examples:
        tokaido warmup
        tokaido warmup game champion
    """
    asked = options.groups
    _check(asked)
    print(f"compiled kernels are stored in {cache_folder()}", flush=True)
    began = time.perf_counter()
    made = warm([name for name in asked or GROUPS if not GROUPS[name].missing])
    spent = time.perf_counter() - began
    print(f"{made} compiled, {spent:.1f} s" if made else f"nothing to compile, {spent:.1f} s")
    return 0


def _check(asked: Sequence[str]) -> None:
    """Refuse groups that cannot be compiled."""
    for name in asked:
        if name not in GROUPS:
            raise ValueError(unknown_name("group", name, GROUPS))
        if missing := GROUPS[name].missing:
            raise ValueError(f"{name}: needs {missing[0]}, which is not installed")
    if INTERPRETED:
        raise ValueError("NUMBA_DISABLE_JIT is set: unset it, it disables compiling")
    if cache_folder() is None:
        raise ValueError("found no writable folder for compiled kernels: set XDG_CACHE_HOME to one")


def warm(names: Sequence[str]) -> int:
    """Use some groups, print the time of each, and return the number of compiled kernels."""
    total = 0
    COMPILE_NOTICE.muted = True  # the user expects compiling to take time
    try:
        for name in names:
            began = time.perf_counter()
            with event.install_recorder("numba:compile") as recorder:
                GROUPS[name].use()
            made = _count(recorder)
            spent = time.perf_counter() - began
            done = f"{made} compiled" if made else "compiled before"
            print(f"{name:<11} {spent:>6.1f} s  {done}", flush=True)
            total += made
    finally:
        COMPILE_NOTICE.muted = False
    return total


def _count(recorder: Any) -> int:
    """Return the number of compiled kernels, without the functions inlined in them."""
    begun = [each for _, each in recorder.buffer if each.is_start]
    return sum(isinstance(each.data["dispatcher"]._cache, KernelCache) for each in begun)
