"""Generalisation: how an agent plays on boards that it has not seen, against a fixed opponent.

Tokaido-100 is this with its defaults: the 100 boards of `test`, 40 pairs of games on each, against
`mcts:sims=400`. The games on a board follow from the seed and the board alone: all agents that are
measured play them with the same luck, and more boards only add games.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tokaido_env.agent import Agent
from tokaido_env.agents.policy import Policy
from tokaido_env.arena.generalisation import (
    VERSION,
    Generalisation,
    generalisation_gap,
    scores_on_boards,
)
from tokaido_env.arena.match import MAX_GAMES
from tokaido_env.arena.protocol import protocol_match
from tokaido_env.arena.tournament import MatchState
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.boards.procedural import PREFIX, SPLITS, is_family, numbers_of
from tokaido_env.core.arguments import check_choice, check_seed, repr_short
from tokaido_env.learn.boards import splits_of

OPPONENT = "mcts:sims=400"
SPLIT = "test"
BOARDS = 100
PAIRS = 40


@dataclass(frozen=True)
class Plan:
    """What is going to be played.

    Attributes:
        agent: spec of the agent.
        opponent: spec of whom it plays against.
        seed: of the games.
        trained_on: name of the board or pool that the agent was trained on, or None.
        test: boards that it has not seen.
        pairs: of games on each of them.
        train: boards of those it was trained on, None if they are the same as `test`.
        train_pairs: on each of them: as many games as on `test`, or a few more.
        train_drawn: whether it was trained on more than those.
    """

    agent: str
    opponent: str
    seed: int
    trained_on: str | None
    test: BoardPool
    pairs: int
    train: BoardPool | None
    train_pairs: int
    train_drawn: bool

    def match_states(self) -> list[MatchState]:
        """Return the two matches, or the one, board after board."""
        parts = (self.test, self.pairs), (self.train, self.train_pairs)
        return [
            protocol_match(self.agent, self.opponent, pool, pairs, self.seed, "generalise")
            for pool, pairs in parts
            if pool is not None
        ]

    def result(self, match_states: Sequence[MatchState]) -> Generalisation:
        """Return what follows from the matches, which are finished."""
        pools, drawn = (self.test, self.train), (True, self.train_drawn)
        found = [
            scores_on_boards(match_state.to_match(), pool, self.seed, kind, drawn=drawn[kind])
            for kind, (match_state, pool) in enumerate(zip(match_states, pools, strict=False))
            if pool is not None
        ]
        train, gap = (found[1][0], generalisation_gap(*found)) if len(found) > 1 else (None, None)
        head = VERSION, self.agent, self.opponent, self.seed, self.trained_on
        return Generalisation(*head, found[0][0], train, gap)


def plan(
    agent: Agent,
    opponent: str = OPPONENT,
    *,
    split: str = SPLIT,
    boards: int = BOARDS,
    pairs: int = PAIRS,
    train: int | None = None,
    seed: int = 0,
) -> Plan:
    """Return what is to be played to measure an agent.

    It plays on the first boards of the split, and on as many of those that it was trained on: the
    first of them. Where it was trained on fewer, it plays more pairs on each, so that there are as
    many games. Of an agent that tells nothing of its training, the others are the first of `train`.

    Args:
        agent: to be measured.
        opponent: spec of whom it plays against.
        split: of the boards that it has not seen: "test", "valid" or "train". With "train" there
            are no others to compare with.
        boards: how many, from 2.
        pairs: of games on each board, from 1.
        train: on how many of the first boards of `train` it was trained, where its policy file
            does not tell.
        seed: of the games, 0 to 2**53 - 1.

    Raises:
        ValueError: if a number is out of range, or the agent was trained on boards of the split.
    """
    check_seed(seed)
    test = _pool_of(split, boards)
    _check_pairs(pairs, boards)
    told = trained_on(agent)
    known = _training_pool(agent, told, train)
    if known is not None:
        _refuse_overlap(agent, known, test)
    _refuse_start(agent, known, split)
    if split == "train":
        ours, drawn = None, True
    elif known is None:
        ours, drawn = _pool_of("train", boards), True
    else:
        count = min(boards, len(known))
        ours, drawn = _first(known, count), count < len(known)
    more = 0 if ours is None else -(-pairs * boards // len(ours))
    name = told if known is None else known.name
    head = agent.spec, opponent, seed, name
    return Plan(*head, test, pairs, ours, more, drawn)


def trained_on(agent: Agent) -> str | None:
    """Return the name of the board or pool that a policy says it was trained on, None if none."""
    board = _training(agent).get("board")
    name = board.get("name") if isinstance(board, dict) else None
    return name if isinstance(name, str) else None


def _training(agent: Agent) -> dict[str, Any]:
    """Return what a policy says of its training, nothing of another agent."""
    policy = getattr(agent, "policy", None)
    return policy.training if isinstance(policy, Policy) else {}


def _pool_of(split: str, boards: int) -> BoardPool:
    check_choice("split", split, SPLITS)
    most = len(SPLITS[split])
    if not 2 <= boards <= most:
        raise ValueError(
            f"boards: expected 2 to {most:,}, as many as {PREFIX}{split} has, got {boards:,}"
        )
    return BoardPool.load(f"{PREFIX}{split}" + f"/{boards}" * (boards < most))


def _check_pairs(pairs: int, boards: int) -> None:
    most = MAX_GAMES // (2 * boards)
    if not 1 <= pairs <= most:
        raise ValueError(f"pairs: expected 1 to {most:,} on each of {boards:,} boards, got {pairs}")


def _training_pool(agent: Agent, told: str | None, train: int | None) -> BoardPool | None:
    """Return the boards of the family that an agent was trained on, None if that is not known."""
    name = None if train is None else f"{PREFIX}train/{train}"
    if name is not None and told is not None and told != name:
        raise ValueError(
            f"train: {repr_short(agent.spec)} says that it was trained on {repr_short(told)}, got {name}"
        )
    name = name or told
    return BoardPool.load(name) if name is not None and is_family(name) else None


def _refuse_overlap(agent: Agent, known: BoardPool, test: BoardPool) -> None:
    seen, unseen = numbers_of(known.name), numbers_of(test.name)
    both = range(max(seen[0], unseen[0]), min(seen[-1], unseen[-1]) + 1)
    if both:
        raise ValueError(
            f"split: {repr_short(agent.spec)} was trained on {known.name}, which has {len(both):,} of "
            f"the boards of {test.name}: expected a split that it has not seen"
        )


def _refuse_start(agent: Agent, known: BoardPool | None, split: str) -> None:
    """Refuse a policy that was begun from one that was trained on boards of the split."""
    own = known is not None and numbers_of(known.name)[0] in SPLITS[split]  # its numbers tell
    if not own and split != "train" and split in splits_of(_training(agent)):
        raise ValueError(
            f"split: {repr_short(agent.spec)} was begun from a policy that was trained on boards of "
            f"{PREFIX}{split}: expected a split that it has not seen"
        )


def _first(pool: BoardPool, count: int) -> BoardPool:
    """Return the first boards of a pool of the family."""
    if count == len(pool):
        return pool
    split = pool.name.removeprefix(PREFIX).partition("/")[0]
    return BoardPool.load(f"{PREFIX}{split}/{count}")
