"""Metrics logs: damaged lines, and full disks."""

import json
from pathlib import Path
from typing import Any

import pytest
from processes import file_size_limit
from short_run import resume

from tokaido_env.learn import metrics


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"steps": 25', "line 1: Expecting"),
        ('{"loss": 1.0}', """line 1: expected an object with "steps", got {'loss': 1.0}"""),
        ("[" * 10**5, "line 1: nested too deeply"),
    ],
)
def test_metrics__names_a_damaged_line_and_keeps_the_file(
    run: Path, line: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = run / "metrics.jsonl"
    text = f"{line}\n" + file.read_text(encoding="utf-8")
    file.write_text(text, encoding="utf-8")
    assert resume(run, "--steps", "512") == 1
    error = capsys.readouterr().err
    assert f"{file}, {message}" in error
    assert error.endswith("repair the line, or delete it\n")
    assert file.read_text(encoding="utf-8") == text


def test_metrics__skip_blank_lines_and_a_byte_order_mark(run: Path) -> None:
    file = run / "metrics.jsonl"
    text = file.read_text(encoding="utf-8")
    file.write_text("\ufeff\n" + text + " \n\n", encoding="utf-8")
    metrics.Logs(file, "steps", 256).close()
    assert file.read_text(encoding="utf-8") == text


def test_metrics__on_a_full_disk_name_the_file_and_can_resume(
    run: Path, finished: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = run / "metrics.jsonl"
    before = file.read_bytes()
    write = metrics.Logs.write

    def limited(logs: Any, *arguments: Any) -> None:
        with file_size_limit(len(before) + 100):
            write(logs, *arguments)

    monkeypatch.setattr(metrics.Logs, "write", limited)
    assert resume(run, "--steps", "512") == 1
    error = capsys.readouterr().err
    assert error.endswith(f"\ntrain: {file}: File too large\n")
    assert len(file.read_bytes()) == len(before) + 100
    monkeypatch.undo()
    assert resume(run) == 0
    lines = file.read_bytes().splitlines(keepends=True)
    assert lines[0] == before
    assert [json.loads(line)["steps"] for line in lines] == [256, 512]


def test_tensorboard__on_a_full_disk_is_reported_in_one_line(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """TensorBoard writes its files in another thread."""
    write = metrics.SummaryWriter.add_scalar

    def limited(writer: Any, *arguments: Any) -> None:
        with file_size_limit(500):
            write(writer, *arguments)
            writer.flush()

    monkeypatch.setattr(metrics.SummaryWriter, "add_scalar", limited)
    assert resume(run, "--steps", "512") == 1
    error = capsys.readouterr().err
    assert error.endswith(f"\ntrain: {run / 'tb'}: File too large\n")
    monkeypatch.undo()
    assert resume(run) == 0
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["steps"] for line in lines] == [256, 512]


def test_tensorboard__shows_each_step_once_after_a_resume(tmp_path: Path) -> None:
    """Steps 3 and 4 are repeated."""
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    for done, steps in ((0, (1, 2, 3, 4)), (2, (3, 4, 5))):
        logs = metrics.Logs(tmp_path / "metrics.jsonl", "steps", done)
        for step in steps:
            logs.write(step, {"rating/elo": float(step)})
        logs.close()
    events = accumulator.EventAccumulator(str(tmp_path / "tb")).Reload()
    assert [event.step for event in events.Scalars("rating/elo")] == [1, 2, 3, 4, 5]
