"""Tests of `agents/language_model.py`, with a stand-in for the package openai."""

import json
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import pytest
from prompt_reader import reads_and_answers

from tokaido_env import Game
from tokaido_env.agents import make
from tokaido_env.agents.registry import as_agent
from tokaido_env.arena.game_runner import AgentFailed
from tokaido_env.arena.tournament import play_match

FILE = Path(__file__).resolve().parents[2] / "agents" / "language_model.py"


class OpenAI:
    """A client that answers by the function `reply`, and stores the prompts."""

    reply: Callable[[str], Any] = staticmethod(reads_and_answers)
    asked: ClassVar[list[str]] = []

    def __init__(self, max_retries: int) -> None:
        self.chat = SimpleNamespace(completions=self)

    def create(self, model: str, messages: list[dict[str, str]]) -> Any:
        (message,) = messages
        assert (model, message["role"]) == ("m", "user")
        OpenAI.asked.append(message["content"])
        text = OpenAI.reply(message["content"])
        choice = SimpleNamespace(
            message=SimpleNamespace(content=text),
            finish_reason="length" if text == "cut" else "stop",
        )
        return SimpleNamespace(choices=[choice])


@pytest.fixture
def language_model(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Return the class, with the stand-in."""
    openai = ModuleType("openai")
    openai.OpenAI = OpenAI  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "openai", openai)
    monkeypatch.setattr(OpenAI, "asked", [])
    monkeypatch.setattr(OpenAI, "reply", staticmethod(reads_and_answers))
    found: Callable[..., Any] = runpy.run_path(str(FILE))["LanguageModel"]
    return found


def test_language_model__resumes_a_match_without_asking_again(
    language_model: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = str(tmp_path / "answers")
    whole = play_match(as_agent(language_model("m")), make("random"), 2, 1)
    asked = list(OpenAI.asked)

    def fails(prompt: str) -> str:
        if len(OpenAI.asked) > 20:
            raise OSError("out of credit")
        return reads_and_answers(prompt)

    OpenAI.asked.clear()
    monkeypatch.setattr(OpenAI, "reply", staticmethod(fails))
    with pytest.raises(AgentFailed, match="out of credit"):
        play_match(as_agent(language_model("m", answers=answers)), make("random"), 2, 1)
    written = tmp_path / "answers" / "answers.jsonl"
    with written.open("a") as file:
        file.write('["torn')
    monkeypatch.setattr(OpenAI, "reply", staticmethod(reads_and_answers))
    match = play_match(as_agent(language_model("m", answers=answers)), make("random"), 2, 1)
    assert (match.games == whole.games).all()
    assert len(OpenAI.asked) <= len(asked) + 2  # the request that failed, and its second try
    assert {*OpenAI.asked} == {*asked}
    assert len([json.loads(line) for line in written.read_text().splitlines()]) == len(asked)


def test_language_model__plays_at_random_after_refused_answers(
    language_model: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each position without a legal answer is printed and counted once."""
    monkeypatch.setattr(OpenAI, "reply", staticmethod({0: "cut"}.get))
    folder = str(tmp_path / "answers")
    agent = as_agent(language_model("m", "listed", answers=folder, retries=0))
    for _ in range(2):
        assert agent.choose(Game(seed=3)) in Game(seed=3).legal_actions()
    assert capsys.readouterr().err.count("m:legal=listed: expected a JSON block") == 1
    monkeypatch.setattr(sys, "argv", ["language_model.py", folder])
    runpy.run_path(str(FILE), run_name="__main__")
    assert capsys.readouterr().out == "1 answers; 1 decisions at random, without a legal one\n"
