"""Commands with another file behind their records: refused before a game, and nothing is written.

Each test runs a command, changes a file, and runs the command again.
"""

import json
from collections.abc import Callable
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


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    random_policy(seed=0).save(tmp_path / "net")
    return tmp_path / "net"


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*[!c]") if path.is_file()}


def check_bound(
    capsys: Output, command: list[str], file: Path, change: Callable[[], object], name: str
) -> None:
    """Check that a command is refused while a file has another content, and runs with the old."""
    old = file.read_bytes()
    change()
    before = contents(file.parent)
    capsys.readouterr()
    check_refused(capsys, command, name)
    after = contents(file.parent)
    assert {path: after[path] for path in before} == before
    file.write_bytes(old)
    assert main(command) == 0


def test_evaluate__refuses_records_of_another_policy(policy: Path, capsys: Output) -> None:
    records, result = policy.with_name("games.jsonl"), policy.with_name("r.json")
    command = ["evaluate", f"policy:{policy}", "random", "greedy", "--games", "2"]
    files = ["--records", str(records), "--json", str(result)]
    assert main([*command, *files]) == 0
    assert [*Result.load(result).files] == [f"policy:{policy}"]
    named = [f"policy:{policy}" in record.players for record in load(records)]
    assert named == ["files" in json.loads(line) for line in records.read_text().splitlines()]
    change = random_policy(seed=1).save
    check_bound(capsys, [*command, *files], policy, lambda: change(policy), f"policy:{policy}")


def test_evaluate__refuses_records_of_another_bot_file(tmp_path: Path, capsys: Output) -> None:
    bot, records = tmp_path / "bot.py", tmp_path / "games.jsonl"
    bot.write_text(LOWEST)
    spec = f"python:{bot}:Bot"
    command = ["evaluate", f"mine={spec}", "random", "--games", "2", "--records", str(records)]
    command += ["--executor", "serial"]
    assert main(command) == 0
    check_bound(capsys, command, bot, lambda: bot.write_text(HIGHEST), f"mine={spec}")
    capsys.readouterr()
    exec_bot = [command[0], f"mine=exec:sh {bot}", *command[2:]]  # by the same name
    check_refused(capsys, exec_bot, f"mine={spec}")


def test_evaluate__refuses_records_of_another_spec_with_the_same_name(
    tmp_path: Path, capsys: Output
) -> None:
    records = ["--records", str(tmp_path / "games.jsonl")]
    assert main(["evaluate", "a=greedy", "random", "--games", "2", *records]) == 0
    capsys.readouterr()
    check_refused(
        capsys, ["evaluate", "a=heuristic", "random", "--games", "2", *records], "'a=greedy'"
    )


def test_evaluate__refuses_to_merge_games_of_two_policies(policy: Path, capsys: Output) -> None:
    parts = [policy.with_name(name) for name in ("1.jsonl", "2.jsonl", "3.jsonl")]
    agents = [f"policy:{policy}", "random"]
    for seed, part in enumerate(parts):
        random_policy(seed=seed // 2).save(policy)
        play = ["evaluate", *agents, "--games", "2", "--seed", str(seed), "--records", str(part)]
        assert main(play) == 0
    capsys.readouterr()
    merge = ["evaluate", "--from-records", *map(str, parts)]
    check_refused(capsys, merge, f"{parts[2]}, line 1: files: expected 'policy:{policy}'")
    result = policy.with_name("r.json")
    assert main([*merge[:-1], "--json", str(result)]) == 0
    assert Result.load(result).files == load(parts[0])[0].files


def test_ladder__refuses_to_resume_and_to_rate_with_another_policy(
    policy: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(policy.parent)
    policy, path = Path("net"), Path("l.json")
    make = ["ladder", "random", "policy:net", "--games", "4", "--out", str(path)]
    assert main(make) == 0
    random_policy(seed=1).save(policy)
    before = path.read_bytes()
    capsys.readouterr()
    check_refused(capsys, [*make[:3], "greedy", *make[3:]], "l.json: files: 'policy:net'")
    check_refused(capsys, ["rate", "greedy", "--ladder", "l.json"], "l.json: files: 'policy:net'")
    assert path.read_bytes() == before
    random_policy(seed=0).save(policy)
    assert main([*make[:3], "greedy", *make[3:]]) == 0
    assert [*Result.load(path).files] == ["policy:net"]
    policy.unlink()
    assert Ladder.load(path).result == Result.load(path)  # it may not be met


@pytest.fixture
def rating(policy: Path) -> tuple[Path, list[str]]:
    """A result of `rate`, and the command that makes it."""
    assert main(["ladder", "greedy", "random", "--out", f"{policy}.l", "--games", "4"]) == 0
    files = ["--json", f"{policy}.json", "--records", f"{policy}.jsonl"]
    command = ["rate", f"policy:{policy}", "--ladder", f"{policy}.l", "--games", "4", *files]
    assert main(command) == 0
    return Path(f"{policy}.json"), command


def test_rate__refuses_records_of_another_policy(
    policy: Path, rating: tuple[Path, list[str]], capsys: Output
) -> None:
    change = random_policy(seed=1).save
    check_bound(capsys, rating[1], policy, lambda: change(policy), f"policy:{policy}")


def test_generalise__refuses_records_of_another_policy(policy: Path, capsys: Output) -> None:
    opponent = policy.with_name("bot.py")
    opponent.write_text(LOWEST)
    spec, records, result = f"python:{opponent}:Bot", f"{policy}.jsonl", f"{policy}.json"
    command = ["generalise", f"policy:{policy}", "--opponent", spec, "--boards", "2"]
    command += [
        "--executor",
        "serial",
        "--pairs",
        "1",
        "--no-gap",
        "--records",
        records,
        "--json",
        result,
    ]
    assert main(command) == 0
    assert {*Result.load(Path(result)).files} == {f"policy:{policy}", spec}
    change = random_policy(seed=1).save
    check_bound(capsys, command, policy, lambda: change(policy), f"policy:{policy}")
    check_bound(capsys, command, opponent, lambda: opponent.write_text(HIGHEST), spec)


def test_regret__writes_the_files_of_its_agents(policy: Path) -> None:
    regret_set = policy.with_name("set.npz")
    small_set().save(regret_set)
    command = ["regret", f"policy:{policy}", "greedy", "--set", str(regret_set)]
    assert main([*command, "--json", f"{policy}.json"]) == 0
    assert [*Result.load(Path(f"{policy}.json")).files] == [f"policy:{policy}"]
