"""What decisions of the ladder's agents lose by a review, beside what they are worth in games.

    python benchmarks/review_ladder.py                  all of it: half an hour on one core
    python benchmarks/review_ladder.py --only greedy    only matches of agents with a word
    python benchmarks/review_ladder.py --docs           also put the tables into the docs

Each agent plays each other, and itself, with luck that no other match has. Games and reviews lie in
the folder `--results`; what is there is neither played nor reviewed again.
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
from tokaido_100 import filled

from tokaido_env.agents import make
from tokaido_env.arena.executors import Executor, open_executor
from tokaido_env.arena.game_runner import AgentFailed
from tokaido_env.arena.ladder import LADDER
from tokaido_env.arena.records import records_of
from tokaido_env.arena.tournament import MatchState, play_remaining
from tokaido_env.cli.review_columns import review_file
from tokaido_env.files import read_json, write_text
from tokaido_env.record import Record, read_verified, save
from tokaido_env.report.tables import Table, markdown, print_table
from tokaido_env.study.batch_review import ReviewConfig, review_games
from tokaido_env.study.estimates import JsonDict, clustered_mean
from tokaido_env.study.review import CHANCE_SAMPLES, OPEN

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "review.md"

AGENTS = (
    *("random", "greedy:epsilon=0.4", "greedy", "heuristic", "mcts:sims=100"),
    *("mcts:sims=4000", "champion"),
)
"""Of the ladder, weakest first."""

JUDGES = ("champion:sims=400", "mcts:sims=4000")
"""The first is that of `tokaido review`. The second knows nothing of the champion's network."""

VALUES_BY = "champion"


class Choices(NamedTuple):
    """Decisions with a choice, k of them, by one judge.

    Attributes:
        agents, opponents: str (k,), who decided, and against whom.
        pairs: int64 (k,), numbers of the pairs of games.
        losses: float64 (k,), of win probability.
        agreed: bool (k,), whether it was what the judge would have played.
        are_open: bool (k,), whether both could win, see `review.OPEN`.
    """

    agents: npt.NDArray[np.str_]
    opponents: npt.NDArray[np.str_]
    pairs: npt.NDArray[np.int64]
    losses: npt.NDArray[np.float64]
    agreed: npt.NDArray[np.bool_]
    are_open: npt.NDArray[np.bool_]

    @property
    def while_open(self) -> Choices:
        """Those while both could win."""
        return Choices(*(column[self.are_open] for column in self))

    def of(self, agent: str, opponent: str | None = None) -> Choices:
        """Return those of one agent, against one opponent."""
        own = self.agents == agent
        if opponent is not None:
            own = own & (self.opponents == opponent)
        return Choices(*(column[own] for column in self))


def main(arguments: Sequence[str] | None = None) -> int:
    """Play and review what is not there yet and make the tables; return the exit status."""
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
        text = "\n".join(f"**{table.title}**\n\n{markdown(table, code=True)}" for table in tables)
        write_text(PAGE, filled(PAGE.read_text(encoding="utf-8"), f"\n{text}\n{orders}\n\n"))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--results", type=Path, default=Path("runs/review-ladder"), help="(runs/review-ladder)")
    add("--only", nargs="+", default=[], metavar="WORD", help="agents whose specs hold one")
    add("--pairs", type=int, default=8, help="of games, of each match (8)")
    add("--seed", type=int, default=1000, help="of the games; matches count on from it (1000)")
    add("--judges", nargs="+", default=JUDGES, metavar="SPEC", help=f"({' '.join(JUDGES)})")
    add("--ladder", type=Path, default=LADDER, metavar="FILE", help="whose ratings are told")
    add("--executor", default="serial", help="what runs games and reviews (default: serial)")
    add("--docs", action="store_true", help="put the tables into the docs")
    return parser


# Playing and reviewing


def _played(a: str, b: str, number: int, options: argparse.Namespace, executor: Executor) -> Path:
    """Return the record file of a match, which is played if it is not there."""
    seed = options.seed + number
    path: Path = options.results / f"{_word(a)}--{_word(b)}--{options.pairs}-{seed}.jsonl"
    if not path.is_file():
        print(f"{path.name}: {a} against {b}", flush=True)
        match_state = MatchState(a, b, 2 * options.pairs, seed, "shikoku")
        play_remaining(match_state, make(a), make(b), executor=executor)
        save(records_of(match_state, np.arange(2 * options.pairs)), path)
    return path


