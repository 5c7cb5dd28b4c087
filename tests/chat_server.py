"""A stand-in for a server of language models, which answers as a test scripts it."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, NamedTuple


class Reply(NamedTuple):
    """What the server sends: a body, a status and headers."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = {}


class Asked(NamedTuple):
    """A request: its path, the bearer token and the body."""

    path: str
    key: str | None
    body: dict[str, Any]


def completion(text: str | None, **usage: int) -> Reply:
    """The reply with an answer of the model."""
    message = {"role": "assistant", "content": text, "reasoning_content": "hm"}
    data = {"id": "1", "choices": [{"index": 0, "message": message}]}
    return Reply(json.dumps(data | ({"usage": usage} if usage else {})).encode())


class ChatServer(ThreadingHTTPServer):
    """Replies to each prompt by a function."""

    daemon_threads = True

    def __init__(self, reply: Callable[[str], Reply]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.reply, self.asked = reply, list[Asked]()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class _Handler(BaseHTTPRequestHandler):
    server: ChatServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(Asked(self.path, self.headers["Authorization"], body))
        reply = self.server.reply(body["messages"][-1]["content"])
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(reply.body)

    def log_message(self, *arguments: object) -> None:
        """Print nothing."""


@contextmanager
def serving(reply: Callable[[str], Reply]) -> Iterator[ChatServer]:
    """Serve on a free port of this machine."""
    with ChatServer(reply) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()
