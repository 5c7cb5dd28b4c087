"""The local page: a table that browsers of this machine look at, and nobody else.

The server listens on the loopback interface only. What tells or changes anything needs the token of
the address that the command prints (it stands behind the #, which browsers keep to themselves); a
request by another name of this machine, or from a page of another origin, is refused, and pages may
load nothing but what stands here.
"""

from __future__ import annotations

import secrets
import socket
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import FrameType
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tokaido_env.core.arguments import escape_text
from tokaido_env.files import parse_json
from tokaido_env.web.live_game import LiveGame
from tokaido_env.web.static_files import module_text, sheet_text, static_text

LOOPBACK = "127.0.0.1"
MOST_BODY = 1 << 20  # bytes of a request

_WAIT = 20.0  # seconds that a look lasts at most
_STATIC: dict[str, Callable[[], Response]] = {  # files of ours, which tell nothing of the game
    "/": lambda: Response(static_text("play.html"), media_type="text/html"),
    "/play.css": lambda: Response(f"body {{ margin: 0; }}\n{sheet_text()}", media_type="text/css"),
    "/play.js": lambda: Response(static_text("play.js"), media_type="text/javascript"),
    "/table.js": lambda: Response(module_text(), media_type="text/javascript"),
}
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def listen(port: int = 0) -> socket.socket:
    """Return a socket that listens on the loopback interface.

    Args:
        port: 0 for one that is free.

    Raises:
        OSError: saying what helps, if the port is taken.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
    except (OSError, OverflowError) as error:
        listener.close()
        why = getattr(error, "strerror", None) or error
        raise OSError(f"port {port}: {why}: choose another with --port, or none") from None
    listener.listen()
    return listener


def new_token() -> str:
    """Return a token for one run of the server."""
    return secrets.token_urlsafe(24)


def address(port: int, token: str) -> str:
    """Return the address of the page."""
    return f"http://{LOOPBACK}:{port}/#{token}"


def serve(table: LiveGame, listener: socket.socket, token: str) -> None:
    """Serve a table until Ctrl-C, and close it."""
    app = app_of(table, listener.getsockname()[1], token)
    server = _Server(uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=2))
    server.table = table
    with suppress(KeyboardInterrupt):
        server.run(sockets=[listener])
    table.close()


class _Server(uvicorn.Server):
    """A server that answers whoever still looks before it ends."""

    table: LiveGame

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Close the table, in a thread of its own: a signal comes at any time."""
        threading.Thread(target=self.table.close, daemon=True).start()
        super().handle_exit(sig, frame)


def app_of(table: LiveGame, port: int, token: str) -> Starlette:
    """Return the application of a table.

    Args:
        table: that is played at.
        port: that it is served on, which requests must name.
        token: that they must bring.
    """

    async def guarded(request: Request, then: RequestResponseEndpoint) -> Response:
        """Refuse foreign requests, and requests about the game without the token."""
        given = request.headers.get("x-token", "").encode()
        if _is_foreign(request, port):
            response = _refused(403, "expected the address that the command printed")
        elif request.url.path in _STATIC or secrets.compare_digest(given, token.encode()):
            response = await then(request)
        else:
            response = _refused(403, "expected the token of the address that the command printed")
        response.headers.update(_HEADERS)
        return response

    async def look(request: Request) -> Response:
        seen = request.query_params.get("seen", "0")
        number = int(seen) if seen.isdecimal() and len(seen) < 16 else 0
        return JSONResponse(await run_in_threadpool(table.look, number, _WAIT))

    def posted(answer: Callable[[str, dict[str, Any]], Any]) -> Callable[..., Awaitable[Response]]:
        async def handle(request: Request) -> Response:
            arguments = parse_json((await _body(request)).decode() or "{}")
            if not isinstance(arguments, dict):
                raise ValueError("expected an object of arguments")
            name = request.path_params["name"]
            return JSONResponse(await run_in_threadpool(answer, name, arguments))

        return handle

    return Starlette(
        routes=[
            *(Route(path, response(), methods=["GET"]) for path, response in _STATIC.items()),
            Route("/look", look),
            Route("/do/{name}", posted(table.do), methods=["POST"]),
            Route("/ask/{name}", posted(table.ask), methods=["POST"]),
        ],
        middleware=[Middleware(BaseHTTPMiddleware, dispatch=guarded)],
        exception_handlers=dict.fromkeys((HTTPException, ValueError, RecursionError), _failed),
    )


def _is_foreign(request: Request, port: int) -> bool:
    """Return whether a request has another host's name, or comes from another origin's page."""
    hosts = {f"{name}:{port}" for name in (LOOPBACK, "localhost")}
    host, origin = request.headers.get("host", ""), request.headers.get("origin")
    return host not in hosts or origin not in (None, f"http://{host}")


def _failed(request: Request, error: Exception) -> Response:
    """Return the answer to an error: one line, and the key at fault if it is known."""
    if isinstance(error, HTTPException):
        return _refused(error.status_code, error.detail)
    return _refused(400, str(error), getattr(error, "key", ""))


def _refused(status: int, why: str, key: str = "") -> Response:
    at = {"key": escape_text(key, 100)} if key else {}
    return JSONResponse({"error": escape_text(why, 400), **at}, status)


async def _body(request: Request) -> bytes:
    """Read a body, but never more than is allowed."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MOST_BODY:
            raise HTTPException(413, f"expected at most {MOST_BODY} bytes")
    return body
