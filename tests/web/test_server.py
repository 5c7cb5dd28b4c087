"""Tests of web/server.py: routes, token, host, origin and errors."""

import json
import re
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from positions import verified

from tokaido_env import record
from tokaido_env.__main__ import main
from tokaido_env.web.game_session import HUMAN, Session
from tokaido_env.web.live_game import LiveGame

pytest.importorskip("httpx2")
from starlette.testclient import TestClient

from tokaido_env.web.server import LOOPBACK, MAX_BODY_BYTES, create_app, listen, new_token

PORT, TOKEN = 8000, "a token"
HERE = f"http://{LOOPBACK}:{PORT}"


@pytest.fixture
def client() -> Iterator[TestClient]:
    live_game = LiveGame(Session((HUMAN, HUMAN), seed=7))
    yield TestClient(create_app(live_game, PORT, TOKEN), HERE, headers={"X-Token": TOKEN})
    live_game.close()


def test_server__answers_states_commands_and_queries(client: TestClient) -> None:
    before = client.get("/state").json()
    label = before["choices"][0]["label"]
    move = {"move": label, "log_length": len(before["log"])}
    version = client.post("/command/play", content=json.dumps(move)).json()
    then = client.get(f"/state?version={before['version']}").json()
    assert then["version"] == version
    assert len(then["log"]) > len(before["log"])
    kept = verified(client.post("/query/record").json())
    assert label in kept.events
    assert client.get("/state?version=x").json() == then
    for name in (LOOPBACK, "localhost"):  # a page may send its origin
        headers = {"Host": f"{name}:{PORT}", "Origin": f"http://{name}:{PORT}"}
        assert client.get("/state", headers=headers).status_code == 200


