"""Tests of `tokaido review`: output, files, page and errors."""

import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from game_pages import games_of

from tokaido_env import Game, Record
from tokaido_env.__main__ import main
from tokaido_env.agents import make
from tokaido_env.record import Forfeit, load, replay, save
from tokaido_env.study.review import Review, review
from tokaido_env.web.replay_page import replay_page
from tokaido_env.web.review_section import remark_of, worst_of

Output = pytest.CaptureFixture[str]
QUICK = ["--judge", "mcts:sims=16", "--chance-samples", "4"]
HOSTILE = "</script><img src=x onerror=alert(1)>"


def recorded(seed: int, names: tuple[str, str] = ("a", "b")) -> Record:
    game, rng = Game(seed=seed), np.random.default_rng(seed)
    while not game.is_over:
        game.play(int(rng.choice(game.legal_actions())))
    return game.record(names)


def reviewed(record: Record) -> Review:
    return review(replay(record), make("mcts:sims=16"), make("champion"), chance_samples=4)


@pytest.fixture
def games(tmp_path: Path) -> Path:
    file = tmp_path / "games.jsonl"
    save([recorded(1), recorded(2, ("one", "other"))], file)
    return file


def test_review__prints_and_writes_the_reviews(games: Path, tmp_path: Path, capsys: Output) -> None:
    page = tmp_path / "review.html"
    assert main(["review", str(games), *QUICK, "--html", str(page)]) == 0
    out_text = capsys.readouterr().out
    records = load(games)
    found = [reviewed(record) for record in records]
    assert page.read_text() == replay_page(records, reviews=found)
    assert out_text.count("The worst decisions") == 2
    worst = worst_of(found[0])[0]
    assert found[0].loss[worst] == max(
        found[0].loss[row] for row in found[0].choices() if found[0].mark(row)
    )
    line = next(line for line in out_text.splitlines() if line.split()[:1] == [str(worst + 1)])
    assert found[0].mark(worst) in line.split()
    assert main(["review", str(games), *QUICK, "--game", "2", "--html", str(page)]) == 0
    assert page.read_text() == replay_page(records[1:], reviews=found[1:])


def test_review__counts_equal_games_once(games: Path, tmp_path: Path, capsys: Output) -> None:
    first, second = load(games)
    twice, out = tmp_path / "twice.jsonl", tmp_path / "review.parquet"
    save([first, first, second], twice)
    assert main(["review", str(twice), *QUICK, "--data", str(out)]) == 0
    assert "1 left out" in capsys.readouterr().err
    assert set(pd.read_parquet(out)["game"]) == {1, 3}
    assert main(["review", str(twice), *QUICK, "--game", "2", "--data", str(out)]) == 0
    assert set(pd.read_parquet(out)["game"]) == {2}


@pytest.mark.parametrize("moves", [40, 41, 42, 43])
def test_review__of_a_forfeit_has_its_result(moves: int, tmp_path: Path) -> None:
    game = Game(seed=6)
    for _ in range(moves):
        game.play(game.legal_actions()[0])
    seat = game.player
    assert seat is not None
    lost = replace(game.record(("a", "b")), winner=1 - seat, end="forfeit")
    save([replace(lost, forfeit=Forfeit(seat, "time"))], tmp_path / "games.jsonl")
    table = tmp_path / "review.parquet"
    words = ["review", str(tmp_path / "games.jsonl"), *QUICK]
    assert main([*words, "--data", str(table)]) == 0
    assert set(pd.read_parquet(table)["result"]) == {float(seat)}


@pytest.mark.slow
def test_review_page__links_the_worst_moves() -> None:
    record = recorded(3, (HOSTILE, "b"))
    found = reviewed(record)
    page = replay_page([record], reviews=[found])
    assert HOSTILE not in page
    (film,) = games_of(page)
    links = re.findall(r'href="([^"]+)">Move (\d+)</a> ([^<]*)</li>', film["review"]["html"])
    assert [int(number) - 1 for _, number, _ in links] == worst_of(found)
    assert len(links) > 5
    for target, number, words in links:
        assert unescape(target) == f"#game=1&move={number}"
        remark = film["review"]["remarks"][str(int(number) - 1)]
        assert unescape(words) == film["log"][int(number) - 1][2] + remark
        assert remark == remark_of(found, int(number) - 1)
    assert "<img" not in film["review"]["html"]
    assert film["wins"][-1] == {0: 1.0, 1: 0.0}[record.winner or 0]
    assert games_of(replay_page([record]))[0]["review"] is None


def test_review__refuses_a_page_of_over_a_hundred_games(tmp_path: Path, capsys: Output) -> None:
    save([Game(seed=n).record(("a", "b")) for n in range(101)], tmp_path / "games.jsonl")
    assert main(["review", str(tmp_path / "games.jsonl"), "--html", str(tmp_path / "o.html")]) == 1
    assert "a page holds 1 to 100 games, got 101" in capsys.readouterr().err
