"""Recorded games as one page of HTML to step through, which loads nothing.

    Path("games.html").write_text(replay_page(load("games.jsonl")))
    scrubber(game)  # the same page inside a notebook

Everything is drawn here. Of each part of the picture the page holds every markup once, and at which
moves it changes; the script puts the newest in place and knows nothing of the game.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import itertools
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tokaido_env.agent import Agent, as_agent
from tokaido_env.boards.board_pool import Boards
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.arguments import repr_short
from tokaido_env.core.state import copy_rows
from tokaido_env.game import Game
from tokaido_env.record import Record, replay
from tokaido_env.render.narration import happened_between, shown_names
from tokaido_env.render.scene import Scene, scenes_of, story_of
from tokaido_env.render.style import style
from tokaido_env.render.svg import PANELS, panels_of
from tokaido_env.trajectory import Trajectory
from tokaido_env.web.review_section import remark_of, section_of
from tokaido_env.web.static_files import static_text

if TYPE_CHECKING:
    from tokaido_env.study.review import Review

MAX_GAMES = 100  # up to 0.9 MB each
# Of the page inside a notebook: what it takes with the moves beside the board, whose height goes
# with the width; with the moves below the board, as narrower than this many pixels, it scrolls.
_FRAME_HEIGHT, _NARROW = "900px", "900px"
_BESIDE = "66.8cqw - 50px, min(66.8cqw - 18px, 640px)"  # the second: a sentence takes two lines
_FITTING = f"min({_FRAME_HEIGHT}, max({_BESIDE}, ({_NARROW} - 100cqw) * 999))"

_ROWS = ("pilgrim: faith", "merchant: commerce", "artist: culture", "total")

Data = dict[str, Any]


def replay_page(
    records: Iterable[Record],
    board: Boards | None = None,
    *,
    agent: str | Agent | None = None,
    packed: bool = False,
    reviews: Sequence[Review] | None = None,
) -> str:
    """Return a page that shows recorded games move by move.

    Args:
        records: the games, in the order of the page; verified as they are played through.
        board: of the games, as for `record.load`.
        agent: an agent or its spec; the page shows its move preferences and win estimates.
        packed: compress the games to a tenth; browsers since 2023 can read them.
        reviews: one review per game, to show what each decision lost; not together with `agent`.

    Raises:
        RecordError: if a record is untrue: the message says where.
        ValueError: if there is no game, or too many for one page, or not a review of each.
        AgentError: if no agent can be made of the spec.
    """
    games = list(records)
    check_number(len(games))
    judge = None if agent is None else as_agent(agent)
    if reviews is not None and (judge is not None or len(reviews) != len(games)):
        raise ValueError(f"reviews: expected one of each of {len(games)} games, and no agent")
    found = [None] * len(games) if reviews is None else reviews
    numbered = enumerate(zip(games, found, strict=True), start=1)
    films = [_film(number, record, board, judge, one) for number, (record, one) in numbered]
    script, sheet = static_text("page.js"), style("light") + style("dark") + static_text("page.css")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return Template(static_text("page.html")).substitute(
        title=escape(films[0]["title"]),
        digest=digest,
        style=sheet,
        script=script,
        choices="".join(
            f"<option>{number}. {escape(film['choice'])}</option>"
            for number, film in enumerate(films, start=1)
        ),
        **{name: _panel(name) for name in PANELS},
        games="\n".join(map(_packed if packed else _unpacked, films)),
    )


@dataclass(frozen=True)
class Scrubber:
    """A page that a notebook shows in place, in a frame of its own.

    Attributes:
        page: the whole page, to save as a file.
    """

    page: str

    def _repr_html_(self) -> str:
        # The sandbox: nothing in the page reaches the notebook, and two pages never meet.
        return (
            f'<div style="container-type:inline-size"><iframe srcdoc="{escape(self.page)}" '
            f'sandbox="allow-scripts" title="replay" style="display:block;width:100%;'
            f'height:{_FRAME_HEIGHT};height:{_FITTING};border:0"></iframe></div>'
        )


def scrubber(
    game: Game | Record,
    board: Boards | None = None,
    *,
    agent: str | Agent | None = None,
) -> Scrubber:
    """Return a game to step through in a notebook.

    Args:
        game: a game as far as it was played, or a record.
        board: of a record, as for `record.load`; a game has its own.
        agent: as for `replay_page`.


    Raises:
        ValueError: if a game is given a board; the rest as for `replay_page`.
    """
    if isinstance(game, Game):
        if board is not None:
            raise ValueError(
                f"board: expected None, as the game has its board {repr_short(game.board.name)}, "
                f"got {repr_short(board)}; name an agent by keyword: scrubber(game, agent='greedy')"
            )
        game, board = game.record(), game.board
    return Scrubber(replay_page([game], board, agent=agent))


# A game as data


def check_number(games: int) -> None:
    """Raise `ValueError` for more games than a page holds, or none."""
    if not 1 <= games <= MAX_GAMES:
        raise ValueError(f"a page: expected 1 to {MAX_GAMES} games, got {games}")


def _film(
    number: int, record: Record, board: Boards | None, agent: Agent | None, review: Review | None
) -> Data:
    """Return all that the page shows of a game.

    Keys: `title` and `choice`, its name; `names` of the players; `markup`, the strings, and
    `panels`, by name a list of [part, changes], where changes are pairs of a move and the index of
    the markup from then on; `moves`, from the second position on [round, seat or null, sentence] of
    what led to it; `rounds`, pairs of a round and its first position; `rows` of the table of
    points, and its `cells`, a list for each position; `graph` and `review`, markups.
    """
    played, names = replay(record, board), shown_names(record.players)
    shares, values = (None, None) if agent is None else _judged(played, agent)
    if review is not None:
        values = (2 * review.values - 1).tolist()
    seen = played.board, played.states, played.events
    scenes = list(scenes_of(*seen, names=names, shares=shares, values=values))
    judged = scenes[-1].value is not None
    happened = happened_between(scenes, played.labels())
    sentences = [one.sentence for one in happened]
    if review is not None:
        sentences = [told + remark_of(review, row) for row, told in enumerate(sentences)]
    result = "unfinished" if record.end is None else story_of(scenes[-1])
    if record.forfeit is not None:
        result = record.forfeit.describe(names)
        sentences[-1:] = [f"{told} · {result}" for told in sentences[-1:]]
    markup, panels = _deduplicated([panels_of(scene) for scene in scenes])
    return {
        "title": f"{names[0]} against {names[1]}",
        "choice": f"{names[0]} against {names[1]}: {result}, {record.rounds} rounds",
        "names": names,
        "markup": markup,
        "panels": panels,
        "moves": [
            [one.round, one.seat, told] for one, told in zip(happened, sentences, strict=True)
        ],
        "rounds": _rounds(scenes),
        "rows": [*_ROWS, *["win estimate"] * judged],
        "cells": [_cells(scene, judged) for scene in scenes],
        "graph": _graph(scenes),
        "review": "" if review is None else section_of(review, names, sentences, number),
    }


def _judged(played: Trajectory, agent: Agent) -> tuple[npt.NDArray[np.float32], list[float | None]]:
    """Ask an agent about each decision of a game; what it said last stays at chance.

    Returns:
        How good it holds each action, float32 (rows, N_ACTIONS), and the results that player_0 can
        expect, None where nothing was said yet.
    """
    shares = np.zeros((len(played.states), N_ACTIONS), np.float32)
    values = np.full(len(shares), np.nan)
    rows = np.flatnonzero(played.legal)
    for first in range(0, len(rows), agent.games_at_once):
        some = rows[first : first + agent.games_at_once]
        positions = copy_rows(played.states, some), played.legal[some]
        keys = np.zeros(len(some), np.uint64)
        shares[some], said = agent.judge(played.board.record, *positions, keys)
        values[some] = np.nan if said is None else said
    known: list[float | None] = []
    for value in values.tolist():
        known.append((known[-1] if known else None) if np.isnan(value) else value)
    return shares, known


def _deduplicated(
    positions: Sequence[dict[str, dict[str, str]]],
) -> tuple[list[str], dict[str, list[tuple[str, list[int]]]]]:
    """Return all markup once, and by panel the changes of each part, in drawing order."""
    known = {"": 0}
    panels: dict[str, list[tuple[str, list[int]]]] = {}
    for panel, parts in positions[0].items():
        panels[panel] = []
        for part in parts:
            changes: list[int] = []
            for move, position in enumerate(positions):
                index = known.setdefault(position[panel][part], len(known))
                if index != (changes[-1] if changes else 0):
                    changes += [move, index]
            if changes:
                panels[panel].append((part, changes))
    return list(known), panels


def _rounds(scenes: Sequence[Scene]) -> list[tuple[int, int]]:
    first: dict[int, int] = {}
    for move, scene in enumerate(scenes):
        first.setdefault(scene.position["round"], move)
    return list(first.items())


def _cells(scene: Scene, judged: bool) -> list[int | str]:
    """Return the points, row by row, of both players, and what each can expect if any is asked."""
    first, second = scene.points
    cells: list[int | str] = []
    for name in first:
        cells += [first[name], second[name]]
    cells += [sum(first.values()), sum(second.values())]
    if judged:
        value = scene.value
        cells += ["–" if value is None else f"{_share(value, seat):.0%}" for seat in (0, 1)]
    return cells


def _share(value: float, seat: int) -> float:
    """Return the share of a win that a player can expect."""
    return (1 + (-value if seat else value)) / 2


# The graph: stretched over the whole width, so that its words stand beside the drawing


def _graph(scenes: Sequence[Scene]) -> str:
    totals = [[sum(points.values()) for points in scene.points] for scene in scenes]
    top = max(10, *map(max, totals))
    step = next(step for step in (2, 5, 10, 20, 50, 100) if top <= 5 * step)
    lines = [_line([total[seat] / top for total in totals], seat) for seat in (0, 1)]
    marks = [(str(points), points / top) for points in range(0, top + 1, step)]
    names, (first, second) = scenes[0].names, totals[-1]
    label = f"points over the game, at the end {names[0]} {first}, {names[1]} {second}"
    caption = f"points: {names[0]} solid, {names[1]} dashed"
    plots = _plot(caption, label, lines, marks)
    if scenes[-1].value is not None:
        shares = [_share(scene.value or 0, 0) for scene in scenes]  # at first nothing is known
        label = f"win estimate of {names[0]} over the game, at the end {shares[-1]:.0%}"
        middle = [("0 %", 0.0), ("50 %", 0.5), ("100 %", 1.0)]
        plots += _plot(f"win estimate of {names[0]}", label, [_line(shares, 0)], middle)
    return plots


def _plot(name: str, label: str, lines: Sequence[str], marks: Sequence[tuple[str, float]]) -> str:
    rules = "".join(f'<path d="M0 {1000 - 1000 * at:g}H1000" class="rule"/>' for _, at in marks)
    words = "".join(f'<span style="bottom:{at:.1%}">{mark}</span>' for mark, at in marks)
    return (
        f'<figure><figcaption>{escape(name)}</figcaption><div class="marks">{words}</div>'
        f'<div class="plot"><svg viewBox="0 0 1000 1000" preserveAspectRatio="none" '
        f'role="img" aria-label="{escape(label)}" class="tokaido">{rules}{"".join(lines)}</svg>'
        f'<div class="marker"></div></div></figure>'
    )


def _line(heights: Sequence[float], seat: int) -> str:
    """Draw heights of 0 to 1 as steps; the rim keeps a light line visible on light ground."""
    last = max(1, len(heights) - 1)
    path = f"M0 {1000 - 1000 * heights[0]:.0f}"
    for move, (old, new) in enumerate(itertools.pairwise(heights), start=1):
        if new != old:
            path += f"H{1000 * move / last:.1f}V{1000 - 1000 * new:.0f}"
    path += "H1000"
    return f'<path d="{path}" class="rim"/><path d="{path}" class="way{seat}"/>'


# The page


def _panel(name: str) -> str:
    """Return the empty picture of a panel."""
    _, _, width, height = PANELS[name]
    return (
        f'<svg data-panel="{name}" viewBox="0 0 {width} {height}" class="tokaido" '
        f'preserveAspectRatio="xMinYMin slice" role="graphics-document document"></svg>'
    )


def _unpacked(film: Data) -> str:
    return f'<script type="application/json">{_json(film)}</script>'


def _packed(film: Data) -> str:
    """Return what the script of the page unpacks before it begins."""
    small = gzip.compress(_json(film).encode(), mtime=0)
    return f'<script type="application/gzip">{base64.b64encode(small).decode()}</script>'


def _json(data: Data) -> str:
    """Return JSON that may stand inside a script: it cannot end one, nor begin a comment."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text
