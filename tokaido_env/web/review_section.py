"""What a review found, as words beside moves, as a section of a page and as JSON types."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from tokaido_env.core.actions import LABELS
from tokaido_env.study.review import MARKS, Review

_WORST = 20  # moves that are listed

_TOTALS = {
    "choices": ("choices", "{:d}"),
    "loss": ("mean loss a choice", "{:.2%}"),
    "open_loss": ("while both could win", "{:.2%}"),
    "agreed": ("as the judge would", "{:.0%}"),
    **{name: (f"{name[:-1]}ies" if name.endswith("y") else f"{name}s", "{:d}") for name in MARKS},
    "luck": ("luck", "{:+.0%}"),
    "result_less_luck": ("result less luck", "{:.0%}"),
}


def remark_of(review: Review, row: int) -> str:
    """Return what to say of a decision beside its sentence, "" if there is nothing to."""
    mark = review.mark(row)
    if mark is None:
        return ""
    lost = f"{review.loss[row]:.1%} ± {review.error[row]:.1%}"
    return f" · {mark}: {LABELS[review.best[row]]} was better by {lost}"


def worst_of(review: Review, most: int = _WORST) -> list[int]:
    """Return the rows of the marked decisions of one game, the worst first."""
    rows = [row for row in review.choices().tolist() if review.mark(row)]
    return sorted(rows, key=lambda row: (-float(review.loss[row]), row))[:most]


def totals_rows(review: Review) -> list[tuple[str, str, str]]:
    """Return the totals of one game as rows of words: what, and of both players."""
    totals = review.totals()
    return [
        (words, *("–" if of[key] is None else form.format(of[key]) for of in totals))  # type: ignore[misc]
        for key, (words, form) in _TOTALS.items()
    ]


def judged_by(review: Review) -> str:
    """Return how a review came about."""
    return (
        f"Decisions judged by {review.judge}, {review.draws} draws of chance behind each of two "
        f"actions; chance by {review.values_by}. Losses are win probabilities, ± 95 %."
    )


def section_of(review: Review, names: Sequence[str], sentences: Sequence[str], number: int) -> str:
    """Return the markup of what a page tells of a game.

    Args:
        review: of the game alone.
        names: of the players.
        sentences: what happened, event by event.
        number: of the game on its page, from 1.
    """
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    rows = "".join(
        f'<tr><th scope="row">{what}</th><td>{first}</td><td>{second}</td></tr>'
        for what, first, second in totals_rows(review)
    )
    moves = "".join(
        f'<li><a href="#game={number}&amp;move={row + 1}">Move {row + 1}</a> '
        f"{escape(sentences[row])}</li>"
        for row in worst_of(review)
    )
    found = f"<ol>{moves}</ol>" if moves else "<p>No decision is shown to have lost anything.</p>"
    return (
        f"<h2>Review</h2><p>{escape(judged_by(review))}</p><table><thead><tr><td></td>{head}</tr></thead>"
        f"<tbody>{rows}</tbody></table>{found}"
    )


def review_of(review: Review, names: Sequence[str], sentences: Sequence[str]) -> dict[str, Any]:
    """Return a review as JSON types, for a page that lays it out; arguments as for `section_of`."""
    rows = [row for row in review.choices().tolist() if review.mark(row)]
    return {
        "judged": judged_by(review),
        "names": list(names),
        "totals": [list(row) for row in totals_rows(review)],
        "worst": [[row, sentences[row] + remark_of(review, row)] for row in worst_of(review)],
        "remarks": {str(row): remark_of(review, row) for row in rows},
        "wins": [round(float(value), 4) for value in review.values],
    }
