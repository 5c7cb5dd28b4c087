"""Tests of `tokaido text-play` and `text-positions`, with a stand-in for a server of models."""

import json
import random
import re
import socket
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chat_server import ChatServer, Reply, completion, serving
from networks import random_policy
from prompt_reader import reads_and_answers
from refusals import check_refused
from regrets import drawn_sums, small_set, truth_of

from tokaido_env.__main__ import main
from tokaido_env.cli import language_model
from tokaido_env.cli.command import INTERRUPTED
from tokaido_env.record import load

pytest.importorskip("openai")

Output = pytest.CaptureFixture[str]
BUSY = [
    Reply(b'{"error": {"message": "busy"}}', status, {"Retry-After-Ms": "1"})
    for status in (429, 503)
]
JSON = {"Content-Type": "application/json"}
CUT = [Reply(body, 200, headers) for body in (b'{"a', b"", b" null\n") for headers in (JSON, {})]
FILTERS = [
    Reply(json.dumps({"error": {"code": code, "message": message}}).encode(), status)
    for code, message in (
        ("content_filter", "The response was filtered"),
        ("content_policy_violation", "Your request was rejected"),
        (None, "Your input was flagged"),
    )
    for status in (200, 400, 403)
]
OUT_OF_CREDIT = Reply(b'{"error": {"message": "out of credit"}}', 402)


@pytest.fixture(scope="module")
def server() -> Iterator[ChatServer]:
    with serving(lambda prompt: completion("")) as served:
        yield served


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def reading(slips: float = 0.0, broken: float = 0.0) -> Callable[[str], Reply]:
    """A model that reads its prompts, slips now and then, on a server that fails now and then."""
    rng = random.Random(3)

    def reply(prompt: str) -> Reply:
        if rng.random() < broken:
            return rng.choice(BUSY)
        wrong = rng.choice(['{"action": "merchant:C9"}', "I am not sure."])
        said = wrong if rng.random() < slips else reads_and_answers(prompt)
        return completion(said, prompt_tokens=2_000, completion_tokens=50)

    return reply


def refusing() -> Callable[[str], Reply]:
    """A model that reads its prompts; of each first prompt, it refuses some, always the same."""

    def reply(prompt: str) -> Reply:
        slips = "was refused" not in prompt and len(prompt) % 3 == 0
        return completion("I am not sure." if slips else reads_and_answers(prompt))

    return reply


def words(server: ChatServer, subcommand: str, *more: str) -> list[str]:
    return [f"text-{subcommand}", "--base-url", server.url, "--model", "stand-in", *more]


