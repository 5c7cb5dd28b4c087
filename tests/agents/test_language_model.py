"""Tests of `agents/language_model.py`, with a stand-in for the package openai."""

import json
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import pytest
from prompt_reader import listed, reads_and_answers
from regrets import small_set

from tokaido_env import Game
from tokaido_env.agents import make
from tokaido_env.agents.registry import as_agent
from tokaido_env.arena.game_runner import AgentFailed
from tokaido_env.arena.tournament import play_match
from tokaido_env.study.regret import choose_actions

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
    answers = str(tmp_path / "answers.jsonl")
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
    with Path(answers).open("a") as file:
        file.write('["torn')
    monkeypatch.setattr(OpenAI, "reply", staticmethod(reads_and_answers))
    match = play_match(as_agent(language_model("m", answers=answers)), make("random"), 2, 1)
    assert (match.games == whole.games).all()
    assert len(OpenAI.asked) <= len(asked) + 2  # the request that failed, and its second try
    assert {*OpenAI.asked} == {*asked}
    assert len([json.loads(line) for line in Path(answers).read_text().splitlines()]) == len(asked)


def test_language_model__plays_at_random_after_refused_answers(
    language_model: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each position without a legal answer is printed and counted once."""
    replies = {0: "cut", 1: None}
    answer = lambda prompt: replies.get(len(prompt) % 4, f'{{"action": "{listed(prompt)[-1]}"}}')  # noqa: E731
    monkeypatch.setattr(OpenAI, "reply", staticmethod(answer))
    file = tmp_path / "answers.jsonl"
    agent = as_agent(language_model("m", "listed", answers=str(file), retries=0))
    positions = small_set()
    choices = choose_actions(agent, positions).choices
    assert (positions.action_rows(choices) >= 0).all()
    printed = capsys.readouterr().err.splitlines()
    assert 0 < len(printed) < len(positions)
    assert all("m:legal=listed: expected a JSON block" in line for line in printed)
    monkeypatch.setattr(sys, "argv", ["language_model.py", str(file)])
    runpy.run_path(str(FILE), run_name="__main__")
    assert capsys.readouterr().out == (
        f"{len(OpenAI.asked):,} answers; {len(printed)} decisions at random, without a legal one\n"
    )
    assert agent.choose(Game(seed=3)) in Game(seed=3).legal_actions()