def _reviewed(games: Path, judge: str, executor: Executor) -> Path:
    """Return the columns of the reviews of some games, which are reviewed if they are not there."""
    path = games.with_name(f"{games.stem}--{_word(judge)}.npz")
    if path.is_file():
        return path
    print(path.name, flush=True)
    asked = ReviewConfig(make(judge), make(VALUES_BY), CHANCE_SAMPLES, 0)
    begun: list[Record] = []

    def each() -> Iterator[Any]:
        for _, record, played in read_verified(games):
            begun.append(record)
            yield played

    with review_file(path, asked) as add:
        done = 0

        def take(found: Any) -> None:
            nonlocal done
            add(done + 1, begun[done], found)
            done += 1

        review_games(each(), asked, take, executor)
    return path


def _word(spec: str) -> str:
    return spec.replace(":", "-").replace("=", "-")


def choices_of(files: Sequence[Path]) -> Choices:
    """Return the decisions of some files of reviews, the pairs of games of each numbered apart."""
    parts, before = [], 0
    for file in files:
        with np.load(file) as arrays:
            told = dict(arrays)
        names = told["name_words"]
        rows = ~np.isnan(told["loss"])
        words = told["label_words"][told["label"]], told["best_words"][told["best"]]
        # The games of a pair stand together and have one number.
        pairs = before + (told["game"] + 1) // 2
        before = int(pairs.max())
        parts.append(
            (
                *(names[told["name"]][rows], told["opponent_words"][told["opponent"]][rows]),
                *(pairs[rows], told["loss"][rows], (words[0] == words[1])[rows]),
                (np.abs(told["wins"] - 0.5) <= 0.5 - OPEN)[rows],
            )
        )
    return Choices(*(np.concatenate(column) for column in zip(*parts, strict=True)))


# Telling


def tables_of(choices: dict[str, Choices], ladder: dict[str, Any]) -> list[Table]:
    """Return the losses of agents by each judge, and by the first one against each opponent.

    Args:
        choices: by judge.
        ladder: as in its file: "agents" with "agent", "elo" and "ci95".
    """
    first = next(iter(choices.values()))
    known = {one["agent"]: one for one in ladder["agents"]}
    agents = [agent for agent in known if agent in first.agents]  # best first
    headers = ("agent", "Elo", "choices")
    headers += tuple(
        word for judge in choices for word in (f"loss by {judge}", "both could win", "as it would")
    )
    rows = []
    for agent in agents:
        own = [told.of(agent) for told in choices.values()]
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
    title = f"Mean loss a choice, Elo of ladder {ladder['hash']}, board {board}"
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
    """Return the mean loss of decisions; pairs of games are what is independent."""
    return clustered_mean(choices.losses, choices.pairs)


def with_error(figure: JsonDict) -> str:
    """Return a mean of losses with half its interval, in percent."""
    if figure["mean"] is None:
        return "–"
    told = f"{figure['mean']:.2%}".replace("-", "−")
    if figure["ci95"] is None:
        return told
    return f"{told} ± {(figure['ci95'][1] - figure['ci95'][0]) / 2:.2%}"


def orders_of(choices: dict[str, Choices], ladder: dict[str, Any]) -> str:
    """Return how far losses by each judge order agents as their ratings do."""
    elo = {one["agent"]: one["elo"] for one in ladder["agents"]}
    lines = []
    for judge, told in choices.items():
        agents = [agent for agent in elo if agent in told.agents]
        pairs = np.triu_indices(len(agents), 1)
        strength = np.array([elo[agent] for agent in agents])
        alike = [
            int((np.sign(strength[:, None] - strength) == _above(part, agents))[pairs].sum())
            for part in (told, told.while_open)
        ]
        lines.append(
            f"Of the {len(pairs[0])} pairs of these agents the loss by `{judge}` orders {alike[0]} "
            f"as their ratings do, while both could win {alike[1]}."
        )
    return "\n".join(lines)


def _above(choices: Choices, agents: Sequence[str]) -> npt.NDArray[np.float64]:
    """Return for each two agents 1 where the first loses less, -1 where more: (n, n)."""
    losses = np.array([loss_of(choices.of(agent))["mean"] for agent in agents], np.float64)
    return np.asarray(np.sign(losses - losses[:, None]))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (ValueError, OSError, AgentFailed) as error:
        sys.exit(f"review_ladder: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
