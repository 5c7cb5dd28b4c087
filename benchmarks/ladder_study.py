"""Does a ladder misfit because of its link, or of cycles? And what is the first move worth?

    python benchmarks/ladder_study.py           measure both ladders and the boards: some minutes
    python benchmarks/ladder_study.py --docs    only put the tables of the last run into the docs

The results are in benchmarks/ladder_study.json, with the hash of each ladder.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from itertools import combinations
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from cyclic_ratings import (
    Results,
    cyclic_part,
    fit_model,
    held_out_losses,
    leave_one_out,
    lottery_order,
    margins_of,
    simulated,
    soft_condorcet,
    with_first_move,
)
from pages import fill

from tokaido_env.agents import make
from tokaido_env.arena.intervals import chi2_sf, wilson_interval
from tokaido_env.arena.ladder import FAMILY_LADDER, LADDER, Ladder
from tokaido_env.arena.match import Match, match_seed
from tokaido_env.arena.rating_models import (
    PROBIT,
    RATING_MODELS,
    maximum_likelihood,
    model_named,
)
from tokaido_env.arena.tournament import pair_seeds, play_match, play_selfplay
from tokaido_env.boards.board import built_in_boards
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.files import read_json, write_text
from tokaido_env.report.tables import Table, markdown

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "ladder_study.json"
PAGE = ROOT / "docs" / "benchmarks" / "ladder.md"

DISC = 30.0  # penalty; of 3, 10, 30, 100 and 300 the best for held-out matches of shikoku
SIMULATIONS = 400
RESAMPLES = 400
FAST = ("greedy", "heuristic", "champion")
SELF = "mcts:sims=100"  # plays itself
POOL = "family:valid"
GAMES = 2000  # of every two agents on a board

Data = dict[str, Any]


def study(path: Path, advantage: float, simulations: int = SIMULATIONS) -> Data:
    """Return the tests of a ladder as plain JSON types.

    Args:
        path: the ladder.
        advantage: of the first mover on its board, in Elo points.
        simulations: of the likelihood-ratio test.
    """
    ladder = Ladder.load(path)
    link = model_named(ladder.link)
    results = Results.of([rating.agent for rating in ladder.agents], ladder.matches)
    probit, disc = fit_model(results, link), fit_model(results, link, disc=DISC)
    expected = link.expected_score(probit.z)
    gain, rng, null = 2 * (disc.objective - probit.objective), np.random.default_rng(0), []
    for _ in range(simulations):
        drawn = simulated(results, expected, rng)
        fits = fit_model(drawn, link), fit_model(drawn, link, disc=DISC)
        null.append(2 * (fits[1].objective - fits[0].objective))
    cyclic = cyclic_part(results, link, disc)
    in_elo = link.elo_per_unit * cyclic.by_match
    largest = np.argsort(-abs(in_elo))[:3]
    return {
        "ladder": ladder.hash,
        "board": ladder.board,
        "link": ladder.link,
        "df": len(results.scores) - len(results.agents) + 1,
        "models": _models(results, ladder.link, advantage),
        "disc": {
            "penalty": DISC,
            "statistic": round(gain, 2),
            "null": [round(float(q), 2) for q in np.quantile(null, [0.5, 0.95])],
            "p": (1 + sum(one >= gain for one in null)) / (simulations + 1),
            "simulations": simulations,
            "share": round(cyclic.share, 6),
            "largest": [
                [ladder.matches[i].a, ladder.matches[i].b, round(float(in_elo[i]), 1)]
                for i in largest
            ],
        },
        "agents": _agents(results, ladder),
    }


def _models(results: Results, name: str, advantage: float) -> list[Data]:
    """Return chi-squared and held-out log loss of each model of a ladder."""
    link = model_named(name)
    first = with_first_move(link, advantage / link.elo_per_unit)
    bent, disc = fit_model(results, link, bent=True), fit_model(results, link, disc=DISC)
    bent_expected = link.expected_score(bent.z)
    fits = {
        **{other: _fit_row(results, model) for other, model in RATING_MODELS.items()},
        f"{name}, first-move term": _fit_row(results, first),
        f"{name}, bent link": {"chi2": results.chi2(bent_expected), "held_out": None},
        f"{name}, disc": _fit_row(results, link, DISC)
        | {"chi2": results.chi2(link.expected_score(disc.z))},
    }
    probit = fits[name]["losses"]
    rows = []
    for label, fit in fits.items():
        losses = fit.pop("losses", None)
        row: Data = {"model": label, "chi2": round(fit["chi2"], 1), "held_out": None, "more": None}
        if losses is not None:
            row["held_out"] = round(1000 * float(losses.mean()), 3)
            row["more"] = _interval(1000 * (losses - probit))
        rows.append(row)
    return rows


def _fit_row(results: Results, link: Any, disc: float | None = None) -> Data:
    expected = link.expected_score(fit_model(results, link).z)
    losses = held_out_losses(results, link, disc=disc)
    return {"chi2": results.chi2(expected), "losses": losses}


def _interval(values: Any) -> list[float]:
    """Return the 95 % interval of a mean over matches, by the Bayesian bootstrap."""
    weights = np.random.default_rng(0).dirichlet(np.ones(len(values)), 4000)
    return [round(float(q), 3) + 0.0 for q in np.quantile(weights @ values, [0.025, 0.975])]


def _agents(results: Results, ladder: Ladder) -> list[Data]:
    """Return each agent's ranks by the voting methods, and its shift without another agent."""
    link = model_named(ladder.link)
    fit = fit_model(results, link)
    shifts = link.elo_per_unit * leave_one_out(results, link)
    margins = margins_of(results, link.expected_score(fit.ratings[:, None] - fit.ratings))
    tiers = lottery_order(margins)
    starts = None, np.linspace(100, 0, len(margins))  # equal, and in the ladder's order
    found = (soft_condorcet(results.votes(), start) for start in starts)
    ratings, _ = min(found, key=itemgetter(1))
    soft = np.argsort(-ratings, kind="stable").tolist()
    rows = []
    for i, rating in enumerate(ladder.agents):
        without = int(np.nanargmax(abs(shifts[:, i])))
        rows.append(
            {
                "agent": rating.agent,
                "elo": round(rating.elo, 1),
                "half_width": round((rating.ci95[1] - rating.ci95[0]) / 2, 1),
                "lottery": 1 + next(k for k, tier in enumerate(tiers) if i in tier),
                "soft_condorcet": 1 + soft.index(i),
                "shift": round(float(shifts[without, i]), 1),
                "without": results.agents[without],
            }
        )
    return rows


