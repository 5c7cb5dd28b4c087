"""Nothing that is loaded runs: what is said of the files of strangers.

All ways into the project are in tests/test_traces.py. What the files name would leave a trace, a
file, if it were called.
"""

import hashlib
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from networks import random_policy
from processes import file_size_limit
from short_run import VALUES
from signed import write_state
from test_files import held_elsewhere

from tokaido_env.agents import AgentError, make
from tokaido_env.agents.policy import Policy
from tokaido_env.agents.registry import check_spec_in_file
from tokaido_env.arena.ladder import LADDER, Ladder
from tokaido_env.learn import metrics, run as runs
from tokaido_env.learn.run_folder import create_folder, load_settings, read_config
from tokaido_env.learn.settings import PpoSettings, join_specs, split_specs
from tokaido_env.learn.settings_schema import RunError

ROOT = Path(__file__).resolve().parents[2]

train: Callable[[list[str]], int] = runpy.run_path(str(ROOT / "train.py"))["main"]
evaluate: Callable[[list[str]], int] = runpy.run_path(str(ROOT / "evaluate.py"))["main"]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """What none of these tests may leave."""
    return tmp_path / "trace"


@pytest.fixture(params=["Popen", "Trace"])
def spec(request: pytest.FixtureRequest, trace: Path) -> str:
    """An agent that would leave the trace: no agent at all, and one of one's own."""
    if request.param == "Popen":
        return f"python:subprocess:Popen,args=echo>{trace},shell=True"
    return f"python:outsiders:Trace,path={trace}"


def refused(error: str, trace: Path) -> None:
    """One line says what is wrong, and nothing ran."""
    assert re.match(r"(train|evaluate): .*a file may not name code to be run: if you trust", error)
    assert error.count("\n") == 1
    assert len(error) < 700
    assert not trace.exists()


