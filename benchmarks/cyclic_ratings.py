"""Ratings with a cyclic component, and orders by voting methods: tests of what a ladder assumes.

The disc model adds to the difference of two ratings the term u_a v_b - v_a u_b (Balduzzi and others
2018, "Re-evaluating Evaluation"; Bertrand, Czarnecki and Gidel 2023, "On the Limitations of the
Elo"): agents are points in a plane, and the term is the area that two of them span. It is the
component of rank two of all that no ratings can express. The bent model replaces the link function:
it adds a multiple of the cube of the difference, which no cycle needs.

The disc has a penalty, lambda / 2 times the squares of all u and v. Without one it has as many free
parameters as a ladder has degrees of freedom, and fits any results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tokaido_env.arena.paired_games import PairedMatch, Pairs
from tokaido_env.arena.rating_models import LogScore, RatingModel

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]

_RIDGE = 1e-6  # keeps ratings finite where one side won every game
_STARTS = 2  # random ones, besides one from the residuals
_LEAST_WEIGHT = 0.01  # of an agent of a lottery


@dataclass(frozen=True)
class Results:
    """Scores of matches between agents.

    Attributes:
        agents: names.
        pairings: int64 (m, 2), indices of `a` and `b`.
        scores: float64 (m,), of `a`.
        games: float64 (m,), effective numbers of independent games.
    """

    agents: tuple[str, ...]
    pairings: Rows
    scores: Floats
    games: Floats

    @classmethod
    def of(cls, agents: Sequence[str], matches: Sequence[PairedMatch]) -> Results:
        """Return the results of matches."""
        pairs = Pairs.of(matches)
        pairings = np.array([[agents.index(m.a), agents.index(m.b)] for m in matches])
        return cls(tuple(agents), pairings, pairs.points / pairs.played, pairs.effective_games)

    def select(self, chosen: npt.NDArray[np.bool_]) -> Results:
        """Return some of the matches, of all agents."""
        return replace(
            self,
            pairings=self.pairings[chosen],
            scores=self.scores[chosen],
            games=self.games[chosen],
        )

    def design(self) -> Floats:
        """Return the matrix (m, agents) by which ratings give differences."""
        rows = np.arange(len(self.pairings))
        matrix = np.zeros((len(rows), len(self.agents)))
        matrix[rows, self.pairings[:, 0]] += 1.0
        matrix[rows, self.pairings[:, 1]] -= 1.0
        return matrix

    def votes(self) -> Floats:
        """Return votes (agents, agents) for the row over the column; a match is one vote."""
        (a, b), votes = self.pairings.T, np.zeros((len(self.agents),) * 2)
        votes[a, b], votes[b, a] = self.scores, 1 - self.scores
        return votes

    def chi2(self, expected: Floats) -> float:
        """Return Pearson's statistic against expected scores, as `ratings.goodness_of_fit`."""
        variance = expected * (1 - expected)
        return float(((self.scores - expected) ** 2 * self.games / variance).sum())


class Fit(NamedTuple):
    """A fitted model.

    Attributes:
        ratings: float64 (agents,), in units of the model; their mean is 0.
        disc: float64 (2, agents), u and v; zeros without a disc.
        bend: factor of the cube of a difference; 0 without.
        objective: the log-likelihood less the penalty.
        z: float64 (m,), the fitted difference of each match.
    """

    ratings: Floats
    disc: Floats
    bend: float
    objective: float
    z: Floats

    def predict(self, pairings: Rows) -> Floats:
        """Return the differences of other matches."""
        return _differences(self.ratings, self.disc, self.bend, pairings)


def _differences(ratings: Floats, disc: Floats, bend: float, pairings: Rows) -> Floats:
    (a, b), (u, v) = pairings.T, disc
    d = ratings[a] - ratings[b]
    return np.asarray(d + bend * d**3 + u[a] * v[b] - v[a] * u[b])


def fit_model(
    results: Results,
    link: RatingModel,
    *,
    disc: float | None = None,
    bent: bool = False,
    seed: int = 0,
) -> Fit:
    """Return the fit of greatest likelihood, less the penalty, from several starts.

    Args:
        results: of the matches.
        link: the rating model.
        disc: the penalty lambda of a disc; None: without one.
        bent: whether the link may bend.
        seed: of the random starts.
    """
    size = len(results.agents)
    additive = _maximise(results, link, np.zeros((2, size)), None, bent)
    if disc is None:
        return additive
    rng = np.random.default_rng(seed)
    starts = [_start(results, link, additive), *rng.normal(0, 0.2, (_STARTS, 2, size))]
    return max((_maximise(results, link, s, disc, bent) for s in starts), key=lambda f: f.objective)


