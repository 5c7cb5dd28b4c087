"""Command line: `python -m tokaido_env replay | export | features | bench | certify`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tokaido_env.core.checks import plain
from tokaido_env.core.observation import FEATURES, N_FEATURES
from tokaido_env.core.state import CHANCE_PHASES, Phase
from tokaido_env.files import write_text
from tokaido_env.game import Game
from tokaido_env.record import Record, RecordError, load, replay


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit status."""
    parser = argparse.ArgumentParser("tokaido_env", description="Tokaido Duo for research.")
    commands = parser.add_subparsers(dest="command", required=True)
    replaying = commands.add_parser("replay", help="print recorded games move by move, verified")
    replaying.add_argument("file", help="a record file, JSON Lines")
    replaying.add_argument("--board", help="the board file of the games, if not a built-in board")
    replaying.add_argument("--game", type=int, help="only the game on this line, from 1")
    replaying.add_argument("--quiet", action="store_true", help="verify and print results only")
    written = replaying.add_mutually_exclusive_group()
    written.add_argument("--gif", metavar="OUT", help="write a game as an animated GIF instead")
    written.add_argument("--html", metavar="OUT", help="write a page to step through instead")
    replaying.add_argument(
        "--policy", metavar="SPEC", help="an agent: the page shows its judgement"
    )
    exporting = commands.add_parser("export", help="write recorded games as a dataset")
    exporting.add_argument("file", help="a record file, JSON Lines")
    exporting.add_argument("out", help="the dataset to write, .parquet or .npz")
    exporting.add_argument("--board", help="the board file of the games, if not a built-in board")
    exporting.add_argument("--uint8", action="store_true", help="observations as raw values")
    commands.add_parser("features", help="print the layout of the observation")
    commands.add_parser("certify", help="run the conformance tests of all installed libraries")
    benching = commands.add_parser("bench", help="measure the speeds of this machine")
    benching.add_argument("--runs", type=int, default=5, help="measured runs of each row")
    benching.add_argument("--only", nargs="+", metavar="ROW", help="rows whose key starts so")
    benching.add_argument("--json", metavar="FILE", help="also write the figures here")
    options = parser.parse_args(arguments)
    if options.command == "features":
        print(features_table())
        return 0
    if options.command == "certify":
        from tokaido_env.tools import certify

        return certify.main()
    if options.command == "bench":
        from tokaido_env.tools import bench

        return bench.main(options.runs, options.only, options.json)
    return _export(options) if options.command == "export" else _replay(options)


def features_table() -> str:
    """Return the FEATURES table as text."""
    rows = [f"{'from':>4} {'to':>4} {'scale':>5}  {'name':<20} meaning"]
    for feature in FEATURES:
        last = feature.start + feature.size - 1
        where = f"{feature.start:>4} {last:>4} {feature.scale:>5}"
        rows.append(f"{where}  {feature.name:<20} {feature.meaning}")
    rows.append(f"{N_FEATURES} numbers, each a raw value / scale, in [0, 1]")
    return "\n".join(rows)


def _replay(options: argparse.Namespace) -> int:
    try:
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


def _animate(records: Sequence[Record], options: argparse.Namespace) -> int:
    from tokaido_env.render.gif import write_gif

    if options.game is None and len(records) != 1:
        raise RecordError(f"--gif: expected one game, got {len(records)}: choose it with --game")
    number = options.game or 1
    frames = write_gif(records[number - 1], options.gif, options.board)
    print(f"{options.gif}: game {number} in {frames} frames")
    return 0


def _write_page(records: Sequence[Record], options: argparse.Namespace) -> int:
    from tokaido_env.web.replay_page import replay_page

    out = Path(options.html)
    if out.is_dir() or not out.parent.is_dir():
        raise ValueError(f"--html: expected a file in a folder that exists, got {options.html!r}")
    chosen = records if options.game is None else [records[options.game - 1]]
    page = replay_page(chosen, options.board, policy=options.policy)
    write_text(out, page)
    print(f"{out}: games {len(chosen)}, {len(page.encode()) / 1e6:.1f} MB")
    return 0


def _export(options: argparse.Namespace) -> int:
    from tokaido_env.tools.dataset import export

    dtype = "uint8" if options.uint8 else "float32"
    try:
        rows, games = export(options.file, options.out, options.board, dtype)
    except (ValueError, OSError, ModuleNotFoundError) as error:
        print(f"export: {error}", file=sys.stderr)
        return 1
    print(f"{options.out}: {rows} decisions of {games} games")
    return 0


def _print_game(number: int, record: Record, options: argparse.Namespace) -> None:
    seed = "" if record.seed is None else f", seed {record.seed}"
    names = " against ".join(map(plain, record.players))
    print(f"game {number}: {names}, {plain(record.board)}{seed}")
    for game, event in replay(record, options.board):
        if event is not None and not options.quiet:
            print("  " + _line(game, event))
    print("  " + _result(record))


def _line(game: Game, event: str) -> str:
    """Return an event with its round and who did it; chance is indented less far."""
    if game.phase in CHANCE_PHASES:
        rounds = game.rounds + (game.phase == Phase.ROLL)
        return f"{rounds:>3}  {'chance':<9} {event}"
    return f"{game.rounds:>3}  {f'player_{game.player}':<9}   {event}"


def _result(record: Record) -> str:
    parts = []
    for seat, score in enumerate(record.scores):
        split = ", ".join(f"{key} {score[key]}" for key in ("faith", "commerce", "culture"))
        parts.append(f"player_{seat} {score['total']} ({split})")
    won = "shared" if record.winner is None else f"won by player_{record.winner}"
    ends = {
        "triggers": f"ended after round {record.rounds}, {won}",
        "cap": f"reached the cap of {record.rounds} rounds, nobody wins",
        None: f"unfinished in round {record.rounds}",
    }
    return f"{ends[record.end]}: {'; '.join(parts)}"


if __name__ == "__main__":
    sys.exit(main())
