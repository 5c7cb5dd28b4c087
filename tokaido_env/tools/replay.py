"""`tokaido replay`: recorded games move by move, as text, as a page or as a GIF."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tokaido_env.core.checks import plain
from tokaido_env.core.state import CHANCE_PHASES, Phase
from tokaido_env.files import check_outputs, write_text
from tokaido_env.record import Record, RecordError, load, replay
from tokaido_env.tools.program import program


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    options = _parser().parse_args(arguments)
    try:
        check_outputs(options.html, options.gif, read=[options.file, options.board])
        records = load(options.file, options.board)
        if options.game is not None and not 1 <= options.game <= len(records):
            raise RecordError(f"--game: expected 1 to {len(records)}, got {options.game}")
        if options.policy is not None and options.html is None:
            raise RecordError("--policy: expected with --html")
        if options.gif is not None:
            return _animate(records, options)
        if options.html is not None:
            return _write_page(records, options)
        for number, record in enumerate(records, start=1):
            if options.game in (None, number):
                _print_game(number, record, options)
    except (ValueError, OSError, ModuleNotFoundError) as error:
        print(f"replay: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        program("replay"), description="Print recorded games move by move, verified."
    )
    add = parser.add_argument
    add("file", help="a record file, JSON Lines")
    add("--board", help="the board file of the games, if neither built in nor of the family")
    add("--game", type=int, help="only the game on this line, from 1")
    add("--quiet", action="store_true", help="verify and print results only")
    written = parser.add_mutually_exclusive_group()
    written.add_argument("--gif", metavar="OUT", help="write a game as an animated GIF instead")
    written.add_argument("--html", metavar="OUT", help="write a page to step through instead")
    add("--policy", metavar="SPEC", help="an agent: the page shows its judgement")
    return parser


def _animate(records: Sequence[Record], options: argparse.Namespace) -> int:
    from tokaido_env.render.gif import frames_of, write_gif
    from tokaido_env.render.words import shown_names

    if options.game is None and len(records) != 1:
        raise RecordError(f"--gif: expected one game, got {len(records)}: choose it with --game")
    number = options.game or 1
    record = records[number - 1]
    played, names = replay(record, options.board), shown_names(record.players)
    scenes = frames_of(played.board, played.states, played.events, names)
    frames = write_gif(scenes, options.gif)
    print(f"{options.gif}: game {number} in {frames} frames")
    return 0


def _write_page(records: Sequence[Record], options: argparse.Namespace) -> int:
    from tokaido_env.web.replay_page import replay_page

    out = Path(options.html)
    chosen = records if options.game is None else [records[options.game - 1]]
    page = replay_page(chosen, options.board, policy=options.policy)
    write_text(out, page)
    print(f"{out}: games {len(chosen)}, {len(page.encode()) / 1e6:.1f} MB")
    return 0


def _print_game(number: int, record: Record, options: argparse.Namespace) -> None:
    seed = "" if record.seed is None else f", seed {record.seed}"
    names = " against ".join(map(plain, record.players))
    print(f"game {number}: {names}, {plain(record.board)}{seed}")
    if not options.quiet:
        played = replay(record, options.board)
        for event, state in zip(played.labels(), played.states, strict=False):
            print("  " + _line(state, event))
    print("  " + _result(record))


def _line(state: np.void, event: str) -> str:
    """Return an event with its round and who did it; chance is indented less far."""
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
        how = record.forfeit.told(("player_0", "player_1"))
        return f"ended in round {record.rounds}, {how}: {'; '.join(parts)}"
    won = "shared" if record.winner is None else f"won by player_{record.winner}"
    ends = {
        "triggers": f"ended after round {record.rounds}, {won}",
        "cap": f"reached the cap of {record.rounds} rounds, nobody wins",
        None: f"unfinished in round {record.rounds}",
    }
    return f"{ends[record.end]}: {'; '.join(parts)}"
