"""`tokaido replay`: print recorded games, or write them as a page or a GIF."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated

import numpy as np
from cyclopts import Group, Parameter

from tokaido_env.cli import command as cli
from tokaido_env.core.arguments import escape_text, repr_short
from tokaido_env.core.state import CHANCE_PHASES, Phase
from tokaido_env.files import check_outputs, write_text
from tokaido_env.record import Record, RecordError, load, replay

Games = dict[int, Record]
"""Records by line number, from 1."""

INSTEAD = Group("Instead of each game", sort_key=2, validator=cli.only_one)


@cli.options
class Replay(cli.Recorded):
    """Options of `tokaido replay`; the docstring of each field is its help."""

    game: Annotated[str | None, Parameter(metavar="N|A-B")] = None
    """replay only this game of the file, or those from A to B, from 1 [default: all]"""
    quiet: bool = False
    """print only the results"""
    agent: Annotated[cli.AgentSpec | None, Parameter("--value-agent")] = None
    """agent that values the positions of the page"""
    gif: Annotated[cli.Replaced | None, Parameter(group=INSTEAD)] = None
    """write one game as an animated GIF"""
    html: Annotated[cli.Replaced | None, Parameter(group=INSTEAD)] = None
    """write a page to step through"""


@cli.command("replay")
def main(options: Replay) -> int:
    """Verify recorded games and print them move by move, or write them as a page or a GIF.

    Examples:
        tokaido replay games.jsonl --game 4
        tokaido replay games.jsonl --html games.html --value-agent champion
    """
    check_outputs(options.html, options.gif, read=[options.file, options.board])
    if options.agent is not None and options.html is None:
        raise RecordError("--value-agent: expected together with --html")
    games = _chosen(load(options.file, options.board), options)
    if options.gif is not None:
        return _animate(games, options)
    if options.html is not None:
        return _write_page(games, options)
    for number, record in games.items():
        _print_game(number, record, options)
    return 0


def _chosen(records: Sequence[Record], options: Replay) -> Games:
    """Return the chosen games."""
    first, last = 1, len(records)
    if options.game is not None:
        first, last = _range(options.game, len(records))
    return dict(zip(range(first, last + 1), records[first - 1 : last], strict=True))


def _range(text: str, count: int) -> tuple[int, int]:
    found = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", text)
    first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
    if not 1 <= first <= last <= count:
        raise RecordError(f"--game: expected N or A-B, up to {count}, got {repr_short(text)}")
    return first, last


def _animate(games: Games, options: Replay) -> int:
    from tokaido_env.render.narration import display_names
    from tokaido_env.render.raster import frames_of, write_gif

    assert options.gif is not None
    if len(games) != 1:
        raise RecordError(f"--gif: expected one game, got {len(games)}: choose it with --game")
    ((number, record),) = games.items()
    played, names = replay(record, options.board), display_names(record.players)
    scenes = frames_of(played.board, played.states, played.events, names)
    frames = write_gif(scenes, options.gif)
    print(f"{options.gif}: game {number} in {frames} frames")
    return 0


def _write_page(games: Games, options: Replay) -> int:
    from tokaido_env.web.replay_page import replay_page

    out = options.html
    assert out is not None
    page = replay_page(games.values(), options.board, agent=options.agent)
    write_text(out, page)
    print(f"{out}: games {len(games)}, {len(page.encode()) / 1e6:.1f} MB")
    return 0


def _print_game(number: int, record: Record, options: Replay) -> None:
    seed = "" if record.seed is None else f", seed {record.seed}"
    names = " against ".join(map(escape_text, record.players))
    print(f"game {number}: {names}, {escape_text(record.board)}{seed}")
    if not options.quiet:
        played = replay(record, options.board)
        for event, state in zip(played.labels(), played.states, strict=False):
            print("  " + _line(state, event))
    print("  " + _result(record))


def _line(state: np.void, event: str) -> str:
    """Return an event with its round and its actor, as a line."""
    rounds = int(state["round"])
    if state["phase"] in CHANCE_PHASES:
        return f"{rounds + (state['phase'] == Phase.ROLL):>3}  {'chance':<9} {event}"
    player = f"player_{state['player']}"
    return f"{rounds:>3}  {player:<9}   {event}"


def _result(record: Record) -> str:
    parts = []
    for seat, score in enumerate(record.scores):
        split = ", ".join(f"{key} {score[key]}" for key in ("faith", "commerce", "culture"))
        parts.append(f"player_{seat} {score['total']} ({split})")
    if record.forfeit is not None:
        how = record.forfeit.describe(("player_0", "player_1"))
        return f"ended in round {record.rounds}, {how}: {'; '.join(parts)}"
    won = "shared" if record.winner is None else f"won by player_{record.winner}"
    ends = {
        "triggers": f"ended after round {record.rounds}, {won}",
        "cap": f"reached the cap of {record.rounds} rounds, {won}",
        None: f"unfinished in round {record.rounds}",
    }
    return f"{ends[record.end]}: {'; '.join(parts)}"
