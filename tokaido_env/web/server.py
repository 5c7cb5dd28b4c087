"""HTTP server of the local play page.

The server listens on the loopback interface only. Requests about the game need the token of the
address that the command prints; browsers do not send it to others, as it follows the #. The server
refuses requests for another host name and from pages of another origin. Pages load only its files.
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

from tokaido_env.core.arguments import escape_text, repr_short
from tokaido_env.files import parse_json
from tokaido_env.web.live_game import Arguments, LiveGame
from tokaido_env.web.static_files import module_text, page_style, static_text

LOOPBACK = "127.0.0.1"

_TIMEOUT = 20.0  # seconds for which a request waits for a new state
_STATIC: dict[str, Callable[[], Response]] = {  # need no token
    "/": lambda: Response(static_text("play.html"), media_type="text/html"),
    "/play.css": lambda: Response(page_style(), media_type="text/css"),
    "/play.js": lambda: Response(static_text("play.js"), media_type="text/javascript"),
    "/live_game.js": lambda: Response(module_text(), media_type="text/javascript"),
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
        port: 0 for a free one.

    Raises:
        OSError: if the port cannot be used.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
    except (OSError, OverflowError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or error
        message = f"port {port}: {reason}: choose another with --port, or omit --port"
        raise OSError(message) from None
    listener.listen()
    return listener


def new_token() -> str:
    """Return a random token, 32 URL-safe characters, for one run of the server."""
    return secrets.token_urlsafe(24)


def page_address(port: int, token: str) -> str:
    """Return the URL of the page on this machine, `http://127.0.0.1:PORT/#TOKEN`."""
    return f"http://{LOOPBACK}:{port}/#{token}"


def serve(live_game: LiveGame, listener: socket.socket, token: str) -> None:
    """Serve a game on a listening socket until Ctrl-C, then close it; requests need the token."""
    app = create_app(live_game, listener.getsockname()[1], token)
    server = _Server(uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=2))
    server.live_game = live_game
    with suppress(KeyboardInterrupt):
        server.run(sockets=[listener])
    live_game.close()


class _Server(uvicorn.Server):
    """A server that closes its game first, so that waiting requests return."""

    live_game: LiveGame

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Close the game in another thread, as a signal can arrive while this one has the lock."""
        threading.Thread(target=self.live_game.close, daemon=True).start()
        super().handle_exit(sig, frame)


def create_app(live_game: LiveGame, port: int, token: str) -> Starlette:
    """Return the web application of a game.

    Args:
        live_game: the game.
        port: of the server; requests must name it in their host.
        token: requests must send it in X-Token.
    """
    hosts = [f"{name}:{port}" for name in (LOOPBACK, "localhost")]

    async def check_request(request: Request, then: RequestResponseEndpoint) -> Response:
        """Refuse foreign requests, and requests about the game without the token."""
        given = request.headers.get("x-token", "").encode()
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        if host not in hosts or origin not in (None, f"http://{host}"):
            got = repr_short(host if origin is None else origin)
            error = f"host, origin: expected {' or '.join(hosts)}, got {got}"
            remedy = f"through ssh, use its port: ssh -L {port}:{LOOPBACK}:{port} HOST"
            response = _refusal(403, f"{error}: open the printed address; {remedy}")
        elif request.url.path in _STATIC or secrets.compare_digest(given, token.encode()):
            response = await then(request)
        else:
            response = _refusal(403, "X-Token: expected the token of the printed address")
        response.headers.update(_HEADERS)
        return response

    async def state(request: Request) -> Response:
        known = int(request.query_params.get("version", "0"))
        return JSONResponse(await run_in_threadpool(live_game.state, known, _TIMEOUT))

    def post_handler(answer: Callable[[str, Arguments], Any]) -> Callable[..., Awaitable[Response]]:
        async def handle(request: Request) -> Response:
            arguments = parse_json((await request.body()).decode() or "{}")
            if not isinstance(arguments, dict):
                raise ValueError("body: expected an object of arguments")
            name = request.path_params["name"]
            return JSONResponse(await run_in_threadpool(answer, name, arguments))

        return handle

    return Starlette(
        routes=[
            *(Route(path, response(), methods=["GET"]) for path, response in _STATIC.items()),
            Route("/state", state),
            Route("/command/{name}", post_handler(live_game.command), methods=["POST"]),
            Route("/query/{name}", post_handler(live_game.query), methods=["POST"]),
        ],
        middleware=[Middleware(BaseHTTPMiddleware, dispatch=check_request)],
        exception_handlers=dict.fromkeys((HTTPException, ValueError), _error_response),
    )


def _error_response(request: Request, error: Exception) -> Response:
    """Return an error as one line."""
    return _refusal(getattr(error, "status_code", 400), getattr(error, "detail", str(error)))


def _refusal(status: int, error: str) -> Response:
    return JSONResponse({"error": escape_text(error, 400)}, status)