def _start(results: Results, link: RatingModel, additive: Fit) -> Floats:
    """Return the disc of rank two nearest to the residuals of ratings alone."""
    _, slope, curvature = _likelihood(results, link, additive.z)
    residuals = np.zeros((len(results.agents),) * 2)
    residuals[tuple(results.pairings.T)] = slope / (curvature + 10)
    residuals -= residuals.T
    left, sizes, _ = np.linalg.svd(residuals)
    x = left[:, 0]
    y = residuals.T @ x / max(sizes[0], 1e-12)
    return np.asarray(np.sqrt(sizes[0]) * np.stack([x, y]))


def _likelihood(results: Results, link: RatingModel, z: Floats) -> tuple[float, Floats, Floats]:
    """Return the log-likelihood, and its slope and curvature by match."""
    won, lost = link.log_score(z), link.log_score(-z)
    points, rest = results.scores * results.games, (1 - results.scores) * results.games
    value = float((points * won.value + rest * lost.value).sum())
    return (
        value,
        points * won.slope - rest * lost.slope,
        points * won.curvature + rest * lost.curvature,
    )


def _maximise(
    results: Results, link: RatingModel, start: Floats, disc: float | None, bent: bool
) -> Fit:
    """Return the maximum near a start, by Levenberg and Marquardt's method."""
    size, pairings = len(results.agents), results.pairings
    design = results.design()
    penalty = np.full(3 * size + 1, 0.0 if disc is None else disc)
    penalty[:size], penalty[-1] = _RIDGE, _RIDGE
    free = np.ones(len(penalty), bool)
    free[size:-1], free[-1] = disc is not None, bent
    found = np.concatenate([np.zeros(size), start.ravel() * (disc is not None), [0.0]])

    def value(at: Floats) -> tuple[float, Floats]:
        z = _differences(at[:size], at[size:-1].reshape(2, size), at[-1], pairings)
        return _likelihood(results, link, z)[0] - float(penalty @ at**2) / 2, z

    (best, z), damping = value(found), 1e-6
    for _ in range(400):
        _, slope, curvature = _likelihood(results, link, z)
        jacobian = _jacobian(found, design, pairings)[:, free]
        hessian = jacobian.T @ (curvature[:, None] * jacobian) + np.diag(penalty[free] + damping)
        step = np.zeros(len(found))
        step[free] = np.linalg.solve(hessian, jacobian.T @ slope - (penalty * found)[free])
        new, new_z = value(found + step)
        if not new >= best:
            damping *= 10
            if damping > 1e9:
                break
            continue
        gain, found, best, z, damping = new - best, found + step, new, new_z, damping / 5 + 1e-9
        if gain < 1e-8:
            break
    ratings = found[:size] - found[:size].mean()
    return Fit(ratings, found[size:-1].reshape(2, size), float(found[-1]), best, z)


def _jacobian(found: Floats, design: Floats, pairings: Rows) -> Floats:
    """Return the derivatives of the differences by all parameters: (m, 3 agents + 1)."""
    size, rows, (a, b) = design.shape[1], np.arange(len(design)), pairings.T
    u, v = found[size:-1].reshape(2, size)
    by_u, by_v = np.zeros_like(design), np.zeros_like(design)
    by_u[rows, a], by_u[rows, b] = v[b], -v[a]
    by_v[rows, a], by_v[rows, b] = -u[b], u[a]
    d = design @ found[:size]
    return np.hstack([(1 + 3 * found[-1] * d**2)[:, None] * design, by_u, by_v, d[:, None] ** 3])


class CyclicPart(NamedTuple):
    """The part of the fitted differences that no ratings express.

    Attributes:
        by_match: float64 (m,).
        share: its weighted square over that of the differences, weights by information.
    """

    by_match: Floats
    share: float


def cyclic_part(results: Results, link: RatingModel, fit: Fit) -> CyclicPart:
    """Return the part of a fit that is left of its nearest ratings."""
    weights, design = np.sqrt(_likelihood(results, link, fit.z)[2]), results.design()
    ratings = np.linalg.lstsq(weights[:, None] * design, weights * fit.z, rcond=None)[0]
    rest = fit.z - design @ ratings
    total = float(((weights * fit.z) ** 2).sum())
    return CyclicPart(rest, float(((weights * rest) ** 2).sum()) / total)


def with_first_move(link: RatingModel, advantage: float) -> RatingModel:
    """Return the model of a pair of games of which each agent begins one.

    Args:
        link: of one game.
        advantage: of the first mover, added to its difference.
    """
    signs = np.array([advantage, -advantage])

    def expected_score(z: Floats) -> Floats:
        return np.asarray(sum(link.expected_score(z + h) for h in signs) / 2)

    def log_score(z: Floats) -> LogScore:
        value, first, second = 0.0, 0.0, 0.0
        for h in signs:
            own = link.log_score(z + h)
            score = np.exp(own.value)
            value += score / 2
            first += score * own.slope / 2
            second += score * (own.slope**2 - own.curvature) / 2
        slope = first / value
        return LogScore(np.log(value), slope, slope**2 - second / value)

    return RatingModel("first move", expected_score, log_score, link.elo_per_unit)


