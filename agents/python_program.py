"""Run a Python agent as a program: in a process of its own, with limits, and forfeits in a match.

tokaido evaluate "exec:python agents/python_program.py agents/temple_bot.py:TempleBot 2048" random

The arguments are those of `python:`, and the most memory in MiB (default: no limit; Linux only).
"""

import json
import sys
from typing import Any

from tokaido_env import ACTIONS, Board, Game
from tokaido_env.agents import make


def limit_memory(mebibytes: int) -> None:
    """Let an allocation beyond this limit fail, in this process and in its children."""
    import resource  # not on Windows

    resource.setrlimit(resource.RLIMIT_DATA, (mebibytes << 20, mebibytes << 20))


def main() -> None:
    """Answer each line of standard input; an error of the agent ends the program."""
    answers, sys.stdout = sys.stdout, sys.stderr  # the agent's prints must not mix with answers
    agent = make(f"python:{sys.argv[1]}")
    if len(sys.argv) > 2:
        limit_memory(int(sys.argv[2]))
    boards: dict[str, Board] = {}
    for line in sys.stdin:
        message: dict[str, Any] = json.loads(line)
        if message["type"] == "hello":
            answers.write('{"protocol": 1}\n')
        elif message["type"] == "board":
            boards[message["board_hash"]] = Board.from_dict(message["board"])
        elif message["type"] == "decide":
            board = boards[message["board_hash"]]
            game = Game.from_dict(message["position"], board=board, seed=message["seed"])
            action = agent.choose(game, message["seed"])
            answers.write(json.dumps({"action": ACTIONS[action]}) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
