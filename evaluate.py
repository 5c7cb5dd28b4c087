"""Measure agents against each other in paired games.

python evaluate.py greedy random --games 1000 --seed 0
python evaluate.py policy:runs/first greedy random --json results.json --records games.jsonl
python evaluate.py python:my_bots:Careful greedy --until-decided --games 10000
python evaluate.py rate policy:runs/first
python evaluate.py ladder random greedy heuristic --ladder my_ladder.json
python evaluate.py exploit champion
python evaluate.py --list

Every two agents meet: the same luck twice, with seats swapped. Scores come with a 95 % interval.
With --records, the same command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tokaido_env.agents import Agent, describe, make
from tokaido_env.agents.arena.luck import with_luck
from tokaido_env.agents.arena.match import POINTS, Match
from tokaido_env.agents.arena.playing import AgentFailed, Numbers
from tokaido_env.agents.arena.records import Records
from tokaido_env.agents.arena.stopping import better, check_error, looks
from tokaido_env.agents.arena.tournament import Report, Sheet, check_processes, play, round_robin
from tokaido_env.boards.board import Board
from tokaido_env.core.checks import IllegalMove, check_seed
from tokaido_env.files import write_text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from tokaido_env.agents.arena.ladder import Ladder
    from tokaido_env.agents.arena.ratings import Rating
    from tokaido_env.agents.study.exploit import Probe, Told

VERSION = 1
INTERRUPTED = 130  # what a shell reports of a command that Ctrl-C ended


class Result(NamedTuple):
    """A match, and who is better if that was to be decided: "a", "b", or None for not yet."""

    match: Match
    decided: str | None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    command = COMMANDS.get(words[0]) if words else None
    try:
        return command(words[1:]) if command else _matches(words)
    except (ValueError, OSError, ModuleNotFoundError, AgentFailed) as error:
        print(f"evaluate: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("evaluate: interrupted", file=sys.stderr)
        return INTERRUPTED


# Matches


def _matches(words: list[str]) -> int:
    parser = _parser()
    options = parser.parse_args(words)
    if options.list:
        for usage, meaning in describe():
            print(f"{usage}\n    {meaning}")
        return 0
    if len(options.agents) < 2:
        parser.error("expected two or more agents, as: evaluate.py greedy random")
    options.command = shlex.join(["python", "evaluate.py", *words])
    return _evaluate(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("agents", nargs="*", metavar="AGENT", help="spec strings, see --list")
    _add_common(parser, games=1000)
    add("--records", type=Path, metavar="FILE", help="append every game; go on from those in it")
    add("--plots", type=Path, metavar="DIR", help="write figures to a folder")
    add("--report", type=Path, metavar="FILE", help="write a page of HTML")
    add(
        "--until-decided",
        action="store_true",
        help="stop a match when it tells who is better; --games is then the most",
    )
    add("--error", type=float, help="how often that may be wrong (0.05)")
    add("--luck", action="store_true", help="also tell scores with luck taken off: fewer games do")
    add("--list", action="store_true", help="list the agents there are")
    return parser


def _add_common(parser: argparse.ArgumentParser, games: int) -> None:
    add = parser.add_argument
    add("--games", type=int, default=games, help=f"for each two agents, even ({games})")
    add("--seed", type=int, default=0, help="of the luck, 0 to 2**53 - 1 (0)")
    add("--board", default="shikoku", help="a built-in board or a file (shikoku)")
    add("--json", type=Path, metavar="FILE", help="write the results to a file")
    add(
        "--processes",
        type=int,
        help="play in so many processes (one; for agents that play one game at a time, one for "
        "each processor)",
    )


def _evaluate(options: argparse.Namespace) -> int:
    _check(options)
    board = Board.load(options.board)
    agents = [make(spec) for spec in options.agents]
    pairs = [(agents[i], agents[j]) for i, j in round_robin(len(agents))]
    sheets = [Sheet(a.spec, b.spec, options.games, options.seed, board) for a, b in pairs]
    records = None
    if options.records is not None:
        records = Records(options.records, sheets)
        _tell_taken(records)
    results, stopped = _play(pairs, sheets, records, options)
    if options.luck:
        results = [Result(with_luck(match, board), decided) for match, decided in results]
    ratings = _ratings(results, options.seed, complete=stopped is None)
    if options.json is not None:
        _save(options, board, [agent.spec for agent in agents], results, ratings)
    _show(results, ratings, options, board)
    if stopped is None:
        return _draw(results, ratings, options, board)
    return _tell_stopped(stopped, sheets, options)


def _check(options: argparse.Namespace) -> None:
    """Refuse what can be refused before a game is played."""
    check_seed(options.seed)
    if options.error is not None and not options.until_decided:
        raise ValueError("--error: expected together with --until-decided")
    options.error = check_error(0.05 if options.error is None else options.error)
    check_processes(options.processes)
    _check_files(options.json, options.records, options.report, folder=options.plots)
    _check_installed("rich")
    if options.plots is not None or options.report is not None:
        _check_installed("matplotlib")


def _check_files(*files: Path | None, folder: Path | None = None) -> None:
    """Refuse files, and a folder, that could not be written."""
    given = [path for path in (*files, folder) if path is not None]
    for path in given:
        above = path.absolute().parent
        if not above.is_dir():
            raise ValueError(f"{path}: there is no folder {above}")
        if not os.access(path if path.exists() else above, os.W_OK):
            raise ValueError(f"{path}: not writable")
        if path.exists() and path.is_dir() != (path is folder):
            kinds = ("file", "folder") if path is not folder else ("folder", "file")
            raise ValueError(f"{path}: expected a {kinds[0]}, it is a {kinds[1]}")
    if len({path.absolute() for path in given}) < len(given):
        raise ValueError(f"{given[0]}: each output needs a name of its own")


def _check_installed(package: str) -> None:
    if importlib.util.find_spec(package) is None:
        raise ValueError(f"this needs {package}: pip install {package}")


def _play(
    pairs: list[tuple[Agent, Agent]],
    sheets: list[Sheet],
    records: Records | None,
    options: argparse.Namespace,
) -> tuple[list[Result], BaseException | None]:
    """Play all matches; return those with a whole pair, and what has stopped playing, if any."""
    results: list[Result] = []
    stopped: BaseException | None = None
    try:
        for number, ((a, b), sheet) in enumerate(zip(pairs, sheets, strict=True), start=1):
            with _progress(sheet, f"{number}/{len(pairs)}") as progress:
                results.append(_play_one(a, b, sheet, records, progress, options))
    except (KeyboardInterrupt, IllegalMove, AgentFailed) as error:
        stopped = error
        rest = (sheet.match() for sheet in sheets[len(results) :])
        results += [Result(match, None) for match in rest if len(match.games)]
    return results, stopped


def _play_one(
    a: Agent,
    b: Agent,
    sheet: Sheet,
    records: Records | None,
    progress: Report,
    options: argparse.Namespace,
) -> Result:
    def keep(numbers: Numbers) -> None:
        if records is not None:
            records.append(sheet, numbers)

    decided = None
    games = len(sheet)
    for pairs in looks(len(sheet) // 2) if options.until_decided else (len(sheet) // 2,):
        games = 2 * pairs
        play(sheet, a, b, games=games, keep=keep, progress=progress, processes=options.processes)
        if options.until_decided:
            results = sheet.games["result"][:games].reshape(-1, 2)
            decided = better(results.mean(axis=1), options.error)
        if decided is not None:
            break
    return Result(sheet.match(games), decided)


@contextmanager
def _progress(sheet: Sheet, number: str) -> Iterator[Report]:
    """Show a bar while a match is played, if the error output is a terminal."""
    from rich import progress as bars
    from rich.console import Console

    console = Console(stderr=True)
    columns = (
        bars.TextColumn("{task.description}"),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TextColumn("games, {task.fields[speed]} games/s,"),
        bars.TimeRemainingColumn(),
    )
    hidden = not console.is_terminal
    with bars.Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        done = int(sheet.finished.sum())
        title = f"{number} {sheet.a} – {sheet.b}"
        task = bar.add_task(title, total=len(sheet), completed=done, speed="–")

        def report(games: int) -> None:
            bar.advance(task, games)
            speed = bar.tasks[0].speed
            bar.update(task, speed="–" if speed is None else f"{speed:.3g}")

        yield report


def _tell_taken(records: Records) -> None:
    if records.dropped:
        print("evaluate: the last line of the records was cut short: dropped", file=sys.stderr)
    if records.taken:
        print(f"evaluate: {records.taken:,} games taken over", file=sys.stderr)


def _tell_stopped(stopped: BaseException, sheets: list[Sheet], options: argparse.Namespace) -> int:
    interrupted = isinstance(stopped, KeyboardInterrupt)
    played, total = sum(int(s.finished.sum()) for s in sheets), sum(map(len, sheets))
    kept = "" if options.records is None else f", all in {options.records}: call again to go on"
    print(f"evaluate: {'interrupted' if interrupted else stopped}", file=sys.stderr)
    print(f"evaluate: {played:,} of {total:,} games were played{kept}", file=sys.stderr)
    return INTERRUPTED if interrupted else 1


# What is shown and written


def _ratings(results: list[Result], seed: int, *, complete: bool) -> list[Rating]:
    """Rate the agents; what was stopped may say too little for that."""
    from tokaido_env.agents.arena.ratings import RatingError, rate_matches

    # An agent may meet itself, or be named twice: the same games would count twice.
    matches = {frozenset((m.a, m.b)): m for m, _ in results if m.a != m.b}
    if not matches:
        return []
    try:
        return rate_matches(list(matches.values()), seed=seed)
    except RatingError:
        if complete:
            raise
        return []


def _show(
    results: list[Result], ratings: list[Rating], options: argparse.Namespace, board: Board
) -> None:
    if results:
        console = _console()
        most = "at most " if options.until_decided else ""
        title = f"{most}{options.games} games a pair, seats swapped"
        title += f", seed {options.seed}, board {board.name}"
        console.print(_table([result.match for result in results], title))
        if options.luck:
            console.print(_luck_table([result.match for result in results]))
        if options.until_decided:
            for result in results:
                console.print(_verdict(result, options.error), highlight=False, soft_wrap=True)
            console.print()
        if ratings:
            console.print(_ratings_table(ratings))


def _console() -> Console:
    """Return what prints tables: as wide as they are where no terminal sets a width."""
    from rich.console import Console

    console = Console()
    return console if console.is_terminal else Console(width=max(console.width, 120))


def _table(matches: list[Match], title: str) -> Table:
    table = _new_table(title, ("games", "wins", "score", "95 % interval", *POINTS))
    for match in matches:
        for row in _rows(match):
            table.add_row(*row)
        table.add_section()
    return table


def _luck_table(matches: list[Match]) -> Table:
    table = _new_table("With luck taken off", ("score", "95 % interval", "as if so many games"))
    for match in matches:
        adjusted = match.adjusted
        if adjusted is not None:
            low, high = adjusted.interval
            games = f"{adjusted.factor * match.results.size:,.0f}"
            against = f"{match.a} against {match.b}"
            table.add_row(against, f"{adjusted.score:.1%}", f"{low:.1%} – {high:.1%}", games)
    return table


def _ratings_table(ratings: list[Rating]) -> Table:
    table = _new_table("Ratings", ("Elo", "95 % interval", "games"))
    for rating in ratings:
        table.add_row(rating.agent, *_elo(rating), str(rating.games))
    return table


def _ladder_table(ladder: Ladder) -> Table:
    from tokaido_env.agents.arena.ratings import rate_steps

    steps = {step.agent: step for step in rate_steps(ladder.matches, seed=ladder.seed)}
    columns = ("Elo", "95 % interval", "above the next", "95 % interval", "games")
    table = _new_table(f"Ladder {ladder.hash}, board {ladder.board}", columns)
    for rating in ladder.agents:
        cells = [*_elo(rating), *(_elo(steps[rating.agent]) if rating.agent in steps else ("", ""))]
        table.add_row(rating.agent, *cells, str(rating.games))
    return table


def _elo(rating: Rating) -> tuple[str, str]:
    low, high = rating.ci95
    return f"{rating.elo:.0f}", f"{low:.0f} – {high:.0f}"


def _new_table(title: str, headers: Sequence[str], first: str = "agent") -> Table:
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column(first, overflow="fold")
    for header in headers:
        table.add_column(header, justify="right", no_wrap=True)
    return table


def _rows(match: Match) -> list[list[str]]:
    """Return the match as each of the two agents sees it."""
    low, high = match.interval
    sides = (
        (match.a, 1.0, match.score, low, high),
        (match.b, 0.0, 1 - match.score, 1 - high, 1 - low),
    )
    rows = []
    for i, (agent, won, score, lowest, highest) in enumerate(sides):
        games, wins = str(match.results.size), str(int((match.results == won).sum()))
        points = [f"{value:.1f}" for value in match.mean_points(i).values()]
        rows.append([agent, games, wins, f"{score:.1%}", f"{lowest:.1%} – {highest:.1%}", *points])
    return rows


def _verdict(result: Result, error: float) -> str:
    match = result.match
    if result.decided is None:
        return f"{match.a} and {match.b}: undecided after {match.results.size:,} games"
    first, second = (match.a, match.b) if result.decided == "a" else (match.b, match.a)
    after = f"decided after {match.results.size:,} games, error at most {error:.3g}"
    return f"{first} is better than {second}: {after}"


def _save(
    options: argparse.Namespace,
    board: Board,
    agents: list[str],
    results: list[Result],
    ratings: list[Rating],
) -> None:
    """Write the results, with no clock and no machine in them: whole or not at all."""
    told: dict[str, Any] = {
        "version": VERSION,
        "seed": options.seed,
        "board": board.name,
        "agents": agents,
        "matches": [
            result.match.to_dict()
            | ({"decided": result.decided} if getattr(options, "until_decided", False) else {})
            | ({"adjusted": _adjusted(result.match)} if getattr(options, "luck", False) else {})
            for result in results
        ],
        "ratings": [rating.to_dict() for rating in ratings],
    }
    write_text(options.json, json.dumps(told, indent=1) + "\n")


def _adjusted(match: Match) -> dict[str, Any] | None:
    return None if match.adjusted is None else match.adjusted.to_dict()


def _draw(
    results: list[Result], ratings: list[Rating], options: argparse.Namespace, board: Board
) -> int:
    from tokaido_env.agents.report import figures

    matches = [result.match for result in results]
    if options.plots is not None:
        options.plots.mkdir(exist_ok=True)
        figures.write_plots(matches, ratings, options.plots)
    if options.report is not None:
        figures.write_report(
            *(matches, ratings, options.report),
            title=f"{' – '.join(dict.fromkeys(options.agents))}",
            command=options.command,
            seed=options.seed,
            board=board.name,
        )
    return 0


# The ladder


def _rate(words: list[str]) -> int:
    """Place an agent on a ladder."""
    from tokaido_env.agents.arena import ladder

    parser = argparse.ArgumentParser("evaluate.py rate", description=_rate.__doc__)
    parser.add_argument("agent", metavar="AGENT", help="a spec string, see evaluate.py --list")
    parser.add_argument("--ladder", type=Path, default=ladder.LADDER, metavar="FILE", help="(ours)")
    parser.add_argument("--opponents", type=int, default=ladder.OPPONENTS, help="how many to meet")
    parser.add_argument("--thorough", action="store_true", help="meet slow agents too")
    parser.add_argument(
        "--trust",
        nargs="+",
        default=[],
        metavar="AGENT",
        help="agents on the ladder that run your own code, or policies outside its folder",
    )
    options, board = _ladder_options(parser, words)
    spec = make(options.agent).spec
    rated = ladder.rate(
        spec,
        ladder.Ladder.load(options.ladder, board, [spec, options.agent, *options.trust]),
        play=_player(options, board),
        seed=options.seed,
        opponents=options.opponents,
        thorough=options.thorough,
    )
    results = [Result(match, None) for match in rated.matches]
    if options.json is not None:
        _save(options, board, [spec], results, [rated.rating])
    _console().print(_table(list(rated.matches), f"seed {options.seed}, board {board.name}"))
    _console().print(_ratings_table([rated.rating]))
    _console().print(f"on ladder {rated.ladder}, {options.ladder}")
    return 0


def _ladder(words: list[str]) -> int:
    """Make a ladder of agents, weakest first, and write their matches and ratings to a file."""
    from tokaido_env.agents.arena import ladder

    parser = argparse.ArgumentParser("evaluate.py ladder", description=_ladder.__doc__)
    parser.add_argument("agents", nargs="+", metavar="AGENT", help="see evaluate.py --list")
    parser.add_argument("--ladder", type=Path, required=True, metavar="FILE")
    parser.add_argument("--reach", type=int, default=1000, help="meet only so many places away")
    options, board = _ladder_options(parser, words)
    specs = [make(spec).spec for spec in options.agents]
    games = ladder.games_in_order(specs, options.games, options.reach)
    play = _player(options, board)
    made = ladder.make_ladder(specs, games, options.seed, board, play, options.ladder)
    _console().print(_ladder_table(made))
    return 0


def _ladder_options(
    parser: argparse.ArgumentParser, words: list[str]
) -> tuple[argparse.Namespace, Board]:
    _add_common(parser, games=1000)
    options = parser.parse_args(words)
    check_seed(options.seed)
    check_processes(options.processes)
    _check_files(options.json, options.ladder)
    _check_installed("rich")
    return options, Board.load(options.board)


def _player(options: argparse.Namespace, board: Board) -> Callable[[str, str, int, int], Match]:
    """Return what plays a match of two specs: at most so many games, with a seed."""

    def played(a: str, b: str, games: int, seed: int) -> Match:
        agents = make(a), make(b)
        sheet = Sheet(a, b, min(games, options.games), seed, board)
        with _progress(sheet, "") as progress:
            play(sheet, *agents, progress=progress, processes=options.processes)
        return sheet.match()

    return played


# Exploitability


def _exploit(words: list[str]) -> int:
    """Train a learner against one agent, and measure how far it beats it: a lower bound."""
    # Read when PyTorch is loaded: its threads do not wait busily, the games need the cores too.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    from tokaido_env.agents.study import exploit

    options = _exploit_options(words, exploit.STEPS, exploit.GAMES)
    settings = exploit.settings_against(
        *(options.agent, options.steps, options.seed, options.board, options.start_from)
    )
    _warn_if_slow(make(options.agent), settings.steps)
    with _folder(options.run) as folder:
        began = time.perf_counter()
        with _training(settings.agents, settings.steps, options.games) as (report, progress):
            found = exploit.probe(folder, settings, options.games, report, progress)
        seconds = time.perf_counter() - began
    if options.json is not None:
        write_text(options.json, json.dumps(found.to_dict(), indent=1) + "\n")
    _show_probe(found, seconds)
    if found.complete:
        return 0
    kept = "" if options.run is None else f": in {options.run}, call again to go on"
    print(f"evaluate: interrupted{kept}", file=sys.stderr)
    return INTERRUPTED


def _exploit_options(words: list[str], steps: int, games: int) -> argparse.Namespace:
    parser = argparse.ArgumentParser("evaluate.py exploit", description=_exploit.__doc__)
    add = parser.add_argument
    add("agent", metavar="AGENT", help="a spec string, see evaluate.py --list")
    add("--steps", type=int, default=steps, help=f"decisions of the learner ({steps:,})")
    add("--start-from", default="", metavar="POLICY", help="policy file to begin with")
    add("--games", type=int, default=games, help=f"of the final match, even ({games})")
    add("--seed", type=int, default=0, help="of training and games, 0 to 2**53 - 1 (0)")
    add("--board", default="shikoku", help="a built-in board or a file (shikoku)")
    add("--json", type=Path, metavar="FILE", help="write the results to a file")
    add("--run", type=Path, metavar="FOLDER", help="keep the run there; go on with a stopped one")
    options = parser.parse_args(words)
    check_seed(options.seed)
    _check_files(options.json)
    _check_installed("rich")
    return options


def _folder(run: Path | None) -> AbstractContextManager[str | Path]:
    """Return the folder of a run, a temporary one if none is asked for."""
    return tempfile.TemporaryDirectory(prefix="tokaido-") if run is None else nullcontext(run)


def _warn_if_slow(agent: Agent, steps: int) -> None:
    if agent.cost:
        told = f"{agent.spec} thinks long, and decides about as often as the learner: {steps:,}"
        print(f"evaluate: {told} times; fewer --steps take less time", file=sys.stderr)


@contextmanager
def _training(
    agent: str, steps: int, games: int
) -> Iterator[tuple[Callable[[Told], None], Report]]:
    """Show a bar while a learner is trained and then measured, if there is a terminal."""
    from rich import progress as bars
    from rich.console import Console

    console = Console(stderr=True)
    columns = (
        bars.TextColumn("{task.description}"),
        bars.BarColumn(),
        bars.TextColumn("{task.completed:,.0f} of {task.total:,.0f} {task.fields[told]}"),
        bars.TimeRemainingColumn(),
    )
    hidden = not console.is_terminal
    with bars.Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        training = bar.add_task(f"learner – {agent}", total=steps, told="steps")

        def report(told: Told) -> None:
            newest = "" if told.newest is None else f", scored {told.newest.match.score:.1%}"
            bar.update(training, completed=told.progress.steps, told=f"steps{newest}")

        final = bar.add_task("final match", total=games, told="games")
        yield report, lambda finished: bar.advance(final, finished)


def _show_probe(found: Probe, seconds: float) -> None:
    console, settings = _console(), found.settings
    title = f"Learner against {found.agent}, seed {settings.seed}, board {settings.board}"
    table = _new_table(title, ("games", "score", "95 % interval", ""), first="steps")
    for steps, match in found.curve:
        (low, high), games = match.interval, str(match.results.size)
        mark = "chosen" if found.best is not None and steps == found.best.steps else ""
        interval = f"{low:.1%} – {high:.1%}"
        table.add_row(f"{steps:,}", games, f"{match.score:.1%}", interval, mark)
    console.print(table)
    if found.match is not None:
        console.print(_table([found.match], "The chosen learner in games that did not choose it"))
    console.print(found.meaning(), highlight=False, soft_wrap=True)
    console.print(f"{settings.steps:,} steps asked for, {seconds:,.0f} s", highlight=False)


COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "rate": _rate,
    "ladder": _ladder,
    "exploit": _exploit,
}

if __name__ == "__main__":
    sys.exit(main())
