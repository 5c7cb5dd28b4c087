"""Analysis of the game: statistics with intervals from games of an agent against itself.

    python -m tokaido_env.study.analysis --agent mcts:sims=400 --json analysis.json

A *study* is a number of games on one board, or on several boards drawn at random. It reports the
triggers that end games, the first player's lead, the split of scores, the length of games, and the
value of each wave side and of the hot spring token. For these tiles, positions of the games are
played on twice with the same luck, once with the tile owned by each player. All else is equal, so
the difference is the effect of the tile. Players who own a tile longer win more often too, but
that shows less: a player who is ahead has time to take tiles.

Each game has its own luck: with one agent in both seats, a pair of games with swapped seats would
be the same game twice.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.agent import Agent, States
from tokaido_env.agents.registry import make
from tokaido_env.arena.executors import (
    EXECUTORS,
    CallTask,
    Executor,
    SerialExecutor,
    agent_spec_of,
    check_executor,
    open_executor,
)
from tokaido_env.arena.game_runner import AgentFailed
from tokaido_env.arena.match import MAX_GAMES, SCORE_KEYS, TRIGGERS
from tokaido_env.arena.tournament import play_selfplay, rollout_positions
from tokaido_env.boards.board import Board, built_in_boards
from tokaido_env.boards.procedural import SPLITS
from tokaido_env.core.arguments import escape_text, parse_seed, repr_short
from tokaido_env.core.constants import CAPACITY, CHARACTERS, ROBUST, SIDES
from tokaido_env.core.rng import arena_seed
from tokaido_env.core.state import END_CAP, STATE, copy_rows, put_rows
from tokaido_env.files import check_outputs, write_text
from tokaido_env.study.estimates import JsonDict, clustered_mean, clustered_share
from tokaido_env.trajectory import replay_chunks

VERSION = 1
MOST_BOARDS = len(SPLITS["train"])
TILES = (*(side for sides in SIDES for side in sides), "hot spring")
SWAP_ROUNDS = (5, 12)
"""Rounds at the start of which tiles are swapped: early, and halfway through a game."""

FAMILY = "family"
"""Name of the study on boards drawn at random."""

_ALL_DICE = 0b111

# The effect of one tile in one position: owned by a player, less owned by the opponent.
SWAP = np.dtype(
    [
        ("cluster", "<i8"),  # the game that the position is from
        ("tile", "i1"),  # index into TILES
        ("round", "<i2"),
        ("result", "<f8"),  # within [-1, 1]: 1 turns a loss into a win
        ("points", "<f8"),  # of lead
    ]
)

Seeds = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Study:
    """Games of an agent against itself.

    Attributes:
        name: of the board, or `FAMILY`.
        hashes: of the boards.
        agent: its spec.
        games: `GAME` (n,), agent `a` is player_0.
        rounds: `STATE` (n, longest), the first decision of each round; zeros after the last round.
        clusters: int64 (n,), equal for games that are not independent: those of one board among
            several.
        swaps: `SWAP` (m,).
    """

    name: str
    hashes: tuple[str, ...]
    agent: str
    games: npt.NDArray[np.void]
    rounds: States
    clusters: npt.NDArray[np.int64]
    swaps: npt.NDArray[np.void]


# Playing


def study_board(
    agent: Agent, board: Board, games: int, swaps: int, seed: int, executor: Executor | None = None
) -> Study:
    """Play a study on one board.

    Args:
        agent: plays both seats.
        board: of all games.
        games: number of games, from 1.
        swaps: number of these games with swapped tiles, from 0.
        seed: random seed, as `check_seed` returns it.
        executor: plays the games; they do not depend on it. None: this process.

    Raises:
        ValueError: if a number is out of range.
    """
    if games < 1 or not 0 <= swaps <= games:
        raise ValueError(
            f"games, swaps: expected 1 or more games, and at most as many swaps, "
            f"got {games} and {swaps}"
        )
    seeds = np.array([arena_seed(seed, number) for number in range(games)], np.int64)
    played, actions = play_selfplay(agent, board, seeds, executor=executor)
    rounds = round_starts(board, played, actions)
    # Seeds of their own: the games continue with other luck than before.
    later = np.array(
        [arena_seed(seed, games + number) for number in range(swaps * len(SWAP_ROUNDS))], np.int64
    ).reshape(swaps, len(SWAP_ROUNDS))
    swapped = swap_tiles(agent, board, rounds[:swaps], later, executor)
    clusters = np.arange(games)
    return Study(board.name, (board.hash,), agent.spec, played, rounds, clusters, swapped)


def study_boards(
    agent: Agent,
    boards: Sequence[Board],
    games: int,
    swaps: int,
    seed: int,
    executor: Executor | None = None,
) -> Study:
    """Play a study of several boards; each board is a cluster.

    Args: as for `study_board`, with the numbers of games and swaps on each board.
    """

    def task(number: int, board: Board) -> CallTask:
        text = f"{games} games of {repr_short(agent.spec)} on board {repr_short(board.name)}"
        arguments = board, games, swaps, int(arena_seed(seed, number))
        return CallTask(_study_task, (agent_spec_of(agent),), arguments, text)

    tasks = [task(number, board) for number, board in enumerate(boards)]
    found = dict((executor or SerialExecutor()).map(tasks, (agent,)))
    studies = [found[number] for number in range(len(boards))]
    longest = max(study.rounds.shape[1] for study in studies)
    rounds = np.zeros((len(boards) * games, longest), STATE)
    swapped = [study.swaps.copy() for study in studies]
    for number, study in enumerate(studies):
        rounds[number * games : (number + 1) * games, : study.rounds.shape[1]] = study.rounds
        swapped[number]["cluster"] = number
    return Study(
        FAMILY,
        tuple(board.hash for board in boards),
        agent.spec,
        np.concatenate([study.games for study in studies]),
        rounds,
        np.repeat(np.arange(len(boards)), games),
        np.concatenate(swapped),
    )


def _study_task(agent: Agent, *options: Any) -> Iterator[Study]:
    yield study_board(agent, *options)


def round_starts(
    board: Board, games: npt.NDArray[np.void], actions: npt.NDArray[np.int8]
) -> States:
    """Return the position at the first decision of each round, `STATE` (n, longest).

    Args:
        board: of all games.
        games: `GAME` (n,), finished.
        actions: int8 (n, longest), their decisions.
    """
    rounds = np.zeros((len(games), int(games["rounds"].max())), STATE)
    for some, played in replay_chunks(board, games["seed"], actions):
        states = played.states
        begins = np.flatnonzero((played.legal != 0) & (states["dice_left"] == _ALL_DICE))
        number = some[played.games[begins]]
        at = number * rounds.shape[1] + states["round"][begins] - 1
        put_rows(rounds.reshape(-1), at, copy_rows(states, begins))
    return rounds


def swap_tiles(
    agent: Agent, board: Board, rounds: States, seeds: Seeds, executor: Executor | None = None
) -> npt.NDArray[np.void]:
    """Play positions on with each tile owned by either player, with the same luck.

    Tiles without an owner are given to a player too. By symmetry, owning such a tile rather than
    leaving it on the board is worth half of the effect.

    Args:
        agent: plays both seats.
        board: of all games.
        rounds: from `round_starts`; the positions of `SWAP_ROUNDS` are used.
        seeds: int64 (n, len(SWAP_ROUNDS)), of the luck.
        executor: as for `study_board`.

    Returns:
        `SWAP` (m,), clusters are games.
    """
    parts = []
    for i, round_ in enumerate(SWAP_ROUNDS):
        if rounds.shape[1] < round_:
            continue
        for tile in range(len(TILES)):
            usable = np.flatnonzero(_can_swap(rounds[:, round_ - 1], round_, tile))
            part = np.zeros(len(usable), SWAP)
            part["cluster"], part["tile"], part["round"] = usable, tile, round_
            parts.append((part, rounds[usable, round_ - 1], seeds[usable, i]))
    swaps = np.concatenate([np.zeros(0, SWAP), *(part for part, _, _ in parts)])
    if len(swaps):
        positions = np.concatenate([states for _, states, _ in parts])
        luck = np.concatenate([part_seeds for _, _, part_seeds in parts])
        owned_by = [_with_owner(positions, swaps["tile"], seat) for seat in (0, 1)]
        first, second = (
            rollout_positions(agent, board, states, luck, executor=executor) for states in owned_by
        )
        swaps["result"], swaps["points"] = first[0] - second[0], first[1] - second[1]
    return swaps


def _can_swap(states: States, round_: int, tile: int) -> npt.NDArray[np.bool_]:
    """Return the positions in which either player may own a tile, as a mask: bool (n,)."""
    can: npt.NDArray[np.bool_] = states["round"] == round_
    character, side = _wave_of(tile)
    if character is None:
        return can
    if (CHARACTERS[character], side) == ("merchant", ROBUST):
        # The other player would have a sixth ware without the tile (R7.4).
        can = can & (states["wares"].sum(axis=2) <= CAPACITY).all(axis=1)
    in_play: npt.NDArray[np.bool_] = states["wave_side"][:, character] == side
    return can & in_play


def _with_owner(states: States, tiles: npt.NDArray[np.int8], seat: int) -> States:
    """Return positions in which a seat owns the tile of each."""
    changed = states.copy()
    for tile in range(len(TILES)):
        rows = np.flatnonzero(tiles == tile)
        character, _ = _wave_of(tile)
        if character is None:
            changed["hot_spring"][rows] = seat
        else:
            changed["wave_owner"][rows, character] = seat
    return changed


def _wave_of(tile: int) -> tuple[int | None, int]:
    """Return the character and the side of a wave tile; None for the hot spring token."""
    return (tile // 2, tile % 2) if tile < len(TILES) - 1 else (None, 0)


# Statistics


def summarize(study: Study) -> JsonDict:
    """Return the statistics of a study as plain JSON types; estimates as by `clustered_mean`."""
    games, clusters = study.games, study.clusters
    points = np.concatenate([games["points"], games["points"].sum(axis=2, keepdims=True)], axis=2)
    lead = (points[:, 0] - points[:, 1]).astype(float)  # of player_0, (n, 4)
    decided: npt.NDArray[np.bool_] = games["result"] != 0.5
    winner_lead = (lead * np.sign(games["result"] - 0.5)[:, None])[decided]
    split = games["points"].sum(axis=1) / np.maximum(points[:, :, 3].sum(axis=1), 1)[:, None]
    last_lead = (games["rounds"] + 1) % 2  # player_0 leads odd rounds (R2.2)
    of_leader = np.where(last_lead == 0, games["result"], 1 - games["result"])
    triggered = games["triggers"].max(axis=1)  # by either player
    return {
        "board": study.name,
        "boards": len(study.hashes),
        "hashes": list(study.hashes),
        "agent": study.agent,
        "games": len(games),
        "triggers": {t: clustered_share(triggered[:, i], clusters) for i, t in enumerate(TRIGGERS)},
        "capped": clustered_share(games["end"] == END_CAP, clusters),
        "shared": clustered_share(~decided & (games["end"] != END_CAP), clusters),
        "player_0": {
            "score": clustered_share(games["result"], clusters),
            "lead": clustered_mean(lead[:, 3], clusters),
        },
        "last_round": {
            "led_by_player_0": clustered_share(last_lead == 0, clusters),
            "leader_score": clustered_share(of_leader, clusters),
        },
        "points": _by_name(SCORE_KEYS, points.mean(axis=1), clusters),
        "split": _by_name(SCORE_KEYS[:3], split, clusters),
        "winner_lead": _by_name(SCORE_KEYS, winner_lead, clusters[decided]),
        "rounds": clustered_mean(games["rounds"], clusters)
        | {"counts": np.bincount(games["rounds"]).tolist()},
        "decisions": clustered_mean(games["decisions"], clusters),
        "tiles": {name: _tile(study, tile) for tile, name in enumerate(TILES)},
    }


def _by_name(
    names: Sequence[str], columns: npt.NDArray[Any], clusters: npt.NDArray[np.int64]
) -> JsonDict:
    return {name: clustered_mean(columns[:, i], clusters) for i, name in enumerate(names)}


def _tile(study: Study, tile: int) -> JsonDict:
    """Return the effect of a tile, and the share of rounds in which it has an owner."""
    swaps = study.swaps[study.swaps["tile"] == tile]
    held = _rounds_held(study.rounds, tile)  # (n, 2)
    in_play = _in_play(study.rounds, tile)
    longer = in_play & (held[:, 0] != held[:, 1])
    of_longer = np.where(held[:, 0] > held[:, 1], study.games["result"], 1 - study.games["result"])
    share_held = held.sum(axis=1) / study.games["rounds"]
    return {
        "held": clustered_mean(share_held[in_play], study.clusters[in_play]),
        "longer": clustered_share(of_longer[longer], study.clusters[longer]),
        "swap": _swap_means(swaps),
        "swap_by_round": {
            str(round_): _swap_means(swaps[swaps["round"] == round_]) for round_ in SWAP_ROUNDS
        },
    }


def _swap_means(swaps: npt.NDArray[np.void]) -> JsonDict:
    return {key: clustered_mean(swaps[key], swaps["cluster"]) for key in ("result", "points")}


def _rounds_held(rounds: States, tile: int) -> npt.NDArray[np.int64]:
    """Return the number of rounds that each seat began with a tile: int64 (n, 2)."""
    character, _ = _wave_of(tile)
    owner = rounds["hot_spring"] if character is None else rounds["wave_owner"][..., character]
    begun = rounds["round"] > 0
    return np.stack([(begun & (owner == seat)).sum(axis=1) for seat in (0, 1)], axis=1)


def _in_play(rounds: States, tile: int) -> npt.NDArray[np.bool_]:
    """Return the games with a tile, as a mask: bool (n,)."""
    character, side = _wave_of(tile)
    if character is None:
        return np.ones(len(rounds), np.bool_)
    return np.asarray(rounds["wave_side"][:, 0, character] == side)


# The command


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    options = _parser().parse_args(arguments)
    try:
        for name, most in (("games", MAX_GAMES), ("family", MOST_BOARDS)):
            got = getattr(options, name)
            if not 0 <= got <= most:
                raise ValueError(f"--{name}: expected a number from 0 to {most:,}, got {got}")
        check_outputs(options.json, read=options.boards)
        check_executor(options.executor)
        with open_executor(options.executor) as executor:
            _analyse(options, executor)
    except (ValueError, OSError, AgentFailed) as error:
        print(f"analysis: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("analysis: interrupted", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tokaido_env.study.analysis",
        description="Play an agent against itself on several boards and report statistics of the "
        "game. Each board after the first has half as many games.",
    )
    add = parser.add_argument
    add("--agent", default="mcts:sims=400", help="plays on all boards (default: mcts:sims=400)")
    add(
        "--also",
        nargs="*",
        default=[],
        metavar="AGENT",
        help="more agents, which play on the first board without swaps (default: none)",
    )
    add("--games", type=int, default=1000, help="games on the first board (default: 1000)")
    add("--swaps", type=int, default=400, help="games with swapped tiles (default: 400)")
    add("--boards", nargs="+", default=_boards(), help="names or files (default: all built-in)")
    add("--family", type=int, default=50, help="number of boards of family:train (default: 50)")
    add("--seed", type=parse_seed, default=0, help="random seed, an integer from 0 (default: 0)")
    add("--json", type=Path, metavar="FILE", help="write the statistics to this file")
    add("--executor", default="serial", help=f"runs games: {EXECUTORS} (default: serial)")
    return parser


def _boards() -> list[str]:
    return ["shikoku", *(name for name in built_in_boards() if name != "shikoku")]


def _analyse(options: argparse.Namespace, executor: Executor) -> None:
    """Play all studies; write the file after each."""
    agent, *others = (make(spec) for spec in (options.agent, *options.also))
    first, *boards = (Board.load(board) for board in options.boards)
    games, swaps, seed = options.games, options.swaps, options.seed
    half, half_swaps = -(-games // 2), swaps // 2
    results: JsonDict = {
        "version": VERSION,
        "seed": seed,
        "swap_rounds": SWAP_ROUNDS,
        "studies": [],
    }
    _report(results, study_board(agent, first, games, swaps, seed, executor), options.json)
    for other in others:
        _report(results, study_board(other, first, half, 0, seed, executor), options.json)
    for board in boards:
        _report(results, study_board(agent, board, half, half_swaps, seed, executor), options.json)
    if options.family:
        drawn = [Board.generate(number) for number in SPLITS["train"][: options.family]]
        each = (-(-half // len(drawn)), -(-half_swaps // len(drawn)))
        _report(results, study_boards(agent, drawn, *each, seed, executor), options.json)


def _report(results: JsonDict, study: Study, path: Path | None) -> None:
    results["studies"].append(summarize(study))
    if path is not None:
        write_text(path, json.dumps(results, indent=1) + "\n")
    print(_summary(results["studies"][-1]), flush=True)


def _summary(row: JsonDict) -> str:
    """Return the main statistics of a study in one line."""
    triggers = ", ".join(f"{name} {each['mean']:.0%}" for name, each in row["triggers"].items())
    score, points = row["player_0"]["score"], row["points"]["total"]["mean"]
    title = f"{escape_text(row['board'])}, {escape_text(row['agent'])}"
    return (
        f"{title}, {row['games']} games: {row['rounds']['mean']:.1f} rounds, {points:.1f} points; "
        f"ends {triggers}; player_0 scores {score['mean']:.3f} "
        f"({score['ci95'][0]:.3f} to {score['ci95'][1]:.3f})"
    )


if __name__ == "__main__":
    # Other nodes import the tasks' functions from this module, not from `__main__`.
    from tokaido_env.study import analysis

    sys.exit(analysis.main())
