"""Tables of the losses of ladder agents by reviews, next to their ratings.

    python benchmarks/review_ladder.py                  takes half an hour on one core
    python benchmarks/review_ladder.py --only greedy    only matches of agents with a word
    python benchmarks/review_ladder.py --docs           also put the tables into the docs

Each agent plays each other and itself; each match has its own luck. Games and reviews in the folder
`--results` are used again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from pages import fill, titled

from tokaido_env.agents import make
from tokaido_env.arena.executors import Executor, open_executor
from tokaido_env.arena.game_runner import AgentFailed
from tokaido_env.arena.ladder import LADDER
from tokaido_env.arena.records import records_of
from tokaido_env.arena.tournament import MatchState, play_remaining
from tokaido_env.cli.review_columns import review_file
from tokaido_env.files import read_json
from tokaido_env.record import Record, read_verified, save
from tokaido_env.report.tables import Table, print_table
from tokaido_env.study.batch_review import ReviewConfig, review_games
from tokaido_env.study.estimates import JsonDict, clustered_mean
from tokaido_env.study.review import CHANCE_SAMPLES, OPEN

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "dev" / "review.md"

AGENTS = (
    *("random", "greedy:epsilon=0.4", "greedy", "heuristic", "mcts:sims=100"),
    *("mcts:sims=4000", "champion"),
)
"""Of the ladder, weakest first."""

JUDGES = ("champion:sims=400", "mcts:sims=4000")
"""The first is the default of `tokaido review`; the second does not use the champion's network."""

VALUE_AGENT = "champion"


class Choices(NamedTuple):
    """k decisions with a choice, reviewed by one judge.

    Attributes:
        agents: str (k,), the agents that decided.
        opponents: str (k,).
        pairs: int64 (k,), numbers of the pairs of games.
        losses: float64 (k,), of win probability.
        agreed: bool (k,), whether the judge prefers the same action.
        are_open: bool (k,), whether the game was open, see `review.OPEN`.
    """

    agents: npt.NDArray[np.str_]
    opponents: npt.NDArray[np.str_]
    pairs: npt.NDArray[np.int64]
    losses: npt.NDArray[np.float64]
    agreed: npt.NDArray[np.bool_]
    are_open: npt.NDArray[np.bool_]

    @property
    def while_open(self) -> Choices:
        """The decisions in open games."""
        return Choices(*(column[self.are_open] for column in self))

    def of(self, agent: str, opponent: str | None = None) -> Choices:
        """Return the decisions of one agent, against one opponent or all."""
        own = self.agents == agent
        if opponent is not None:
            own = own & (self.opponents == opponent)
        return Choices(*(column[own] for column in self))


def main(arguments: Sequence[str] | None = None) -> int:
    """Play and review missing games, make the tables; return the exit status."""
    options = _parser().parse_args(arguments)
    options.results.mkdir(parents=True, exist_ok=True)
    matches = [
        (number, *match)
        for number, match in enumerate(combinations_with_replacement(AGENTS, 2))
        if not options.only or any(word in spec for word in options.only for spec in match)
    ]
    found: dict[str, list[Path]] = {judge: [] for judge in options.judges}
    with open_executor(options.executor) as executor:
        for number, a, b in matches:
            games = _played(a, b, number, options, executor)
            for judge in options.judges:
                found[judge].append(_reviewed(games, judge, executor))
    choices = {judge: choices_of(files) for judge, files in found.items()}
    ladder = read_json(options.ladder)
    tables, orders = tables_of(choices, ladder), orders_of(choices, ladder)
    for table in tables:
        print_table(table)
    print(orders)
    if options.docs:
        by_judge, *by_opponent = tables
        fill(PAGE, f"\n{titled([by_judge])}\n{orders}\n\n{titled(by_opponent)}\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add(
        "--results",
        type=Path,
        default=Path("runs/review-ladder"),
        help="folder of games and reviews (default: runs/review-ladder)",
    )
    add(
        "--only",
        nargs="+",
        default=[],
        metavar="WORD",
        help="only agents with one of these words in their specs (default: all)",
    )
    add("--pairs", type=int, default=8, help="pairs of games in each match (default: 8)")
    add(
        "--seed",
        type=int,
        default=1000,
        help="random seed of the first match, plus 1 for each other (default: 1000)",
    )
    add(
        "--judges",
        nargs="+",
        default=JUDGES,
        metavar="SPEC",
        help=f"agents that judge decisions (default: {' '.join(JUDGES)})",
    )
    add(
        "--ladder",
        type=Path,
        default=LADDER,
        metavar="FILE",
        help="ladder of the ratings (default: the shipped one)",
    )
    add("--executor", default="serial", help="executor of games and reviews (default: serial)")
    add("--docs", action="store_true", help="put the tables into the docs")
    return parser


# Games and reviews


def _played(a: str, b: str, number: int, options: argparse.Namespace, executor: Executor) -> Path:
    """Return the record file of a match; play the match if it is missing."""
    seed = options.seed + number
    path: Path = options.results / f"{_file_word(a)}--{_file_word(b)}--{options.pairs}-{seed}.jsonl"
    if not path.is_file():
        print(f"{path.name}: {a} against {b}", flush=True)
        match_state = MatchState(a, b, 2 * options.pairs, seed, "shikoku")
        play_remaining(match_state, make(a), make(b), executor=executor)
        save(records_of(match_state, np.arange(2 * options.pairs)), path)
    return path


