"""A review as text, as a section of a page and as JSON types."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape
from typing import Any

import numpy as np

from tokaido_env.core.state import copy_rows
from tokaido_env.study.review import MARKS, Review
from tokaido_env.web.previews import action_text

_MAX_LISTED = 20  # marked decisions

_TOTALS = {
    "choices": ("choices", "{:d}"),
    "loss": ("mean loss per choice", "{:z.2%}"),
    "open_loss": ("mean loss while undecided", "{:z.2%}"),
    "agreed": ("agreement", "{:.0%}"),
    **{name: (f"{name[:-1]}ies" if name.endswith("y") else f"{name}s", "{:d}") for name in MARKS},
    "luck": ("luck", "{:+z.0%}"),
    "result_less_luck": ("luck-adjusted result", "{:z.0%}"),
}


def remark_of(review: Review, row: int) -> str:
    """Return the remark on the decision in a row, to append to its sentence; "" without a mark."""
    mark = review.mark(row)
    if mark is None:
        return ""
    lost = f"{review.loss[row]:.1%} ± {review.error[row]:.1%}"
    return f" · {mark}: {_better(review, row)} was better by {lost}"


def _better(review: Review, row: int) -> str:
    """Return the action that the judge would play, with its destination."""
    states = copy_rows(review.trajectory.states, np.array([row]))
    return action_text(review.trajectory.board, states, int(review.best[row]))


def worst_of(review: Review, most: int = _MAX_LISTED) -> list[int]:
    """Return the rows of at most `most` marked decisions of one game, the worst first."""
    return sorted(_marked(review), key=lambda row: (-float(review.loss[row]), row))[:most]


def _marked(review: Review) -> list[int]:
    return [row for row in review.choices().tolist() if review.mark(row)]


def totals_rows(review: Review) -> list[tuple[str, str, str]]:
    """Return the totals of one game as rows of text: a name and both players' values."""
    totals = review.totals()
    return [
        (name, *("–" if of[key] is None else form.format(of[key]) for of in totals))  # type: ignore[misc]
        for key, (name, form) in _TOTALS.items()
    ]


def _section(review: Review, names: Sequence[str], sentences: Sequence[str], number: int) -> str:
    """Return the totals and the worst decisions as HTML; arguments as for `review_json`."""
    judged_by = (
        f"{review.judge} judged the decisions, with {review.chance_samples} chance samples for "
        f"each of two actions; {review.value_agent} judged chance. Losses are win probabilities "
        "with 95 % intervals."
    )
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    rows = "".join(
        f'<tr><th scope="row">{name}</th><td>{first}</td><td>{second}</td></tr>'
        for name, first, second in totals_rows(review)
    )
    moves = "".join(
        f'<li><a href="#game={number}&amp;move={row + 1}">Move {row + 1}</a> '
        f"{escape(sentences[row])}</li>"
        for row in worst_of(review)
    )
    worst = f"<ol>{moves}</ol>" if moves else "<p>No significant mistakes found.</p>"
    return (
        f"<h2>Review</h2><p>{escape(judged_by)}</p><table><thead><tr><td></td>{head}</tr></thead>"
        f"<tbody>{rows}</tbody></table>{worst}"
    )


def review_json(
    review: Review,
    names: Sequence[str],
    sentences: Sequence[str],
    players: Collection[int],
    number: int,
) -> dict[str, Any]:
    """Return a review as JSON types: `html`, `remarks` by event, and `moments`.

    Args:
        review: of the game alone.
        names: of the players.
        sentences: the game's events as text.
        players: the seats with decisions that can be moments.
        number: of the game on its page, from 1.
    """
    remarks = {row: remark_of(review, row) for row in _marked(review)}
    remarked = [text + remarks.get(row, "") for row, text in enumerate(sentences)]
    return {
        "html": _section(review, names, remarked, number),
        "remarks": {str(row): remark for row, remark in remarks.items()},
        "moments": moments_of(review, names, sentences, players),
    }


def moments_of(
    review: Review, names: Sequence[str], sentences: Sequence[str], players: Collection[int]
) -> list[dict[str, Any]]:
    """Return up to three moments worth a look: `title`, `text` and the event's index, `event`.

    They are the decision of `players`, seats, that lost most, if its loss exceeds its 95 %
    interval, the luckiest chance event, and the turning point, after which the winner's win
    probability stays above one half. `names` has both players, and `sentences` the text of each
    event of the one game.
    """
    counts = (review.loss > review.error) & np.isin(review.trajectory.movers, [*players])
    row, luck = int(np.where(counts, review.loss, 0).argmax()), int(np.abs(review.luck).argmax())
    behind = np.flatnonzero((review.values - 0.5) * (review.values[-1] - 0.5) <= 0)
    lucky, leader = names[int(review.luck[luck] < 0)], names[int(review.values[-1] < 0.5)]
    turn = int(behind[-1]) if len(behind) else len(sentences)
    lost = f"lost {review.loss[row]:.1%}: {_better(review, row)} was better" if counts.any() else ""
    found = [
        ("Largest loss", row, lost, counts.any()),
        ("Largest luck", luck, f"{abs(review.luck[luck]):.1%} for {lucky}", review.luck[luck]),
        ("Turning point", turn, f"{leader} leads from here", turn < len(sentences)),
    ]
    return [
        {"title": title, "event": row, "text": f"{sentences[row]} · {text}"}
        for title, row, text, is_known in found
        if is_known
    ]
