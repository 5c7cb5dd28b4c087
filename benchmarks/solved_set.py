"""Make the solved positions: decisions of last rounds with the exact result of every action.

    python benchmarks/solved_set.py                  takes some minutes on two cores

Positions come from games of `SOURCES` against themselves and their neighbours in the list, on the
test boards of the family. A last round follows a trigger, or is a random round that becomes the one
at the cap (R10.1). All decisions in them are solved, and drawn: at most one of a game, and as many
on each board and of each end, where actions differ. Those where only `pass` is worse are left out,
because any rule that never passes is right there. Kinds of decisions (phase, end, pick) are drawn
by the square roots of their shares. The command gives the same bytes every time.
"""

from __future__ import annotations

import itertools
from collections import Counter
from importlib.metadata import version
from typing import Any

import numpy as np
from exact_values import exact_values
from regret_making import Choices, choices_of

from tokaido_env.agents.registry import make
from tokaido_env.arena.match import match_seed
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.core.actions import PASS
from tokaido_env.core.rules import legal_mask
from tokaido_env.core.state import UNSET, Phase, copy_rows
from tokaido_env.study.regret_set import PHASES, SAME, SOLVED, RegretSet

SOURCES = ("greedy:epsilon=0.8", "greedy", "heuristic", "mcts:sims=100")
"""Agents that play the games of the positions, from nearly random to strong; no network."""

BOARDS = "family:test"
POSITIONS = 20  # on each board, half of each end
GAMES = 4000  # for each ordered pair of agents
SEED = 0
STRATA = list(itertools.product(PHASES, ("trigger", "cap")))
"""Phase and end; each kind of decisions is one of the three picks in a stratum."""


def make_set(positions: int = POSITIONS, games: int = GAMES) -> RegretSet:
    """Solve all decisions of last rounds and draw positions of them.

    Args:
        positions: on each board.
        games: for each ordered pair of agents.

    Raises:
        ValueError: if there are too few positions where actions differ.
    """
    boards, rng = BoardPool.load(BOARDS), np.random.default_rng([SEED, 15])
    found = last_rounds(boards, games, rng)
    records, states = copy_rows(boards.records, found.board), found.states
    legal = [legal_mask(records, states, i) for i in range(len(states))]
    values, counts = exact_values(records, states, np.array(legal, np.uint64))
    others = np.delete(values, PASS, axis=1)
    best, worst = np.nanmax(others, axis=1), np.nanmin(others, axis=1)
    kept = np.flatnonzero((best - worst > SAME) | (values[:, PASS] - best > SAME))
    print(
        f"{len(states):,} decisions solved, with {counts.mean():,.0f} positions below one on "
        f"average, {counts.max():,} at most; {len(kept):,} can be drawn"
    )
    rows = drawn(found, kept, positions // 2, rng)
    stratum = found.stratum[rows] // 3
    shares = np.bincount(stratum, minlength=len(STRATA)) / len(rows)
    strata = [
        {"boards": BOARDS, "phase": phase, "rounds": end, "share": share}
        for (phase, end), share in zip(STRATA, shares.tolist(), strict=True)
    ]
    names = [list(one) for one in zip(boards.names, boards.hashes.tolist(), strict=True)]
    card = {"name": "tokaido-solved-1", "seed": SEED, "boards": names, "strata": strata}
    card |= {"policies": [], "sources": list(SOURCES), "tokaido_env": version("tokaido-env")}
    position, actions = np.nonzero(~np.isnan(values[rows]))
    return RegretSet(
        *(card | {"command": "python benchmarks/solved_set.py"}, copy_rows(states, rows)),
        *(found.board[rows].astype(np.int16), stratum.astype(np.int16)),
        np.searchsorted(position, np.arange(len(rows) + 1)).astype(np.int32),
        *(actions.astype(np.int8), values[rows[position], actions][:, None, None]),
    )


def last_rounds(boards: BoardPool, games: int, rng: np.random.Generator) -> Choices:
    """Return all decisions with a choice in last rounds; the strata are kinds."""
    found = []
    near = [(a, b) for i, a in enumerate(SOURCES) for b in SOURCES[max(i - 1, 0) : i + 2]]
    for number, (a, b) in enumerate(near):
        seed = match_seed(SEED, "solved", str(number))
        parts = zip(*choices_of(make(a), make(b), boards, games, seed), strict=True)
        own = _last_rounds(Choices(*map(np.concatenate, parts)), boards, rng)
        found.append(own._replace(game=own.game + number * games))
    return Choices(*map(np.concatenate, zip(*found, strict=True)))


def _last_rounds(some: Choices, boards: BoardPool, rng: np.random.Generator) -> Choices:
    states, game = some.states, some.game
    triggered = states["end_triggered"] == 1
    rounds = np.full(game.max() + 1, 2)
    np.maximum.at(rounds, game, states["round"])
    last = 2 * rng.integers(1, rounds // 2 + 1)  # even, as at the cap: the lead alternates
    at_cap = ~triggered & (states["round"] == last[game])
    states["round"][at_cap] = boards.records["max_rounds"][some.board[at_cap]]
    rows = np.flatnonzero(triggered | at_cap)
    pick = 2 - np.bitwise_count(states["dice_left"]).astype(int) + (states["die"] == UNSET)
    phase = np.array([PHASES.index(Phase(phase).name) for phase in states["phase"][rows]])
    kind = (2 * phase + at_cap[rows]) * 3 + pick[rows]
    return Choices(copy_rows(states, rows), some.board[rows], kind, game[rows])


def drawn(found: Choices, rows: Any, most: int, rng: np.random.Generator) -> Any:
    """Return some of the rows, `most` on each board and of each end, as int64 in their order.

    Raises:
        ValueError: if there are too few.
    """
    shares = np.bincount(found.stratum[rows]) / len(rows)
    # The lowest keys are a sample without replacement with these odds (Efraimidis, Spirakis 2006).
    keys = rng.exponential(size=len(rows)) * np.sqrt(shares[found.stratum[rows]])
    counts: Counter[tuple[int, str]] = Counter()
    seen: set[Any] = set()
    chosen = []
    for row in rows[np.argsort(keys)].tolist():
        part = int(found.board[row]), STRATA[found.stratum[row] // 3][1]
        once = {int(found.game[row]), found.states[row].tobytes()}
        if counts[part] < most and not once & seen:
            counts[part] += 1
            seen |= once
            chosen.append(row)
    wanted = 2 * most * len(np.unique(found.board))
    if len(chosen) < wanted:
        raise ValueError(f"GAMES: expected more: {len(chosen):,} of {wanted:,} positions found")
    return np.array(sorted(chosen))


if __name__ == "__main__":
    make_set().save(SOLVED)
    print(f"{SOLVED}: hash {RegretSet.load(SOLVED).hash}")
