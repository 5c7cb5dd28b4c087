"""Run folders: settings files, creation, extension, locks and leftover files."""

import json
import re
import shutil
import sys
import tomllib
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from short_run import VALUES, error_line, options_of, resume
from test_files import held_elsewhere

from tokaido_env.agents import AgentError, make
from tokaido_env.arena.ladder import LadderError
from tokaido_env.boards.board import BoardError
from tokaido_env.cli.train import main as train
from tokaido_env.learn.run_folder import create_folder, extend, load_settings, read_config
from tokaido_env.learn.settings import PpoSettings, join_specs, split_specs
from tokaido_env.learn.settings_schema import RunError

TEMP = f".{7:016x}.tmp"  # the suffix of a file that was being written


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A new run folder, before training."""
    create_folder(tmp_path / "run", PpoSettings(steps=5000, seed=3))
    return tmp_path / "run"


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def config_file(path: Path, **values: Any) -> Path:
    lines = [f"{name} = {json.dumps(value)}" for name, value in (VALUES | values).items()]
    path.write_text('[run]\nmethod = "ppo"\n[settings]\n' + "\n".join(lines), encoding="utf-8")
    return path


# Settings files


def test_config_toml__has_every_setting_with_its_help_text(folder: Path) -> None:
    text = (folder / "config.toml").read_text(encoding="utf-8")
    assert load_settings(folder) == PpoSettings(steps=5000, seed=3)
    lines = text.partition("[layout]")[0].splitlines()
    for name, help_text in PpoSettings.help_texts().items():
        own = [line for line in lines if line.startswith(f"{name} = ")]
        assert len(own) == 1
        assert own[0].endswith(f"# {help_text}")
    assert set(tomllib.loads(text)) == {"run", "settings", "layout", "versions", "files"}
    assert read_config(folder / "config.toml") == ("ppo", asdict(PpoSettings(steps=5000, seed=3)))


def test_config_toml__keeps_any_text(tmp_path: Path) -> None:
    ladder = tmp_path / 'a "ladder" # é 🎲\x00\x1b\x7f\x85\\.json'
    settings = PpoSettings(rate_every=0, ladder=str(ladder))
    create_folder(tmp_path / "run", settings)
    assert load_settings(tmp_path / "run") == settings


def test_read_config__accepts_some_settings(tmp_path: Path) -> None:
    file = write(tmp_path / "my.toml", "[settings]\ngames = 64\ntemperature = 0\n")
    assert read_config(file) == (None, {"games": 64, "temperature": 0.0})
    assert read_config(file, ignored=["games"]).settings == {"temperature": 0.0}
    write(file, '[run]\nmethod = "alphazero"\n[settings]\nsims = 7\n')
    assert read_config(file) == ("alphazero", {"sims": 7})
    with pytest.raises(RunError, match=r"run\.method: expected ppo, got 'alphazero'"):
        read_config(file, "ppo")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[settings]\nlearing_rate = 0.1", "unknown setting 'learing_rate': the nearest is 'lea"),
        ("[settings]\nxyz = 1", "unknown setting 'xyz': expected one of seed, "),
        ("[setings]\ngames = 64", "unknown table 'setings': the nearest is 'settings'"),
        ("games = 64", "unknown table 'games'"),
        ("", "expected a table [settings]"),
        ("[settings]\ngames = 'many'", "games: expected an integer from 1, got 'many'"),
        ("[settings", "not a TOML file"),
    ],
)
def test_read_config__refuses_an_invalid_file(tmp_path: Path, text: str, message: str) -> None:
    file = write(tmp_path / "my.toml", text)
    with pytest.raises(RunError, match=re.escape(message)) as refused:
        read_config(file)
    assert str(refused.value).startswith(f"{file}: ")
    assert "\n" not in str(refused.value)


def test_read_config__ignores_settings_of_the_command_line(tmp_path: Path) -> None:
    config = config_file(tmp_path / "my.toml", agents="python:custom_agents:Dice")
    assert "agents" not in read_config(config, ignored=["agents"]).settings
    with pytest.raises(
        AgentError, match=r"my\.toml: agents: 'python:custom_agents:Dice': a file may"
    ):
        read_config(config)


def test_split_specs__reads_quoted_specs() -> None:
    assert split_specs("greedy  'policy:my runs/best' \"policy:it's here\"") == [
        *("greedy", "policy:my runs/best", "policy:it's here")
    ]
    for specs in (["a"], ["a b", "c"], ["it's a"], ["python:a:B,c='d'", 'python:a:B,c="d"']):
        assert split_specs(join_specs(specs)) == specs
    with pytest.raises(RunError, match="without spaces, or without quotes"):
        join_specs(["'a' \"b"])


@pytest.mark.parametrize("name", ["subprocess:Popen"])
def test_make__does_not_call_a_class_that_is_no_agent(name: str, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    with pytest.raises(AgentError, match=r"has neither choose\(game, rng\) nor act\(boards"):
        make(f"python:{name},args=echo>{trace},shell=True")
    assert not trace.exists()


def test_resume__needs_custom_agents_named_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, agents = tmp_path / "run", "greedy python:custom_agents:HighestAtOnce"
    settings = PpoSettings(**VALUES | {"agents": agents})
    assert train(["--run", str(run), *options_of(settings)]) == 0
    capsys.readouterr()
    assert resume(run, "--steps", "512") == 1
    assert "name this agent on the command line (train: --agents, " in error_line(capsys)
    assert resume(run, "--steps", "512", "--agents", "greedy python:custom_agents:Highest") == 1
    assert "cannot resume with other settings" in error_line(capsys)
    assert resume(run, "--steps", "512", "--agents", agents) == 0


# New folders


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({"board": "honshu"}, BoardError, "unknown board 'honshu'"),
        ({"agents": "greedy gredy"}, AgentError, "unknown agent 'gredy'"),
        ({"ladder": "\x1b" * 900}, LadderError, "…: cannot be read: File name too long; choose"),
        ({"board": "shikoku_ring"}, LadderError, "on another board; choose another with --ladder"),
    ],
)
def test_create_folder__refuses_missing_files_and_creates_nothing(
    tmp_path: Path, values: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=re.escape(message)) as refused:
        create_folder(tmp_path / "run", PpoSettings(**values))
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 500
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("leftover", [f"config.toml{TEMP}", "config.toml.lock", ".lock"])
def test_create_folder__accepts_leftovers_of_a_kill(tmp_path: Path, leftover: str) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / leftover).write_text("[sett", encoding="utf-8")
    create_folder(run, PpoSettings(**VALUES))
    assert load_settings(run) == PpoSettings(**VALUES)
    assert [path.name for path in run.iterdir()] == ["config.toml"]


# Existing folders


def test_extend__raises_the_length_only(folder: Path) -> None:
    with pytest.raises(RunError, match="steps: expected 5000, got 4999"):
        extend(folder, {"steps": 4999})
    with pytest.raises(RunError, match="only steps may grow"):
        extend(folder, {"steps": 6000, "seed": 4})
    assert load_settings(folder).steps == 5000
    extend(folder, {"steps": 6000})
    assert load_settings(folder) == replace(PpoSettings(), steps=6000, seed=3)


def test_load_settings__refuses_missing_settings(folder: Path) -> None:
    config = folder / "config.toml"
    lines = config.read_text(encoding="utf-8").splitlines(keepends=True)
    write(config, "".join(line for line in lines if not line.startswith("games")))
    with pytest.raises(RunError, match="settings missing: games"):
        load_settings(folder)


def test_locked_run__refuses_an_edited_board(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from positions import shikoku_data, write_board

    board = write_board(tmp_path / "mine.toml", shikoku_data() | {"max_rounds": 50})
    run = tmp_path / "run"
    create_folder(run, PpoSettings(**VALUES | {"board": str(board)}))
    before = (run / "config.toml").read_bytes()
    write_board(board, shikoku_data() | {"max_rounds": 60})
    for options in ((), ("--steps", "512")):
        assert resume(run, *options) == 1
        assert "config.toml: files: 'board'" in error_line(capsys)
    assert (run / "config.toml").read_bytes() == before


UNFINISHED = (  # written by training, to be deleted
    *(f"{name}{TEMP}" for name in ("config.toml", "metrics.jsonl", "best", "last")),
    *(f"policies/000000256{TEMP}", f"shards/0001-0002.safetensors{TEMP}", "last.lock"),
    f"checkpoints/000000512.safetensors{TEMP}",
)


OTHER_FILES = (  # not from training, to be kept
    *(f"{name}{TEMP}" for name in ("notes", "policies/mine", "tb/000000256", "000000256")),
    *(f"{name}{TEMP}" for name in ("mine/best", "policies/best", "best.x")),
    *("best.tmp", "best.0.tmp", "mine.lock", f"checkpoints/000000512{TEMP}/best"),
    f"best.{8:016x}.tmp/best{TEMP}",
)


def test_locked_run__deletes_unfinished_files_only(run: Path) -> None:
    before = {path for path in run.rglob("*") if path.is_file()}
    for name in UNFINISHED + OTHER_FILES:
        (run / name).parent.mkdir(exist_ok=True)
        (run / name).write_text("half", encoding="utf-8")
    assert resume(run) == 0
    after = {path for path in run.rglob("*") if path.is_file() and "events" not in path.name}
    before = {path for path in before if "events" not in path.name}
    assert after == before | {run / name for name in OTHER_FILES}


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege")
def test_locked_run__deletes_nothing_through_links(run: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    precious = elsewhere / f"000000256{TEMP}"
    precious.write_text("precious", encoding="utf-8")
    shutil.rmtree(run / "policies")
    (run / "policies").symlink_to(elsewhere)
    (run / f"best{TEMP}").symlink_to(precious)
    (run / "checkpoints" / f"000000512.safetensors{TEMP}").symlink_to(elsewhere)
    assert resume(run) == 1
    assert precious.read_text(encoding="utf-8") == "precious"
    assert (run / f"best{TEMP}").is_symlink()


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege")
@pytest.mark.parametrize("part", ["policies", "tb", "policies/000000000"])
def test_run__refuses_links_in_its_folder(
    run: Path, tmp_path: Path, part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (run / part).rename(tmp_path / "elsewhere")
    if part == "policies":
        (tmp_path / "elsewhere" / "000000128").write_text("precious", encoding="utf-8")
    (run / part).symlink_to(tmp_path / "elsewhere")
    before = sorted((tmp_path / "elsewhere").glob("*"))
    assert resume(run, "--steps", "512") == 1
    assert f"{run / part}: expected a file or folder of the run, got a link" in error_line(capsys)
    assert sorted((tmp_path / "elsewhere").glob("*")) == before


def test_locked_run__refuses_a_second_command(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    with held_elsewhere(run):
        for options in ((), ("--steps", "512")):
            assert resume(run, *options) == 1
            assert error_line(capsys).startswith(f"train: {run}: another command is working on it")
    after = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    assert {path: data for path, data in after.items() if path.name != ".lock"} == before
