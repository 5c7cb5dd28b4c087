"""Run folders: settings files, creation, extension and locks."""

import tomllib
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from positions import shikoku_data, write_board
from short_run import TINY, error_line, resume
from test_files import held_elsewhere

from tokaido_env.learn.run_folder import create_folder, extended, load_settings, read_config
from tokaido_env.learn.settings import RunError, TdSettings


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A new run folder, before training."""
    create_folder(tmp_path / "run", TdSettings(updates=50, seed=3))
    return tmp_path / "run"


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_config_toml__has_every_setting_with_its_help_text(folder: Path) -> None:
    text = (folder / "config.toml").read_text(encoding="utf-8")
    assert load_settings(folder) == TdSettings(updates=50, seed=3)
    lines = text.partition("[layout]")[0].splitlines()
    for name, help_text in TdSettings.help_texts().items():
        own = [line for line in lines if line.startswith(f"{name} = ")]
        assert len(own) == 1
        assert own[0].endswith(f"# {help_text}")
    assert set(tomllib.loads(text)) == {"run", "settings", "layout", "boards", "versions"}
    assert read_config(folder / "config.toml") == ("td", asdict(TdSettings(updates=50, seed=3)))


def test_read_config__accepts_some_settings(tmp_path: Path) -> None:
    file = write(tmp_path / "my.toml", "[settings]\ngames = 64\ntemperature = 0\n")
    assert read_config(file) == (None, {"games": 64, "temperature": 0.0})
    write(file, '[run]\nmethod = "alphazero"\n[settings]\nsims = 7\n')
    assert read_config(file) == ("alphazero", {"sims": 7})
    with pytest.raises(RunError, match=r"run\.method: .*td.*alphazero"):
        read_config(file, "td")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("[settings]\nlearing_rate = 0.1", "learning_rate"),
        ("[setings]\ngames = 64", "setings"),
        ("run = 3\n[settings]", "run"),
        ("[settings]\ngames = 'many'", "games"),
        ("[settings", "TOML"),
    ],
)
def test_read_config__names_the_place_in_an_invalid_file(
    tmp_path: Path, text: str, place: str
) -> None:
    file = write(tmp_path / "my.toml", text)
    with pytest.raises(ValueError, match=f"{file}: .*{place}"):
        read_config(file)


def test_extend__raises_the_length_only(folder: Path) -> None:
    with pytest.raises(RunError, match="updates: expected 50, got 49"):
        extended(folder, {"updates": 49})
    with pytest.raises(RunError, match="only updates may grow"):
        extended(folder, {"updates": 60, "seed": 4})
    assert extended(folder, {"updates": 60}) == replace(TdSettings(), updates=60, seed=3)
    assert load_settings(folder).length == 50


@pytest.mark.parametrize("setting", ["board", "extra_boards"])
def test_resume__refuses_an_edited_board(
    setting: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    board = write_board(tmp_path / "mine.toml", shikoku_data() | {"max_rounds": 50})
    values: dict[str, Any] = TINY | {setting: str(board)}
    run = tmp_path / "run"
    create_folder(run, TdSettings(**values))
    before = (run / "config.toml").read_bytes()
    write_board(board, shikoku_data() | {"max_rounds": 60})
    for options in ((), ("--updates", "2")):
        assert resume(run, *options) == 1
        assert f"config.toml: boards.{setting}" in error_line(capsys)
    assert (run / "config.toml").read_bytes() == before


def test_resume__refuses_a_second_command(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    with held_elsewhere(run):
        for options in ((), ("--updates", "2")):
            assert resume(run, *options) == 1
            assert error_line(capsys).startswith(f"train: {run}: another command is working on it")
    after = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    assert {path: data for path, data in after.items() if path.name != ".lock"} == before
