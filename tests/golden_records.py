"""Make the golden files again after a rule or board has changed: python tests/golden_records.py.

    python tests/golden_records.py --out FOLDER     write to another folder than tests/golden

Without such a change the bytes of the files do not change. A game keeps its seed, its start and
each decision that is still legal; random decisions complete it. `test_record.py` lists the events
that must occur in the games.
"""

import argparse
import json
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
from networks import decisions, random_policy

from tokaido_env import ACTIONS, Game, Record
from tokaido_env.agents import make
from tokaido_env.agents.search import PolicySearchAgent
from tokaido_env.agents.search_config import network_search_config

FOLDER = Path(__file__).resolve().parent / "golden"
BOARDS = ("shikoku", "family:7")
SPECS = ("mcts:sims=100", "mcts:sims=400")

Data = dict[str, Any]


def replayed(data: Data) -> Record:
    """Return a record of a game, replayed by the present rules and completed."""
    seed, rng = data["seed"], random.Random(data["seed"])
    game = Game(seed=seed)
    if data["start"] is not None:
        game = Game.from_dict(data["start"], seed=seed, chance="sampled")
    for event in data["events"]:
        if event in ACTIONS and not game.is_over and event in game.legal_labels():
            game.play(event)
    while not game.is_over:
        game.play(rng.choice(game.legal_actions()))
    return game.record(data["players"])


def search_moves(spec: str, board: str) -> list[int]:
    """Return the moves of an agent in the positions of `search.json`."""
    boards, states, legal = decisions((board,), games=16, most=8)
    keys = np.random.default_rng(14).integers(2**64, size=len(states), dtype=np.uint64)
    if spec == "random_policy":
        config = network_search_config(100, temperature=1, c_puct=0.6, endings="network")
        agent: Any = PolicySearchAgent.from_policy(random_policy(), "p", config)
    else:
        agent = make(spec)
    actions: list[int] = agent.act(boards, states, legal, keys).tolist()
    return actions


def records(folder: Path) -> dict[str, str]:
    """Return the new text of each golden file, by name; `folder` holds the old files."""

    def read(name: str) -> str:
        return (folder / name).read_text(encoding="utf-8")

    games = [replayed(json.loads(line)) for line in read("games.jsonl").splitlines()]
    search = {f"{s} {b}": search_moves(s, b) for b in BOARDS for s in (*SPECS, "random_policy")}
    rows = ",\n".join(f" {json.dumps(key)}: {actions}" for key, actions in search.items())
    return {
        "games.jsonl": "".join(record.to_json() + "\n" for record in games),
        "search.json": f"{{\n{rows}\n}}\n",
    }


def main() -> int:
    """Write the files that change and print their names; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--out",
        type=Path,
        default=FOLDER,
        metavar="FOLDER",
        help="folder to write to (default: tests/golden)",
    )
    out: Path = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    for name, text in records(FOLDER).items():
        path = out / name
        same = path.is_file() and path.read_text(encoding="utf-8") == text
        if not same:
            path.write_text(text, encoding="utf-8")
        print(f"{name}: {'unchanged' if same else 'written'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
