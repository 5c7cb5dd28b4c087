"""The tables that show a result, for each protocol."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tokaido_env.arena.generalisation import FIGURES, FORFEITS
from tokaido_env.arena.intervals import Estimate
from tokaido_env.arena.match import SCORE_KEYS
from tokaido_env.arena.rating_model import PROBIT
from tokaido_env.arena.ratings import expected_score, has_sweep
from tokaido_env.arena.result import Measure, Result, ResultError, Score
from tokaido_env.core.arguments import escape_text
from tokaido_env.report.standings import standings
from tokaido_env.report.tables import MOST, Table, percentages, true_minus, whole, with_interval

NO_VALUE = "–"
MATCHES = "Matches"
"""The title of the table of matches, which may be long."""
_GROUPS = ("boards", "phase", "rounds")  # of regret


def tables_of(result: Result) -> list[Table]:
    """Return the tables of text that show a result of any protocol."""
    makers: dict[str, Callable[[Result], list[Table]]] = {
        **{"matches": _of_matches, "rate": _of_rate, "ladder": _of_ladder},
        **{"generalise": _of_generalise, "regret": _of_regret},
    }
    return makers[result.protocol](result)


def title_of(result: Result) -> str:
    """Return a result's boards and seed in words."""
    seed = "" if result.seed is None else f", seed {result.seed}"
    return f"board {', '.join(boards.name for boards in result.boards)}{seed}"


def share(estimate: Estimate, form: str = ".1f") -> str:
    """Return a share with its interval as text in percent; `form` is a format of numbers."""
    return with_interval(estimate.value, estimate.interval, form, 100, " %")


# Matches and ratings


def _of_matches(result: Result) -> list[Table]:
    title = f"{sum(score.n for score in result.scores):,} games, {title_of(result)}"
    tables = [standings_table(result, title), matches_table(result.scores, MATCHES)]
    return [table for table in (*tables, luck_table(result)) if table.rows]


def standings_table(result: Result, title: str) -> Table:
    """Return the standings of agents, best first, with ratings and forfeits if there are any."""
    rows, ratings = standings(result), {one.agent: one for one in result.estimates_of("Elo")}
    forfeits = any(row.forfeits for row in rows)
    headers = ["rank", "agent", "games", "score", *(["Elo", "95 % interval"] if ratings else [])]
    headers += ["points", "as player_0", "as player_1", *(["forfeits"] if forfeits else [])]
    cells = []
    for row in rows:
        line = [str(row.rank), row.agent, f"{row.games:,}", f"{row.score:.1%}"]
        rating = ratings.get(row.agent)
        if ratings:
            line += (NO_VALUE, NO_VALUE) if rating is None else elo_cells(rating)
        line += [f"{row.points:.1f}", *(f"{score:.1%}" for score in row.seats)]
        line += [f"{row.forfeits:,}"] if forfeits else []
        cells.append(tuple(line))
    relative = f"Elo is relative, from these matches only ({scale(result.anchor)}); "
    note = f"{relative}it is not the ladder's." if ratings else ""
    note += _note_of_sweep(result, "")
    return Table(title, tuple(headers), cells, left=1, note=note)


_SWEEP = " Elo across a clean sweep (all games won or lost) is a bound, which moves with --games."


def _note_of_sweep(result: Result, group: str) -> str:
    names = {one.agent for one in result.estimates_of("Elo") if one.group == group}
    scores = [one for one in result.scores if {one.a, one.b} <= names]
    return _SWEEP if names and has_sweep(scores) else ""


_HEADERS = ("agent", "against", "games", "wins", "score", "95 % interval", *SCORE_KEYS)


def matches_table(scores: Sequence[Score], title: str) -> Table:
    """Return games, score and points of both agents of each match, and of several the opponents.

    Notes count equal games and mention forfeits.
    """
    headers: tuple[str, ...] = _HEADERS
    rows = [row for score in scores for row in _match_rows(score)]
    if len(scores) == 1:
        headers, rows = _without_opponent(headers), [_without_opponent(row) for row in rows]
    games = [score.games for score in scores if score.games is not None]
    equal, total = sum(one.equal for one in games), sum(score.n for score in scores)
    alike = f"{equal:,} of {total:,} games repeat another game: two agents play alike."
    notes = [alike] * bool(equal)
    if any(sum(one.forfeits) for one in games):
        notes.append("Points are of games without a forfeit.")
    return Table(title, headers, rows, note=" ".join(notes))


def _without_opponent(cells: tuple[str, ...]) -> tuple[str, ...]:
    return cells[:1] + cells[2:]


def _match_rows(score: Score) -> list[tuple[str, ...]]:
    rows, games = [], score.games
    draws = 0 if games is None else games.draws
    for side, names in enumerate(((score.a, score.b), (score.b, score.a))):
        value, low, high = score.value, score.low, score.high
        if side:
            value, low, high = 1 - value, 1 - high, 1 - low
        won = (score.n - score.points if side else score.points) - draws / 2
        wins = "" if games is None else f"{won:,.0f}"
        points: tuple[float, ...] = () if games is None else games.points[side]
        cells = [f"{x:.1f}" for x in (*points, sum(points))] if points else [""] * 4
        rows.append((*names, f"{score.n:,}", wins, f"{value:.1%}", percentages(low, high), *cells))
    return rows


