"""A program for `exec:` agents that answers right as player_0 and fails as player_1.

Usage: python -S line_bot.py HOW [PATH]
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path


def say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def fail(how: str, answer: str) -> None:
    print(f"first\nabout to: {how}", file=sys.stderr, flush=True)
    if how == "exits":
        sys.exit(3)
    if how == "hangs":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)
    if how == "forks":
        command = [sys.executable, "-S", "-c", "import time; time.sleep(600)"]
        child = subprocess.Popen(command)
        Path(sys.argv[2]).write_text(f"{os.getpid()} {child.pid}")
        time.sleep(600)
    if how == "closes":
        os.close(1)
        time.sleep(600)
    while how == "floods":
        say("x" * 65_536)
    while how == "floods stderr":
        os.write(2, b"noise\n" * 1_000)
    if how == "twice, later":
        say(answer)
        time.sleep(0.2)
    says = {
        "twice, later": answer,
        "garbage": "hello\n",
        "bytes": "\udcff\udcfe\n",
        "illegal": '{"action": "discard:fan"}\n',
        "blank": "\n" + answer,
        "twice": answer + answer,
        "no line end": answer.strip(),
    }
    sys.stdout.reconfigure(errors="surrogateescape")  # type: ignore[union-attr]
    say(says[how])


def main() -> None:
    how, boards = sys.argv[1], set()
    for line in sys.stdin:
        message = json.loads(line)
        if how == "logs":
            with Path(sys.argv[2]).open("a") as file:
                file.write(line)
        if message["type"] == "hello":
            if how == "mute":
                time.sleep(600)
            protocol = 2 if how == "newer" else 1
            say(json.dumps({"protocol": protocol, "name": how}) + "\n")
        elif message["type"] == "board":
            boards.add(message["board_hash"])
            assert message["board"]["ring"]
        elif message["type"] == "decide":
            assert message["board_hash"] in boards
            legal = message["legal"]
            answer = json.dumps({"action": legal[message["seed"] % len(legal)], "x": 1}) + "\n"
            if message["position"]["player"] == 1 and how not in ("plays", "logs"):
                fail(how, answer)
            else:
                say(answer)


if __name__ == "__main__":
    main()