def _reviewed(games: Path, judge: str, executor: Executor) -> Path:
    """Return the file of the reviews of some games; review them if it is missing."""
    path = games.with_name(f"{games.stem}--{_file_word(judge)}.parquet")
    if path.is_file():
        return path
    print(path.name, flush=True)
    config = ReviewConfig(make(judge), make(VALUE_AGENT), CHANCE_SAMPLES, 0)
    records: list[Record] = []

    def games_of_file() -> Iterator[Any]:
        for _, record, trajectory in read_verified(games):
            records.append(record)
            yield trajectory

    with review_file(path, config) as add:
        done = 0

        def on_review(found: Any) -> None:
            nonlocal done
            add(done + 1, records[done], found)
            done += 1

        review_games(games_of_file(), config, on_review, executor)
    return path


def _file_word(spec: str) -> str:
    return spec.replace(":", "-").replace("=", "-")


def choices_of(files: Sequence[Path]) -> Choices:
    """Return the decisions in files of reviews; pairs are numbered across files."""
    parts, before = [], 0
    for file in files:
        frame = pd.read_parquet(file)
        columns = {name: frame[name].to_numpy() for name in frame}
        rows = ~np.isnan(columns["loss"])
        # The two games of a pair follow each other.
        pairs = before + (columns["game"] + 1) // 2
        before = int(pairs.max())
        parts.append(
            (
                *(columns["name"][rows], columns["opponent"][rows]),
                *(pairs[rows], columns["loss"][rows]),
                (columns["label"] == columns["best"])[rows],
                (np.abs(columns["wins"] - 0.5) <= 0.5 - OPEN)[rows],
            )
        )
    return Choices(*(np.concatenate(column) for column in zip(*parts, strict=True)))


# Tables


def tables_of(choices: dict[str, Choices], ladder: dict[str, Any]) -> list[Table]:
    """Return tables of losses by judge, and by opponent for the first judge.

    Args:
        choices: by judge.
        ladder: contents of its file: "agents" with "agent", "elo" and "ci95".
    """
    first = next(iter(choices.values()))
    known = {one["agent"]: one for one in ladder["agents"]}
    agents = [agent for agent in known if agent in first.agents]  # best first
    headers = ("agent", "Elo", "choices")
    headers += tuple(
        word for judge in choices for word in (f"loss by {judge}", "both could win", "agreement")
    )
    rows = []
    for agent in agents:
        own = [of_judge.of(agent) for of_judge in choices.values()]
        row = agent, f"{known[agent]['elo']:.0f}".replace("-", "−"), f"{len(own[0].losses):,}"
        cells = (
            word
            for one in own
            for word in (
                *(with_error(loss_of(part)) for part in (one, one.while_open)),
                f"{one.agreed.mean():.0%}",
            )
        )
        rows.append((*row, *cells))
    board, judge = ladder["board"], next(iter(choices))
    title = f"Mean loss per choice, Elo of ladder {ladder['hash']}, board {board}"
    by = f"By opponent, by {judge}"
    return [
        Table(title, headers, rows),
        Table(by, ("loss of", *agents), _against(first, agents)),
        Table(
            f"{by}, while both could win", ("loss of", *agents), _against(first.while_open, agents)
        ),
    ]


def _against(choices: Choices, agents: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the mean losses of agents against each opponent."""
    return [
        (agent, *(with_error(loss_of(choices.of(agent, other))) for other in agents))
        for agent in agents
    ]


def loss_of(choices: Choices) -> JsonDict:
    """Return the mean loss of decisions; its interval treats pairs of games as independent."""
    return clustered_mean(choices.losses, choices.pairs)


def with_error(figure: JsonDict) -> str:
    """Return a mean loss with half its interval, in percent."""
    if figure["mean"] is None:
        return "–"
    text = f"{figure['mean']:.2%}".replace("-", "−")
    if figure["ci95"] is None:
        return text
    return f"{text} ± {(figure['ci95'][1] - figure['ci95'][0]) / 2:.2%}"


def orders_of(choices: dict[str, Choices], ladder: dict[str, Any]) -> str:
    """Return the agreement of losses and ratings for each judge, in sentences."""
    elo = {one["agent"]: one["elo"] for one in ladder["agents"]}
    lines = []
    for judge, of_judge in choices.items():
        agents = [agent for agent in elo if agent in of_judge.agents]
        pairs = np.triu_indices(len(agents), 1)
        strength = np.array([elo[agent] for agent in agents])
        alike = [
            int((np.sign(strength[:, None] - strength) == _above(part, agents))[pairs].sum())
            for part in (of_judge, of_judge.while_open)
        ]
        lines.append(
            f"Of the {len(pairs[0])} pairs of these agents the loss by `{judge}` orders {alike[0]} "
            f"as their ratings do, while both could win {alike[1]}."
        )
    return "\n".join(lines)


def _above(choices: Choices, agents: Sequence[str]) -> npt.NDArray[np.float64]:
    """Return the order of each two agents: 1 if the first loses less, -1 if more, (n, n)."""
    losses = np.array([loss_of(choices.of(agent))["mean"] for agent in agents], np.float64)
    return np.asarray(np.sign(losses - losses[:, None]))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (ValueError, OSError, AgentFailed) as error:
        sys.exit(f"review_ladder: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
