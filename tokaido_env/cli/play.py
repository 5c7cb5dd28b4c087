"""Play against an agent or another person, or follow a physical game.

tokaido play
tokaido play --terminal
tokaido play --terminal --opponent champion:sims=64 --seat 1 --seed 7
tokaido play --terminal --save game.jsonl
tokaido play --terminal --physical --opponent human
"""

from __future__ import annotations

import argparse
import sys
import threading
import webbrowser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tokaido_env.agents.registry import check_spec_in_file
from tokaido_env.cli.command import CommandParser, reports_errors
from tokaido_env.cli.terminal import Terminal
from tokaido_env.core.arguments import Chance
from tokaido_env.core.optional_deps import extra_error
from tokaido_env.files import check_outputs
from tokaido_env.record import RecordError, read_unverified
from tokaido_env.web.game_session import HUMAN, Session

_NOTICE_AFTER = 3.0  # seconds


@reports_errors("play")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    options = _parser().parse_args(arguments)
    check_outputs(options.save)
    with _notice("compiling: once, up to a minute", after=_NOTICE_AFTER):
        session = _session(options)
    if not options.terminal:
        return _serve(session, options)
    return Terminal(session, options.save, options.advice, ask_forced=options.ask_forced).run()


@contextmanager
def _notice(text: str, after: float) -> Iterator[None]:
    """Print a text on standard error if the block takes longer than some seconds."""
    timer = threading.Timer(after, print, (text,), {"file": sys.stderr, "flush": True})
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _parser() -> argparse.ArgumentParser:
    parser = CommandParser("play", __doc__)
    add = parser.add_argument
    add("--terminal", action="store_true", help="play in this terminal instead of a browser")
    add("--port", type=int, default=0, help="port of the page; 0 takes a free one")
    no_browser = "print the address of the page without opening a browser"
    add("--no-browser", action="store_true", help=no_browser)
    add("--opponent", metavar="SPEC", help="the opponent, an agent or human (default: champion)")
    add("--player", metavar="SPEC", help="the player in your seat (default: human)")
    add("--seat", type=int, choices=(0, 1), help="your seat (default: 0)")
    board = "a built-in board, a board file, family:NUMBER or a pool (default: shikoku)"
    add("--board", help=board)
    add("--seed", type=int, help="random seed, 0 to 2**53 - 1 (default: random)")
    physical = "enter the rolls and draws of a physical game yourself"
    add("--physical", action="store_true", help=physical)
    save = "save games to this record file, and resume its last game (default: none)"
    add("--save", metavar="FILE", help=save)
    add("--advice", default="champion:sims=400", metavar="SPEC", help="agent that gives advice")
    forced = "in a terminal, ask for moves with a single legal action too"
    add("--ask-forced", action="store_true", help=forced)
    return parser


def _serve(session: Session, options: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C, and open a browser on it."""
    try:
        from tokaido_env.web.server import listen, new_token, page_address, serve
    except ModuleNotFoundError as error:
        raise extra_error("the page (without --terminal) needs", error.name, "play") from None
    from tokaido_env.web.live_game import LiveGame

    listener, token = listen(options.port), new_token()
    file = None if options.save is None else Path(options.save)
    game = LiveGame(session, file, options.advice)
    page = page_address(listener.getsockname()[1], token)
    print(f"{page}\nCtrl-C stops the server", flush=True)
    if not options.no_browser and not webbrowser.open(page):
        print("found no browser: open the address yourself", file=sys.stderr)
    serve(game, listener, token)
    return 0


def _session(options: argparse.Namespace) -> Session:
    """Return a new game, or the last one of the file to save to."""
    if options.save is not None and Path(options.save).exists():
        return _resumed(Path(options.save), options)
    you, other = options.player or HUMAN, options.opponent or "champion"
    seats = (other, you) if options.seat else (you, other)
    chance: Chance = "explicit" if options.physical else "sampled"
    return Session(seats, options.board or "shikoku", options.seed, chance)


def _resumed(file: Path, options: argparse.Namespace) -> Session:
    """Return the last game of a file, with the players that it names."""
    for name in ("opponent", "player", "seat", "seed", "physical"):
        if getattr(options, name) not in (None, False):
            raise RecordError(
                f"--{name}: expected for a new game only, {file} has one: name another file"
            )
    records = [record for _, record in read_unverified(file)]
    if not records:
        raise RecordError(f"{file}: expected a game to resume, got none")
    *earlier, record = records  # earlier games may be on other boards
    named = [
        name if name == HUMAN else check_spec_in_file(name, str(file), file.parent)
        for name in record.players
    ]
    session = Session.from_record(record, named, options.board)
    session.earlier_records = earlier
    return session
