"""Steps of making a regret set: drawing positions, choosing actions, rolling them out.

Positions come from games of `SOURCES` against each other and themselves, on the default board and
on the test boards of the family. Decisions with a choice form strata, by boards, phase and rounds.
The number drawn from a stratum is proportional to the square root of its share, so that rare strata
are covered. Means over all choices weight strata by their shares.

In each position the five actions that two searches prefer, and the actions of `REFERENCES`, get all
blocks of rollouts. The other actions get `FEW` blocks with the same luck.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from regret_rollouts import Blocks, roll_out

from tokaido_env.agent import Agent
from tokaido_env.agents.policy import PolicyAgent
from tokaido_env.agents.registry import make
from tokaido_env.agents.weights import Weights
from tokaido_env.agents.workspaces import PositionBatch
from tokaido_env.arena.game_runner import GameBatchSpec, pad_columns, play_games
from tokaido_env.arena.match import GAME, match_seed
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.bitmask import actions_of
from tokaido_env.core.rng import arena_seed
from tokaido_env.core.rules import legal_mask
from tokaido_env.core.state import Phase, copy_rows
from tokaido_env.study.regret_set import NOT_ROLLED, PHASES, RegretSet
from tokaido_env.trajectory import replay_chunks

SOURCES = ("champion", "heuristic")
"""Agents that play the games of the positions."""

JUDGES = ("mcts:sims=4000", "champion:sims=400")
"""Searches; their preferred actions get all blocks."""

REFERENCES = ("greedy", "heuristic", "mcts:sims=100", "mcts:sims=400", "champion")
"""More agents; their actions get all blocks too."""

POLICIES = ("champion", "heuristic")
"""Agents that play the rollouts."""

BOARDS = ("shikoku", "family:test")
LAST_ROUNDS = (6, 12, 18)
"""The last rounds of the groups of rounds; the last group is open."""

BEST = 5  # actions with all blocks, by the judges
FEW = 2  # blocks of the other actions

GAMES = 500  # for each ordered pair of sources, on each of `BOARDS`
BLOCKS = 16


class Choices(NamedTuple):
    """n decisions with a choice."""

    states: npt.NDArray[np.void]
    """`STATE` (n,)."""
    board: npt.NDArray[np.int64]
    """Index of the board in its pool, (n,)."""
    stratum: npt.NDArray[np.int64]
    """Index of the stratum in its pool, (n,)."""
    game: npt.NDArray[np.int64]
    """Number of the game of its two agents, (n,)."""


def strata_of(boards: str) -> list[dict[str, Any]]:
    """Return the strata of a pool, without their shares."""
    firsts = (1, *(last + 1 for last in LAST_ROUNDS))
    rounds = [f"{a}–{b}" for a, b in zip(firsts, LAST_ROUNDS, strict=False)] + [f"{firsts[-1]}–"]
    return [{"boards": boards, "phase": p, "rounds": r} for p in PHASES for r in rounds]


def choices_in_games(boards: BoardPool, games: int, seed: int) -> Choices:
    """Play games and return all their decisions with a choice.

    Args:
        boards: the games use them in turn.
        games: for each ordered pair of sources.
        seed: of the luck.
    """
    found = []
    for number, (a, b) in enumerate((a, b) for a in SOURCES for b in SOURCES):
        own = match_seed(seed, "regret", boards.name, str(number))
        found += list(choices_of(make(a), make(b), boards, games, own))
    return Choices(*(np.concatenate(column) for column in zip(*found, strict=True)))


def choices_of(a: Agent, b: Agent, boards: BoardPool, games: int, seed: int) -> Iterator[Choices]:
    """Yield the decisions with a choice of games of two agents, in parts."""
    numbers = np.arange(games)
    seeds = np.array([arena_seed(seed, k) for k in range(games)], np.int64)
    which = numbers % len(boards)
    each = [boards[number] for number in range(len(boards))]
    unplayed = np.zeros(games, GAME)
    unplayed["seed"], unplayed["board"] = seeds, which
    spec = GameBatchSpec(numbers, unplayed, each, which, games)
    actions = np.full((games, 0), -1, np.int8)
    for played in play_games(a, b, spec):
        moves = played.actions
        actions = pad_columns(actions, moves.shape[1])
        actions[played.numbers, : moves.shape[1]] = moves
    for some, part in replay_chunks(boards, seeds, actions, which):
        rows = np.flatnonzero(part.legal & (part.legal - np.uint64(1)))
        states = copy_rows(part.states, rows)
        game = some[part.games[rows]]
        yield Choices(states, which[game], _strata(states), game)


def _strata(states: npt.NDArray[np.void]) -> npt.NDArray[np.int64]:
    """Return the index of each position's stratum in `strata_of`, int64 (n,)."""
    numbers = np.full(len(Phase), -1)
    for number, phase in enumerate(PHASES):
        numbers[Phase[phase]] = number
    group = np.searchsorted(np.array(LAST_ROUNDS), states["round"])
    return np.asarray(numbers[states["phase"]] * (len(LAST_ROUNDS) + 1) + group)


