"""PpoSettings and run folders: where a value comes from, what is refused, and what is told."""

import re
import tomllib
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from tokaido_env.agents import AgentError
from tokaido_env.arena.ladder import LadderError
from tokaido_env.boards.board import BoardError
from tokaido_env.learn.run_folder import (
    create_folder,
    extend,
    load_ladder,
    load_settings,
    read_config,
)
from tokaido_env.learn.settings import (
    METHODS,
    PRESETS,
    AlphaZeroSettings,
    PpoSettings,
    RunSettings,
)
from tokaido_env.learn.settings_schema import RunError

PPO = PpoSettings.defaults()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run that has been made but not begun."""
    create_folder(tmp_path / "run", PpoSettings(steps=5000, seed=3))
    return tmp_path / "run"


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


# Values


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"steps": 0}, "steps: expected an integer from 1, got 0"),
        ({"steps": 1.5}, "steps: expected an integer from 1, got 1.5"),
        ({"steps": True}, "steps: expected an integer from 1, got True"),
        ({"games": -1}, "games: expected an integer from 1, got -1"),
        ({"games": "many"}, "games: expected an integer from 1, got 'many'"),
        ({"board": 7}, "board: expected a text, got 7"),
        ({"learning_rate": 0.0}, "learning_rate: expected a number from 1e-09 to 1, got 0.0"),
        ({"learning_rate": float("nan")}, "learning_rate: expected a number"),
        ({"entropy_coef": float("inf")}, "entropy_coef: expected a number from 0 to 10, got inf"),
        ({"gae_lambda": 1.01}, "gae_lambda: expected a number from 0 to 1, got 1.01"),
        ({"steps": 10**400}, "steps: expected at most 9007199254740991 (2**53 - 1), got 1000"),
        ({"entropy_coef": 10**400}, "entropy_coef: expected a number from 0 to 10, got 1000"),
        ({"width": 4104}, "width: expected at most 4096, got 4104"),
        ({"games": 10**9}, "games * n_steps: expected at most 16777216, got 32000000000"),
        ({"board": "x" * 4001}, "board: expected at most 4000 characters, got 4001: 'xxx"),
        ({"ladder": "a\udcff"}, "ladder: expected a text in Unicode, got 'a\\udcff'"),
        ({"pool_size": 1}, "pool_size: expected an integer from 2, got 1"),
        ({"rating_games": 7}, "rating_games: expected an even number, got 7"),
        (
            {"minibatch_size": 100},
            "minibatch_size: expected a divisor of games * n_steps = 16384, got 100",
        ),
        ({"opponent_slots": 7}, "opponent_slots: expected a divisor of games = 512, got 7"),
        ({"share_past": 0.5}, "expected a sum of 1, got 0.5 + 0.5 + 0.25 = 1.25"),
        ({"share_past": -0.5}, "share_past: expected a number from 0 to 1, got -0.5"),
        ({"agents": ""}, "agents: expected one or more specs, or share_agents = 0"),
        (
            {"share_latest": 0.0, "share_past": 0.75},
            "share_latest: expected above 0, got 0: self-play trains the value; raise it, or set "
            "value_games = all",
        ),
        ({"value_games": "past"}, "value_games: expected 'self-play' or 'all', got 'past'"),
        ({"agents": "greedy greedy"}, "agents: expected each once, got 'greedy greedy'"),
        ({"seed": -1}, "seed: expected an integer from 0"),
        ({"seed": 2**53 - 2}, "seed: expected an integer from 0"),  # of the last game
        ({"width": 20}, "width: expected a multiple of 8, got 20"),
        ({"second_width": 5000}, "second_width: expected at most 4096, got 5000"),
        ({"promotion_games": 3}, "promotion_games: expected an even number, got 3"),
        (
            {"uniform_sampling": 0.9},
            "visit_sampling + uniform_sampling: expected at most 1, got 0.26 + 0.9",
        ),
        (
            {"full_search_share": 0.5},
            "full_search_share: expected 1, got 0.5: cheap_sims = 0 searches every",
        ),
        ({"shards": 0}, "shards: expected an integer from 1 to 10000, got 0"),
    ],
)
def test_a_wrong_value_is_told_with_what_was_expected(values: dict[str, Any], message: str) -> None:
    kind = PpoSettings if values.keys() <= PPO.keys() else AlphaZeroSettings
    with pytest.raises(ValueError, match=re.escape(message)):
        kind(**values)


def test_an_integer_stands_for_the_same_number() -> None:
    assert PpoSettings(gae_lambda=1) == PpoSettings(gae_lambda=1.0)
    assert type(PpoSettings(gae_lambda=1).gae_lambda) is float


def test_shares_may_be_rounded() -> None:
    third = 0.3333333
    PpoSettings(share_latest=third, share_past=third, share_agents=third)


def test_text_of_the_command_line_is_read_or_refused() -> None:
    assert PpoSettings.parse("steps", "12") == 12
    assert PpoSettings.parse("entropy_coef", "0.5") == 0.5
    assert PpoSettings.parse("agents", "greedy random") == "greedy random"
    with pytest.raises(RunError, match="steps: expected an integer from 1, got '1e6'"):
        PpoSettings.parse("steps", "1e6")


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_are_settings(preset: str) -> None:
    settings = PpoSettings(**PRESETS[preset])
    assert settings.steps > settings.rate_every > settings.update_steps
    assert settings.checkpoint_every > settings.update_steps


def test_presets_set_the_same_so_that_each_undoes_another() -> None:
    keys = [set(preset) for preset in PRESETS.values()]
    assert all(one == keys[0] for one in keys)
    assert list(PRESETS) == ["quick", "standard", "long"]


@pytest.mark.parametrize("kind", METHODS.values())
def test_every_setting_has_a_meaning(kind: type[RunSettings]) -> None:
    assert set(kind.help_texts()) == set(kind.defaults()) == set(asdict(kind()))
    assert all(kind.help_texts().values())
    assert kind.LENGTH in kind.defaults()


# Files


def test_config_toml_tells_every_value_with_its_meaning(folder: Path) -> None:
    text = (folder / "config.toml").read_text(encoding="utf-8")
    assert load_settings(folder) == PpoSettings(steps=5000, seed=3)
    lines = text.partition("[layout]")[0].splitlines()
    for name, meaning in PpoSettings.help_texts().items():
        assert [line for line in lines if line.startswith(f"{name} = ") and f"# {meaning}" in line]
    assert set(tomllib.loads(text)) == {"run", "settings", "layout", "versions"}


def test_texts_survive_in_config_toml(tmp_path: Path) -> None:
    ladder = tmp_path / 'a "ladder" # é 🎲\x00\x1b\x7f\x85\\.json'
    settings = PpoSettings(rate_every=0, ladder=str(ladder))
    create_folder(tmp_path / "run", settings)
    assert load_settings(tmp_path / "run") == settings


def test_the_config_of_a_run_is_a_config_file(folder: Path) -> None:
    found = read_config(folder / "config.toml")
    assert found == ("ppo", asdict(PpoSettings(steps=5000, seed=3)))


def test_a_config_file_may_hold_some_settings(tmp_path: Path) -> None:
    file = write(tmp_path / "my.toml", "[settings]\ngames = 64\nentropy_coef = 0\n")
    assert read_config(file) == (None, {"games": 64, "entropy_coef": 0.0})
    assert read_config(file, ignored=["games"]).settings == {"entropy_coef": 0.0}
    write(file, '[run]\nmethod = "alphazero"\n[settings]\nsims = 7\n')
    assert read_config(file) == ("alphazero", {"sims": 7})
    with pytest.raises(RunError, match=r"run\.method: expected ppo, got 'alphazero'"):
        read_config(file, "ppo")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[settings]\nlearing_rate = 0.1", "unknown setting 'learing_rate': the nearest is 'lea"),
        ("[settings]\nxyz = 1", "unknown setting 'xyz': the nearest is"),
        ("[setings]\ngames = 64", "unknown table 'setings': the nearest is 'settings'"),
        ("games = 64", "unknown table 'games'"),
        ("", "expected a table [settings]"),
        ("settings = 3", "expected a table [settings]"),
        ("[settings]\ngames = 'many'", "games: expected an integer from 1, got 'many'"),
        ("[settings]\ngames = [1]", "games: expected an integer from 1, got [1]"),
        ("[settings", "not a TOML file"),
    ],
)
def test_a_wrong_config_file_is_told(tmp_path: Path, text: str, message: str) -> None:
    file = write(tmp_path / "my.toml", text)
    with pytest.raises(RunError, match=re.escape(message)) as refused:
        read_config(file)
    assert str(refused.value).startswith(f"{file}: ")
    assert "\n" not in str(refused.value)


# Beginning and going on


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({"board": "honshu"}, BoardError, "unknown board 'honshu'"),
        ({"agents": "greedy gredy"}, AgentError, "unknown agent 'gredy'"),
        ({"ladder": "\x1b" * 900}, LadderError, "…: cannot be read: File name too long; choose"),
        (
            {"ladder": "a\x00"},
            LadderError,
            "a\\x00: not a whole JSON file: embedded null byte; choose",
        ),
        ({"board": "\x1b.toml"}, BoardError, "\\x1b.toml: no such board file"),
        ({"board": "n" * 300 + ".toml"}, BoardError, "n…: no such board file"),
        ({"agents": "policy:" + "n" * 300}, AgentError, "n…: no such policy file"),
        (
            {"agents": "policy:/dev/null"},
            AgentError,
            "null: expected a policy file, it is a device",
        ),
        ({"agents": "policy:\x1b"}, AgentError, "\\x1b: no such policy file"),
        (
            {"ladder": "nowhere.json"},
            LadderError,
            "nowhere.json: no such ladder; choose another with --ladder FILE",
        ),
        (
            {"board": "shikoku_ring"},
            LadderError,
            "on another board; choose another with --ladder FILE",
        ),
    ],
)
def test_what_is_not_there_is_told_before_a_folder_is_made(
    tmp_path: Path, values: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=re.escape(message)) as refused:
        create_folder(tmp_path / "run", PpoSettings(**values))
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 500
    assert not (tmp_path / "run").exists()


def test_without_ratings_no_ladder_is_needed() -> None:
    assert load_ladder(PpoSettings(board="shikoku_ring", rate_every=0)) is None


def test_a_run_goes_on_with_equal_settings_only(folder: Path) -> None:
    before = (folder / "config.toml").read_bytes()
    extend(folder, {"seed": 3, "games": 512, "steps": 5000})
    asked = {"seed": 4, "games": 512, "entropy_coef": 0.5}
    with pytest.raises(RunError) as refused:
        extend(folder, asked)
    assert "seed: expected 3, got 4; " in str(refused.value)
    assert "entropy_coef: expected 0.005, got 0.5" in str(refused.value)
    assert "games" not in str(refused.value)
    assert (folder / "config.toml").read_bytes() == before


def test_steps_may_grow_and_nothing_else_with_them(folder: Path) -> None:
    with pytest.raises(RunError, match="steps: expected 5000, got 4999"):
        extend(folder, {"steps": 4999})
    with pytest.raises(RunError, match="only steps may grow"):
        extend(folder, {"steps": 6000, "seed": 4})
    assert load_settings(folder).steps == 5000
    extend(folder, {"steps": 6000})
    assert load_settings(folder) == replace(PpoSettings(), steps=6000, seed=3)


def test_a_run_without_a_setting_is_refused(folder: Path) -> None:
    config = folder / "config.toml"
    lines = config.read_text(encoding="utf-8").splitlines(keepends=True)
    write(config, "".join(line for line in lines if not line.startswith("games")))
    with pytest.raises(RunError, match="settings missing: games"):
        load_settings(folder)
