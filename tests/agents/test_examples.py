"""The examples of agents/, run by the commands of their README, and sizes in the docs."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from tokaido_env import Game

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "agents" / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"`((?:tokaido|python|cc) .*?)`", README)
LIMITS = {"--games": 20, "--steps": 64, "--updates": 1}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder like the root of a checkout, where commands may write files."""
    shutil.copytree(ROOT / "agents", tmp_path / "agents")
    return tmp_path


def run(folder: Path, example: str, *more: str, **environment: str) -> str:
    """Run the README's commands of an example with few games; return their output."""
    printed = ""
    for command in [command for command in COMMANDS if example in command]:
        words = shlex.split(command)
        for at, word in enumerate(words[:-1]):
            if word in LIMITS:
                words[at + 1] = str(min(int(words[at + 1]), LIMITS[word]))
        if words[0] != "cc":
            words[:1] = [sys.executable, *(["-m", "tokaido_env"] if words[0] == "tokaido" else [])]
        done = subprocess.run(
            [*words, *more],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        printed += done.stdout + done.stderr
    assert printed
    assert "forfeit" not in printed
    return printed


def test_readme__lists_every_example() -> None:
    files = {path.name for path in (ROOT / "agents").iterdir() if path.is_file()}
    assert {*re.findall(r"`([\w-]+\.(?:py|pl|c|toml))`", README), "README.md"} == files


def test_temple_bot__beats_random(folder: Path) -> None:
    assert re.search(r" 1 +\S+:TempleBot +20 ", run(folder, "temple_bot"))  # ahead of `random`


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_engine__beats_random(folder: Path) -> None:
    assert re.search(r" 1 +exec:\./engine +20 ", run(folder, "engine"))


@pytest.mark.skipif(shutil.which("perl") is None, reason="needs Perl")
def test_trader__beats_random(folder: Path) -> None:
    assert re.search(r" 1 +exec:perl agents/trader\.pl +20 ", run(folder, "trader"))


def test_pytorch_agent__learns_and_beats_random(folder: Path) -> None:
    pytest.importorskip("torch")
    assert re.search(r" 1 +python:agents\.pytorch_agent\S+ +20 ", run(folder, "pytorch_agent"))


@pytest.mark.slow
def test_sb3_agent__learns_and_plays(folder: Path) -> None:
    pytest.importorskip("sb3_contrib")
    assert "SB3Agent" in run(folder, "sb3_agent")


@pytest.mark.slow
def test_one_file_ppo__learns_and_plays(folder: Path) -> None:
    pytest.importorskip("torch")
    assert "against greedy: " in run(folder, "one_file_ppo", "--games", "8")


class Server(BaseHTTPRequestHandler):
    """Answers every second prompt with the last legal action, others with an illegal one."""

    asked: list[tuple[str | None, str, str]]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append((self.headers["Authorization"], body["model"], self.path))
        legal = body["messages"][-1]["content"].rpartition("Legal actions: ")[2].splitlines()[0]
        label = legal.split(", ")[-1] if len(self.asked) % 2 else "fly"
        content = f'I choose {{"action": "{label}"}}'
        answer = json.dumps({"choices": [{"message": {"role": "assistant", "content": content}}]})
        self.send_response(200)
        self.end_headers()
        self.wfile.write(answer.encode())

    def log_message(self, *arguments: object) -> None:
        """Print nothing."""


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    Server.asked = []
    with HTTPServer(("127.0.0.1", 0), Server) as served:
        thread = Thread(target=served.serve_forever)
        thread.start()
        yield served
        served.shutdown()
        thread.join()


def test_language_model__plays_by_http(folder: Path, server: HTTPServer) -> None:
    base = f"http://127.0.0.1:{server.server_port}/v1/"
    printed = run(folder, "language_model", OPENAI_BASE_URL=base, OPENAI_API_KEY="a key")
    assert "LanguageModel" in printed
    assert set(Server.asked) == {("Bearer a key", "llama3.2", "/v1/chat/completions")}
    assert len(Server.asked) > 100


def test_agents_page__has_the_sizes_of_arrays() -> None:
    page = (ROOT / "docs" / "how-to" / "write-an-agent.md").read_text(encoding="utf-8")
    for name, array in (("observation", Game(seed=0).observation()), ("mask", Game(seed=0).mask())):
        pattern = rf"`game\.{name}\(\)` \| {array.dtype} \({len(array)},\)"
        assert re.search(pattern, page), name
    assert np.flatnonzero(Game(seed=0).mask()).tolist() == Game(seed=0).legal_actions()
