"""Language models behind an HTTP interface like OpenAI's, which most servers have.

    from tokaido_env.chat import ChatEndpoint
    from tokaido_env.text import TextPlayer, play_by_text

    endpoint = ChatEndpoint("http://localhost:11434/v1", "llama3.2")
    transcript = play_by_text([TextPlayer(endpoint.respond), "greedy"], seed=7)
    print(transcript.record.winner, endpoint.prompt_tokens, endpoint.seconds)

`tokaido text` does this from the command line.
"""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from tokaido_env.core.arguments import repr_short, str_short
from tokaido_env.decoding import Source
from tokaido_env.files import parse_json

MAX_ANSWER = 4 << 20  # bytes
TRIES = 6
TIMEOUT = 120.0  # seconds
FIRST_WAIT, MAX_WAIT = 1.0, 60.0  # seconds before another try; it doubles with each
_PART = 1 << 16  # bytes
_BUSY = (408, 425, 429, 500, 502, 503, 504, 529)  # statuses after which to try again


class EndpointError(RuntimeError):
    """A server gave no answer; the message names its address and the reason."""


class _TransientError(EndpointError):
    """Another try may succeed, after the seconds that the server asks for."""

    wait = 0.0


class _Message(msgspec.Struct):
    content: str | None


class _Choice(msgspec.Struct):
    message: _Message


class _Tokens(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Completion(msgspec.Struct):
    choices: Annotated[list[_Choice], Meta(min_length=1)]
    usage: _Tokens | None = None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect, which would carry the key to another server."""

    def redirect_request(self, *arguments: Any, **named: Any) -> None:
        """Return None: the status is an error."""


class ChatEndpoint:
    """A model of a server.

    Args:
        url: address of the interface, http or https, such as `http://localhost:11434/v1`.
        model: name of the model on the server.
        key: bearer token; None sends none. No message contains it.
        timeout: seconds until a whole answer is there.
        options: more keys of each request, such as {"temperature": 0}.

    Attributes:
        prompt_tokens: read by the model so far, as the server counts them; 0 if it does not.
        answer_tokens: written by the model so far, likewise.
        seconds: duration of all answers so far, without tries that failed.

    Raises:
        ValueError: if `url` is no address of http or https, or `key` no token.
    """

    def __init__(
        self,
        url: str,
        model: str,
        *,
        key: str | None = None,
        timeout: float = TIMEOUT,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.url, self.model, self.timeout = _checked_url(url), model, timeout
        if key is not None and not (key.isascii() and key.isprintable() and " " not in key):
            raise ValueError("key: expected a token of printable ASCII characters")
        if not timeout > 0:
            raise ValueError(f"timeout: expected seconds above 0, got {timeout:g}")
        self.prompt_tokens = self.answer_tokens = 0
        self.seconds = 0.0
        self._key, self._options = key, dict(options or {})
        self._opener = urllib.request.build_opener(_NoRedirect)

    def respond(self, prompt: str) -> str:
        """Return the model's answer to a prompt, "" for an empty one.

        The request is tried again if the server is busy, late, sends broken JSON, or cannot be
        reached any more.

        Raises:
            EndpointError: after the last try, or if another try would not help.
        """
        messages = [{"role": "user", "content": prompt}]
        body = json.dumps({"model": self.model, "messages": messages, **self._options}).encode()
        for number in range(TRIES):
            began = time.monotonic()
            try:
                completion = self._completion(self._read(body, began + self.timeout))
                break
            except _TransientError as error:
                if number == TRIES - 1:
                    raise EndpointError(f"{error}, in {TRIES} tries") from None
                time.sleep(min(max(error.wait, FIRST_WAIT * 2**number), MAX_WAIT))
        self.seconds += time.monotonic() - began
        if completion.usage is not None:
            self.prompt_tokens += completion.usage.prompt_tokens or 0
            self.answer_tokens += completion.usage.completion_tokens or 0
        return completion.choices[0].message.content or ""

    def _read(self, body: bytes, until: float) -> bytes:
        """Return the body of the server's answer, which must be there at a time."""
        headers = {"Content-Type": "application/json", "User-Agent": "tokaido_env"}
        headers |= {"Authorization": f"Bearer {self._key}"} if self._key else {}
        request = urllib.request.Request(f"{self.url}/chat/completions", body, headers)
        text = b""
        try:
            with self._opener.open(request, timeout=self.timeout) as response:
                while part := response.read1(_PART):
                    text += part
                    if len(text) > MAX_ANSWER:
                        expected = f"an answer of at most {MAX_ANSWER >> 20} MiB"
                        raise EndpointError(self._message(expected, "a longer one"))
                    if time.monotonic() > until:
                        raise TimeoutError
        except urllib.error.HTTPError as error:
            raise self._status_error(error) from None
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            waited = isinstance(reason, TimeoutError)
            got = getattr(reason, "strerror", None) or reason or type(reason).__name__
            message = self._message("an answer", f"none in {self.timeout:g} s" if waited else got)
            # A server that has never answered is probably at another address.
            raise (_TransientError if waited or self.seconds else EndpointError)(message) from None
        return text

    def _status_error(self, error: urllib.error.HTTPError) -> EndpointError:
        """Return the error of a status other than 200."""
        with error:
            try:
                text = " ".join(error.read(_PART).decode(errors="replace").split())
            except (OSError, http.client.HTTPException):
                text = ""
        got = f"status {error.code}: {text or error.reason}"
        if error.code in _BUSY:
            busy = _TransientError(self._message("an answer", got))
            asked = error.headers.get("Retry-After", "")
            busy.wait = float(asked) if asked.isascii() and asked.isdigit() else 0.0
            return busy
        expected = f"an answer of the model {repr_short(self.model)}"
        if error.code in (401, 403):
            expected, sent = "a key that it accepts", "another" if self._key else "none"
            got = f"{sent}, {got}"
        return EndpointError(self._message(expected, got))

    def _completion(self, text: bytes) -> _Completion:
        """Return the decoded body of an answer."""
        try:
            data = parse_json(text.decode())
        except ValueError as error:
            raise _TransientError(self._message("JSON", error)) from None
        try:
            return Source("answer", data, ValueError).decode(_Completion)
        except ValueError as error:
            raise EndpointError(self._message("OpenAI's chat completions", error)) from None

    def _message(self, expected: str, got: object) -> str:
        text = str(got)
        text = text.replace(self._key, "(key)") if self._key else text  # a server may repeat it
        return f"endpoint {str_short(self.url, 200)}: expected {expected}, got {str_short(text)}"


def _checked_url(url: str) -> str:
    """Return an address without a final slash."""
    expected = "endpoint: expected an address of http or https, such as http://localhost:11434/v1"
    try:
        parts = urlsplit(url)
        right = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        right = False
    if right and parts.username is not None:
        raise ValueError(f"{expected}, got one with a name or password")
    if not right or not url.isascii() or not url.isprintable() or set(url) & set(" ?#"):
        raise ValueError(f"{expected}, got {repr_short(url)}")
    return url.rstrip("/").removesuffix("/chat/completions")