# First move


def first_move(board: str, games: int = GAMES) -> Data:
    """Return the first-move advantage on a board, fitted with the strengths of three agents."""
    matches = [
        play_match(make(a), make(b), games, match_seed(0, "first-move", board, a, b), board)
        for a, b in combinations(FAST, 2)
    ]
    link, rng = model_named(PROBIT), np.random.default_rng(0)
    design, played = _seat_design(matches), np.repeat([len(m.games) for m in matches], 2)
    points = [_seat_points(match, rng) for match in matches]
    fits = maximum_likelihood(
        link,
        design,
        np.zeros((RESAMPLES + 1, len(played))),
        np.hstack(points),
        played.astype(float),
    )
    expected = link.expected_score(design @ fits[0])
    scores = np.hstack(points)[0] / played
    chi2 = float(((scores - expected) ** 2 * played / (expected * (1 - expected))).sum())
    df = len(played) - design.shape[1]
    advantage = fits[:, -1]
    share = link.expected_score(
        np.array([advantage[0], *np.quantile(advantage[1:], [0.025, 0.975])])
    )
    return {
        "board": board,
        "games": games * len(matches),
        "elo": round(float(link.elo_per_unit * advantage[0]), 1),
        "equal": [round(float(one), 4) for one in share],
        "self": _self_play(board, games),
        "chi2": round(chi2, 1),
        "df": df,
        "p": float(f"{chi2_sf(chi2, df):.2g}"),
    }


