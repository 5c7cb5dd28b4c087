"""Measure agents against each other in paired games.

tokaido evaluate greedy random --games 1000 --seed 0
tokaido evaluate policy:runs/first greedy random --json results.json --records games.jsonl
tokaido evaluate python:my_bots:Careful greedy --until-decided --games 10000
tokaido evaluate rate policy:runs/first
tokaido evaluate ladder random greedy heuristic --ladder my_ladder.json
tokaido evaluate exploit champion
tokaido evaluate generalise champion
tokaido evaluate regret champion heuristic
tokaido evaluate --list

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
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from tokaido_env.agents import Agent, describe, make
from tokaido_env.agents.arena import ladder, placing
from tokaido_env.agents.arena.luck import with_luck
from tokaido_env.agents.arena.match import Match
from tokaido_env.agents.arena.playing import AgentFailed, Numbers
from tokaido_env.agents.arena.ratings import Rating, RatingError, rate_matches, rate_steps
from tokaido_env.agents.arena.records import Records
from tokaido_env.agents.arena.series import Result, play_series
from tokaido_env.agents.arena.stopping import check_error
from tokaido_env.agents.arena.tournament import (
    Report,
    Sheet,
    check_processes,
    play,
    round_robin,
)
from tokaido_env.agents.registry import policy_of
from tokaido_env.agents.report import tables
from tokaido_env.agents.report.as_json import results_to_dict
from tokaido_env.agents.report.progress import learner_bars, match_bar
from tokaido_env.boards.pool import BoardPool
from tokaido_env.core.checks import check_seed, plain
from tokaido_env.files import check_outputs, write_text
from tokaido_env.tools.generalise import INTERRUPTED, generalise, tell_stopped, tell_taken
from tokaido_env.tools.program import described, program
from tokaido_env.tools.regret import regret

if TYPE_CHECKING:
    from tokaido_env.agents.study.exploit import Probe, Status

ERROR = 0.05  # how often a match that is decided may name the wrong agent


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    command = COMMANDS.get(arguments[0]) if arguments else None
    try:
        return command(arguments[1:]) if command else _matches(arguments)
    except (ValueError, OSError, ModuleNotFoundError, AgentFailed) as error:
        print(f"evaluate: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("evaluate: interrupted", file=sys.stderr)
        return INTERRUPTED


# Matches


def _matches(arguments: list[str]) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.list:
        for usage, meaning in describe():
            print(f"{usage}\n    {meaning}")
        return 0
    if len(options.agents) < 2:
        parser.error(f"expected two or more agents, as: {program('evaluate')} greedy random")
    options.command = f"{program('evaluate')} {shlex.join(arguments)}"
    return _evaluate(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        program("evaluate"),
        description=described(__doc__, "evaluate"),
        formatter_class=argparse.RawDescriptionHelpFormatter,
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
    add("--error", type=float, help=f"how often that may be wrong ({ERROR})")
    add("--luck", action="store_true", help="also tell scores with luck taken off: fewer games do")
    add("--list", action="store_true", help="list the agents there are")
    return parser


def _add_common(parser: argparse.ArgumentParser, games: int) -> None:
    add = parser.add_argument
    add("--games", type=int, default=games, help=f"for each two agents, even ({games})")
    add("--seed", type=int, default=0, help="of the luck, 0 to 2**53 - 1 (0)")
    add("--board", default="shikoku", help="a built-in board, a file, or a pool (shikoku)")
    add("--json", type=Path, metavar="FILE", help="write the results to a file")
    add(
        "--processes",
        type=int,
        help="play in so many processes (one; for agents that play one game at a time, one for "
        "each processor)",
    )


def _evaluate(options: argparse.Namespace) -> int:
    _check(options)
    board = BoardPool.load(options.board)
    agents = [make(spec) for spec in options.agents]
    pairs = [(agents[i], agents[j]) for i, j in round_robin(len(agents))]
    sheets = [Sheet(a.spec, b.spec, options.games, options.seed, board) for a, b in pairs]
    records = None
    if options.records is not None:
        records = Records(options.records, sheets)
        tell_taken(records)
    results, stopped = _play(pairs, sheets, records, options)
    if options.luck:
        results = [Result(with_luck(match, board), decided) for match, decided in results]
    ratings = _ratings(results, options.seed, complete=stopped is None)
    if options.json is not None:
        _save(options, board, [agent.spec for agent in agents], results, ratings)
    _show(results, ratings, options, board)
    if stopped is None:
        if records is not None:
            records.sort()
        return _draw(results, ratings, options, board)
    return tell_stopped(stopped, sheets, options.records)


def _check(options: argparse.Namespace) -> None:
    """Refuse what can be refused before a game is played."""
    check_seed(options.seed)
    if options.error is not None and not options.until_decided:
        raise ValueError("--error: expected together with --until-decided")
    options.error = check_error(ERROR if options.error is None else options.error)
    check_processes(options.processes)
    _check_outputs(options)
    drawn = options.plots is not None or options.report is not None
    if drawn and importlib.util.find_spec("matplotlib") is None:
        raise ValueError("figures need matplotlib: pip install 'tokaido-env[plots]'")


def _check_outputs(options: argparse.Namespace) -> None:
    # Records are appended: a link to them stays one.
    records = None if options.records is None else options.records.resolve()
    files = options.json, options.report, records
    policies = map(policy_of, options.agents)
    check_outputs(*files, folder=options.plots, read=[options.board, *policies])


def _play(
    pairs: list[tuple[Agent, Agent]],
    sheets: list[Sheet],
    records: Records | None,
    options: argparse.Namespace,
) -> tuple[list[Result], BaseException | None]:
    """Play all matches; return those with a whole pair, and what has stopped playing, if any."""

    def keep(sheet: Sheet, numbers: Numbers) -> None:
        if records is not None:
            records.append(sheet, numbers)

    return play_series(
        pairs,
        sheets,
        error=options.error if options.until_decided else None,
        keep=keep,
        watch=lambda sheet, number: _bar(sheet, f"{number}/{len(pairs)}"),
        processes=options.processes,
    )


def _bar(sheet: Sheet, number: str) -> AbstractContextManager[Report]:
    title = f"{number} {sheet.a} – {sheet.b}"
    return match_bar(title, len(sheet), int(sheet.finished.sum()))


def _ratings(results: list[Result], seed: int, *, complete: bool) -> list[Rating]:
    """Rate the agents; what was stopped may say too little for that."""
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


def _save(
    options: argparse.Namespace,
    board: BoardPool,
    agents: list[str],
    results: list[Result],
    ratings: list[Rating],
) -> None:
    """Write the results: whole or not at all."""
    data = results_to_dict(
        *(results, ratings, agents),
        seed=options.seed,
        board=board.name,
        decided=getattr(options, "until_decided", False),
        adjusted=getattr(options, "luck", False),
    )
    write_text(options.json, json.dumps(data, indent=1) + "\n")


def _show(
    results: list[Result], ratings: list[Rating], options: argparse.Namespace, board: BoardPool
) -> None:
    if not results:
        return
    matches = [result.match for result in results]
    most = "at most " if options.until_decided else ""
    title = f"{most}{options.games} games a pair, seats swapped"
    title += f", seed {options.seed}, board {board.name}"
    tables.print_table(tables.matches_table(matches, title))
    if options.luck:
        tables.print_table(tables.luck_table(matches))
    if options.until_decided:
        for result in results:
            print(tables.verdict(result, options.error))
        print()
    if ratings:
        tables.print_table(tables.ratings_table(ratings))


def _draw(
    results: list[Result], ratings: list[Rating], options: argparse.Namespace, board: BoardPool
) -> int:
    from tokaido_env.agents.report.figures import write_plots
    from tokaido_env.agents.report.page import write_report

    matches = [result.match for result in results]
    if options.plots is not None:
        options.plots.mkdir(exist_ok=True)
        write_plots(matches, ratings, options.plots)
    if options.report is not None:
        write_report(
            *(matches, ratings, options.report),
            title=f"{' – '.join(dict.fromkeys(options.agents))}",
            command=options.command,
            seed=options.seed,
            board=board.name,
        )
    return 0


# The ladder


def _rate(arguments: list[str]) -> int:
    """Place an agent on a ladder."""
    parser = argparse.ArgumentParser(f"{program('evaluate')} rate", description=_rate.__doc__)
    add = parser.add_argument
    add("agent", metavar="AGENT", help=f"a spec string, see {program('evaluate')} --list")
    add("--ladder", type=Path, metavar="FILE", help="(ours for the board)")
    add("--opponents", type=int, default=placing.OPPONENTS, help="how many to meet")
    add("--thorough", action="store_true", help="meet slow agents too")
    add(
        "--trust",
        nargs="+",
        default=[],
        metavar="AGENT",
        help="agents on the ladder that run your own code, or policies outside its folder",
    )
    options, board = _ladder_options(parser, arguments)
    options.ladder = options.ladder or ladder.ladder_for(board)
    policy = policy_of(options.agent)
    check_outputs(options.json, read=[options.ladder, options.board, policy])
    spec = make(options.agent).spec
    trusted = [spec, options.agent, *options.trust]
    loaded = ladder.Ladder.load(options.ladder, board, trusted)
    rated = placing.rate(
        *(spec, loaded),
        play=_player(options, loaded.pool),
        seed=options.seed,
        opponents=options.opponents,
        thorough=options.thorough,
    )
    if options.json is not None:
        results = [Result(match, None) for match in rated.matches]
        _save(options, loaded.pool, [spec], results, [rated.rating])
    title = f"seed {options.seed}, board {loaded.pool.name}"
    tables.print_table(tables.matches_table(rated.matches, title))
    tables.print_table(tables.ratings_table([rated.rating]))
    print(f"on ladder {rated.ladder}, {options.ladder}")
    return 0


def _ladder(arguments: list[str]) -> int:
    """Make a ladder of agents, weakest first, and write their matches and ratings to a file."""
    parser = argparse.ArgumentParser(f"{program('evaluate')} ladder", description=_ladder.__doc__)
    add = parser.add_argument
    add("agents", nargs="+", metavar="AGENT", help=f"see {program('evaluate')} --list")
    add("--ladder", type=Path, required=True, metavar="FILE")
    add("--reach", type=int, default=1000, help="meet only so many places away")
    options, board = _ladder_options(parser, arguments)
    policies = map(policy_of, options.agents)
    check_outputs(options.json, options.ladder, read=[options.board, *policies])
    specs = [make(spec).spec for spec in options.agents]
    games = ladder.games_in_order(specs, options.games, options.reach)
    play_two = _player(options, board)
    made = ladder.make_ladder(specs, games, options.seed, board, play_two, options.ladder)
    steps = rate_steps(made.matches, seed=made.seed)
    tables.print_table(tables.ladder_table(made, steps))
    return 0


def _ladder_options(
    parser: argparse.ArgumentParser, arguments: list[str]
) -> tuple[argparse.Namespace, BoardPool]:
    _add_common(parser, games=1000)
    options = parser.parse_args(arguments)
    check_seed(options.seed)
    check_processes(options.processes)
    return options, BoardPool.load(options.board)


def _player(options: argparse.Namespace, board: BoardPool) -> ladder.Play:
    """Return what plays a match of two specs: at most so many games, with a seed."""

    def play_two(a: str, b: str, games: int, seed: int) -> Match:
        agents = make(a), make(b)
        sheet = Sheet(a, b, min(games, options.games), seed, board)
        with _bar(sheet, "") as progress:
            play(sheet, *agents, progress=progress, processes=options.processes)
        return sheet.match()

    return play_two


# Exploitability


def _exploit(arguments: list[str]) -> int:
    """Train a learner against one agent, and measure how far it beats it: a lower bound."""
    # Read when PyTorch is loaded: its threads do not wait busily, the games need the cores too.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        from tokaido_env.agents.study import exploit
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{error}: pip install 'tokaido-env[train]'") from None

    options = _exploit_options(arguments, exploit.STEPS, exploit.GAMES)
    settings = exploit.settings_against(
        *(options.agent, options.steps, options.seed, options.board, options.start_from)
    )
    _warn_if_slow(make(options.agent), settings.steps)
    with _folder(options.run) as folder:
        began = time.perf_counter()
        with learner_bars(settings.agents, settings.steps, options.games) as bars:

            def report(state: Status) -> None:
                score = None if state.newest is None else state.newest.match.score
                bars.trained(state.progress.steps, score)

            found = exploit.probe(folder, settings, options.games, report, bars.played)
        seconds = time.perf_counter() - began
    if options.json is not None:
        write_text(options.json, json.dumps(found.to_dict(), indent=1) + "\n")
    _show_probe(found, seconds)
    if found.complete:
        return 0
    kept = "" if options.run is None else f": in {options.run}, call again to go on"
    print(f"evaluate: interrupted{kept}", file=sys.stderr)
    return INTERRUPTED


def _exploit_options(arguments: list[str], steps: int, games: int) -> argparse.Namespace:
    parser = argparse.ArgumentParser(f"{program('evaluate')} exploit", description=_exploit.__doc__)
    add = parser.add_argument
    add("agent", metavar="AGENT", help=f"a spec string, see {program('evaluate')} --list")
    add("--steps", type=int, default=steps, help=f"decisions of the learner ({steps:,})")
    add("--start-from", default="", metavar="POLICY", help="policy file to begin with")
    add("--games", type=int, default=games, help=f"of the final match, even ({games})")
    add("--seed", type=int, default=0, help="of training and games, 0 to 2**53 - 1 (0)")
    add("--board", default="shikoku", help="a built-in board or a file (shikoku)")
    add("--json", type=Path, metavar="FILE", help="write the results to a file")
    add("--run", type=Path, metavar="FOLDER", help="keep the run there; go on with a stopped one")
    options = parser.parse_args(arguments)
    check_seed(options.seed)
    policy = policy_of(options.agent)
    check_outputs(options.json, read=[options.board, options.start_from, policy])
    return options


def _folder(run: Path | None) -> AbstractContextManager[str | Path]:
    """Return the folder of a run, a temporary one if none is asked for."""
    return tempfile.TemporaryDirectory(prefix="tokaido-") if run is None else nullcontext(run)


def _warn_if_slow(agent: Agent, steps: int) -> None:
    if agent.cost:
        warning = (
            f"{plain(agent.spec)} thinks long, and decides about as often as the learner: {steps:,}"
        )
        print(f"evaluate: {warning} times; fewer --steps take less time", file=sys.stderr)


def _show_probe(found: Probe, seconds: float) -> None:
    settings = found.settings
    title = f"Learner against {found.agent}, seed {settings.seed}, board {settings.board}"
    chosen = None if found.best is None else found.best.steps
    tables.print_table(tables.curve_table(found.curve, chosen, title))
    if found.match is not None:
        title = "The chosen learner in games that did not choose it"
        tables.print_table(tables.matches_table([found.match], title))
    print(found.meaning())
    print(f"{settings.steps:,} steps asked for, {seconds:,.0f} s")


COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "matches": _matches,
    "rate": _rate,
    "ladder": _ladder,
    "exploit": _exploit,
    "generalise": generalise,
    "regret": regret,
}
