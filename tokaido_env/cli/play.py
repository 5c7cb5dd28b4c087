"""`tokaido play`: play against an agent or another person, or follow a physical game."""

from __future__ import annotations

import sys
import webbrowser
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from tokaido_env.agents.registry import check_spec_in_file, make
from tokaido_env.boards.board_pool import Boards, board_by_name
from tokaido_env.boards.reader import BoardError
from tokaido_env.cli import command as cli
from tokaido_env.cli.terminal import Terminal
from tokaido_env.core.arguments import Chance
from tokaido_env.core.optional_deps import extra_error
from tokaido_env.files import check_outputs, locked
from tokaido_env.game import Game
from tokaido_env.record import Record, RecordError, read_unverified, replay
from tokaido_env.web.game_file import GameFile
from tokaido_env.web.game_session import HUMAN, Session

DEFAULT_PORT = 8629  # browsers store by port


@cli.options
class Play:
    """Options of `tokaido play`; the docstring of each field is its help."""

    terminal: bool = False
    """play in this terminal instead of a browser"""
    port: int | None = None
    """port of the page; 0 takes a free one [default: 8629 if it is free]"""
    no_browser: bool = False
    """print the address of the page without opening a browser"""
    opponent: cli.AgentSpec | None = None
    """the opponent, an agent or human [default: champion]"""
    player: cli.AgentSpec | None = None
    """the player in your seat [default: human]"""
    seat: Literal[0, 1] | None = None
    """your seat [default: 0]"""
    board: cli.Board | None = None
    """a built-in board, a board file, family:NUMBER or a pool [default: shikoku]"""
    seed: cli.Seed | None = None
    """random seed, an integer from 0 [default: random]"""
    physical: bool = False
    """enter the rolls and draws of a physical game yourself"""
    source: Annotated[cli.Input | None, Parameter("--from")] = None
    """start from the last game of this record file [default: from the set-up]"""
    at: int | None = None
    """start after this number of events of --from [default: after all]"""
    save: cli.Output | None = None
    """save games to this record file, and resume its last game"""
    advice: cli.AgentSpec = "champion:sims=400"
    """agent that gives advice"""


@cli.command("play")
def main(options: Play) -> int:
    """Play against an agent or another person, or follow a physical game.

    Examples:
        tokaido play
        tokaido play --terminal
        tokaido play --terminal --opponent champion:sims=64 --seat 1 --seed 7
        tokaido play --terminal --save game.jsonl
        tokaido play --terminal --physical --opponent human
        tokaido play --from game.jsonl --at 57
    """
    check_outputs(options.save, read=[options.source, options.board])
    with nullcontext() if options.save is None else locked(Path(options.save)):
        path = None if options.save is None else Path(options.save)
        resumes = path is not None and path.exists()
        session = _session(options)
        file = None if path is None else GameFile(path, resumes=resumes)
        if not options.terminal:
            return _serve(session, file, options)
        return Terminal(session, file, options.advice).run()


def _serve(session: Session, file: GameFile | None, options: Play) -> int:
    """Serve the page until Ctrl-C, and open a browser on it."""
    try:
        from tokaido_env.web.server import listen, new_token, page_address, serve
    except ModuleNotFoundError as error:
        raise extra_error("the page (without --terminal) needs", error.name, "play") from None
    from tokaido_env.web.live_game import LiveGame

    try:
        listener = listen(DEFAULT_PORT if options.port is None else options.port)
    except OSError:
        if options.port is not None:
            raise
        listener = listen()  # another game is on
    names = ("player", "opponent", "seat", "board", "seed", "source")
    is_chosen = options.physical or any(getattr(options, name) is not None for name in names)
    game = LiveGame(session, file, options.advice, is_chosen=is_chosen or session.decisions > 0)
    token = new_token()
    page = page_address(listener.getsockname()[1], token)
    print(f"{page}\nCtrl-C stops the server", flush=True)
    if not options.no_browser and not webbrowser.open(page):
        print("found no browser: open the address yourself", file=sys.stderr)
    serve(game, listener, token)
    return 0


def _session(options: Play) -> Session:
    """Return a new game, or the last one of the file to save to."""
    start = _start(options)
    if options.save is not None and Path(options.save).exists():
        return _resumed(Path(options.save), options, start)
    you, other = options.player or HUMAN, options.opponent or "champion"
    seats = (other, you) if options.seat else (you, other)
    chance: Chance = "explicit" if options.physical else "sampled"
    board = (options.board or "shikoku") if start is None else start.board
    position = None if start is None else start.to_dict()
    return Session(seats, board, options.seed, chance, start=position)


def _start(options: Play) -> Game | None:
    """Return a game at the position of --from, None without it."""
    if options.source is None:
        if options.at is not None:
            raise RecordError("--at: expected together with --from")
        return None
    *_, record = [None, *(record for _, record in read_unverified(options.source))]
    if record is None:
        raise RecordError(f"--from: expected a game in {options.source}, got none")
    played, last = replay(record, options.board), len(record.events)
    row = last if options.at is None else options.at
    if not 0 <= row <= last:
        raise RecordError(f"--at: expected 0 to {last} events, got {row}")
    return Game.from_dict(played.position(row), board=played.board, chance="explicit")


def _resumed(file: Path, options: Play, start: Game | None) -> Session:
    """Return the last game of a file, if the given options are those of one of its games.

    The page and the terminal start new games with other options.
    """
    records = [record for _, record in read_unverified(file)]
    if not records:
        raise RecordError(f"{file}: expected a game to resume, got none")
    players = [
        spec if spec in (None, HUMAN) else make(spec).spec
        for spec in (options.player, options.opponent)
    ]
    found = [_unlike(options, players, start, record) for record in records]
    if all(found):
        raise RecordError(
            f"--{found[-1]}: {file} has no such game: omit it to resume the last one, or name "
            "another file"
        )
    record = records[-1]  # earlier games may be on other boards
    trusted = [spec for spec in players if spec is not None]
    seats = [
        name if name == HUMAN else check_spec_in_file(name, str(file), file.parent, trusted)
        for name in record.players
    ]
    board = options.board if _has_board(record, options.board) else None
    return Session.from_record(record, seats, board)


def _unlike(
    options: Play, players: Sequence[str | None], start: Game | None, record: Record
) -> str:
    """Return the first given option that a game does not have, "" if it has all."""
    you, other = players[0] or (HUMAN if HUMAN in record.players else None), players[1]
    physical = record.seed is None
    own = [seat for seat in (0, 1) if you in (None, record.players[seat])]
    seats = [seat for seat in own if other in (None, record.players[1 - seat])]
    has = {
        "player": own,
        "opponent": seats,
        "seat": options.seat is None or options.seat in seats,
        "physical": physical or not options.physical,
        "seed": options.seed in (None, record.seed) or (physical and options.physical),
        "board": options.board is None or _has_board(record, options.board),
        "from": start is None or start.to_dict() == record.start,
    }
    return next((name for name, fits in has.items() if not fits), "")


def _has_board(record: Record, boards: Boards | None) -> bool:
    try:
        return board_by_name(record.board, boards).hash == record.board_hash
    except BoardError:
        return False
