"""Tests of `tokaido_env.chat` against a stand-in for a server."""

import json
import socket
import time
from collections.abc import Iterator

import pytest
from chat_server import ChatServer, Reply, completion, serving

from tokaido_env import chat
from tokaido_env.chat import TRIES, ChatEndpoint, EndpointError

KEY = "sk-secret-1"


@pytest.fixture(scope="module")
def server() -> Iterator[ChatServer]:
    with serving(lambda prompt: completion(prompt)) as served:
        yield served


@pytest.fixture(autouse=True)
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat, "FIRST_WAIT", 0.0)


def script(server: ChatServer, *replies: Reply) -> None:
    """Let the server send these replies, the last one for ever."""
    left = list(replies)
    server.reply = lambda prompt: left.pop(0) if len(left) > 1 else left[0]
    server.asked.clear()


def test_respond__sends_the_prompt_and_counts_costs(server: ChatServer) -> None:
    script(server, completion("I pass.", prompt_tokens=7, completion_tokens=3), completion(None))
    endpoint = ChatEndpoint(f"{server.url}/", "m", key=KEY, options={"temperature": 0})
    assert [endpoint.respond("Which?"), endpoint.respond("And?")] == ["I pass.", ""]
    assert (endpoint.prompt_tokens, endpoint.answer_tokens) == (7, 3)
    assert 0 < endpoint.seconds < 5
    message = [{"role": "user", "content": "Which?"}]
    path, key, body = server.asked[0]
    assert (path, key) == ("/v1/chat/completions", f"Bearer {KEY}")
    assert body == {"model": "m", "messages": message, "temperature": 0}
    assert ChatEndpoint(server.url, "m").respond("x") == ""
    assert server.asked[-1].key is None


BUSY = Reply(b"slow down", 429, {"Retry-After": "0"})
BROKEN = Reply(completion("pass").body[:-9])


@pytest.mark.parametrize("reply", [BUSY, Reply(b"", 503), BROKEN, Reply(b"<html>"), Reply(b"")])
def test_respond__tries_again_and_then_gives_one_clear_error(
    server: ChatServer, reply: Reply
) -> None:
    script(server, *[reply] * (TRIES - 1), completion("at last"))
    assert ChatEndpoint(server.url, "m").respond("x") == "at last"
    assert len(server.asked) == TRIES
    script(server, reply)
    with pytest.raises(EndpointError) as raised:
        ChatEndpoint(server.url, "m").respond("x")
    assert len(server.asked) == TRIES
    text = str(raised.value)
    assert text.startswith(f"endpoint {server.url}: expected ")
    assert text.endswith(f"in {TRIES} tries")
    assert str(reply.status) in text or "JSON" in text


def test_respond__waits_as_long_as_a_busy_server_asks(
    server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    monkeypatch.setattr(chat, "FIRST_WAIT", 1.0)
    busy = [Reply(b"", 429, {"Retry-After": asked}) for asked in ("7", "9999", "soon")]
    script(server, *busy, completion("now"))
    assert ChatEndpoint(server.url, "m").respond("x") == "now"
    assert [wait for wait in waits if wait] == [7.0, chat.MAX_WAIT, 4.0]


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (Reply(b'{"error": {"message": "hm"}}'), "answer: expected the key choices"),
        (Reply(b"[1]"), "answer: expected an object, got \\[1\\]"),
        (Reply(b'{"choices": []}'), "answer: choices: "),
        (Reply(b'{"choices": [{"message": {"content": 3}}]}'), r"choices\[0\].message.content: "),
        (Reply(b'{"choices": [{"text": "pass"}]}'), r"choices\[0\]: expected the key message"),
        (Reply(completion("x" * 10_000_000).body), "expected an answer of at most 4 MiB"),
        (Reply(b"no such model", 404), "answer of the model 'm', got status 404: no such model"),
        (Reply(b"", 302, {"Location": "http://127.0.0.1:9/"}), "got status 302"),
        (Reply(f"bad {KEY}".encode(), 401), r"a key that it accepts, got another.*bad \(key\)"),
    ],
)
def test_respond__does_not_ask_again_where_that_would_not_help(
    server: ChatServer, reply: Reply, error: str
) -> None:
    script(server, reply)
    with pytest.raises(EndpointError, match=error) as raised:
        ChatEndpoint(server.url, "m", key=KEY).respond("x")
    assert len(server.asked) == 1
    assert KEY not in str(raised.value)
    assert len(str(raised.value)) < 600
    assert str(raised.value).isprintable()


def test_respond__names_a_missing_key(server: ChatServer) -> None:
    script(server, Reply(json.dumps({"error": "no\nkey"}).encode(), 401))
    with pytest.raises(EndpointError, match="expected a key that it accepts, got none, status 401"):
        ChatEndpoint(server.url, "m").respond("x")


def test_respond__limits_the_time_of_the_whole_answer(server: ChatServer) -> None:
    for reply in (Reply(b"", after=1.0), Reply(completion("pass").body, after=0.05)):
        script(server, reply)
        began = time.monotonic()
        with pytest.raises(EndpointError, match=rf"got none in 0\.2 s, in {TRIES} tries"):
            ChatEndpoint(server.url, "m", timeout=0.2).respond("x")
        assert time.monotonic() - began < 3


def test_respond__names_a_server_that_is_not_there() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        error = f"{url}: expected an answer, got Connection refused"
        endpoint = ChatEndpoint(url, "m")
        with pytest.raises(EndpointError, match=f"{error}$"):
            endpoint.respond("x")
        endpoint.seconds = 1.0  # it has answered before
        with pytest.raises(EndpointError, match=f"{error}, in {TRIES} tries$"):
            endpoint.respond("x")


@pytest.mark.parametrize(
    "url", ["", "localhost:80/v1", "ftp://a/v1", "file:///etc/passwd", "http://", "http://a b/"]
)
def test_endpoint__refuses_other_addresses(url: str) -> None:
    with pytest.raises(ValueError, match="endpoint: expected an address of http or https"):
        ChatEndpoint(url, "m")


def test_endpoint__refuses_passwords_keys_and_times() -> None:
    with pytest.raises(ValueError, match=r"got one with a name or password$"):
        ChatEndpoint("http://me:secret@a/v1", "m")
    with pytest.raises(ValueError, match=r"key: expected a token of printable ASCII characters$"):
        ChatEndpoint("http://a/v1", "m", key="a\nb")
    with pytest.raises(ValueError, match="timeout: expected seconds above 0, got 0"):
        ChatEndpoint("http://a/v1", "m", timeout=0)
