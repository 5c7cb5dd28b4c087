"""Tests of `tokaido`: help, errors, streams, and commands that print tables."""

import io
import os
import re
import runpy
import signal
import subprocess
import sys
import tomllib
from functools import partial
from pathlib import Path
from typing import cast

import gymnasium
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cyclopts import ArgumentCollection
from safetensors import SafetensorError
from slow_cases import slow_except_first
from test_files import NO_LOCKS, refuse_locks

from tokaido_env import FEATURES, Game, raw_env
from tokaido_env.__main__ import COMMANDS, GROUPS, load, main
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.cli.command import Command, NoOptions, command, parse, program
from tokaido_env.core.actions import LABELS
from tokaido_env.core.board_features import BOARD_FEATURES
from tokaido_env.features.afterstate_observation import AFTERSTATE_FEATURES, AFTERSTATE_INPUTS
from tokaido_env.learn.settings import TdSettings
from tokaido_env.record import save

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "games.jsonl"

Output = pytest.CaptureFixture[str]


def test_export__prints_the_number_of_rows(tmp_path: Path, capsys: Output) -> None:
    out = tmp_path / "games.parquet"
    assert main(["export", str(GOLDEN), str(out), "--board", "shikoku", "--uint8"]) == 0
    table = pq.read_table(out)
    assert capsys.readouterr().out == f"{out}: {len(table)} decisions of 6 games\n"
    assert table.schema.field("observation").type.value_type == pa.uint8()


def test_features__prints_the_layouts(capsys: Output) -> None:
    assert main(["features"]) == 0
    tables = capsys.readouterr().out.split("\n\n")
    layouts = [FEATURES, BOARD_FEATURES]
    for table, layout in zip(tables, layouts, strict=False):
        _, _, *rows, last = table.splitlines()
        printed = []
        for row in rows:
            start, end, scale, name, meaning = row.split(maxsplit=4)
            meaning = meaning.partition("; index ")[0]
            printed.append((name, int(start), int(end) - int(start) + 1, int(scale), meaning))
        assert printed == [tuple(feature) for feature in layout]
        assert last.startswith(f"{sum(feature.size for feature in layout)} numbers")
    inputs, features = tables[len(layouts) :]
    for table, columns in ((inputs, AFTERSTATE_INPUTS), (features, AFTERSTATE_FEATURES)):
        _, _, *rows, last = table.splitlines()
        fields = [row.split(maxsplit=6) for row in rows]
        assert [(name, int(start), text) for start, _, _, _, _, name, text in fields] == [
            (each.name, each.start, each.meaning) for each in columns
        ]
        bounds = [[float(number) for number in row[2:5]] for row in fields]
        expected = [[each.unit, each.low, each.high] for each in columns]
        np.testing.assert_allclose(bounds, expected, rtol=1e-4)
        assert last.startswith(f"{columns[-1].slice.stop} numbers")


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


def test_version__equals_the_project(capsys: Output) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"tokaido_env {project['version']}\n"


# Help


def test_main__lists_all_commands(capsys: Output) -> None:
    assert main(["--help"]) == 0
    printed = capsys.readouterr().out
    for group, entries in GROUPS.items():
        panel = printed.partition(f"─ {group} ─")[2].partition("╰")[0]
        listed = [line.split()[1] for line in panel.splitlines()[1:] if line.startswith("│ ")]
        assert listed == sorted(entries)
    assert main([]) == 2
    assert capsys.readouterr().err == printed


def arguments(name: str) -> ArgumentCollection:
    return load(name).app().assemble_argument_collection(parse_docstring=True)


