"""Language models behind servers with OpenAI's interface: options, requests and kept answers."""

from __future__ import annotations

import json
import os
import re
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import field
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from cyclopts import Group, Parameter

from tokaido_env.cli import command as cli
from tokaido_env.cli.command import write_json
from tokaido_env.core.arguments import repr_short, str_short
from tokaido_env.core.optional_deps import require_extra
from tokaido_env.decoding import Count, Source, Struct
from tokaido_env.files import parse_json
from tokaido_env.text import TextFormat

KEY = "OPENAI_API_KEY"
RETRIES = 5  # of a request, if the server is busy, late or out of reach
_BUSY_CODES = ("408", "409", "429", "500", "502", "503", "504")
_BUSY = re.compile(
    r"(?i)busy|overload|capacity|rate.?limit|too many requests|unavailable|timed? ?out"
)
_FILTERED = re.compile(r"(?i)content.?(filter|policy|management)|flagged|ResponsibleAI")
_FILTER_STATUSES = (400, 403, 422, 451)
_MAX_DIGITS = 15  # of a number in a reply; longer ones count as 0
_MAX_CHARS = 400_000  # of an answer, from its end: reasoning is long
VERSION = 1  # of the files of answers


class ModelError(RuntimeError):
    """A server gave no answer; the message has its address and the reason."""


def _address(text: str) -> str:
    """Return the address of a server."""
    with suppress(ValueError):  # of a wrong port
        parts = urlsplit(text)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return text
    expected = "expected an address with http or https, such as http://localhost:11434/v1"
    raise ValueError(f"{expected}, got {repr_short(text)}")


def _request(text: str) -> dict[str, Any]:
    """Return the keys of a request."""
    request = parse_json(text)
    if not isinstance(request, dict) or {"model", "messages"} & request.keys():
        raise ValueError("expected an object of JSON without model and messages")
    return request


MODEL = Group("Language model", sort_key=2)


@cli.options
class Asking:
    """Options of the commands that ask a language model."""

    base_url: Annotated[str | None, cli.text_option(_address, "URL"), Parameter(group=MODEL)] = None
    """address of the server's interface, such as http://localhost:11434/v1 [default: the
    environment variable OPENAI_BASE_URL, else OpenAI's server]"""
    model: Annotated[str, Parameter(metavar="NAME", group=MODEL)]
    """name of the model on the server"""
    request: Annotated[Any, cli.text_option(_request, "JSON"), Parameter(group=MODEL)] = field(
        default_factory=dict
    )
    """more keys of each request, as JSON, such as {"temperature": 0}"""
    timeout: Annotated[float, Parameter(metavar="SECONDS", group=MODEL)] = 120.0
    """seconds to wait for the server"""
    legal: Annotated[Literal["unlisted", "listed"], Parameter(group=MODEL)] = "unlisted"
    """whether prompts list the legal actions, which makes the game easier"""
    retries: Annotated[int, Parameter(group=MODEL)] = TextFormat().retries
    """further tries after an answer without a legal action"""
    seed: cli.SeedOption = 0
    json: cli.Json = None


class _Answer(Struct, frozen=True):
    """An answer of a model.

    Attributes:
        prompt: SHA-256 of the model, the request and the prompt.
        text: "" for an answer that cannot be read.
        prompt_tokens: as the server counts them; 0 if it does not.
        answer_tokens: likewise.
        seconds: duration of the request, with its further tries.
    """

    prompt: str
    text: str
    prompt_tokens: Count
    answer_tokens: Count
    seconds: float


class _AnswerFile(Struct, frozen=True):
    version: int
    answers: list[_Answer]


class KeptAnswers:
    """Answers in a file, which a run that asks the same again takes instead of asking.

    Args:
        path: None keeps nothing.
    """

    def __init__(self, path: Path | None) -> None:
        self._path, self._answers = path, list[_Answer]()
        if path is not None and path.exists():
            source = Source.json(path, "answers", ValueError)
            source.check_versions("name another file", version=VERSION)
            self._answers = source.decode(_AnswerFile).answers
        self._left: dict[str, list[_Answer]] = defaultdict(list)
        for answer in reversed(self._answers):
            self._left[answer.prompt].append(answer)

    def take(self, prompt: str) -> _Answer | None:
        """Return the next answer to a prompt, by its hash; None without one."""
        left = self._left[prompt]
        return left.pop() if left else None

    def add(self, answer: _Answer) -> None:
        """Write an answer."""
        self._answers.append(answer)
        if self._path is not None:
            data = _AnswerFile(VERSION, self._answers).to_dict()
            write_json(self._path, data, ensure_ascii=False)

    def clear(self) -> None:
        """Remove all answers, and the file."""
        self._answers.clear()
        self._left.clear()
        if self._path is not None:
            self._path.unlink(missing_ok=True)