def sample_choices(choices: Choices, n: int, seed: int) -> tuple[Choices, npt.NDArray[np.float64]]:
    """Sample n choices, ordered by stratum; return them and the shares of all strata.

    Raises:
        ValueError: if a stratum has too few or would get fewer than two.
    """
    strata = len(PHASES) * (len(LAST_ROUNDS) + 1)
    available = np.bincount(choices.stratum, minlength=strata)
    shares = available / available.sum()
    counts = apportion(np.sqrt(shares), n)
    if (counts > available).any() or (counts < 2)[available > 0].any():
        raise ValueError(f"positions: {n} are too few or too many for {available.sum():,} choices")
    rng = np.random.default_rng([seed, 14])
    rows = np.concatenate(
        [
            rng.choice(np.flatnonzero(choices.stratum == k), counts[k], replace=False)
            for k in range(strata)
        ]
    )
    return Choices(
        *(copy_rows(choices.states, rows), choices.board[rows]),
        *(choices.stratum[rows], choices.game[rows]),
    ), shares


def apportion(weights: npt.NDArray[np.float64], n: int) -> npt.NDArray[np.int64]:
    """Return shares of n by the largest remainders: int64, with sum n."""
    exact = weights / weights.sum() * n
    whole: npt.NDArray[np.int64] = np.floor(exact).astype(np.int64)
    largest = np.argsort(-(exact - whole), kind="stable")[: n - int(whole.sum())]
    whole[largest] += 1
    return whole


def make_plan(n: int, seed: int, games: int = GAMES, blocks: int = BLOCKS) -> RegretSet:
    """Return the plan of a set: zero sums where rollouts are to be made.

    Half of its positions are on each of `BOARDS`.

    Args:
        n: number of positions, even.
        seed: of games, samples and luck.
        games: for each ordered pair of sources, on each of `BOARDS`.
        blocks: the full number of blocks.

    Raises:
        ValueError: if a stratum has too few positions.
    """
    parts: list[tuple[Choices, int, int]] = []
    strata: list[dict[str, Any]] = []
    names: list[list[str]] = []
    for boards in map(BoardPool.load, BOARDS):
        some, shares = sample_choices(choices_in_games(boards, games, seed), n // 2, seed)
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
    plan.sums[~chosen_for_all_blocks(plan), :, FEW:] = NOT_ROLLED
    return plan


# Actions


def chosen_for_all_blocks(plan: RegretSet) -> npt.NDArray[np.bool_]:
    """Return the actions that get all blocks, as a mask: bool (m,)."""
    batch, n, positions = plan.batch(), len(plan), plan.action_positions
    games = batch.boards_of(batch.all_games), batch.states, batch.legal
    keys = batch.keys(batch.all_games)
    shares, named = np.zeros((n, N_ACTIONS)), np.zeros((n, N_ACTIONS), np.bool_)
    for spec in JUDGES:
        judged, _ = make(spec).judge(*games, keys)
        shares += judged
        named[np.arange(n), judged.argmax(axis=1)] = True
    for spec in REFERENCES:
        named[np.arange(n), make(spec).act(*games, keys)] = True
    legal = np.zeros((n, N_ACTIONS), np.bool_)
    legal[positions, plan.actions] = True
    ranked = np.where(legal, shares + len(JUDGES) * named, -1.0)
    best = np.zeros_like(legal)
    order = np.argsort(-ranked, axis=1, kind="stable")[:, :BEST]
    np.put_along_axis(best, order, values=True, axis=1)
    chosen: npt.NDArray[np.bool_] = (best | named)[positions, plan.actions]
    return chosen


# Rollouts


def rolled_out(plan: RegretSet, policy: str, some: range) -> npt.NDArray[np.int8]:
    """Roll out the planned blocks of some positions; return the sums of their actions.

    Args:
        plan: by `make_plan`.
        policy: spec of the agent that plays on.
        some: the positions.

    Returns:
        int8 (k, blocks), `NOT_ROLLED` where nothing is planned.

    Raises:
        ValueError: as `network_of`.
    """
    rows = slice(int(plan.starts[some.start]), int(plan.starts[some.stop]))
    sums: npt.NDArray[np.int8] = plan.sums[rows, 0].copy()
    which, numbers = np.nonzero(sums != NOT_ROLLED)
    part = np.arange(some.start, some.stop)
    batch = plan.subset(part).batch()
    positions = PositionBatch(batch.boards_of(batch.all_games), batch.states, batch.legal)
    first = plan.action_positions[rows] - some.start
    blocks = Blocks(first[which], plan.actions[rows].astype(np.int64)[which], numbers)
    network = network_of(make(policy))
    sums[which, numbers] = roll_out(network, positions, _luck_keys(plan)[part], blocks)
    return sums


def network_of(agent: Agent) -> Weights | None:
    """Return the network of an agent, None for the heuristic.

    Raises:
        ValueError: if it is another agent, or one that draws random numbers.
    """
    if agent.spec == "heuristic":
        return None
    if not isinstance(agent, PolicyAgent) or agent.temperature:
        raise ValueError(
            f"rollouts: expected heuristic or a network without temperature, got {agent.spec!r}"
        )
    return agent.policy.network()


def _luck_keys(plan: RegretSet) -> npt.NDArray[np.uint64]:
    """Return the luck key of each position, uint64 (n,)."""
    seed = match_seed(plan.card["seed"], "regret", "luck")
    return np.array([arena_seed(seed, k) for k in range(len(plan))], np.uint64)


def ranges_of(n: int, size: int) -> Sequence[range]:
    """Return the ranges that split n positions into parts of a size."""
    return [range(first, min(first + size, n)) for first in range(0, n, size)]
