"""How long the server takes for a click: python benchmarks/play_handler.py.

A game is played at random up to an event; then choices are clicked and taken back in turn. Timed,
in milliseconds, is the server's handler of a click, from the request to the bytes of its answer,
without a network and without an agent.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import time
from typing import Any

from starlette.applications import Starlette

from tokaido_env.web.server import LOOPBACK, app_of
from tokaido_env.web.session import HUMAN, Session
from tokaido_env.web.table import Table

_TOKEN = "token"


def main() -> None:
    """Play and print the times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--event", type=int, default=200)
    parser.add_argument("--clicks", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    table = Table(Session((HUMAN, HUMAN), seed=options.seed))
    app, rng = app_of(table, 80, _TOKEN), random.Random(options.seed)
    told = table.look()
    while len(told["log"]) < options.event and told["choices"]:
        told = table.do("play", {"move": rng.choice(told["choices"])["label"]})
    times = asyncio.run(clicked(app, table, rng, options.clicks))
    low, median, high = statistics.quantiles(times)
    print(
        f"{len(times)} clicks at event {len(told['log'])}: median {median:.2f} ms, "
        f"quartiles {low:.2f} and {high:.2f}"
    )
    table.close()


async def clicked(app: Starlette, table: Table, rng: random.Random, clicks: int) -> list[float]:
    """Return how long the handler of each click took; each is taken back."""
    times = []
    for _ in range(clicks):
        choice = rng.choice(table.look()["choices"])
        body = json.dumps({"move": choice["label"]}).encode()
        began = time.perf_counter()
        await answered(app, "/do/play", body)
        times.append(1000 * (time.perf_counter() - began))
        table.do("undo", {})
    return times


async def answered(app: Starlette, path: str, body: bytes) -> bytes:
    """Return the body of the answer to a request."""
    parts: list[bytes] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    async def send(message: Any) -> None:
        parts.append(message.get("body", b""))

    headers = [(b"host", f"{LOOPBACK}:80".encode()), (b"x-token", _TOKEN.encode())]
    scope = {"type": "http", "method": "POST", "path": path, "headers": headers}
    await app({**scope, "query_string": b"", "scheme": "http"}, receive, send)
    return b"".join(parts)


if __name__ == "__main__":
    main()