def verdicts(result: Result, error: float) -> list[str]:
    """Return a sentence about the better agent of each match that a sequential test watched.

    Args:
        result: of the matches.
        error: the maximum error probability.
    """
    lines = []
    for one in result.scores:
        a, b = escape_text(one.a, MOST), escape_text(one.b, MOST)
        if one.decided is None:
            lines.append(f"{a} and {b}: undecided after {one.n:,} games")
        else:
            first, second = (a, b) if one.decided == "a" else (b, a)
            after = f"decided after {one.n:,} games, error at most {error:.3g}"
            lines.append(f"{first} is better than {second}: {after}")
    return lines


def luck_table(result: Result) -> Table:
    """Return the luck-adjusted scores with 95 % intervals, and the games that they are worth."""
    headers = ("agent", "score", "95 % interval", "equivalent games")
    rows = [
        (f"{x.agent} against {x.other}", f"{x.value:.1%}", percentages(*x.interval), f"{x.n:,}")
        for x in result.estimates_of("luck-adjusted score")
    ]
    return Table("Luck-adjusted scores", headers, rows)


def _of_rate(result: Result) -> list[Table]:
    rows = [(one.agent, *elo_cells(one), f"{one.n:,}") for one in result.estimates_of("Elo")]
    headers = ("agent", "Elo", "95 % interval", "games")
    swept = {score.value for score in result.scores} in ({0}, {1})
    note = f"on ladder {result.ladder}." + _SWEEP * swept
    ratings = Table(f"Ratings: {scale(result.anchor)}", headers, rows, note=note)
    expected = [f"{one.value:.1%}" for one in result.estimates_of("expected score")]
    both = zip(result.scores, expected, strict=True)
    matches = [
        (*_match_rows(score)[0][1:6], one, *_match_rows(score)[0][6:]) for score, one in both
    ]
    title = f"{result.agents[0]}, {title_of(result)}"
    return [Table(title, (*_HEADERS[1:6], "expected", *_HEADERS[6:]), matches), ratings]


def scale(anchor: str) -> str:
    """Return in words the rating model and `anchor`, the agent rated 0 Elo."""
    return f"{PROBIT}, {anchor} = 0"


def elo_cells(one: Estimate) -> tuple[str, str]:
    """Return as text a rating in Elo and its interval, "reference" for that of the anchor."""
    if one.low == one.high:
        return whole(one.value), "reference"
    return whole(one.value), f"{whole(one.low)} – {whole(one.high)}"


# Ladders


def _of_ladder(result: Result) -> list[Table]:
    title = f"Ladder {result.ladder or result.hash}, {title_of(result)}, {scale(result.anchor)}"
    groups = dict.fromkeys(one.group for one in result.estimates_of("Elo"))
    return [_ladder_table(result, group, group or title) for group in groups]


def _differences(result: Result, group: str) -> dict[tuple[str, str], Measure]:
    """Return the rating differences of a group by the better agent and the other."""
    found = result.estimates_of("Elo difference")
    return {(one.agent, one.other): one for one in found if one.group == group}


def _ladder_table(result: Result, group: str, title: str) -> Table:
    """Return ratings with the difference of each agent to the next, and their goodness of fit.

    Agents without differences, such as the epsilon baselines, are left out if others have some.
    """
    steps = _differences(result, group)
    known = {name for pair in steps for name in pair}
    ratings = [one for one in result.estimates_of("Elo") if one.group == group]
    ratings = [one for one in ratings if not known or one.agent in known]
    rows = []
    for one, below in zip(ratings, [*ratings[1:], None], strict=True):
        step = None if below is None else steps.get((one.agent, below.agent))
        cells = ("", "") if step is None else elo_cells(step)
        rows.append((one.agent, *elo_cells(one), *cells, f"{one.n:,}"))
    headers = ("agent", "Elo", "95 % interval", "above the next", "95 % interval", "games")
    note = _fit_line(result, group) + _note_of_sweep(result, group)
    return Table(title, headers, rows, note=note)


def _fit_line(result: Result, group: str) -> str:
    """Return the goodness of fit of the rating model in a line."""
    chi2, p = (
        [one for one in result.estimates_of(name) if one.group == group]
        for name in ("chi-squared", "p of chi-squared")
    )
    if not chi2 or not p:
        return "Goodness of fit unknown: there are no more matches than ratings."
    each = f"{chi2[0].value / chi2[0].n:.2f} each"
    chance = "< 0.0001" if p[0].value < 1e-4 else f"= {p[0].value:.2g}"
    fit = f"χ² {chi2[0].value:.1f} on {chi2[0].n} degrees of freedom ({each}), p {chance}."
    elo = {one.agent: one.value for one in result.estimates_of("Elo") if one.group == group}
    met = [one for one in result.scores if {one.a, one.b} <= elo.keys()]
    few = sum(one.n * expected_score(-abs(elo[one.a] - elo[one.b])) < 5 for one in met)
    return fit + f" Inexact: fewer than five wins are expected in matches: {few}." * bool(few)


