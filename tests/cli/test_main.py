"""Tests of `tokaido`: commands, help, errors, replay, features and actions."""

import io
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tokaido_env import FEATURES, Game, raw_env
from tokaido_env.__main__ import COMMANDS, main
from tokaido_env.cli.command import program, reports_errors
from tokaido_env.cli.evaluate import SUBCOMMANDS
from tokaido_env.core.actions import LABELS
from tokaido_env.core.board_features import BOARD_FEATURES
from tokaido_env.core.entities import ENTITY_FEATURES
from tokaido_env.features.afterstate_observation import AFTERSTATE_FEATURES, AFTERSTATE_INPUTS
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
    layouts = [FEATURES, BOARD_FEATURES, *ENTITY_FEATURES.values()]
    for table, layout in zip(tables, layouts, strict=False):
        _, _, *rows, last = table.splitlines()
        printed = []
        for row in rows:
            start, end, scale, name, meaning = row.split(maxsplit=4)
            meaning = meaning.partition("; index ")[0]
            printed.append((name, int(start), int(end) - int(start) + 1, int(scale), meaning))
        assert printed == [tuple(feature) for feature in layout]
        assert last.startswith(f"{sum(feature.size for feature in layout)} numbers")
    masks, inputs, features, actions = tables[len(layouts) :]
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
    assert masks.splitlines()[0] == "token_mask: 61, 0 or 1"
    _, _, *rows, last = actions.splitlines()
    assert [tuple(row.split()) for row in rows if row.startswith("merchant:M")] == [
        (f"merchant:M{i}", str(48 + i), "towns", str(7 + i)) for i in (1, 2, 3, 4)
    ]
    assert [row.split()[0] for row in rows] == list(LABELS)
    assert last == "61 tokens: 1 globals, 40 stations, 12 towns, 8 areas"


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


def test_main__lists_all_commands(capsys: Output) -> None:
    assert main(["--help"]) == 0
    printed = capsys.readouterr().out
    lines = {line.split()[0] for line in printed.splitlines() if line.startswith("  ")}
    assert lines == COMMANDS.keys()
    assert main([]) == 2
    assert capsys.readouterr().err == printed


def test_version__equals_the_project(capsys: Output) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"tokaido_env {project['version']}\n"


@pytest.mark.parametrize(
    "command",
    [
        *(name for name in COMMANDS if name != "train"),
        *(f"evaluate {name}" for name in SUBCOMMANDS),
        *("text play", "text positions"),
    ],
)
def test_help__ends_each_option_with_its_default(capsys: Output, command: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([*command.split(), "--help"])
    assert stopped.value.code == 0
    help_text = capsys.readouterr().out
    assert help_text.startswith(f"usage: tokaido {command} ")
    for option in re.split(r"\n  (?=-)", help_text)[1:]:
        words = " ".join(option.split())
        if not words.startswith(("-h, --help", "--ladder FILE ladder file to write")):
            assert re.search(r"\(default:\s[^()]+\)$", option.partition("\n\n")[0].rstrip()), option


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("replay g --gmae 1", "replay: unknown option '--gmae': the nearest is '--game'; tokaido "),
        ("generalise --comparee=x", "evaluate: unknown option '--comparee': the nearest "),
        ("actions all", "actions: unexpected argument 'all': tokaido actions --help lists all"),
        ("replay", "replay: file: expected a value, got none: tokaido replay --help lists all"),
        ("evaluate --games x", "evaluate: --games: expected an integer, got 'x'\n"),
        ("evaluate --error x", "evaluate: --error: expected a number, got 'x'\n"),
        *(
            (
                f"{command} --seed={seed}",
                f"{command.split()[0]}: --seed: expected an integer from 0, got '{seed}'\n",
            )
            for command in ("play", "review", "generalise")
            for seed in ("-1", "1.0")
        ),
        ("export a b --rows x", "export: --rows: expected one of 'decisions', 'games', got 'x'\n"),
    ],
)
def test_parser__refuses_wrong_arguments_in_one_line(
    capsys: Output, arguments: str, message: str
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments.split())
    assert stopped.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith(message)
    assert error.count("\n") == 1


def test_evaluate__names_the_nearest_subcommand(capsys: Output) -> None:
    assert main(["evaluate", "generalize", "champion"]) == 1
    assert "unknown subcommand 'generalize': the nearest is 'gen" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "remedy"),
    [("evalute", "the nearest is 'evaluate'"), ("ex" * 300, "expected one of play, review, ")],
)
def test_main__names_the_nearest_command(capsys: Output, command: str, remedy: str) -> None:
    assert main([command, "greedy"]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"tokaido: unknown command '{command[:40]}")
    assert remedy in error
    assert error.count("\n") == 1
    assert len(error) < 350


def test_reports_errors__prints_one_line_and_returns_the_status(capsys: Output) -> None:
    reasons = (ValueError("a: expected b"), FileNotFoundError(2, "none"), LookupError("of its own"))

    @reports_errors("sing", LookupError)
    def sing(arguments: Sequence[str] | None = None) -> int:
        raise reasons[int((arguments or ["0"])[0])]

    for number, message in enumerate(("a: expected b", "[Errno 2] none", "of its own")):
        assert sing([str(number)]) == 1
        assert capsys.readouterr().err == f"sing: {message}\n"

    def stopped(arguments: Sequence[str] | None = None) -> int:
        raise KeyboardInterrupt

    assert reports_errors("sing")(stopped)([]) == 130
    assert capsys.readouterr().err == "sing: interrupted\n"


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
    capsys: Output, command: str, call: list[str]
) -> None:
    """The help differs only in the name of the program, in usage and examples."""
    done = subprocess.run(
        [sys.executable, *call, "--help"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    with pytest.raises(SystemExit):
        main([command, "--help"])
    printed = capsys.readouterr().out
    name = " ".join(["python", *call])
    assert done.stdout.startswith(f"usage: {name} ")
    assert done.stdout.count(name) > 4
    assert done.stdout.replace(name, f"tokaido {command}").split() == printed.split()


# Streams

PRINTING = {
    "": 2,
    "--help": 0,
    "actions": 0,
    "features": 0,
    "agents": 0,
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