@pytest.mark.parametrize("name", COMMANDS)
def test_help__describes_each_argument_and_gives_examples(capsys: Output, name: str) -> None:
    assert main([name, "--help"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"Usage: tokaido {name}")
    words = " ".join(re.sub("[│╭╮╰╯─]", " ", printed).split())
    for argument in arguments(name):
        assert argument.parameter.help
        meaning = " ".join(argument.parameter.help.replace("`", "").split())
        assert re.search(rf"{argument.name} (\S+ )?{re.escape(meaning)}", words)
    assert (f" tokaido {name}" in printed.partition("\nExamples:")[2]) == bool(arguments(name))


def test_options__have_one_kind_of_value_in_all_commands() -> None:
    kinds: dict[str, set[str]] = {}
    for name in COMMANDS:
        for one in arguments(name):
            if one.name.startswith("--") and name != "train":  # settings are those of a file
                kinds.setdefault(one.name, set()).add(f"{one.hint}".replace(" | None", ""))
    of_types = {
        name: {re.sub("<class '(.*)'>", r"\1", one) for one in of} for name, of in kinds.items()
    }
    assert len(of_types) > 50
    assert {name for name, of in of_types.items() if len(of) > 1} == set()


def test_train__takes_the_given_settings_with_their_types() -> None:
    words = ["--updates=12", "--value-lambda", "0.5", "--start-from=", "--updates=9"]
    found = parse(load("train").app(words), words)
    given = {name: getattr(found, name) for name in TdSettings.defaults()}
    kept = {name: value for name, value in given.items() if value is not None}
    assert kept == {"updates": 9, "value_lambda": 0.5, "start_from": ""}


@pytest.mark.parametrize("shell", slow_except_first(["bash", "zsh", "fish"]))
def test_completion__knows_commands_and_options(shell: str, tmp_path: Path) -> None:
    file = tmp_path / "completion"
    assert main(["--install-completion", "--shell", shell, "--output", str(file)]) == 0
    script = file.read_text(encoding="utf-8")
    assert all(name in script for name in COMMANDS)
    assert "opponent-count" in script


# Errors


def failing(*reasons: BaseException, known: type[Exception] = LookupError) -> Command:
    left = iter(reasons)

    @command("sing", known)
    def sing(options: NoOptions) -> int:
        raise next(left)

    return cast(Command, sing)


def test_command__prints_one_line_and_returns_the_status(capsys: Output) -> None:
    """Also errors of libraries; those of programming it raises."""
    reasons = {
        "a: expected b": ValueError("a: expected b"),
        "[Errno 2] none": FileNotFoundError(2, "none"),
        "x: None there": FileNotFoundError(2, "None there", "x"),
        "of its own": LookupError("of its own"),
        "no version": gymnasium.error.Error("no\nversion"),
        "no header": SafetensorError("no header"),
    }
    sing = failing(*reasons.values(), KeyboardInterrupt(), TypeError("bug"))
    for message in reasons:
        assert sing([]) == 1
        assert capsys.readouterr().err == f"sing: {message}\n"
    assert sing([]) == 130
    assert capsys.readouterr().err == "sing: interrupted\n"
    with pytest.raises(TypeError, match="bug"):
        sing([])


@pytest.mark.skipif(sys.platform == "win32", reason="Windows lacks this signal")
@pytest.mark.parametrize("is_script", [False, True])
@pytest.mark.parametrize(
    ("module", "status", "message"),
    [
        ("gymnasium", -signal.SIGINT, b""),  # 130 for a shell
        ("cyclopts", 130, b"tokaido: interrupted\n"),
    ],
)
def test_main__ends_by_ctrl_c_while_modules_load(
    tmp_path: Path, module: str, status: int, message: bytes, is_script: bool
) -> None:
    """A module of the command waits for the signal."""
    waits = "import time, sys; print('loading', flush=True); time.sleep(60)"
    (tmp_path / f"{module}.py").write_text(waits, encoding="utf-8")
    script = Path(sys.executable).with_name("tokaido")
    if is_script and not script.exists():
        pytest.skip("the package is not installed")
    running = subprocess.Popen(
        [*([script] if is_script else [sys.executable, "-m", "tokaido_env"]), "actions"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
    )
    assert running.stdout is not None
    assert running.stdout.readline() == b"loading\n"
    running.send_signal(signal.SIGINT)
    _, error = running.communicate(timeout=60)
    assert (running.returncode, error) == (status, message)


TD = "--method td --updates 1 --games 4 --width 8 --threads 1 --rate-every 0"


@pytest.mark.parametrize(
    "call",
    [
        "evaluate greedy random --games 2 --records FILE",
        "ladder greedy random --games 2 --out FILE",
        "play --terminal --opponent greedy --seed 1 --save FILE",
        f"train --run FILE {TD}",
    ],
)
def test_main__writes_where_the_file_system_has_no_locks(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    """Each lock fails with one of seven errors."""
    refuse_locks(monkeypatch, *NO_LOCKS)
    monkeypatch.setattr("builtins.input", lambda prompt: "1")
    with pytest.warns(RuntimeWarning) as warned:
        assert main(call.replace("FILE", str(tmp_path / "made")).split()) == 0, capsys.readouterr()
    (tmp_path / "made").stat()
    assert not [path for path in tmp_path.rglob("*") if path.suffix in (".lock", ".tmp")]
    texts = [str(one.message).partition(": its file system has no locks: ") for one in warned]
    assert {bool(separator) for _, separator, _ in texts} == {True}
    folders = [Path(folder) for folder, _, _ in texts]
    assert len(folders) == len(set(folders))
    assert tmp_path in (folders[0], folders[0].parent)


FOREIGN = """
import signal, sys, threading
default = signal.getsignal(signal.SIGINT)
import tokaido_env
from tokaido_env.__main__ import main
assert signal.getsignal(signal.SIGINT) is default is signal.default_int_handler
signal.signal(signal.SIGINT, signal.SIG_DFL)
statuses = []
thread = threading.Thread(target=lambda: statuses.append(main(["actions"])))
thread.start()
thread.join()
assert statuses == [main(["actions"])] == [0]
assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL
signal.signal(signal.SIGINT, default)
try:
    signal.raise_signal(signal.SIGINT)
finally:
    print("at the end", file=sys.stderr)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows lacks this signal")
@pytest.mark.parametrize(
    "call", slow_except_first(["-m mine tokaido_env", "tokaido", "tokaido.py"])
)
def test_main__leaves_the_signals_of_other_programs(tmp_path: Path, call: str) -> None:
    """In any thread, and with any handler."""
    (tmp_path / "mine").mkdir()
    for name, text in (
        *(("mine/__init__.py", "import tokaido_env"), ("mine/__main__.py", FOREIGN)),
        *(("tokaido", FOREIGN), ("tokaido.py", FOREIGN)),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, *call.split()],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert ended.returncode == -signal.SIGINT, ended.stderr
    assert ended.stderr.startswith("at the end\n"), ended.stderr
    assert ended.stderr.endswith("\nKeyboardInterrupt\n")


# The program's name


@pytest.mark.parametrize(
    ("started", "command", "name"),
    [
        ("/home/me/bin/tokaido", "train", "tokaido train"),
        ("/home/me/tokaido_env/__main__.py", "train", "python -m tokaido_env train"),
        ("train.py", "train", "python train.py"),
        ("train.py", "evaluate", "tokaido evaluate"),
        ("/home/me/pytest/__main__.py", "", "tokaido"),
    ],
)
def test_program__is_named_as_called(
    monkeypatch: pytest.MonkeyPatch, started: str, command: str, name: str
) -> None:
    monkeypatch.setattr(sys, "argv", [started, "--help"])
    assert program(command) == name


@pytest.mark.parametrize(
    ("command", "call"),
    [
        ("train", ["train.py"]),
        ("evaluate", ["evaluate.py"]),
        ("train", ["-m", "tokaido_env", "train"]),
    ],
)
def test_scripts__have_the_help_of_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: Output, command: str, call: list[str]
) -> None:
    """The help differs only in the name of the program, in usage and examples."""
    assert main([command, "--help"]) == 0
    printed, name = capsys.readouterr().out, " ".join(["python", *call])
    is_module = call[0] == "-m"
    monkeypatch.delitem(sys.modules, "tokaido_env.__main__")
    monkeypatch.setattr(sys, "argv", [*call[is_module:], "--help"])
    start = partial(runpy.run_module, alter_sys=True) if is_module else runpy.run_path
    with pytest.raises(SystemExit) as ended:
        start(call[1] if is_module else str(ROOT / call[0]), run_name="__main__")
    own = capsys.readouterr().out
    assert not ended.value.code
    assert own.startswith(f"Usage: {name} ")
    own, printed = (" ".join(text.split()) for text in (own, printed))
    assert own.count(name) > 4
    assert own.replace(name, f"tokaido {command}") == printed


# Streams

PRINTING = {
    "": 2,
    "--help": 0,
    "actions": 0,
    "features": 0,
    "agents": 0,
    "boards": 0,
    "evaluate greedy random --games 2": 0,
    "replay FILE --board BOARD": 0,
    "review FILE --board BOARD --judge champion --chance-samples 4": 0,
    "play --terminal --opponent greedy --seed 1": 0,
    "replay nothing-…": 1,
}
"""Commands and their exit statuses; FILE has a short game, on BOARD."""


@pytest.fixture
def file(short: Path, tmp_path: Path) -> Path:
    game = Game(short, seed=1)
    while not game.is_over:
        game.play(game.legal_actions()[0])
    path = tmp_path / "games.jsonl"
    save([game.record(("é", "…"))], path)
    return path


def printed(monkeypatch: pytest.MonkeyPatch, command: str, encoding: str) -> tuple[int, str]:
    """Return exit status, and what a command prints on streams of an encoding."""
    files = io.BytesIO(), io.BytesIO()
    with monkeypatch.context() as patch:
        for name, file in zip(("stdout", "stderr"), files, strict=True):
            patch.setattr(sys, name, io.TextIOWrapper(file, encoding))
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff\n"), encoding))
        status = main(command.split())
        sys.stderr.flush()
        return status, b"".join(file.getvalue() for file in files).decode(encoding)


@pytest.mark.parametrize("command", PRINTING)
def test_main__prints_everything_in_every_encoding(
    monkeypatch: pytest.MonkeyPatch, command: str, short: Path, file: Path
) -> None:
    """The words and numbers are those of UTF-8; other characters are similar ones of ASCII."""
    words: list[list[str]] = []
    for encoding in ("utf-8", "ascii", "latin-1", "cp1252"):
        call = command.replace("FILE", str(file)).replace("BOARD", str(short))
        status, text = printed(monkeypatch, call, encoding)
        assert status == PRINTING[command]
        words.append(re.findall(r"[A-Za-z0-9_%]+", text))
    assert len(words[0]) > 4
    assert words == words[:1] * 4


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_game__prints_in_every_encoding(monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    """Every sign of the picture gets an own one, so that no icon is lost."""
    game, file = Game(seed=1), io.BytesIO()
    text = str(game)
    adapter = raw_env(render_mode="ansi")
    adapter.reset(seed=1)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(file, encoding))
    print(game)
    print(adapter.render())
    sys.stdout.flush()
    drawn, _, again = file.getvalue().decode(encoding).replace("\r\n", "\n").partition("\nTok")
    assert len(drawn) >= len(text)
    pairs = set(zip(text, drawn, strict=False))
    assert [new for old, new in pairs if old.isascii() and old != new] == []
    icons = [new for old, new in pairs if old in "☾≋▲╫"]
    assert len(set(icons)) == len(icons) == 4
    assert "?" not in drawn + again


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGPIPE and /dev/full")
@pytest.mark.parametrize("command", ["actions", "--help", "agents", f"replay {GOLDEN}"])
def test_main__ends_quietly_at_a_closed_pipe_and_in_one_line_on_a_full_disk(
    monkeypatch: pytest.MonkeyPatch, capfd: Output, command: str
) -> None:
    for closed, status, lines in ((True, 141, 0), (False, 1, 1)):
        reader, writer = os.pipe()
        os.close(reader)
        out = os.fdopen(writer, "w") if closed else open("/dev/full", "w", encoding="utf-8")  # noqa: PTH123, SIM115
        with out, monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", out)
            assert main(command.split()) == status
        error = capfd.readouterr().err
        assert error.count("\n") == lines
        assert closed or "No space left on device" in error
        if not closed:
            os.close(writer)