# Generalisation


def _of_generalise(result: Result) -> list[Table]:
    opponents = list(dict.fromkeys(score.b for score in result.scores))
    if not opponents:
        raise ResultError("scores: expected one or more, got none")
    title = f"{result.agents[0]} against {opponents[0]}, seed {result.seed}"
    columns = []
    for boards in result.boards:
        at = {"other": opponents[0], "group": boards.name}
        estimates = [result.estimate(measure, **at) for measure in FIGURES]
        columns.append((f"{boards.count:,}", f"{estimates[0].n:,}", *map(share, estimates)))
    names = "boards", "games", *FIGURES
    rows = [*zip(names, *columns, strict=True)]
    heads = ("", *(boards.name for boards in result.boards))
    forfeits = [100 * one.value for one in result.estimates_of(FORFEITS)]
    ended = [f"{percent:.1f} % of games ended by forfeit" for percent in forfeits]
    note = ". ".join([gap_sentence(result), *ended])
    tables = [Table(title, heads, rows, note=note)]
    if len(opponents) > 1:
        tables.append(_opponents_table(result, opponents))
    return tables


def _opponents_table(result: Result, opponents: Sequence[str]) -> Table:
    test = result.boards[0].name
    found = [result.estimate("mean score", other=one, group=test) for one in opponents]
    rows = [(one.other, share(one)) for one in found]
    rows.append(("mean", share(result.estimate("mean score", group=test))))
    worst = min(found, key=lambda one: one.value)
    rows.append((f"worst: {worst.other}", share(worst)))
    return Table(f"On {test}", ("against", "mean score"), rows)


def gap_sentence(result: Result) -> str:
    """Return the gap between training and test score, in percent, as a sentence."""
    gaps = result.estimates_of("gap")
    if not gaps:
        return "No gap: there is no second match"
    trained = result.trained_on == gaps[0].other or (result.trained_on or "").startswith("family:")
    known = "its training boards" if trained else "boards of train"
    return f"Gap, {gaps[0].group} less {gaps[0].other} ({known}): {share(gaps[0], '+.1f')}"


# Regret


def _of_regret(result: Result) -> list[Table]:
    tables = [regret_table(result)]
    tables += [groups_table(result, key) for key in _GROUPS]
    tables.append(regret_differences_table(result))
    return [table for table in tables if table.rows]


def regret_table(result: Result) -> Table:
    """Return the regret of agents per choice, in thousandths of a result, lowest first."""
    rows, seconds = [], {one.agent: one for one in result.estimates_of("core-seconds")}
    exact = ["optimal"] if result.estimates_of("optimal") else []
    for agent in agents_by_regret(result):
        row = [agent, thousandths(result.estimate("regret", agent=agent))]
        if not exact:
            most = result.estimate("regret at most", agent=agent)
            row.append(true_minus(f"{1000 * most.value:.1f}"))
        for measure in (*exact, "errors", "blunders"):
            row.append(f"{100 * result.estimate(measure, agent=agent).value:.1f} %")
        if seconds:
            row.append(f"{seconds[agent].value:.2g}" if agent in seconds else NO_VALUE)
        rows.append(tuple(row))
    headers = ["agent", "regret", *(exact or ["at most"]), "errors", "blunders"]
    headers += ["core-seconds"] if seconds else []
    title = f"{set_title(result)}: regret per choice, in 1/1000 of a result"
    return Table(title, tuple(headers), rows)


def set_title(result: Result) -> str:
    """Return as text the name, hash and size of a regret result's set of positions."""
    sets = (f"{one.name}, hash {one.hash}, {one.count:,} positions" for one in result.boards)
    return ", ".join(sets)


def agents_by_regret(result: Result) -> list[str]:
    """Return the specs of the agents by their regret in the whole set, lowest first."""
    whole = [one for one in result.estimates_of("regret") if not one.group]
    return [one.agent for one in sorted(whole, key=lambda one: one.value)]


def groups_table(result: Result, key: str) -> Table:
    """Return the regret of agents, in thousandths, by `key`: "boards", "phase" or "rounds"."""
    found = [one for one in result.estimates_of("regret") if one.group.startswith(f"{key} ")]
    groups = list(dict.fromkeys(one.group for one in found))
    cells = {(one.agent, one.group): thousandths(one) for one in found}
    rows = [(x, *(cells[x, group] for group in groups)) for x in agents_by_regret(result) if found]
    heads = (group.removeprefix(f"{key} ") for group in groups)
    return Table(f"by {key}", ("agent", *heads), rows)


def regret_differences_table(result: Result) -> Table:
    """Return the paired differences in regret between agents, in thousandths of a result."""
    found = result.estimates_of("regret difference")
    rows = [(one.agent, one.other, thousandths(one, "+.1f")) for one in found]
    return Table("paired, in 1/1000 of a result", ("agent", "than", "more"), rows)


def thousandths(one: Estimate, form: str = ".1f") -> str:
    """Return a mean with its interval as text in thousandths; `form` is a format of numbers."""
    return with_interval(one.value, one.interval, form, 1000)