def _self_play(board: str, games: int) -> list[float]:
    """Return the score of the first mover in games of SELF against itself, and its interval."""
    pool, results = BoardPool.load(board), []
    for one in pool:
        seeds = pair_seeds(match_seed(0, "first-move", one.name, SELF), games // len(pool))
        results.append(play_selfplay(make(SELF), one, seeds)[0]["result"])
    own = np.concatenate(results)
    score = float(own.mean())
    return [round(x, 4) for x in (score, *wilson_interval(score, len(own)))]


def _seat_design(matches: Sequence[Match]) -> Any:
    """Return a row for each match and first mover: the strengths but the first, and the term."""
    rows = []
    for match in matches:
        row = [float(name == match.a) - float(name == match.b) for name in FAST[1:]]
        rows += [[*row, 1.0], [*row, -1.0]]
    return np.array(rows)


def _seat_points(match: Match, rng: np.random.Generator) -> Any:
    """Return the points of `a` as first and as second mover: scored, then in resampled pairs."""
    weights = rng.dirichlet(np.ones(len(match.games)), RESAMPLES) * len(match.games)
    return np.vstack([np.ones(len(match.games)), weights]) @ match.results


# Tables


def tables(data: Data) -> str:
    """Return the tables of the page as Markdown."""
    parts = []
    for one in data["ladders"]:
        parts.append(f"**Ladder `{one['ladder']}`, board {one['board']}, {one['link']}**\n")
        parts.append(markdown(_models_table(one)))
        parts.append(_disc_lines(one))
        parts.append(markdown(_agents_table(one), code=True))
    parts.append(markdown(_first_move_table(data["first_move"]), code=True))
    command = "`python benchmarks/ladder_study.py`"
    parts.append(f"Made by {command}; tokaido_env {data['package']}.\n")
    return "\n" + "\n".join(parts)


def _models_table(one: Data) -> Table:
    rows = []
    for row in one["models"]:
        held_out = "–" if row["held_out"] is None else f"{row['held_out']:.2f}"
        more = " to ".join(_signed(x, "+.2f") for x in row["more"] or ())
        more = "" if row["model"] == one["link"] else more or "–"
        rows.append((row["model"], f"{row['chi2']:.1f}", held_out, more))
    head = ("model", f"χ² ({one['df']} by ratings alone)", "held-out loss", "more, 95 % interval")
    return Table("", head, rows)


def _disc_lines(one: Data) -> str:
    disc = one["disc"]
    terms = (f"`{a}` – `{b}` {_signed(elo)}" for a, b, elo in disc["largest"])
    middle, high = disc["null"]
    return (
        f"Disc: likelihood ratio {disc['statistic']:.1f} (p = {disc['p']:.2g}). Of "
        f"{disc['simulations']} ladders simulated without a disc the median is {middle:.1f}, the "
        f"95 % quantile {high:.1f}. Its share of the squared differences is "
        f"{100 * disc['share']:.2f} %. Largest terms in Elo points: {'; '.join(terms)}.\n"
    )


def _signed(number: float, form: str = "+.0f") -> str:
    return format(number, form).replace("-", "−")


def _agents_table(one: Data) -> Table:
    head = ("agent", "Elo", "±", "rank", "lottery", "soft Condorcet", "largest shift", "without")
    rows = [
        (
            row["agent"],
            *(_signed(row[key], ".0f") for key in ("elo", "half_width")),
            *(str(rank) for rank in (number, row["lottery"], row["soft_condorcet"])),
            _signed(row["shift"]),
            row["without"],
        )
        for number, row in enumerate(one["agents"], start=1)
    ]
    return Table("", head, rows)


def _first_move_table(rows: Sequence[Data]) -> Table:
    head = ("board", "term, Elo", "score of equals, %", "χ²", "p", "self-play, %")
    cells = [
        (
            row["board"],
            _signed(row["elo"], ".0f"),
            _percent(row["equal"]),
            f"{row['chi2']:.1f} on {row['df']}",
            f"{row['p']:.2g}",
            _percent(row["self"]),
        )
        for row in rows
    ]
    return Table("", head, cells)


def _percent(estimate: Sequence[float]) -> str:
    return "{:.1f} ({:.1f} – {:.1f})".format(*(100 * x for x in estimate))


def measure() -> Data:
    """Return all results; it takes some minutes."""
    from tokaido_env import __version__

    boards = [first_move(board) for board in (*built_in_boards(), POOL)]
    by_board = {row["board"]: row["elo"] for row in boards}
    ladders = [study(LADDER, by_board["shikoku"]), study(FAMILY_LADDER, by_board[POOL])]
    return {"package": __version__, "ladders": ladders, "first_move": boards}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write the results, or put them into the page; return 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    docs = "only put the tables of the last run into the docs (default: off)"
    parser.add_argument("--docs", action="store_true", help=docs)
    if not parser.parse_args(arguments).docs:
        write_text(RESULTS, json.dumps(measure(), indent=1, ensure_ascii=False) + "\n")
    fill(PAGE, tables(read_json(RESULTS)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