class Model:
    """A model that the package openai asks, with the costs so far.

    Args:
        options: of the command.
        kept: file of answers; None keeps none.

    Attributes:
        kept: its answers.
        prompt_tokens: as the server counts them; 0 if it does not.
        answer_tokens: likewise.
        seconds: duration of all requests, with their further tries.
        pause: seconds before the first further try after an error under status 200.
    """

    pause = 1.0

    def __init__(self, options: Asking, kept: Path | None) -> None:
        if not options.timeout > 0:
            raise ValueError(f"--timeout: expected seconds above 0, got {options.timeout:g}")
        require_extra("asking a language model needs", "llm", "openai")
        import openai

        self._name, self._request, self._errors = options.model, options.request, openai.OpenAIError
        self.kept = KeptAnswers(kept)
        self.prompt_tokens = self.answer_tokens = 0
        self.seconds = 0.0
        without = "none" if options.base_url else None  # a local server needs no key
        try:
            self._client = openai.OpenAI(
                base_url=options.base_url,
                api_key=os.environ.get(KEY) or without,
                timeout=options.timeout,
                max_retries=RETRIES,
            )
        except openai.OpenAIError as error:
            raise ModelError(str_short(error, 200)) from None

    def respond(self, prompt: str) -> str:
        """Return the model's answer to a prompt, "" for one that cannot be read.

        Raises:
            ModelError: if the server gives none, also not to further tries.
        """
        asked = json.dumps([self._name, self._request, prompt], sort_keys=True)
        key = sha256(asked.encode()).hexdigest()
        answer = self.kept.take(key)
        if answer is None:
            began = time.monotonic()
            reply = self._reply(prompt)
            prompt_tokens, answer_tokens = (
                _count(reply, name) for name in ("prompt_tokens", "completion_tokens")
            )
            seconds = round(time.monotonic() - began, 3)
            answer = _Answer(key, _text_of(reply), prompt_tokens, answer_tokens, seconds)
            self.kept.add(answer)
        self.prompt_tokens += answer.prompt_tokens
        self.answer_tokens += answer.answer_tokens
        self.seconds += answer.seconds
        return answer.text

    def _reply(self, prompt: str) -> dict[str, Any]:
        """Return the reply to a prompt; ask again while the server is busy or cuts its reply."""
        for tries in count():
            reply = self._complete(prompt)
            error = "a reply that is no chat completion"
            if isinstance(reply, dict):
                error = reply.get("error") or ""
                if not error or _FILTERED.search(str(error)):
                    return reply
            if tries == RETRIES or not (reply is None or _is_busy(error)):
                break
            time.sleep(self.pause * 2**tries)
        raise self._error(str(error))

    def _complete(self, prompt: str) -> Any:
        """Return the reply to a prompt as `_parsed` does; {} if a filter refuses the prompt.

        openai would check neither its types nor its numbers.
        """
        ask = self._client.chat.completions.with_raw_response.create
        message: Any = {"role": "user", "content": prompt}
        try:
            reply = ask(model=self._name, messages=[message], extra_body=self._request)
        except (self._errors, ValueError) as error:  # ValueError: a key that is not ASCII
            status, body = getattr(error, "status_code", None), getattr(error, "body", None)
            if status in _FILTER_STATUSES and _FILTERED.search(f"{error} {body}"):
                return {}
            raise self._error(f"{error} {error.__cause__ or ''}") from None
        return _parsed(reply.http_response.text)

    def _error(self, got: str) -> ModelError:
        expected = f"an answer of the model {repr_short(self._name)}"
        got = str_short(got.strip(), 200)
        return ModelError(f"{self._client.base_url}: expected {expected}, got {got}")


def _parsed(text: str) -> Any:
    """Return a reply as JSON: None for an empty or a cut one, the text for one without JSON."""
    text = text.strip("\ufeff \r\n\t")
    try:
        return json.loads(text or "null", parse_int=_integer)
    except RecursionError:
        return {}
    except ValueError:
        return None if text.startswith("{") else text


def _integer(digits: str) -> int:
    return int(digits) if len(digits) <= _MAX_DIGITS else 0


def _text_of(reply: dict[str, Any]) -> str:
    """Return the text of a reply, also in parts; "" without a whole one: it counts as refused."""
    try:
        choice = reply["choices"][0]
        is_cut = choice.get("finish_reason") == "length"  # perhaps within its reasoning
        content = None if is_cut else choice["message"]["content"]
    except (AttributeError, LookupError, TypeError):
        return ""
    parts = content if isinstance(content, list) else [{"text": content}]
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    text = "".join(text for text in texts if isinstance(text, str))[-_MAX_CHARS:]
    return text.encode(errors="replace").decode()  # without lone surrogates


def _count(reply: dict[str, Any], name: str) -> int:
    """Return a number of tokens; 0 if the server gives none, or something else."""
    usage = reply.get("usage")
    tokens = usage.get(name) if isinstance(usage, dict) else None
    return tokens if type(tokens) is int and tokens > 0 else 0


def _is_busy(error: Any) -> bool:
    """Return whether an error under status 200 says that the server is busy."""
    known = error if isinstance(error, dict) else {}
    code = str(known.get("code") or known.get("status") or "")
    return code in _BUSY_CODES or _BUSY.search(str(error)) is not None
