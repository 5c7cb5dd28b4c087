"""Tests of progress on standard error without a terminal."""

import re
import time

import pytest

from tokaido_env.arena.intervals import Estimate
from tokaido_env.report.progress import match_bar, run_bar


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Replace the clock by a list with the present time."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_match_bar__prints_a_line_every_ten_seconds(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with match_bar("a – b\x1b", 2000, 10) as count:
        for _ in range(25):
            clock[0] += 1
            count(10)
    lines = capsys.readouterr().err.splitlines()
    assert all(re.search(r", \d:\d\d:\d\d left$", line) for line in lines)
    assert [line.rpartition(",")[0] for line in lines] == [
        r"a – b\x1b: 110 of 2,000 games",
        r"a – b\x1b: 210 of 2,000 games",
    ]


def test_run_bar__prints_every_rating_and_a_line_every_ten_seconds(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    rating = Estimate(-12.3, -30.0, 5.0)
    with run_bar(4000, "steps") as bar:
        for done in range(1000, 4000, 1000):
            bar.update(done, "value loss 0.1", rating)
            clock[0] += 6
        bar.add_rating(3000, rating, True)
    text = re.sub(r", [\d:]+ left", "", capsys.readouterr().err)
    assert [" ".join(line.split()) for line in text.splitlines()] == [
        "1,000 of 4,000 steps · value loss 0.1 · Elo -12 (-30 – 5)",
        "3,000 of 4,000 steps · value loss 0.1 · Elo -12 (-30 – 5)",
        "3,000 steps Elo -12 (-30 – 5), now best",
    ]
