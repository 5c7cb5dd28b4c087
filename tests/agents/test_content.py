"""The SHA-256 of what agents are made from."""

import hashlib
import sys
from pathlib import Path

import pytest
from networks import random_policy

from tokaido_env.agents import make
from tokaido_env.agents.registry import sha256_of
from tokaido_env.arena.executors.base import make_verified
from tokaido_env.arena.game_runner import AgentFailed

BOT = """
class Low:
    def __init__(self, **files): ...
    def choose(self, game, rng): return game.legal_actions()[0]
"""


def digest(*paths: Path) -> str:
    """The SHA-256 of each file."""
    return "+".join(hashlib.sha256(path.read_bytes()).hexdigest() for path in paths)


def test_sha256_of__is_that_of_the_policy_of_an_agent(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    random_policy(seed=1).save(run / "best")
    for spec in (
        f"policy:{run},temperature=1",
        f"policy:{run / 'best'}",
        f"policy_search:{run},sims=2",
    ):
        assert sha256_of(spec) == make(spec).sha256 == digest(run / "best")
    for spec in ("random", "mcts:sims=2", "champion"):
        assert make(spec).sha256 == ""


def test_sha256_of__is_that_of_the_module_and_of_files_among_its_parameters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, weights = tmp_path / "bot.py", tmp_path / "net.pt"
    file.write_text(BOT)
    weights.write_bytes(b"1")
    (tmp_path / "my_bots" / "more").mkdir(parents=True)
    inner = tmp_path / "my_bots" / "more" / "shy.py"
    inner.write_text(BOT)
    assert sha256_of(f"python:{file}:Low") == make(f"python:{file}:Low").sha256 == digest(file)
    assert sha256_of(f"python:{file}:Low,net={weights},n=2") == digest(file, weights)
    monkeypatch.syspath_prepend(tmp_path)
    assert sha256_of("python:my_bots.more.shy:Low") == digest(inner)
    assert not {"my_bots", "my_bots.more.shy"} & set(sys.modules)  # it is not imported
    monkeypatch.setattr(sys, "path", sys.path[1:])
    monkeypatch.chdir(tmp_path / "my_bots")
    (tmp_path / "my_bots" / "code.py").write_text(f"{BOT}# shy\n")  # before Python's
    assert sha256_of("python:code:Low") == digest(tmp_path / "my_bots" / "code.py")


def test_sha256_of__is_that_of_the_files_that_a_command_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bot, book = tmp_path / "bot", tmp_path / "my book.json"
    bot.write_text("#!/bin/sh\n")
    bot.chmod(0o755)
    book.write_text("{}")
    assert sha256_of(f"exec:{bot} --depth 2") == digest(bot)
    assert sha256_of(f"exec:sh {bot} '{book}'") == digest(bot, book)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert sha256_of("exec:bot --depth 2") == digest(bot)  # found by its name alone


def test_make_verified__allows_an_agent_to_write_to_files_but_not_to_change(tmp_path: Path) -> None:
    file, log = tmp_path / "wordy.py", tmp_path / "log"
    file.write_text(BOT)
    began = make(f"python:{file}:Low,log={log}")
    log.write_text("1")
    assert make_verified(began.source, began.sha256).sha256 == digest(file, log)
    file.write_text(f"{BOT}# new\n")
    with pytest.raises(AgentFailed, match="wordy"):
        make_verified.__wrapped__(began.source, began.sha256)
