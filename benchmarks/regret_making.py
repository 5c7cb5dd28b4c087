"""How a regret set is made: positions from games, actions worth many rollouts, and the rollouts.

Positions come from games of `SOURCES` against each other and themselves, on the default board and
on the test boards of the family. Decisions that leave a choice are put into strata, by boards,
phase and rounds; from each as many are drawn as the square root of its share asks for, so that what
is rare is seen too. The shares are kept: means over all choices weigh strata by them.

Of each position the five actions that two searches prefer are rolled out in full, and those that
`REFERENCES` choose; the others get `FEW` blocks of the same luck.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from regret_rollouts import Blocks, roll_out

from tokaido_env.agent import Agent
from tokaido_env.agents.eval_tables import eval_tables_of
from tokaido_env.agents.inference import Network, PositionBatch
from tokaido_env.agents.policy import PolicyAgent
from tokaido_env.agents.registry import make
from tokaido_env.arena.executors import AgentFactory, Executor, SerialExecutor, policy_sha256
from tokaido_env.arena.game_runner import GameBatchSpec, pad_columns, play_games
from tokaido_env.arena.ladder import match_seed
from tokaido_env.arena.match import unplayed_games
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.arguments import repr_short
from tokaido_env.core.bitmask import actions_of
from tokaido_env.core.rng import arena_seed
from tokaido_env.core.rules import legal_mask
from tokaido_env.core.state import Phase, copy_rows
from tokaido_env.study.regret_set import NOT_ROLLED, PHASES, RegretSet
from tokaido_env.trajectory import replay_chunks

SOURCES = ("champion", "heuristic")
"""Who plays the games that positions are from."""

JUDGES = ("mcts:sims=4000", "champion:sims=400")
"""Who tells which actions are worth many rollouts."""

REFERENCES = (
    *("greedy", "heuristic", "expectimax:depth=2", "mcts:sims=100", "mcts:sims=400", "champion"),
)  # fmt: skip
"""Whose choices are among them, with those of the judges."""

POLICIES = ("champion", "heuristic")
"""Who plays the rollouts."""

BOARDS = ("shikoku", "family:test")
LAST_ROUNDS = (6, 12, 18)
"""Of the groups of rounds, but for the last."""

BEST = 5
FEW = 2

GAMES = 500  # of each two sources, on each of `BOARDS`
BLOCKS = 16


class Choices(NamedTuple):
    """Decisions that leave a choice."""

    states: npt.NDArray[np.void]
    """`STATE` (n,)."""
    board: npt.NDArray[np.int64]
    """Index into the pool, (n,)."""
    stratum: npt.NDArray[np.int64]
    """Of those of a pool, (n,)."""


def strata_of(boards: str) -> list[dict[str, Any]]:
    """Return the strata of a pool, without their shares."""
    firsts = (1, *(last + 1 for last in LAST_ROUNDS))
    rounds = [f"{a}–{b}" for a, b in zip(firsts, LAST_ROUNDS, strict=False)] + [f"{firsts[-1]}–"]
    return [{"boards": boards, "phase": p, "rounds": r} for p in PHASES for r in rounds]


def choices_in_games(boards: BoardPool, games: int, seed: int) -> Choices:
    """Play games and return all decisions in them that left a choice.

    Args:
        boards: the games go round.
        games: of each two sources, in this order of seats.
        seed: of the luck.
    """
    found = []
    for number, (a, b) in enumerate((a, b) for a in SOURCES for b in SOURCES):
        own = match_seed(seed, "regret", boards.name, str(number))
        found += list(_choices_of(make(a), make(b), boards, games, own))
    return Choices(*(np.concatenate(column) for column in zip(*found, strict=True)))


def _choices_of(a: Agent, b: Agent, boards: BoardPool, games: int, seed: int) -> Iterator[Choices]:
    numbers = np.arange(games)
    seeds = np.array([arena_seed(seed, k) for k in range(games)], np.int64)
    which = numbers % len(boards)
    each = [boards[number] for number in range(len(boards))]
    job = GameBatchSpec(numbers, unplayed_games(seeds, 0, which), each, which, games)
    actions = np.full((games, 0), -1, np.int8)
    for played in play_games(a, b, job):
        moves = played.actions
        actions = pad_columns(actions, moves.shape[1])
        actions[played.numbers, : moves.shape[1]] = moves
    for some, told in replay_chunks(boards, seeds, actions, which):
        rows = np.flatnonzero(told.legal & (told.legal - np.uint64(1)))
        states = copy_rows(told.states, rows)
        yield Choices(states, which[some][told.games[rows]], _strata(states))


def _strata(states: npt.NDArray[np.void]) -> npt.NDArray[np.int64]:
    """Return the stratum of each position, int64 (n,), as `strata_of` counts them."""
    numbers = np.full(len(Phase), -1)
    for number, phase in enumerate(PHASES):
        numbers[Phase[phase]] = number
    group = np.searchsorted(np.array(LAST_ROUNDS), states["round"])
    return np.asarray(numbers[states["phase"]] * (len(LAST_ROUNDS) + 1) + group)


def drawn(choices: Choices, n: int, seed: int) -> tuple[Choices, npt.NDArray[np.float64]]:
    """Draw n of the choices, in order of strata; also return the shares of all strata.

    Raises:
        ValueError: if there are too few of a kind.
    """
    strata = len(PHASES) * (len(LAST_ROUNDS) + 1)
    there = np.bincount(choices.stratum, minlength=strata)
    shares = there / there.sum()
    wanted = allotted(np.sqrt(shares), n)
    if (wanted > there).any() or (wanted < 2)[there > 0].any():
        raise ValueError(f"positions: {n} are too few or too many for {there.sum():,} choices")
    rng = np.random.default_rng([seed, 14])
    rows = np.concatenate(
        [
            rng.choice(np.flatnonzero(choices.stratum == k), wanted[k], replace=False)
            for k in range(strata)
        ]
    )
    return Choices(
        copy_rows(choices.states, rows), choices.board[rows], choices.stratum[rows]
    ), shares


def allotted(weights: npt.NDArray[np.float64], n: int) -> npt.NDArray[np.int64]:
    """Return how many of n each gets, by the largest remainders: int64, which sum to n."""
    exact = weights / weights.sum() * n
    whole: npt.NDArray[np.int64] = np.floor(exact).astype(np.int64)
    most = np.argsort(-(exact - whole), kind="stable")[: n - int(whole.sum())]
    whole[most] += 1
    return whole


def make_plan(n: int, seed: int, games: int = GAMES, blocks: int = BLOCKS) -> RegretSet:
    """Return a set whose results are all 0: nothing is rolled out yet.

    Half of its positions are on each of `BOARDS`.

    Args:
        n: positions, even.
        seed: of all that follows.
        games: of each two sources on each of `BOARDS`.
        blocks: of rollouts of an action in full.

    Raises:
        ValueError: if there are too few positions of a kind, or too few games for so many.
    """
    parts: list[tuple[Choices, int, int]] = []
    strata: list[dict[str, Any]] = []
    names: list[list[str]] = []
    for boards in map(BoardPool.load, BOARDS):
        some, shares = drawn(choices_in_games(boards, games, seed), n // 2, seed)
        parts.append((some, len(names), len(strata)))
        names += [list(one) for one in zip(boards.names, boards.hashes.tolist(), strict=True)]
        each = zip(strata_of(boards.name), shares.tolist(), strict=True)
        strata += [stratum | {"share": share / len(BOARDS)} for stratum, share in each]
    states = np.concatenate([some.states for some, _, _ in parts])
    board = np.concatenate([some.board + first for some, first, _ in parts])
    stratum = np.concatenate([some.stratum + first for some, _, first in parts])
    card = {"name": "plan", "seed": seed, "boards": names, "strata": strata}
    records = copy_rows(BoardPool.load([name for name, _ in names]).records, board)
    legal = [actions_of(legal_mask(records, states, i)) for i in range(len(states))]
    starts = np.cumsum([0, *map(len, legal)]).astype(np.int32)
    plan = RegretSet(
        card | {"policies": list(POLICIES), "hash": ""},
        states,
        board.astype(np.int16),
        stratum.astype(np.int16),
        starts,
        np.concatenate(legal).astype(np.int8),
        np.zeros((int(starts[-1]), len(POLICIES), blocks), np.int8),
    )
    plan.sums[~worth_rolling(plan), :, FEW:] = NOT_ROLLED
    return plan


# Which actions


def worth_rolling(told: RegretSet) -> npt.NDArray[np.bool_]:
    """Return which actions are to be rolled out in full: bool (m,)."""
    batch, n, owners = told.batch(), len(told), told.action_positions
    there = batch.boards_of(batch.all_games), batch.states, batch.legal
    keys = batch.keys(batch.all_games)
    shares, named = np.zeros((n, N_ACTIONS)), np.zeros((n, N_ACTIONS), np.bool_)
    for spec in JUDGES:
        judged, _ = make(spec).judge(*there, keys)
        shares += judged
        named[np.arange(n), judged.argmax(axis=1)] = True
    for spec in REFERENCES:
        named[np.arange(n), make(spec).act(*there, keys)] = True
    legal = np.zeros((n, N_ACTIONS), np.bool_)
    legal[owners, told.actions] = True
    ranked = np.where(legal, shares + len(JUDGES) * named, -1.0)
    best = np.zeros_like(legal)
    order = np.argsort(-ranked, axis=1, kind="stable")[:, :BEST]
    np.put_along_axis(best, order, values=True, axis=1)
    chosen: npt.NDArray[np.bool_] = (best | named)[owners, told.actions]
    return chosen


# The rollouts


def roll_all(
    plan: RegretSet,
    policy: str,
    parts: Sequence[range],
    take: Callable[[int, npt.NDArray[np.int8]], None],
    executor: Executor | None = None,
) -> None:
    """Roll out the actions of positions, as many blocks as a plan has, part after part.

    Args:
        plan: by `make_plan`.
        policy: spec of who plays on.
        parts: positions, one after the other.
        take: called with the number of a part, and with int8 (k, blocks): the sums of the actions
            of these positions, as in `RegretSet.sums`.
        executor: who does it; the sums are the same. None: this process.

    Raises:
        ValueError: if it is another agent than the heuristic, or than one that draws nothing.
    """
    agent = make(policy)
    network_of(agent)
    units = (_unit(plan, agent, some) for some in parts)
    for number, results in (executor or SerialExecutor()).map(units, (agent,)):
        sums, (which, numbers) = _todo(plan, parts[number])
        sums[which, numbers] = results
        take(number, sums)


def network_of(agent: Agent) -> Network | None:
    """Return what plays the rollouts: the network of an agent, None for the heuristic.

    Raises:
        ValueError: if it is another agent, or one that draws its actions.
    """
    if agent.spec == "heuristic":
        return None
    if not isinstance(agent, PolicyAgent) or agent.temperature:
        raise ValueError(
            f"rollouts: expected heuristic or a network that draws nothing: {agent.spec!r}"
        )
    return agent.policy.network()


class RolloutsUnit(NamedTuple):
    """Positions to be rolled out, as work for an executor: its only part is what `roll_out` gives.

    Attributes:
        policy: spec of who plays on.
        mark: of its policy file, as `policy_sha256`.
        boards: records, one of each position.
        states: `STATE` (n,).
        legal: uint64 (n,), the legal actions as bits.
        keys: uint64 (n,), of the luck of each position.
        blocks: what to roll out.
    """

    policy: str
    mark: str
    boards: npt.NDArray[np.void]
    states: npt.NDArray[np.void]
    legal: npt.NDArray[np.uint64]
    keys: npt.NDArray[np.uint64]
    blocks: Blocks

    def run(self, make: AgentFactory) -> Iterator[npt.NDArray[np.int64]]:
        """Roll out: see `Task.run`."""
        network = network_of(make(self.policy, self.mark))
        positions = PositionBatch(self.boards, eval_tables_of(self.boards), self.states, self.legal)
        yield roll_out(network, positions, self.keys, self.blocks)

    def __str__(self) -> str:
        return f"{len(self.blocks.actions)} blocks of rollouts by {repr_short(self.policy)}"


def _unit(plan: RegretSet, agent: Agent, some: range) -> RolloutsUnit:
    """Return some positions of a plan as work for an executor."""
    rows, part = _rows(plan, some), np.arange(some.start, some.stop)
    _, (which, numbers) = _todo(plan, some)
    batch = plan.subset(part).batch()
    owners, actions = plan.action_positions[rows] - some.start, plan.actions[rows].astype(np.int64)
    return RolloutsUnit(
        agent.spec,
        policy_sha256(agent.spec),
        batch.boards_of(batch.all_games),
        batch.states,
        batch.legal,
        _luck(plan)[part],
        Blocks(owners[which], actions[which], numbers),
    )


def _todo(plan: RegretSet, some: range) -> tuple[npt.NDArray[np.int8], Any]:
    """Return the sums of some positions, and where a result belongs in them: rows and blocks."""
    sums: npt.NDArray[np.int8] = plan.sums[_rows(plan, some), 0].copy()
    return sums, np.nonzero(sums != NOT_ROLLED)


def _rows(plan: RegretSet, some: range) -> slice:
    return slice(int(plan.starts[some.start]), int(plan.starts[some.stop]))


def _luck(plan: RegretSet) -> npt.NDArray[np.uint64]:
    """Return the key of the luck of each position: uint64 (n,)."""
    seed = match_seed(plan.card["seed"], "regret", "luck")
    return np.array([arena_seed(seed, k) for k in range(len(plan))], np.uint64)


def parts_of(n: int, size: int) -> Sequence[range]:
    """Return positions in parts of so many."""
    return [range(first, min(first + size, n)) for first in range(0, n, size)]
