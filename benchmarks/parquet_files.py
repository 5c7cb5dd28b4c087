"""The regret set and games of the ladders as Parquet, for other libraries: the folder data.

    python benchmarks/parquet_files.py                 two minutes on two cores
    python benchmarks/parquet_files.py --only regret   one of them
    python benchmarks/parquet_files.py --games 4000    all games of the ladders: over an hour

A ladder keeps the seeds of its matches, from which its games are played again. By default the file
has the first games of each match; with all of them they are checked against the ladder.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tokaido_env.agents import make
from tokaido_env.arena.ladder import FAMILY_LADDER, LADDER, Ladder
from tokaido_env.arena.match import Match
from tokaido_env.arena.result import Score
from tokaido_env.arena.tournament import play_match
from tokaido_env.cli.tabular_io import TEXTS, WORD, Columns, Part, check_format, table_file
from tokaido_env.core.actions import LABELS
from tokaido_env.core.state import ENDS
from tokaido_env.position import to_dict
from tokaido_env.study.regret import block_means
from tokaido_env.study.regret_set import BLOCK, NOT_ROLLED, RegretSet

FOLDER = Path(__file__).resolve().parents[1] / "data"
REGRET, GAMES = FOLDER / "regret-actions.parquet", FOLDER / "ladder-games.parquet"
LADDERS = (LADDER, FAMILY_LADDER)
FEW = 50  # games of each match

REGRET_COLUMNS: Columns = {
    "position": "int32",
    "board": WORD,
    "state": WORD,
    "phase": WORD,
    "rounds": WORD,
    "weight": "float64",
    "action": WORD,
    "value_champion": "float64",
    "value_heuristic": "float64",
    "rollouts": "int32",
}
GAME_COLUMNS: Columns = {
    "ladder": WORD,
    "a": WORD,
    "b": WORD,
    "board": WORD,
    "seed": "int64",
    "seat_of_a": "int8",
    "result": "float64",
    "points_a": "int16",
    "points_b": "int16",
    "end": WORD,
    "rounds": "int16",
    "actions": TEXTS,
}


def regret_rows(regret_set: RegretSet) -> Part:
    """Return a row for each legal action of each position."""
    positions, card = regret_set.action_positions, regret_set.card
    strata = [card["strata"][k] for k in regret_set.stratum[positions].tolist()]
    counts = np.bincount(regret_set.stratum, minlength=len(card["strata"]))
    boards = [regret_set.boards[k] for k in regret_set.board.tolist()]
    states = [json.dumps(to_dict(board, regret_set.states[i])) for i, board in enumerate(boards)]
    rolled = (regret_set.sums[:, 0] != NOT_ROLLED).sum(axis=1)
    values = {
        f"value_{name}": np.nanmean(block_means(regret_set, i), axis=1)
        for i, name in enumerate(card["policies"])
    }
    return {
        "position": positions,
        "board": [boards[i].name for i in positions.tolist()],
        "state": [states[i] for i in positions.tolist()],
        "phase": [stratum["phase"] for stratum in strata],
        "rounds": [stratum["rounds"] for stratum in strata],
        "weight": (regret_set.shares / np.maximum(counts, 1))[regret_set.stratum[positions]],
        "action": [LABELS[action] for action in regret_set.actions.tolist()],
        **values,
        "rollouts": len(card["policies"]) * BLOCK * rolled,
    }


def game_rows(ladder: Ladder, match: Score, games: int) -> Part:
    """Return a row for each of the first games of a match, played again.

    Raises:
        ValueError: if the whole match has other results than on the ladder.
    """
    count, seed = min(games, match.n), match.seed or 0
    played = play_match(make(match.a), make(match.b), count, seed, ladder.pool)
    if count == match.n and played.pentanomial.tolist() != list(match.pairs):
        found = played.pentanomial.tolist()
        raise ValueError(f"{match.a} – {match.b}: expected {list(match.pairs)}, got {found}")
    return rows_of(ladder, played)


def rows_of(ladder: Ladder, played: Match) -> Part:
    """Return a row for each game of a match."""
    rows = played.games.reshape(-1)
    actions = played.actions.reshape(len(rows), -1).tolist()
    points = rows["points"].sum(axis=2)
    return {
        "ladder": [ladder.result.hash] * len(rows),
        "a": [played.a] * len(rows),
        "b": [played.b] * len(rows),
        "board": ladder.pool.names[rows["board"]].tolist(),
        "seed": rows["seed"],
        "seat_of_a": rows["seat_of_a"],
        "result": rows["result"],
        "points_a": points[:, 0],
        "points_b": points[:, 1],
        "end": [str(ENDS[end]) for end in rows["end"].tolist()],
        "rounds": rows["rounds"],
        "actions": [[LABELS[one] for one in game if one >= 0] for game in actions],
    }


def write_regret() -> None:
    """Write the regret set."""
    regret_set = RegretSet.load()
    about: dict[str, Any] = {"name": regret_set.card["name"], "hash": regret_set.hash}
    with table_file(REGRET, REGRET_COLUMNS, about) as add:
        add(regret_rows(regret_set))


def write_games(games: int) -> None:
    """Write the games of the ladders, at most so many of each match."""
    ladders = [Ladder.load(path) for path in LADDERS]
    with table_file(GAMES, GAME_COLUMNS, {"ladders": [one.result.hash for one in ladders]}) as add:
        for ladder in ladders:
            for match in ladder.result.scores:
                add(game_rows(ladder, match, games))


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files; return 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    only = "one of the files (default: both)"
    parser.add_argument("--only", choices=("regret", "games"), help=only)
    games = f"maximum number of games of each match, even (default: {FEW})"
    parser.add_argument("--games", type=int, default=FEW, help=games)
    options = parser.parse_args(arguments)
    check_format(REGRET)
    FOLDER.mkdir(exist_ok=True)
    if options.only != "games":
        write_regret()
    if options.only != "regret":
        write_games(options.games)
    return 0


if __name__ == "__main__":
    sys.exit(main())