def config_file(path: Path, **values: Any) -> Path:
    lines = [f"{name} = {json.dumps(value)}" for name, value in (VALUES | values).items()]
    path.write_text("[settings]\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def hostile_ladder(path: Path, spec: str) -> Path:
    """The project's ladder, with another agent in the place of a fast one, its hash made anew."""
    text = LADDER.read_text(encoding="utf-8").replace('"greedy"', json.dumps(spec))
    data = json.loads(text)
    del data["hash"]
    data["hash"] = hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


# What would leave a trace does, if the user names it


def test_what_the_user_names_is_made(trace: Path) -> None:
    make(f"python:outsiders:Trace,path={trace}")
    assert trace.exists()


@pytest.mark.parametrize("name", ["subprocess:Popen", "builtins:dict", "pathlib:Path"])
def test_what_is_no_agent_is_not_even_called(name: str, trace: Path) -> None:
    with pytest.raises(AgentError, match=r"has neither choose\(game, rng\) nor act\(boards"):
        make(f"python:{name},args=echo>{trace},shell=True")
    assert not trace.exists()


@pytest.mark.parametrize("name", ["os:system", "outsiders:factory", "outsiders:np"])
def test_what_is_no_class_is_refused(name: str) -> None:
    with pytest.raises(AgentError, match="no class"):
        make(f"python:{name}")


# Every way by which a file names an agent


def test_a_config_file(
    tmp_path: Path, spec: str, trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = config_file(tmp_path / "my.toml", agents=f"greedy {spec}")
    assert train(["--run", str(tmp_path / "run"), "--config", str(config)]) == 1
    refused(capsys.readouterr().err, trace)
    assert not (tmp_path / "run").exists()


def test_a_run_folder(
    run: Path, spec: str, trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = run / "config.toml"
    text = config.read_text(encoding="utf-8")
    config.write_text(text.replace('"greedy"', json.dumps(f"greedy {spec}")), encoding="utf-8")
    assert train(["--resume", str(run)]) == 1
    refused(capsys.readouterr().err, trace)
    assert train(["--resume", str(run), "--config", str(config)]) == 1
    refused(capsys.readouterr().err, trace)


def test_who_is_seated_in_a_checkpoint(
    run: Path, spec: str, trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = run / "checkpoints" / "000000256" / "state.json"
    counters = json.loads(state.read_text(encoding="utf-8"))
    counters["pool"]["slot_opponents"][0] = spec
    write_state(state.parent, json.dumps(counters))
    assert train(["--resume", str(run), "--steps", "512"]) == 1
    error = capsys.readouterr().err
    assert (
        "broken checkpoint: pool: slot_opponents: expected the number of a snapshot or latest"
        in error
    )
    assert not trace.exists()


def test_a_ladder_file(
    tmp_path: Path, spec: str, trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ladder = hostile_ladder(tmp_path / "theirs.json", spec)
    options = ["--ladder", str(ladder), "--games", "2"]
    assert evaluate(["rate", "random", *options]) == 1
    refused(capsys.readouterr().err, trace)
    assert Ladder.load(ladder, named=[spec]).agents


def test_a_ladder_that_a_config_names(
    tmp_path: Path, spec: str, trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ladder = hostile_ladder(tmp_path / "theirs.json", spec)
    config = config_file(tmp_path / "my.toml", ladder=str(ladder), rate_every=256, rating_games=2)
    assert train(["--run", str(tmp_path / "run"), "--config", str(config)]) == 1
    refused(capsys.readouterr().err, trace)


def test_the_run_of_an_exploit(
    run: Path, spec: str, trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = run / "config.toml"
    text = config.read_text(encoding="utf-8")
    config.write_text(text.replace('"greedy"', json.dumps(spec)), encoding="utf-8")
    assert evaluate(["exploit", "greedy", "--run", str(run)]) == 1
    assert "cannot resume with other settings" in capsys.readouterr().err
    assert not trace.exists()


# What may be named


def test_an_own_run_goes_on_when_its_agents_are_named_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [w for k, v in VALUES.items() for w in (f"--{k}".replace("_", "-"), str(v))]
    agents = ["--agents", "greedy python:outsiders:HighestAtOnce"]
    run = tmp_path / "run"
    assert train(["--run", str(run), *words, *agents]) == 0
    more = ["--resume", str(run), "--steps", "512"]
    assert train(more) == 1
    error = capsys.readouterr().err
    assert (
        "name this agent on the command line (train: --agents, rate: --allow-python-agents)"
        in error
    )
    assert train([*more, "--agents", "greedy python:outsiders:Highest"]) == 1
    assert "cannot resume with other settings" in capsys.readouterr().err
    assert train([*more, *agents]) == 0


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_policies_of_a_file_lie_in_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "theirs"
    (folder / "pool").mkdir(parents=True)
    for path in (folder / "pool" / "5", folder / "a,b=c", tmp_path / "mine"):
        random_policy().save(path)
    (folder / "link").symlink_to(tmp_path / "mine")
    (folder / "run").mkdir()
    (folder / "run" / "best").symlink_to(tmp_path / "mine")
    (folder / "up").symlink_to(tmp_path)
    monkeypatch.chdir(tmp_path)
    for path in ("theirs/pool/5", "pool/5"):
        spec = check_spec_in_file(f"policy:{path},temperature=1", "x", folder)
        assert isinstance(make(spec).policy, Policy)  # type: ignore[attr-defined]
    assert check_spec_in_file("policy:theirs/pool/5", "x", Path("theirs")) == "policy:theirs/pool/5"
    assert check_spec_in_file("policy:pool/5", "x", Path("theirs")) == "policy:theirs/pool/5"
    assert check_spec_in_file('policy:"a,b=c"', "x", folder) == f'policy:"{folder}/a,b=c"'
    assert check_spec_in_file("policy:mine", "x", folder) == f"policy:{folder}/mine"
    (folder / "loop").symlink_to("loop")
    outside = [str(folder / "pool" / "5"), "theirs/../mine", "link", "run", "up/mine", ".."]
    outside += ["a\x00b", "a\ud800", "loop"]
    for path in outside:
        for kind in ("policy", "policy_search"):
            spec = f"{kind}:{path}"
            with pytest.raises(AgentError, match=r"x: '.*of its own folder only, by a relative"):
                check_spec_in_file(spec, "x", folder)
            assert check_spec_in_file(spec, "x", folder, [spec]) == spec


def test_the_command_line_goes_before_the_file(tmp_path: Path) -> None:
    config = config_file(tmp_path / "my.toml", agents="python:outsiders:Dice")
    assert "agents" not in read_config(config, ignored=["agents"]).settings
    with pytest.raises(AgentError, match=r"my\.toml: agents: 'python:outsiders:Dice': a file may"):
        read_config(config)


def test_specs_with_spaces_stand_in_quotes() -> None:
    assert split_specs("greedy  'policy:my runs/best' \"policy:it's here\"") == [
        *("greedy", "policy:my runs/best", "policy:it's here"),
    ]
    for specs in (["a"], ["a b", "c"], ["it's a"], ["python:a:B,c='d'", 'python:a:B,c="d"']):
        assert split_specs(join_specs(specs)) == specs
    with pytest.raises(RunError, match="without spaces, or without quotes"):
        join_specs(["'a' \"b"])


# What is written stays in the folder


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
@pytest.mark.parametrize("part", ["policies", "checkpoints", "tb", "policies/000000000"])
def test_a_part_of_a_run_that_lies_elsewhere_is_refused(
    run: Path, tmp_path: Path, part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (run / part).rename(tmp_path / "elsewhere")
    if part == "policies":
        (tmp_path / "elsewhere" / "000000128").write_text("precious", encoding="utf-8")
    (run / part).symlink_to(tmp_path / "elsewhere")
    before = sorted((tmp_path / "elsewhere").glob("*"))
    assert train(["--resume", str(run), "--steps", "512"]) == 1
    assert (
        f"{run / part}: expected a file or folder of the run, got a link" in capsys.readouterr().err
    )
    assert sorted((tmp_path / "elsewhere").glob("*")) == before


@pytest.mark.parametrize("name", ["../../mine", "1 ", "x", 7, None, ["1"], "\x1b" * 10**6])
def test_a_snapshot_has_a_number(run: Path, name: Any, capsys: pytest.CaptureFixture[str]) -> None:
    state = run / "checkpoints" / "000000256" / "state.json"
    counters = json.loads(state.read_text(encoding="utf-8"))
    counters["pool"]["snapshots"][0] = name
    write_state(state.parent, json.dumps(counters))
    assert train(["--resume", str(run), "--steps", "512"]) == 1
    error = capsys.readouterr().err
    assert "broken checkpoint: pool: snapshots: expected the number of a snapshot, got" in error
    assert error.count("\n") == 1
    assert len(error) < 700


@pytest.mark.parametrize("text", ["[" * 10**5, '{"pool": ' + "9" * 5000 + "}", "[]", "7"])
def test_a_broken_state_is_told_in_a_line(
    run: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    state = run / "checkpoints" / "000000256" / "state.json"
    write_state(state.parent, text)
    assert train(["--resume", str(run), "--steps", "512"]) == 1
    error = capsys.readouterr().err
    assert f"{state.parent}: broken checkpoint: " in error
    assert error.count("\n") == 1


# The board of a run


def test_a_run_notices_that_its_board_was_edited(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from positions import shikoku_data, write_board

    board = write_board(tmp_path / "mine.toml", shikoku_data() | {"max_rounds": 50})
    run = tmp_path / "run"
    create_folder(run, PpoSettings(**VALUES | {"board": str(board)}))
    before = (run / "config.toml").read_bytes()
    write_board(board, shikoku_data() | {"max_rounds": 60})
    for words in (["--resume", str(run)], ["--resume", str(run), "--steps", "512"]):
        assert train(words) == 1
        error = capsys.readouterr().err
        assert "config.toml: versions.board_hash: the run began with" in error
        assert error.count("\n") == 1
    assert (run / "config.toml").read_bytes() == before


def test_a_run_cannot_change_what_its_value_is_learnt_from(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(["--resume", str(run), "--value-games", "all"]) == 1
    assert "value_games: expected 'self-play', got 'all'" in capsys.readouterr().err


# Metrics


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"steps": 25', "line 1: Expecting"),
        ('{"loss": 1.0}', """line 1: expected an object with "steps", got {'loss': 1.0}"""),
        ("[1]", 'line 1: expected an object with "steps", got [1]'),
        ("[" * 10**5, "line 1: nested too deeply"),
        ("", "line 1: Expecting value"),
    ],
)
def test_a_damaged_line_of_metrics_is_named_and_nothing_is_lost(
    run: Path, line: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = run / "metrics.jsonl"
    text = f"{line}\n" + file.read_text(encoding="utf-8")
    file.write_text(text, encoding="utf-8")
    assert train(["--resume", str(run), "--steps", "512"]) == 1
    error = capsys.readouterr().err
    assert f"{file}, {message}" in error
    assert error.endswith("repair the line, or delete it\n")
    assert file.read_text(encoding="utf-8") == text


def test_metrics_that_find_no_room_are_told_with_the_file_and_gone_on_with(
    run: Path, finished: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = run / "metrics.jsonl"
    before = file.read_bytes()
    write = metrics.Logs.write

    def limited(logs: Any, *arguments: Any) -> None:
        with file_size_limit(len(before) + 100):
            write(logs, *arguments)

    monkeypatch.setattr(metrics.Logs, "write", limited)
    assert train(["--resume", str(run), "--steps", "512"]) == 1
    error = capsys.readouterr().err
    assert error.endswith(f"\ntrain: [Errno 27] File too large: '{file}'\n")
    assert len(file.read_bytes()) == len(before) + 100
    monkeypatch.undo()
    assert train(["--resume", str(run)]) == 0
    lines = file.read_bytes().splitlines(keepends=True)
    assert lines[0] == before
    assert [json.loads(line)["steps"] for line in lines] == [256, 512]


def test_logs_that_find_no_room_are_told_in_a_line_too(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """TensorBoard writes them in a thread of its own."""
    write = metrics.SummaryWriter.add_scalar

    def limited(writer: Any, *arguments: Any) -> None:
        with file_size_limit(500):
            write(writer, *arguments)
            writer.flush()

    monkeypatch.setattr(metrics.SummaryWriter, "add_scalar", limited)
    assert train(["--resume", str(run), "--steps", "512"]) == 1
    error = capsys.readouterr().err
    assert error.endswith(f"\ntrain: [Errno 27] File too large: '{run / 'tb'}'\n")
    monkeypatch.undo()
    assert train(["--resume", str(run)]) == 0
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["steps"] for line in lines] == [256, 512]


# Litter


@pytest.mark.parametrize("litter", ["config.toml.tmp", ".lock"])
def test_what_a_kill_has_left_is_no_content(tmp_path: Path, litter: str) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / litter).write_text("[sett", encoding="utf-8")
    create_folder(run, PpoSettings(**VALUES))
    assert load_settings(run) == PpoSettings(**VALUES)
    assert [path.name for path in run.iterdir()] == ["config.toml"]


OURS = (
    *("config.toml.tmp", "metrics.jsonl.tmp", "best.tmp", "last.tmp"),
    *("policies/000000256.tmp", "shards/0001-0002.npz.tmp", "checkpoints/000000512.tmp/state.json"),
)
NOT_OURS = (
    *("notes.tmp", "policies/mine.tmp", "tb/000000256.tmp", "checkpoints/old.tmp/best"),
    *("best.tmp.tmp/best.tmp", "mine/best.tmp", "policies/best.tmp", "000000256.tmp"),
)


def test_what_a_kill_has_left_in_a_run_is_swept(run: Path) -> None:
    before = {path for path in run.rglob("*") if path.is_file()}
    for name in OURS + NOT_OURS:
        (run / name).parent.mkdir(exist_ok=True)
        (run / name).write_text("half", encoding="utf-8")
    assert train(["--resume", str(run)]) == 0
    after = {path for path in run.rglob("*") if path.is_file() and "events" not in path.name}
    before = {path for path in before if "events" not in path.name}
    assert after == before | {run / name for name in NOT_OURS}
    assert not (run / "checkpoints" / "000000512.tmp").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_nothing_is_swept_through_a_link(run: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "000000256.tmp").write_text("precious", encoding="utf-8")
    shutil.rmtree(run / "policies")
    (run / "policies").symlink_to(elsewhere)
    (run / "best.tmp").symlink_to(elsewhere / "000000256.tmp")
    (run / "checkpoints" / "000000512.tmp").symlink_to(elsewhere)
    assert train(["--resume", str(run)]) == 1
    assert (elsewhere / "000000256.tmp").read_text(encoding="utf-8") == "precious"
    assert (run / "best.tmp").is_symlink()


# One folder, one command


def test_a_run_that_another_command_trains_is_left_alone(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    with held_elsewhere(run):
        for words in (["--resume", str(run)], ["--resume", str(run), "--steps", "512"]):
            assert train(words) == 1
            error = capsys.readouterr().err
            assert error.startswith(f"train: {run}: another command is working on it: ")
            assert error.count("\n") == 1
    with held_elsewhere(run):
        (run / ".lock").stat()
    after = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    assert {path: data for path, data in after.items() if path.name != ".lock"} == before


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
def test_two_commands_on_one_run_and_a_kill(run: Path) -> None:
    """The second of two real commands is told so; when the first is killed, a third goes on."""
    steps = 1_000_000_000
    words = [sys.executable, "train.py", "--resume", str(run), "--steps", str(steps)]
    options: dict[str, Any] = {"cwd": ROOT, "text": True, "env": os.environ | {"COLUMNS": "200"}}
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options
    ) as first:
        while str(steps) not in (run / "config.toml").read_text(encoding="utf-8"):
            assert first.poll() is None
        while "\n" not in (run / "metrics.jsonl").read_text(encoding="utf-8")[400:]:
            assert first.poll() is None
        second = subprocess.run(words, capture_output=True, check=False, **options)
        assert second.returncode == 1
        assert "another command is working on it" in second.stderr
        assert second.stderr.count("\n") == 1
        first.kill()
    assert (run / ".lock").exists()
    assert runs.train(run, _interrupt) is False


def _interrupt(progress: Any) -> None:
    import signal

    if progress.figures and signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        signal.raise_signal(signal.SIGINT)


def test_records_ladders_and_probes_are_kept_too(
    tmp_path: Path, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records, ladder = str(tmp_path / "games.jsonl"), str(tmp_path / "ladder.json")
    commands: list[tuple[str, list[str]]] = [
        (records, ["random", "greedy", "--games", "2", "--records", records]),
        (ladder, ["ladder", "random", "greedy", "--games", "2", "--ladder", ladder]),
        (str(run), ["exploit", "greedy", "--steps", "16384", "--run", str(run)]),
    ]
    for path, words in commands:
        with held_elsewhere(Path(path)):
            assert evaluate(words) == 1
        assert capsys.readouterr().err.startswith(f"evaluate: {path}: another command is")
    assert evaluate(commands[0][1]) == evaluate(commands[1][1]) == 0
    assert not list(tmp_path.glob("*.lock"))
