"""Generalisation tests: an agent's scores on unseen boards, against a fixed opponent.

The defaults are Tokaido-100: the 100 boards of `test`, 40 pairs of games on each, against
`mcts:sims=400`. The games on a board follow from the seed and the board alone. So all agents play
them with the same luck, and more boards only add games.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tokaido_env.agent import Agent
from tokaido_env.agents.policy import Policy
from tokaido_env.agents.registry import as_agent
from tokaido_env.arena.generalisation import (
    FORFEITS,
    generalisation_gap,
    mean_over_opponents,
    pool_estimates,
    pool_scores,
)
from tokaido_env.arena.match import MAX_GAMES
from tokaido_env.arena.result import BoardsEntry, Measure, Result
from tokaido_env.arena.tournament import MatchState, files_of_matches
from tokaido_env.boards.board import Board, built_in_boards
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.boards.procedural import PREFIX, SPLITS, family_numbers, is_family
from tokaido_env.core.arguments import check_choice, check_seed, repr_short
from tokaido_env.learn.boards import splits_of

OPPONENT = "mcts:sims=400"
OPPONENTS = (OPPONENT, "heuristic", "generalist", "rusher", "hoarder")
"""Opponents of different style."""
HAND_MADE = "handmade"
"""The split of the hand-made boards, which come with the package besides the default board."""
SPLIT = "test"
BOARDS = 100
PAIRS = 40


@dataclass(frozen=True)
class GeneralisationTest:
    """The boards and matches of a test.

    Attributes:
        agent: spec of the agent.
        opponents: specs of its opponents; on boards of the training it plays the first.
        seed: of the games.
        trained_on: name of the board or pool that the agent was trained on, or None.
        test: unseen boards.
        pairs: of games on each of them.
        train: boards of the training, None without a second match.
        train_pairs: on each of them, for as many games as on `test` or a few more.
        train_drawn: whether the agent was trained on more boards than those.
    """

    agent: str
    opponents: tuple[str, ...]
    seed: int
    trained_on: str | None
    test: BoardPool
    pairs: int
    train: BoardPool | None
    train_pairs: int
    train_drawn: bool

    def matches(self) -> list[MatchState]:
        """Return the match on `test`, that on `train` if it has boards, those with more opponents.

        `state.b` is the opponent of a match.
        """
        first, *others = self.opponents
        parts = [(first, self.test, self.pairs)]
        if self.train is not None:
            parts.append((first, self.train, self.train_pairs))
        parts += [(other, self.test, self.pairs) for other in others]
        return [
            MatchState.for_boards(self.agent, other, pool, pairs, self.seed, "generalise")
            for other, pool, pairs in parts
        ]

    def result(self, matches: Sequence[MatchState]) -> Result:
        """Return the result of the finished matches, in the order of `matches()`."""
        is_train = [*map(self._is_train, matches)]
        sides = [
            pool_scores(match.to_match(), match.pool, self.seed, int(train), drawn=drawn)
            for match, train, drawn in zip(
                matches, is_train, map(self._drawn, matches), strict=True
            )
        ]
        test = [side for side, train in zip(sides, is_train, strict=True) if not train]
        estimates = [one for side in sides for one in pool_estimates(side)]
        about: dict[str, Any] = {"agent": self.agent, "group": self.test.name}
        if len(test) > 1:
            mean = mean_over_opponents(test)
            estimates.append(Measure(mean.value, mean.low, mean.high, "mean score", **about))
        if self.train is not None:
            gap = generalisation_gap(*sides[:2])
            about["other"] = self.train.name
            estimates.append(Measure(gap.value, gap.low, gap.high, "gap", **about))
        if forfeits := sum(len(match.forfeits) for match in matches):
            games = sum(map(len, matches))
            estimates.append(Measure.named(FORFEITS, self.agent, forfeits / games, n=games))
        boards = {
            match.pool.name: BoardsEntry.of(match.pool, drawn=self._drawn(match))
            for match in matches
        }
        return Result.made(
            "generalise",
            agents=(self.agent,),
            files=files_of_matches(matches),
            boards=tuple(boards.values()),
            seed=self.seed,
            scores=tuple(score for side in sides for score in side.scores),
            estimates=tuple(estimates),
            trained_on=self.trained_on,
        )

    def _drawn(self, match: MatchState) -> bool:
        """Return whether the boards of a match are a sample."""
        return self.train_drawn if self._is_train(match) else self.test.name != HAND_MADE

    def _is_train(self, match: MatchState) -> bool:
        return self.train is not None and match.pool.hash == self.train.hash


def generalisation_test(
    agent: Agent,
    opponent: str | Sequence[str] = OPPONENT,
    *,
    split: str = SPLIT,
    boards: int | None = None,
    pairs: int = PAIRS,
    train: int | None = None,
    gap: bool = True,
    seed: int = 0,
) -> GeneralisationTest:
    """Return the test of an agent.

    The agent plays on the first boards of the split, and on as many boards of its training, from
    the first. If it was trained on fewer boards, it plays more pairs on each, for as many games. If
    its training is unknown, the second boards are the first of `train`.

    Args:
        agent: to be measured.
        opponent: spec of its opponent, or several.
        split: of the unseen boards: "test", "far", "handmade", "valid" or "train". With "train"
            there is no second match.
        boards: number of boards, from 2; None for all of the split, 100 at most.
        pairs: of games on each board, from 1.
        train: number of the first boards of `train` that the agent was trained on, if its policy
            file does not say.
        gap: whether to play the second match, on boards of the training.
        seed: of the games, an integer from 0.

    Raises:
        ValueError: if a number is out of range, or the agent was trained on boards of the split.
    """
    agent, seed = as_agent(agent), check_seed(seed)
    boards = min(BOARDS, _size(split)) if boards is None else boards
    test = _pool_of(split, boards)
    _check_pairs(pairs, boards)
    recorded = trained_on(agent)
    known = _training_pool(agent, recorded, train)
    if known is not None and split != HAND_MADE:
        _refuse_overlap(agent, known, test)
    if recorded in test.names:
        raise _seen_error(agent, test, "one of them is that of its training")
    _refuse_start(agent, known, test, split)
    if split == "train" or not gap:
        train_boards, drawn = None, True
    elif known is None:
        train_boards, drawn = _pool_of("train", boards), True
    else:
        count = min(boards, len(known))
        train_boards, drawn = _first(known, count), count < len(known)
    more = 0 if train_boards is None else -(-pairs * boards // len(train_boards))
    name = recorded if known is None else known.name
    opponents = (opponent,) if isinstance(opponent, str) else tuple(dict.fromkeys(opponent))
    label = agent.spec if agent.source or agent.spec not in opponents else f"{agent.spec} 2"
    head = label, opponents, seed, name
    return GeneralisationTest(*head, test, pairs, train_boards, more, drawn)


def trained_on(agent: Agent) -> str | None:
    """Return the training board or pool that an agent's policy file names; None without one."""
    board = _training(agent).get("board")
    name = board.get("name") if isinstance(board, dict) else None
    return name if isinstance(name, str) else None