def simulated(results: Results, expected: Floats, rng: np.random.Generator) -> Results:
    """Return results drawn from expected scores, of the same numbers of games."""
    games = np.maximum(np.rint(results.games), 1)
    return replace(results, games=games, scores=rng.binomial(games.astype(int), expected) / games)


def held_out_losses(results: Results, link: RatingModel, *, disc: float | None = None) -> Floats:
    """Return the excess log loss of each match, predicted from all others, in nats a game.

    The excess is over the loss of a prediction of the match's own score: 0 is perfect.
    """
    losses = np.zeros(len(results.scores))
    for i in range(len(losses)):
        others = np.arange(len(losses)) != i
        z = fit_model(results.select(others), link, disc=disc).predict(results.pairings[i : i + 1])
        score, own = results.scores[i], np.clip(results.scores[i], 1e-12, 1 - 1e-12)
        loss = -score * link.log_score(z).value[0] - (1 - score) * link.log_score(-z).value[0]
        losses[i] = loss + score * np.log(own) + (1 - score) * np.log1p(-own)
    return losses


def leave_one_out(results: Results, link: RatingModel) -> Floats:
    """Return the shift of each rating without each agent: float64 (left out, agents), nan itself.

    The ratings of the remaining agents have the same mean as with all agents.
    """
    size, whole = len(results.agents), fit_model(results, link).ratings
    shifts = np.full((size, size), np.nan)
    for i in range(size):
        rest = np.arange(size) != i
        part = fit_model(results.select((results.pairings != i).all(axis=1)), link).ratings
        change = (part - whole)[rest]
        shifts[i, rest] = change - change.mean()
    return shifts


# Voting


def margins_of(results: Results, expected: Floats) -> Floats:
    """Return the margin of every two agents, -1 to 1: (agents, agents).

    Args:
        results: of the matches.
        expected: (agents, agents), the scores of agents that have not met.
    """
    scores = expected.copy()
    a, b = results.pairings.T
    scores[a, b], scores[b, a] = results.scores, 1 - results.scores
    return np.asarray(2 * scores - 1)


def maximal_lottery(margins: Floats, rounds: int = 5_000) -> Floats:
    """Return the lottery that no other beats on average (Fishburn 1984): float64 (agents,).

    By regret matching with averages, to about a hundredth.
    """
    size = len(margins)
    regret, total = np.zeros(size), np.zeros(size)
    for number in range(1, rounds + 1):
        play = regret / regret.sum() if regret.sum() > 0 else np.full(size, 1 / size)
        values = margins @ play  # of each agent against the lottery, which scores 0 against itself
        regret = np.maximum(regret + values, 0)
        total += number * play
    return np.asarray(total / total.sum())


def lottery_order(margins: Floats) -> list[list[int]]:
    """Return the agents in tiers: the support of a maximal lottery, then that of the rest."""
    left, tiers = np.arange(len(margins)), []
    while len(left):
        chosen = maximal_lottery(margins[np.ix_(left, left)]) >= _LEAST_WEIGHT
        tiers.append(left[chosen].tolist())
        left = left[~chosen]
    return tiers


def soft_condorcet(
    wins: Floats,
    start: Floats | None = None,
    *,
    temperature: float = 5.0,
    rate: float = 2000.0,
    rounds: int = 20_000,
) -> tuple[Floats, float]:
    """Return ratings within 0 and 100 by soft Condorcet optimisation (Lanctot and others 2024).

    They minimise the expected share of votes against the order, with a sigmoid for each vote. It
    has local minima: sigmoids of distant ratings are flat. So compare the results of two starts.

    Args:
        wins: (agents, agents), votes for the row over the column.
        start: (agents,), the first ratings; default 50 each, as in the paper.
        temperature: of the sigmoid.
        rate, rounds: of gradient descent.

    Returns:
        The ratings (agents,), and their loss.
    """
    votes = wins.sum()
    ratings = np.full(len(wins), 50.0) if start is None else start
    for _ in range(rounds):
        against = _votes_against(ratings, temperature)
        force = wins * against * (1 - against) / temperature / votes
        ratings = np.clip(ratings + rate * (force.sum(axis=1) - force.sum(axis=0)), 0, 100)
    return ratings, float((wins * _votes_against(ratings, temperature)).sum() / votes)


def _votes_against(ratings: Floats, temperature: float) -> Floats:
    """Return how much a vote for the row over the column is against the order."""
    return np.asarray(1 / (1 + np.exp((ratings[:, None] - ratings) / temperature)))
