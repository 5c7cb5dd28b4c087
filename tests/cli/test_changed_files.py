"""Commands with another file behind their records: refused before a game, and nothing is written.

Each test runs a command, changes a file, and runs the command again.
"""

import json
from pathlib import Path

import pytest
from networks import random_policy
from refusals import check_refused
from regrets import small_set

from tokaido_env.__main__ import main
from tokaido_env.arena.ladder import Ladder
from tokaido_env.arena.result import Result
from tokaido_env.record import load

Output = pytest.CaptureFixture[str]
LOWEST = "class Bot:\n    def choose(self, game, rng):\n        return game.legal_actions()[0]\n"
HIGHEST = LOWEST.replace("[0]", "[-1]")


BOT = "python:bot.py:Bot"


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a policy in the current folder, next to a bot."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bot.py").write_text(LOWEST)
    random_policy(seed=0).save("net")
    return tmp_path / "net"


@pytest.fixture
def other(policy: Path) -> bytes:
    """Return the contents of another policy."""
    path = policy.with_name("other")
    random_policy(seed=1).save(path)
    return path.read_bytes()


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*[!c]") if path.is_file()}


def check_bound(capsys: Output, command: list[str], file: Path, other: bytes, name: str) -> None:
    """Check that a command is refused while a file has another content, and runs with the old."""
    old = file.read_bytes()
    file.write_bytes(other)
    before = contents(file.parent)
    capsys.readouterr()
    check_refused(capsys, command, name)
    after = contents(file.parent)
    assert {path: after[path] for path in before} == before
    file.write_bytes(old)
    assert main(command) == 0


COMMANDS = {
    "evaluate": "evaluate policy:net random greedy --games 2",
    "rate": "rate policy:net --ladder l.json --games 4",
    "generalise": f"generalise policy:net --opponent {BOT} --boards 2 --pairs 1 --no-gap",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_command__refuses_records_of_another_policy(
    name: str, policy: Path, other: bytes, capsys: Output
) -> None:
    assert main(["ladder", "greedy", "random", "--out", "l.json", "--games", "4"]) == 0
    command = COMMANDS[name].split()
    command += ["--executor", "serial", "--records", "games.jsonl", "--json", "r.json"]
    assert main(command) == 0
    files = Result.load(Path("r.json")).files
    assert "policy:net" in files
    lines = Path("games.jsonl").read_text().splitlines()
    named = [bool({*files} & {*json.loads(line)["players"]}) for line in lines]
    assert named == ["files" in json.loads(line) for line in lines]
    check_bound(capsys, command, policy, other, "policy:net")
    if name == "generalise":
        assert {*files} == {"policy:net", BOT}
        check_bound(capsys, command, policy.with_name("bot.py"), HIGHEST.encode(), BOT)


def test_evaluate__refuses_records_of_another_agent_with_the_same_name(
    policy: Path, capsys: Output
) -> None:
    words = ["random", "--games", "2", "--records", "games.jsonl", "--executor", "serial"]
    command = ["evaluate", f"mine={BOT}", *words]
    assert main(command) == 0
    check_bound(capsys, command, policy.with_name("bot.py"), HIGHEST.encode(), f"mine={BOT}")
    capsys.readouterr()
    check_refused(capsys, ["evaluate", "mine=exec:sh bot.py", *words], f"mine={BOT}")
    check_refused(capsys, ["evaluate", "mine=greedy", *words], "mine=")


def test_evaluate__refuses_to_merge_games_of_two_policies(policy: Path, capsys: Output) -> None:
    parts = ["1.jsonl", "2.jsonl", "3.jsonl"]
    for seed, part in enumerate(parts):
        random_policy(seed=seed // 2).save(policy)
        words = ["--games", "2", "--seed", str(seed), "--records", part]
        assert main(["evaluate", "policy:net", "random", *words]) == 0
    capsys.readouterr()
    merge = ["evaluate", "--from-records", *parts]
    check_refused(capsys, merge, "3.jsonl, line 1: files: expected 'policy:net'")
    assert main([*merge[:-1], "--json", "r.json"]) == 0
    assert Result.load(Path("r.json")).files == load(parts[0])[0].files


def test_ladder__refuses_to_resume_and_to_rate_with_another_policy(
    policy: Path, other: bytes, capsys: Output
) -> None:
    path, old = Path("l.json"), policy.read_bytes()
    make = ["ladder", "random", "policy:net", "--games", "4", "--out", str(path)]
    assert main(make) == 0
    policy.write_bytes(other)
    before = path.read_bytes()
    capsys.readouterr()
    check_refused(capsys, [*make[:3], "greedy", *make[3:]], "l.json: files: 'policy:net'")
    check_refused(capsys, ["rate", "greedy", "--ladder", "l.json"], "l.json: files: 'policy:net'")
    assert path.read_bytes() == before
    policy.write_bytes(old)
    assert main([*make[:3], "greedy", *make[3:]]) == 0
    assert [*Result.load(path).files] == ["policy:net"]
    policy.unlink()
    assert Ladder.load(path).result == Result.load(path)  # it may not be met


def test_regret__writes_the_files_of_its_agents(policy: Path) -> None:
    small_set().save("set.npz")
    command = ["regret", "policy:net", "greedy", "--set", "set.npz", "--json", "r.json"]
    assert main(command) == 0
    assert [*Result.load(Path("r.json")).files] == ["policy:net"]