def also_trained_on(agent: Agent, boards: BoardPool) -> int:
    """Return how many of some boards an agent's policy file names among its `extra_boards`."""
    settings = _training(agent).get("settings")
    names = settings.get("extra_boards") if isinstance(settings, dict) else None
    return len({*names.split(",")}.intersection(boards.names)) if isinstance(names, str) else 0


def _training(agent: Agent) -> dict[str, Any]:
    """Return the training entry of a policy file, {} for other agents."""
    policy = getattr(agent, "policy", None)
    return policy.training if isinstance(policy, Policy) else {}


def _hand_made() -> list[str]:
    return [name for name in built_in_boards() if name != BoardPool.load().name]


def _size(split: str) -> int:
    check_choice("split", split, (*SPLITS, HAND_MADE))
    return len(_hand_made() if split == HAND_MADE else SPLITS[split])


def _pool_of(split: str, boards: int) -> BoardPool:
    most = _size(split)
    name = split if split == HAND_MADE else f"{PREFIX}{split}"
    if not 2 <= boards <= most:
        raise ValueError(f"boards: expected 2 to {most:,}, as many as {name} has, got {boards:,}")
    if split == HAND_MADE:
        return BoardPool(name, [Board.load(one) for one in _hand_made()[:boards]], drawn=False)
    return BoardPool.load(name + f"/{boards}" * (boards < most))


def _check_pairs(pairs: int, boards: int) -> None:
    most = MAX_GAMES // (2 * boards)
    if not 1 <= pairs <= most:
        raise ValueError(f"pairs: expected 1 to {most:,} on each of {boards:,} boards, got {pairs}")


def _training_pool(agent: Agent, recorded: str | None, train: int | None) -> BoardPool | None:
    """Return the boards of the family that an agent was trained on, None if unknown."""
    name = None if train is None else f"{PREFIX}train/{train}"
    if name is not None and recorded is not None and recorded != name:
        raise ValueError(
            f"train: expected {repr_short(recorded)}, the training boards in the policy file of "
            f"{repr_short(agent.spec)}, got {name}: leave it out"
        )
    name = name or recorded
    return BoardPool.load(name) if name is not None and is_family(name) else None


def _refuse_overlap(agent: Agent, known: BoardPool, test: BoardPool) -> None:
    seen, unseen = family_numbers(known.name), family_numbers(test.name)
    both = range(max(seen[0], unseen[0]), min(seen[-1], unseen[-1]) + 1)
    if both:
        raise _seen_error(agent, test, f"{len(both):,} of them are in {known.name}")


def _refuse_start(agent: Agent, known: BoardPool | None, test: BoardPool, split: str) -> None:
    """Refuse a policy that started from one that was trained on boards of the split."""
    in_split = known is not None and family_numbers(known.name)[0] in SPLITS.get(split, ())
    if not in_split and split != "train" and split in splits_of(_training(agent)):
        raise _seen_error(agent, test, "it started from a policy of these boards")


def _seen_error(agent: Agent, test: BoardPool, why: str) -> ValueError:
    return ValueError(
        f"split: expected boards that {repr_short(agent.spec)} was not trained on, got "
        f"{test.name}: {why}; choose another split"
    )


def _first(pool: BoardPool, count: int) -> BoardPool:
    """Return the first boards of a pool of the family."""
    if count == len(pool):
        return pool
    split = pool.name.removeprefix(PREFIX).partition("/")[0]
    return BoardPool.load(f"{PREFIX}{split}/{count}")
