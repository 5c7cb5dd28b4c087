"""Tests of `tokaido`: help, errors, streams, and commands that print tables."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from processes import run_script

from tokaido_env import FEATURES, Game
from tokaido_env.__main__ import COMMANDS, app, main
from tokaido_env.arena.game_runner import AgentFailed
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.cli.command import UsageError
from tokaido_env.core.actions import LABELS
from tokaido_env.core.board_features import BOARD_FEATURES
from tokaido_env.features.afterstate_observation import AFTERSTATE_FEATURES, AFTERSTATE_INPUTS

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "games.jsonl"

Output = pytest.CaptureFixture[str]


def test_export__prints_the_number_of_rows(tmp_path: Path, capsys: Output) -> None:
    out = tmp_path / "games.parquet"
    assert (
        main(["export", str(GOLDEN), str(out), "--board", "shikoku", "--observation", "uint8"]) == 0
    )
    table = pq.read_table(out)
    assert capsys.readouterr().out == f"{out}: {len(table)} decisions of 6 games\n"
    assert table.schema.field("observation").type.value_type == pa.uint8()


def test_features__prints_the_layouts(capsys: Output) -> None:
    assert main(["features"]) == 0
    printed = [line.split() for line in capsys.readouterr().out.splitlines()]
    for one in (*FEATURES, *BOARD_FEATURES):
        assert [str(one.start), str(one.start + one.size - 1), str(one.scale), one.name] in (
            line[:4] for line in printed
        )
    for column in (*AFTERSTATE_INPUTS, *AFTERSTATE_FEATURES):
        assert [str(column.start), column.name] in (
            [line[0], line[5]] for line in printed if line[5:]
        )


def test_agents_and_boards__list_all(capsys: Output) -> None:
    assert main(["agents"]) == 0
    printed = capsys.readouterr().out
    policy = "policy:PATH[,temperature=T][,endings=network]"
    for usage in ("random", "greedy[:epsilon=E]", "heuristic", policy):
        assert f"{usage}\n    " in printed
    assert main(["boards"]) == 0
    names = {line.split()[0] for line in capsys.readouterr().out.splitlines()}
    for name in names - {"family:NUMBER", "family:SPLIT/COUNT"}:
        assert len(BoardPool.load(f"{name}/2" if name.startswith("family") else name))
    boards = (ROOT / "tokaido_env" / "boards").glob("*.toml")
    assert {path.stem for path in boards} < names


def test_actions__prints_every_action_and_outcome(capsys: Output) -> None:
    """Against `ACTIONS` and the outcomes of a game with explicit chance."""
    assert main(["actions"]) == 0
    actions, outcomes = capsys.readouterr().out.split("\n\n")
    rows = [row.split(maxsplit=2) for row in actions.splitlines()[1:]]
    assert [(int(number), label) for number, label, _ in rows] == list(enumerate(LABELS))
    assert len({meaning for _, _, meaning in rows}) == len(LABELS)
    words = {(phase, label) for phase, *_, label in map(str.split, outcome_heads(outcomes))}
    game, seen = Game(seed=3, chance="explicit"), set()
    rng = np.random.default_rng(0)
    while not game.is_over:
        for label, _ in game.outcomes():
            seen.add((game.phase.name, written(label)))
        moves = game.legal_actions() or [label for label, _ in game.outcomes()]
        game.play(moves[int(rng.integers(len(moves)))])
    assert seen == words


def outcome_heads(table: str) -> list[str]:
    """Return phase, ids and label of each row."""
    return [row[:42] for row in table.splitlines()[1:]]


def written(label: str) -> str:
    """Return a label as in the table, which has one row for all boutiques and one for all rolls."""
    if label.startswith("boutique:"):
        return "boutique:TOWN=WARE/PRICE"
    return "roll:P/M/A" if label.startswith("roll:") else label


# Help


def test_main__lists_all_commands_without_loading_them() -> None:
    modules = [place.partition(":")[0] for place in COMMANDS.values()]
    script = f"""
import sys
from tokaido_env.__main__ import main
assert main(["--help"]) == main([]) == 0
assert not [name for name in {modules} if f"tokaido_env.cli.{{name}}" in sys.modules]
"""
    printed = run_script(script)
    assert all(f" {name} " in printed for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_help__describes_each_option_and_gives_examples(capsys: Output, name: str) -> None:
    parser = app()[name]
    options = parser.assemble_argument_collection(parse_docstring=True)
    assert main([name, "--help"]) == 0
    printed = capsys.readouterr().out
    assert all(one.parameter.help and one.name in printed for one in options)
    assert (f" tokaido {name}" in printed.partition("\nExamples:")[2]) == bool(options)


# Errors, and other ends


def fails(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> int:
    """Return the status of a command that raises an error."""

    def tables() -> list[str]:
        raise error

    monkeypatch.setattr("tokaido_env.cli.actions.tables", tables)
    return main(["actions"])


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (ValueError("a: expected\nb"), 1, "a: expected b"),
        (FileNotFoundError(2, "none", "x"), 1, "[Errno 2] none: 'x'"),
        (AgentFailed("agent x"), 1, "agent x"),
        (UsageError("a: expected b"), 2, "a: expected b"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_main__prints_one_line_and_returns_the_status(
    monkeypatch: pytest.MonkeyPatch,
    capsys: Output,
    error: BaseException,
    status: int,
    line: str,
) -> None:
    assert fails(monkeypatch, error) == status
    assert capsys.readouterr().err == f"actions: {line}\n"


def test_main__shows_where_an_error_of_programming_is(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TypeError, match="bug"):
        fails(monkeypatch, TypeError("bug"))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows lacks this signal")
def test_main__ends_silently_at_a_closed_pipe() -> None:
    command = [sys.executable, "-m", "tokaido_env", "actions"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait() == 141
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_paths__may_begin_with_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(GOLDEN, tmp_path / "games.jsonl")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert main(["export", "~/games.jsonl", "~/out.parquet", "--board", "shikoku"]) == 0
    assert (tmp_path / "out.parquet").is_file()


def test_import__changes_no_signal_and_prints_nothing() -> None:
    script = """
import signal
before = {one: signal.getsignal(one) for one in signal.valid_signals()}
import tokaido_env.__main__
assert before == {one: signal.getsignal(one) for one in signal.valid_signals()}
"""
    assert run_script(script) == ""
