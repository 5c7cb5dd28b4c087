"""Where many cores give out: the arithmetic by hand, and that the page holds it."""

import sys
from dataclasses import replace
from typing import Any

import pytest
from processes import ROOT

from tokaido_env.files import read_json

sys.path.insert(0, str(ROOT / "benchmarks"))

import scale_on_paper as paper
from scale_on_paper import Setting, busy, capacities, changes, first_out, mended, played

ROUND: dict[str, Any] = {
    "made": "today",
    "on": "a machine",
    "sims": 64,
    "positions_a_cpu_second": 1000.0,
    "positions_a_game": 100.0,
    "bytes_in_a_file": 200.0,
    "bytes_packed": 20.0,
    "pack_seconds": 1e-5,
    "load_seconds": 8e-7,
    "hash_seconds": 2e-7,
    "driver_seconds_a_unit": 0.0128,
    "driver_seconds": 1e-6,
    "inputs_seconds": 4e-6,
    "inputs_bytes": 5000,
    "learn_seconds": 25e-6,
    "flops": 500_000,
}
"""Figures that are easy to reckon with."""


def test_what_is_played_goes_by_cores_and_simulations() -> None:
    assert played(ROUND, Setting(100, 0)) == pytest.approx(93_000)  # 7 % are Ray's
    assert played(ROUND, Setting(100, 0, sims=128)) == pytest.approx(46_500)


def test_capacities_are_those_reckoned_by_hand() -> None:
    assert capacities(ROUND, Setting(100, 0)) == pytest.approx(
        {
            "driver": 500_000,  # 12.8 ms over 12,800 positions are 1 µs, and 1 µs
            "network": 3_125_000,  # 1.25 GB/s, 200 bytes in and out
            "disk": 500_000,  # 500 MB/s, written once and read four times
            "reading": 250_000,  # four times 1 µs
            "steps": 10_000,  # four samples of 25 µs
        }
    )
    with_gpus = capacities(ROUND, Setting(1000, 2, games=256, samples=2, packed=True))
    assert with_gpus == pytest.approx(
        {
            "driver": 1 / 1.5e-6,
            "network": 31_250_000,
            "disk": 5_000_000,
            "reading": 250_000,
            "inputs": 4_000_000,  # 32 cores, two samples of 4 µs
            "bus": 5_000_000,  # 50 GB/s, two samples of 5,000 bytes
            "steps": 2_000_000,  # 2e12 a second, two samples of 500,000
        }
    )
    more = Setting(1000, 2, in_memory=True, drivers=2, readers=3, disks=2)
    found = capacities(ROUND, more)
    assert found["driver"] == pytest.approx(1_000_000)
    assert found["reading"] == pytest.approx(3_000_000)
    assert found["disk"] == pytest.approx(2_500_000)  # read once


def test_the_least_gives_out_first_and_players_wait_for_it() -> None:
    one_core, one_gpu = Setting(100, 0), Setting(100, 1)
    assert (first_out(ROUND, one_core), first_out(ROUND, one_gpu)) == ("steps", None)
    assert first_out(ROUND, Setting(1000, 8)) == "reading"
    assert busy(ROUND, one_core, rounds=False) == pytest.approx(10 / 93)
    assert busy(ROUND, one_gpu, rounds=False) == 1.0
    assert busy(ROUND, Setting(1000, 8), rounds=False) == pytest.approx(250 / 930)


def test_in_rounds_players_wait_while_it_is_read_and_learnt() -> None:
    playing, reading, learning = 1 / 93_000, 4e-6, 1 / 500_000  # 1e12 a second, four samples
    share = playing / (playing + reading + learning)
    assert busy(ROUND, Setting(100, 1), rounds=True) == pytest.approx(share)
    held_up = (1 / 500_000) + 4e-6 + 1 / 4_000_000  # by the driver while playing; eight GPUs
    share = (1 / 930_000) / held_up
    assert busy(ROUND, Setting(1000, 8), rounds=True) == pytest.approx(share)


def test_settings_change_until_nothing_is_out() -> None:
    """By hand: 930,000 a second are played; the GPUs have time to spare."""
    begun = Setting(1000, 8)
    asked = replace(begun, in_memory=True, games=1024, drivers=2)
    # A million are read once; written and read once they are 400 bytes of 500 MB each second.
    found = capacities(ROUND, replace(asked, drivers=1))
    assert found["reading"] == pytest.approx(1_000_000)
    assert found["disk"] == pytest.approx(1_250_000)
    assert found["driver"] == pytest.approx(1e6 / 1.125)  # with 1,024 games, and still too few
    after = mended(ROUND, begun)
    assert after == asked
    assert changes(begun, after) == "games 1,024, drivers 2, units in memory"
    assert first_out(ROUND, after) is None
    assert changes(Setting(100, 1), mended(ROUND, Setting(100, 1))) == "–"


def test_a_learner_that_is_too_slow_takes_fewer_samples_of_better_searches() -> None:
    after = mended(ROUND, Setting(100, 0))
    assert (after.samples, after.sims) == (1.0, 150)  # 93,000 to 40,000 a second: 149
    after = mended(ROUND, Setting(100, 0, samples=0.5))
    assert (after.samples, after.sims) == (0.5, 75)


@pytest.mark.parametrize("setting", paper.settings())
def test_every_row_can_be_mended(setting: Setting) -> None:
    for measured in (ROUND, read_json(paper.MEASURED)):
        assert first_out(measured, mended(measured, setting)) is None


def test_the_page_holds_the_table_of_the_file() -> None:
    page = paper.PAGE.read_text(encoding="utf-8")
    assert paper.filled(page, paper.section(read_json(paper.MEASURED))) == page
    assert page.count("| `") == len(paper.settings()) == 10