@pytest.mark.parametrize("games", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_play__reports_games_answers_and_costs(
    server: ChatServer, short: Path, tmp_path: Path, capsys: Output, games: int
) -> None:
    board, slips = (short, 0.4) if games == 2 else ("shikoku", 0.1)
    server.reply = reading(slips=slips, broken=0.05)
    server.asked.clear()
    results, records = tmp_path / "r.json", tmp_path / "games.jsonl"
    files = ["--json", str(results), "--records", str(records)]
    play = words(server, "play", "--games", str(games), "--opponent", "random", *files)
    assert main([*play, "--board", str(board)]) == 0
    printed = capsys.readouterr().out
    assert ("Luck-adjusted scores" in printed) == (games > 2)
    assert "stand-in:legal=unlisted" in printed
    data = json.loads(results.read_text(encoding="utf-8"))
    assert data["result"]["agents"] == ["stand-in:legal=unlisted", "random"]
    (score,) = data["result"]["scores"]
    assert sum(score["pairs"]) == games / 2
    answers = data["answers"]
    said = [one for game in data["games"] for one in game["answers"]]
    refused = [one for one in said if one["label"] is None]
    assert answers["illegal"] + answers["unreadable"] == len(refused) >= games
    assert answers["illegal"] == sum(one["raw_action"] is not None for one in refused)
    assert answers["prompt tokens"] == pytest.approx(2_000 * len(said) / answers["decisions"], 0.01)
    assert len(server.asked) > len(said)  # tries that the server failed
    kept = load(records, board)
    assert len(kept) == games
    assert sum(one.forfeit is not None for one in kept) == answers["forfeits"]


def test_play__keeps_finished_games_and_resumes(
    server: ChatServer, short: Path, tmp_path: Path, capsys: Output
) -> None:
    records = tmp_path / "games.jsonl"
    play = words(server, "play", "--games", "4", "--records", str(records))
    play += ["--opponent", "random", "--board", str(short)]
    model, asked = reading(), 0

    def fails_later(prompt: str) -> Reply:
        nonlocal asked
        asked += 1
        return model(prompt) if asked < 12 else OUT_OF_CREDIT

    server.reply = fails_later
    assert main(play) == 1
    first, second = capsys.readouterr().err.splitlines()[-2:]
    error = (
        f"text-play: {server.url}/: expected an answer of the model 'stand-in', got Error code: 402"
    )
    assert first.startswith(error)
    assert "out of credit" in first
    found = re.fullmatch(r"text-play: ([1-3]) of 4 games are played and saved in .*resumes", second)
    assert found is not None
    assert len(load(records, short)) == int(found[1])
    server.reply = model
    assert main(play) == 0
    stopped_and_resumed = records.read_bytes()
    records.unlink()
    assert main(play) == 0
    assert records.read_bytes() == stopped_and_resumed


def test_play__refuses_records_of_another_policy(
    server: ChatServer, short: Path, tmp_path: Path, capsys: Output
) -> None:
    server.reply, policy, results = reading(), tmp_path / "net", tmp_path / "r.json"
    random_policy(seed=0).save(policy)
    play = words(server, "play", "--games", "2", "--records", str(tmp_path / "games.jsonl"))
    play += ["--opponent", f"policy:{policy}", "--board", str(short), "--json", str(results)]
    assert main(play) == 0
    data = json.loads(results.read_text(encoding="utf-8"))
    assert [*data["result"]["files"]] == [f"policy:{policy}"]
    random_policy(seed=1).save(policy)
    capsys.readouterr()
    check_refused(capsys, play, f"files: expected 'policy:{policy}'")


@pytest.mark.parametrize("seed", [3, pytest.param(4, marks=pytest.mark.slow)])
def test_play__asks_for_no_answer_again(
    server: ChatServer, short: Path, tmp_path: Path, seed: int
) -> None:
    """Also of the game in progress, wherever failures stop the command."""
    model, rng = refusing(), random.Random(seed)
    play = words(server, "play", "--games", "8", "--opponent", "random", "--board", str(short))
    server.reply = model
    server.asked.clear()
    assert main([*play, "--records", str(tmp_path / "whole.jsonl")]) == 0
    asked = [one.body for one in server.asked]
    assert len(asked) > 40
    server.reply = lambda prompt: OUT_OF_CREDIT if rng.random() < 0.1 else model(prompt)
    server.asked.clear()
    results, stops = tmp_path / "r.json", 0
    resumed = [*play, "--records", str(tmp_path / "cut.jsonl"), "--json", str(results)]
    while main(resumed):
        stops += 1
        kept, shown = tmp_path / "cut.jsonl.answers", json.loads(results.read_bytes())["games"][-1]
        said = [one for _, one in texts(kept)] if kept.exists() else []
        assert said == [one["text"] for one in shown["answers"]]  # of the game in progress
    assert stops > 2
    assert len(server.asked) == len(asked) + stops
    games = [(tmp_path / f"{name}.jsonl").read_bytes() for name in ("whole", "cut")]
    assert games[0] == games[1]
    assert sorted(path.name for path in tmp_path.glob("*.answers*")) == []


def test_play__keeps_finished_games_after_an_interrupt(
    server: ChatServer, short: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = 0

    def respond(model: object, prompt: str) -> str:
        nonlocal answers
        answers += 1
        if answers > 12:
            raise KeyboardInterrupt
        return reads_and_answers(prompt)

    monkeypatch.setattr(language_model.Model, "respond", respond)
    play = words(server, "play", "--games", "4", "--opponent", "random", "--board", str(short))
    assert main(play) == INTERRUPTED
    printed = capsys.readouterr()
    first, second = printed.err.splitlines()[-2:]
    assert first == "text-play: interrupted"
    assert re.fullmatch(r"text-play: [1-3] of 4 games are played", second)
    assert "Refused answers" in printed.out


def test_play__forfeits_games_without_a_legal_answer(
    server: ChatServer, tmp_path: Path, capsys: Output
) -> None:
    server.reply = lambda prompt: completion("I resign.")
    records, results = tmp_path / "games.jsonl", tmp_path / "r.json"
    files = ["--json", str(results), "--records", str(records)]
    assert main(words(server, "play", "--games", "2", "--retries", "1", *files)) == 0
    data = json.loads(results.read_text(encoding="utf-8"))
    assert data["result"]["scores"][0]["value"] == 0
    assert (data["answers"]["unreadable"], data["answers"]["forfeits"]) == (4, 2)
    assert [one.end for one in load(records)] == ["forfeit"] * 2


def test_positions__reports_regret_next_to_agents(
    server: ChatServer, tmp_path: Path, capsys: Output
) -> None:
    server.reply = reading(slips=0.5)
    results, path, rng = tmp_path / "r.json", tmp_path / "set.npz", np.random.default_rng(0)
    loaded = small_set()
    replace(loaded, sums=drawn_sums(loaded, truth_of(loaded, rng, 0.3), rng)).save(path)
    ask = words(server, "positions", "--json", str(results), "--set", str(path))
    assert main([*ask, "--baselines", "random", "--retries", "1", "--positions", "40"]) == 0
    printed = capsys.readouterr().out
    assert "regret per choice" in printed
    data = json.loads(results.read_text(encoding="utf-8"))
    agents = ["stand-in:legal=unlisted", "random"]
    assert data["result"]["agents"] == agents
    positions, forfeits = data["result"]["boards"][0]["count"], data["answers"]["forfeits"]
    assert 20 < positions <= 40
    assert forfeits > 2
    regret, *_ = data["result"]["estimates"]
    assert (regret["measure"], regret["agent"]) == ("regret", agents[0])
    # Each forfeit costs about 1, a draw's distance to a loss.
    assert regret["value"] == pytest.approx(forfeits / positions, abs=0.4)
    difference = data["result"]["estimates"][-1]
    assert [difference[key] for key in ("measure", "agent", "other")] == [
        *("regret difference", *agents)
    ]


def test_positions__keeps_answers_and_resumes(
    server: ChatServer, tmp_path: Path, capsys: Output
) -> None:
    results, answers, path = (tmp_path / name for name in ("r.json", "a.json", "set.npz"))
    small_set().save(path)
    ask = words(server, "positions", "--set", str(path), "--positions", "20", "--baselines")
    files = ["--answers", str(answers), "--json", str(results)]
    model, asked = reading(), 0

    def fails_later(prompt: str) -> Reply:
        nonlocal asked
        asked += 1
        return model(prompt) if asked < 8 else OUT_OF_CREDIT

    server.reply = fails_later
    assert main([*ask, *files]) == 1
    kept = f"7 of 19 positions are answered and saved in {answers}: the same command resumes"
    assert capsys.readouterr().err.splitlines()[-1] == f"text-positions: {kept}"
    server.reply = model
    server.asked.clear()
    assert main([*ask, *files]) == 0
    assert len(server.asked) == 12
    stopped_and_resumed = texts(answers), measured(results)
    answers.unlink()
    assert main([*ask, *files]) == 0
    assert (texts(answers), measured(results)) == stopped_and_resumed
    server.asked.clear()
    assert main([*ask, *files]) == 0
    assert server.asked == []
    assert measured(results) == stopped_and_resumed[1]
    for more in (["--model", "another"], ["--request", '{"seed": 1}'], ["--legal", "listed"]):
        server.asked.clear()
        assert main([*ask, *files, *more]) == 0  # other prompts, or of another model
        assert len(server.asked) == 19
    capsys.readouterr()
    file = json.loads(answers.read_text())
    for change, message in (
        ({"version": 2}, "version: expected 1, got 2"),
        ({"answers": [file["answers"][0] | {"text": 3}]}, "answers[0].text: expected a text, got"),
    ):
        answers.write_text(json.dumps(file | change))
        check_refused(capsys, [*ask, *files], f"{answers}: {message}")


def texts(answers: Path) -> list[tuple[str, str]]:
    """The answers of a file, with the hashes of their prompts."""
    return [(one["prompt"], one["text"]) for one in json.loads(answers.read_bytes())["answers"]]


def measured(results: Path) -> tuple[object, list[int]]:
    """The result of a file, and the counts of its answers."""
    data = json.loads(results.read_bytes())
    counts = "decisions", "illegal", "unreadable", "forfeits", "prompt tokens", "answer tokens"
    return data["result"], [data["answers"][name] for name in counts]


def test_model__gets_prompt_key_and_settings(
    server: ChatServer, short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.reply = reading()
    server.asked.clear()
    play = ["text-play", "--model", "m", "--games", "2", "--board", str(short)]
    play += ["--opponent", "random", "--request", '{"top_k": 3}']
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    assert main(play) == 0
    path, key, body = server.asked[0]
    assert (path, key) == ("/v1/chat/completions", "Bearer a-key")
    (message,) = body.pop("messages")
    assert body == {"model": "m", "top_k": 3}
    assert message["role"] == "user"
    assert message["content"].startswith("Tokaido Duo, for two")


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (Reply(b'{"error": {"message": "no\\nkey"}}', 401), r"no\nkey"),
        (Reply(b'{"error": {"message": "no such model"}}', 404), "no such model"),
        (Reply(b"<html>"), "got a reply that is no chat completion"),
        (Reply(b"[1]"), "got a reply that is no chat completion"),
        (Reply(b'{"error": {"message": "the prompt is too long"}}', 400), "too long"),
        *((one, "got a reply that is no chat completion") for one in CUT),
        (Reply(b'{"error": {"message": "no such model", "code": 404}}'), "no such model"),
        (BUSY[0], "busy"),
    ],
)
def test_text__names_the_errors_of_a_server(
    server: ChatServer,
    capsys: Output,
    monkeypatch: pytest.MonkeyPatch,
    reply: Reply,
    error: str,
) -> None:
    monkeypatch.setattr(language_model.Model, "pause", 0.001)
    server.reply = lambda prompt: reply
    server.asked.clear()
    assert main(words(server, "play")) == 1
    printed = capsys.readouterr()
    first, second = printed.err.splitlines()
    assert first.startswith(
        f"text-play: {server.url}/: expected an answer of the model 'stand-in', got "
    )
    assert error in first
    assert second == "text-play: 0 of 20 games are played"
    assert printed.out == ""
    assert len(server.asked) == (1 + language_model.RETRIES if reply in (BUSY[0], *CUT) else 1)


def odd_value(rng: random.Random, depth: int = 2) -> Any:
    """A value of JSON that is no text and no number of tokens."""
    plain = [None, True, -1, 1.5, -(10**400), float("nan"), float("inf"), [], {}]
    if not depth or rng.random() < 0.6:
        return rng.choice(plain)
    inner = odd_value(rng, depth - 1)
    keys = "choices", "message", "content", "text", "prompt_tokens", "error_"
    return rng.choice([[inner], [inner, inner], {rng.choice(keys): inner}])


def odd_reply(rng: random.Random) -> Reply:
    """A chat completion with an answer that cannot be read, and odd counts."""
    content = rng.choice([odd_value(rng), [{"type": "image"}], "\ud800\0\x1b[31m", "x" * 30_000])
    message = rng.choice([{"message": {"content": content}}, {"text": "x"}, odd_value(rng), "x"])
    choices = rng.choice([[message], [message], odd_value(rng), "x"])
    body = {"choices": choices, "usage": odd_usage(rng), "error": rng.choice([None, "", {}])}
    for key in [key for key in body if rng.random() < 0.1]:
        del body[key]
    deep = b'{"choices": ' + b"[" * 10**5 + b"]" * 10**5 + b"}"
    return rng.choice([*[Reply(dumps(body), 200, rng.choice([JSON, {}]))] * 4, Reply(deep)])


def odd_usage(rng: random.Random) -> Any:
    """Counts of tokens that count nothing."""
    names = "prompt_tokens", "completion_tokens"
    odd = [10**400, 10**5000, "many", *(odd_value(rng) for _ in range(5))]
    return rng.choice([odd_value(rng), *[{name: rng.choice(odd) for name in names}] * 3])


def dumps(data: Any) -> bytes:
    """Return JSON, also with integers that `str` refuses to write."""
    if isinstance(data, dict):
        return b"{%s}" % b",".join(b'"%s":%s' % (k.encode(), dumps(v)) for k, v in data.items())
    if isinstance(data, int) and abs(data) > 10**300:
        return b"-1" + b"0" * 400 if data < 0 else b"1" + b"0" * (400 if data == 10**400 else 5000)
    if isinstance(data, list):
        return b"[%s]" % b",".join(map(dumps, data))
    return json.dumps(data).encode()


@pytest.mark.parametrize("seed", [5, 6])
@pytest.mark.parametrize("command", ["play", "positions"])
def test_text__takes_odd_replies_as_refused_answers(
    server: ChatServer,
    short: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    seed: int,
) -> None:
    """Odd, filtered and unfinished answers are refused, cut replies and busy errors tried again."""
    rng, model = random.Random(seed), reading()
    busy = Reply(b'{"error": {"message": "The server is overloaded"}}')
    sent: Counter[str] = Counter()

    def reply(prompt: str) -> Reply:
        kinds = {"busy": [busy, *CUT], "odd": [odd_reply(rng)], "filter": FILTERS}
        kind = rng.choices([*kinds, "length", "stop"], [3, 4, 2, 2, 12])[0]
        sent[kind] += 1
        if kind in kinds:
            return rng.choice(kinds[kind])
        said = json.loads(model(prompt).body)
        said["choices"][0]["finish_reason"] = kind  # length: the server's limit cut the answer
        parts = [{"type": "text", "text": reads_and_answers(prompt)}]
        said["choices"][0]["message"]["content"] = parts
        return Reply(dumps(said | {"usage": odd_usage(rng)}))

    monkeypatch.setattr(language_model.Model, "pause", 0.001)
    server.reply = reply
    results, path = tmp_path / "r.json", tmp_path / "set.npz"
    small_set().save(path)
    more = {
        "play": ["--games", "12", "--opponent", "random", "--board", str(short)],
        "positions": ["--set", str(path), "--answers", str(tmp_path / "a.json"), "--baselines"],
    }
    assert main(words(server, command, *more[command], "--json", str(results))) == 0
    answers = json.loads(results.read_text(encoding="utf-8"))["answers"]
    assert answers["unreadable"] == sent["odd"] + sent["filter"] + sent["length"] > 3
    assert answers["illegal"] == 0
    assert sent["busy"] > 1
    assert (answers["prompt tokens"], answers["answer tokens"]) == (0, 0)


def test_text__names_a_missing_server_key_and_package(
    capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(language_model, "RETRIES", 0)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        assert main(["text-play", "--model", "m", "--base-url", url]) == 1
    assert "got Connection error. [Errno " in capsys.readouterr().err
    play = ["text-play", "--model", "m"]
    check_refused(capsys, play, "OPENAI_API_KEY")
    monkeypatch.setitem(sys.modules, "openai", None)
    check_refused(capsys, play, "asking a language model needs openai: pip install '.[llm]'")
