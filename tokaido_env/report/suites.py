"""What a suite says of agents, as tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tokaido_env.arena.suite import OnBoard, Strength, SuiteResult
from tokaido_env.report.tables import Table, markdown

COMPARED = ("agent", "TB-1", "TB-G", "worst board", "core-seconds a move")


class Measured(NamedTuple):
    """A result, and how long its agent took.

    Attributes:
        result: of the suite.
        seconds: of processor time a move, None if that is not known.
    """

    result: SuiteResult
    seconds: float | None


def result_tables(result: SuiteResult) -> list[Table]:
    """Return the numbers of an agent, and its scores against each opponent."""
    title = f"{result.agent} on {result.suite}, {result.hash}: Elo points, mcts:sims=400 = 0"
    numbers = [
        ("TB-1, the default board", with_interval(result.tb_1)),
        ("TB-G, the test boards", with_interval(result.tb_g)),
        (f"the worst of them, {result.worst.board}", with_interval(result.worst.strength)),
    ]
    scores = [(spec, f"{one:.1%}", f"{other:.1%}") for spec, one, other in result.scores]
    return [
        Table(title, ("", "strength"), numbers),
        Table("Scores", ("against", "default board", "test boards"), scores),
    ]


def compared_table(measured: Sequence[Measured]) -> Table:
    """Return several results of a suite, the strongest on the default board first."""
    first = measured[0].result
    title = f"{first.suite}, {first.hash}: Elo points, mcts:sims=400 = 0"
    return Table(title, COMPARED, _rows(measured))


def markdown_table(measured: Sequence[Measured]) -> str:
    """Return several results side by side as a table in Markdown."""
    return markdown(COMPARED, _rows(measured))


def with_interval(strength: Strength) -> str:
    """Return a strength with its interval."""
    value, low, high = (round(x) for x in (strength.value, *strength.ci95))
    return f"{value:+d} ({low} to {high})".replace("-", "−")


def _rows(measured: Sequence[Measured]) -> list[tuple[str, ...]]:
    best_first = sorted(measured, key=lambda one: -one.result.tb_1.value)
    return [
        (
            *(one.result.agent, with_interval(one.result.tb_1), with_interval(one.result.tb_g)),
            _board(one.result.worst),
            "" if one.seconds is None else f"{one.seconds:.2g}",
        )
        for one in best_first
    ]


def _board(one: OnBoard) -> str:
    return f"{with_interval(one.strength)}, {one.board}"
