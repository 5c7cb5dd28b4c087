"""HTML page that steps through recorded games, in one file that loads nothing.

    Path("games.html").write_text(replay_page(load("games.jsonl")))

Python draws all pictures. The page holds each distinct markup of each part once, with the moves at
which the part changes; the script only puts markup in place.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Iterable, Sequence
from html import escape
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tokaido_env.agent import Agent
from tokaido_env.agents.registry import as_agent
from tokaido_env.boards.board_pool import Boards
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.state import copy_rows
from tokaido_env.record import Record, replay
from tokaido_env.render.narration import display_names, log_entries
from tokaido_env.render.scene import scenes_of, status_text
from tokaido_env.render.svg import panels_of
from tokaido_env.trajectory import Trajectory
from tokaido_env.web.frames import game_of
from tokaido_env.web.static_files import page_script, page_style, static_text

if TYPE_CHECKING:
    from tokaido_env.study.review import Review

MAX_GAMES = 100  # up to 0.1 MB each


def replay_page(
    records: Iterable[Record],
    board: Boards | None = None,
    *,
    agent: str | Agent | None = None,
    reviews: Sequence[Review] | None = None,
) -> str:
    """Return an HTML page that shows recorded games move by move, in browsers since 2024.

    Args:
        records: the games in the order of the page; the call verifies them.
        board: board or pool of the games, if neither built in nor of the family.
        agent: an agent or its spec; the page shows its move probabilities and win estimates.
        reviews: one review per game, to show what each decision lost; not together with `agent`.

    Raises:
        RecordError: if an event or the result of a record is wrong.
        ValueError: for no game, more than `MAX_GAMES`, or reviews that do not fit the games.
        AgentError: if the spec names no agent.
    """
    games = list(records)
    check_number_of_games(len(games))
    judge = None if agent is None else as_agent(agent)
    if reviews is not None and (judge is not None or len(reviews) != len(games)):
        raise ValueError(f"reviews: expected one for each of {len(games)} games, and no agent")
    each = [None] * len(games) if reviews is None else reviews
    numbered = enumerate(zip(games, each, strict=True), start=1)
    data = [_game_data(number, record, board, judge, one) for number, (record, one) in numbered]
    script = page_script()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return Template(static_text("page.html")).substitute(
        title=escape(data[0]["title"]),
        digest=digest,
        style=page_style(),
        script=script,
        choices="".join(
            f"<option>{number}. {escape(game['choice'])}</option>"
            for number, game in enumerate(data, start=1)
        ),
        games="\n".join(map(_packed, data)),
    )


# A game as data


def check_number_of_games(games: int) -> None:
    """Raise `ValueError` for a number of games that is 0, or above `MAX_GAMES` of a page."""
    if not 1 <= games <= MAX_GAMES:
        raise ValueError(f"games: a page holds 1 to {MAX_GAMES} games, got {games}: choose some")


def _game_data(
    number: int, record: Record, board: Boards | None, agent: Agent | None, review: Review | None
) -> dict[str, Any]:
    """Return a game, as `frames.game_of`, with the panels of all its frames.

    Further keys:
        title, choice: names of the game, for the page and for the list of games.
        record: its line in a record file.
        markup: the distinct markups of all parts.
        panels: by panel a list of [part, changes]; changes are pairs of a frame and the index of
            the markup from that frame on, in one flat list.
    """
    played, names = replay(record, board), display_names(record.players)
    probabilities, values = (None, None) if agent is None else _judgements(played, agent)
    if review is not None:
        if not np.array_equal(review.trajectory.events, played.events):
            raise ValueError(f"reviews: expected one of game {number}, got that of another game")
        values = (2 * review.values - 1).tolist()
    game = played.board, played.states, played.events
    scenes = list(scenes_of(*game, names=names, probabilities=probabilities, values=values))
    log = log_entries(scenes, played.labels())
    result = "unfinished" if record.end is None else status_text(scenes[-1])
    if record.forfeit is not None:
        result = record.forfeit.describe(names)
        log[-1:] = [one._replace(sentence=f"{one.sentence} · {result}") for one in log[-1:]]
    markup, panels = _deduplicated([panels_of(scene) for scene in scenes])
    return {
        **game_of(scenes, log, review=review, number=number),
        "title": f"{names[0]} against {names[1]}",
        "choice": f"{names[0]} against {names[1]}: {result}, {record.rounds} rounds",
        "record": record.to_json(),
        "markup": markup,
        "panels": panels,
    }


def _judgements(
    played: Trajectory, agent: Agent
) -> tuple[npt.NDArray[np.float32], list[float | None]]:
    """Return an agent's judgement of each position of a game.

    Returns:
        The agent's action probabilities, float32 (rows, N_ACTIONS), 0 at chance; and player_0's
        expected results as of the latest decision, None before the first one.
    """
    probabilities = np.zeros((len(played.states), N_ACTIONS), np.float32)
    values = np.full(len(probabilities), np.nan)
    rows = np.flatnonzero(played.legal)
    agent.prepare([played.board])
    for first in range(0, len(rows), agent.games_at_once):
        some = rows[first : first + agent.games_at_once]
        positions = copy_rows(played.states, some), played.legal[some]
        keys = np.zeros(len(some), np.uint64)
        probabilities[some], judged = agent.judge(played.board.record, *positions, keys)
        values[some] = np.nan if judged is None else judged
    latest: list[float | None] = []
    for value in values.tolist():
        latest.append((latest[-1] if latest else None) if np.isnan(value) else value)
    return probabilities, latest


def _deduplicated(
    positions: Sequence[dict[str, dict[str, str]]],
) -> tuple[list[str], dict[str, list[tuple[str, list[int]]]]]:
    """Return the distinct markups, and by panel the changes of each part in drawing order."""
    indices = {"": 0}
    panels: dict[str, list[tuple[str, list[int]]]] = {}
    for panel, parts in positions[0].items():
        panels[panel] = []
        for part in parts:
            changes: list[int] = []
            for move, position in enumerate(positions):
                index = indices.setdefault(position[panel][part], len(indices))
                if index != (changes[-1] if changes else 0):
                    changes += [move, index]
            if changes:
                panels[panel].append((part, changes))
    return list(indices), panels


def _packed(game: dict[str, Any]) -> str:
    """Return compressed data, a tenth of the size, which the page's script unpacks first."""
    small = gzip.compress(json.dumps(game, separators=(",", ":")).encode(), mtime=0)
    return f'<script type="application/gzip">{base64.b64encode(small).decode()}</script>'