@pytest.mark.parametrize("path", ["/", "/play.js", "/live_game.js", "/play.css", "/state"])
def test_headers__forbid_foreign_content(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    policy = dict(rule.split(" ", 1) for rule in headers["content-security-policy"].split("; "))
    assert policy["default-src"] == policy["base-uri"] == policy["frame-ancestors"] == "'none'"
    assert {policy[key] for key in ("script-src", "style-src", "connect-src")} == {"'self'"}
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"


def test_page__has_no_inline_script_and_loads_nothing_foreign(client: TestClient) -> None:
    page, script, sheet = (client.get(path).text for path in ("/", "/play.js", "/play.css"))
    script += client.get("/live_game.js").text
    assert re.findall(r"<script[^>]*>(.*?)</script>", page) == [""]
    assert not re.search(r"\son\w+=|style=", page)
    for text in (page, script, sheet):
        assert not re.search(r"https?://|//[a-z]+\.|@import|url\(", text)


def refusal(client: TestClient, path: str, headers: Any) -> str:
    """Return the error of a refused request."""
    method = "POST" if path.startswith(("/command", "/query")) else "GET"
    answer = client.request(method, path, headers=headers)
    assert answer.status_code == 403
    return str(answer.json()["error"])


@pytest.mark.parametrize("path", ["/state", "/query/record", "/command/undo", "/no/such"])
def test_token__is_required(client: TestClient, path: str) -> None:
    del client.headers["X-Token"]
    tokens = {new_token() for _ in range(100)}
    assert (len(tokens), min(map(len, tokens))) == (100, 32)
    for token in (None, "", "another", "ä", *tokens):
        headers = {} if token is None else {b"X-Token": token.encode()}
        assert (
            refusal(client, path, headers) == "X-Token: expected the token of the printed address"
        )


@pytest.mark.parametrize("path", ["/", "/play.js", "/state", "/query/record", "/command/undo"])
def test_host_and_origin__must_be_those_of_the_server(client: TestClient, path: str) -> None:
    for headers in (
        *({"Host": "evil.example"}, {"Host": f"evil.example:{PORT}"}, {"Host": LOOPBACK}),
        *({"Host": f"{LOOPBACK}:{PORT + 1}"}, {"Origin": f"http://{LOOPBACK}:{PORT + 1}"}),
        *({"Origin": "http://evil.example"}, {"Origin": f"https://{LOOPBACK}:{PORT}"}),
        {"Origin": "null"},
    ):
        error = refusal(client, path, headers)
        assert error.startswith(
            f"host, origin: expected {LOOPBACK}:{PORT} or localhost:{PORT}, got"
        )
        assert f"ssh -L {PORT}:{LOOPBACK}:{PORT} HOST" in error
        assert repr(next(iter(headers.values()))) in error
        assert TOKEN not in error
    long = refusal(client, path, {"Host": "x" * 5000})
    assert len(long) < 400
    assert long.endswith(" HOST")


@pytest.mark.parametrize(
    ("path", "body", "status", "error"),
    [
        ("/command/play", "[]", 400, "expected an object of arguments"),
        ("/command/play", '{"move": ', 400, ""),
        ("/command/play", '{"move": "merchant:X", "log_length": 12}', 400, "legal are"),
        ("/query/frame", '{"at": "1"}', 400, "frame"),
        ("/command/load_record", '{"record": "\\ud800"}', 400, ""),
        ("/command/play", "[" * 100_000, 400, ""),
        ("/command/play", "x" * (MAX_BODY_BYTES + 1), 413, "expected at most"),
    ],
)
def test_errors__are_one_line_and_change_nothing(
    client: TestClient, path: str, body: str, status: int, error: str
) -> None:
    before = client.get("/state").json()
    answer = client.post(path, content=body)
    assert answer.status_code == status
    message = answer.json()["error"]
    assert error in message
    assert len(message) < 500
    assert "\n" not in message
    assert client.get("/state").json() == before


def test_routes__serve_no_other_file_or_method(client: TestClient) -> None:
    for path in ("/../pyproject.toml", "/static/page.js", "/..%2f..%2fetc/passwd", "/play.html"):
        assert client.get(path).status_code == 404
    assert client.get("/command/undo").status_code == client.get("/query/record").status_code == 405
    assert client.post("/state").status_code == client.post("/play.js").status_code == 405


def test_listen__refuses_a_taken_port(capsys: pytest.CaptureFixture[str]) -> None:
    with listen() as taken:
        host, port = taken.getsockname()
        assert host == LOOPBACK
        assert main(["play", "--no-browser", "--port", str(port)]) == 1
    message = capsys.readouterr().err
    assert message.startswith(f"play: port {port}: ")
    assert message.endswith("choose another with --port, or omit --port\n")
    assert main(["play", "--no-browser", "--port", "70000"]) == 1
    assert capsys.readouterr().err.startswith("play: port 70000: ")


def test_command__serves_until_ctrl_c(tmp_path: Path) -> None:
    file = tmp_path / "game.jsonl"
    words = ["play", "--no-browser", "--opponent", "greedy", "--seed", "7", "--save", str(file)]
    command = subprocess.Popen(
        [sys.executable, "-m", "tokaido_env", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert command.stdout is not None
    address, _, token = command.stdout.readline().strip().partition("#")

    def ask(path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(address + path, data, {"X-Token": token})
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.loads(answer.read())

    try:
        state = ask("state")
        move = {"move": state["choices"][0]["label"], "log_length": len(state["log"])}
        assert ask("command/play", move) > state["version"]
        check_closed_to_other_hosts(int(address.rstrip("/").rpartition(":")[2]))
    finally:
        command.send_signal(2)
        _, errors = command.communicate(timeout=30)
    assert (command.returncode, errors) == (0, "")
    (kept,) = record.load(file)
    assert len(kept.events) > len(state["log"])


def check_closed_to_other_hosts(port: int) -> None:
    """Check that other addresses of this machine do not answer, if there are any."""
    try:
        outside = socket.gethostbyname(socket.gethostname())
    except OSError:
        return
    if outside.startswith("127."):
        return
    with socket.socket() as other:
        other.settimeout(5)
        with pytest.raises(OSError):  # noqa: PT011  whatever refuses
            other.connect((outside, port))
