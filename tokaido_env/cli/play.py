"""Play: against an agent, against each other, or beside the game on the table.

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
from tokaido_env.record import RecordError, records_of
from tokaido_env.web.game_session import HUMAN, Session

_LONG = 3.0  # seconds after which it is said why nothing is there yet


@reports_errors("play")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    options = _parser().parse_args(arguments)
    check_outputs(options.save)
    with _saying("compiling: once, up to a minute", after=_LONG):
        session = _session(options)
    if not options.terminal:
        return _serve(session, options)
    return Terminal(session, options.save, options.advice, ask_forced=options.ask_forced).run()


@contextmanager
def _saying(what: str, after: float) -> Iterator[None]:
    """Say on stderr why it takes long, once it has."""
    timer = threading.Timer(after, print, (what,), {"file": sys.stderr, "flush": True})
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _parser() -> argparse.ArgumentParser:
    parser = CommandParser("play", __doc__)
    add = parser.add_argument
    add("--terminal", action="store_true", help="play in this terminal, not in a browser")
    add("--port", type=int, default=0, help="of the page (one that is free)")
    add("--no-browser", action="store_true", help="print the address of the page, open nothing")
    add("--opponent", metavar="SPEC", help="an agent, or human (champion)")
    add("--player", metavar="SPEC", help="an agent in your place (human)")
    add("--seat", type=int, choices=(0, 1), help="yours: 0 or 1 (0)")
    add("--board", help="a built-in board, a file, family:NUMBER or a pool (shikoku)")
    add("--seed", type=int, help="of the luck (drawn)")
    add("--physical", action="store_true", help="you tell what dice and bag bring")
    add("--save", metavar="FILE", help="keep games in a record file; go on with its last")
    add("--advice", default="champion:sims=400", metavar="SPEC", help="(champion:sims=400)")
    add("--ask-forced", action="store_true", help="in a terminal: ask where there is no choice too")
    return parser


def _serve(session: Session, options: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C, and open a browser on it."""
    try:
        from tokaido_env.web.server import address, listen, new_token, serve
    except ModuleNotFoundError as error:
        raise extra_error("--terminal needs nothing, the page needs", error.name, "play") from None
    from tokaido_env.web.live_game import LiveGame

    listener, token = listen(options.port), new_token()
    file = None if options.save is None else Path(options.save)
    table = LiveGame(session, file, options.advice)
    page = address(listener.getsockname()[1], token)
    print(f"{page}\nCtrl-C ends it", flush=True)
    if not options.no_browser and not webbrowser.open(page):
        print("no browser was found: open the address yourself", file=sys.stderr)
    serve(table, listener, token)
    return 0


def _session(options: argparse.Namespace) -> Session:
    """Return the game to play: a new one, or the last of the file."""
    if options.save is not None and Path(options.save).exists():
        return _resumed(Path(options.save), options)
    you, other = options.player or HUMAN, options.opponent or "champion"
    seats = (other, you) if options.seat else (you, other)
    chance: Chance = "explicit" if options.physical else "sampled"
    return Session(seats, options.board or "shikoku", options.seed, chance)


def _resumed(file: Path, options: argparse.Namespace) -> Session:
    """Return the last game of a file, played by those that it names."""
    for name in ("opponent", "player", "seat", "seed", "physical"):
        if getattr(options, name) not in (None, False):
            raise RecordError(f"{file}: has a game, which goes on: --{name} is for a new one")
    records = [record for _, record in records_of(file)]
    if not records:
        raise RecordError(f"{file}: expected a game to go on with, got none")
    *earlier, record = records  # the earlier ones may be of other boards, and are kept as they are
    named = [
        name if name == HUMAN else check_spec_in_file(name, str(file), file.parent)
        for name in record.players
    ]
    session = Session.resumed(record, named, options.board)
    session.earlier = earlier
    return session
