"""Studies against the same games played with `Game`, and the command."""

import json
import re
import runpy
import sys
from contextlib import nullcontext
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pytest
from repeating_executor import RepeatingExecutor

from tokaido_env import Game
from tokaido_env.agent import Agent
from tokaido_env.agents import make
from tokaido_env.arena.match import TRIGGERS
from tokaido_env.arena.tournament import play_selfplay, rollout_positions
from tokaido_env.boards.board import Board, built_in_boards
from tokaido_env.core.actions import IDS
from tokaido_env.core.arguments import repr_short
from tokaido_env.core.rng import agent_keys, arena_seed
from tokaido_env.position import to_dict
from tokaido_env.study import analysis
from tokaido_env.study.analysis import (
    SWAP_ROUNDS,
    TILES,
    Study,
    study_board,
    study_boards,
    summarize,
)

COMMITTED = sorted((Path(__file__).parents[2] / "benchmarks").glob("analysis*.json"))


class WithoutTiles(Agent):
    """Neither uses nor takes tiles: plays the highest other action."""

    spec = "without tiles"
    unused = ("pilgrim:wave", "draw:wave", "paint:wave", "take:pilgrim", "take:merchant")

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> Any:
        names = [*self.unused, "take:artist", *(f"sell:{n}:wave" for n in range(1, 6))]
        left = np.uint64((1 << len(IDS)) - 1 - sum(1 << IDS[name] for name in names))
        return np.array([int(mask & left).bit_length() - 1 for mask in legal])


@pytest.fixture(scope="module")
def greedy_study() -> Study:
    return study_board(make("greedy"), Board.load(), 24, 12, seed=5)


@pytest.fixture(scope="module")
def replays() -> list[list[Game]]:
    """The same games by `Game`: copies at the start of each round, and the finished game."""
    games, actions = play_selfplay(make("greedy"), Board.load(), seeds_of(24, 5))
    stages = []
    for seed, moves in zip(games["seed"], actions, strict=True):
        game = Game(seed=int(seed))
        starts = [game.copy()]
        for move in moves[moves >= 0]:
            game.play(int(move))
            if game.rounds > starts[-1].rounds and not game.is_over:
                starts.append(game.copy())
        stages.append([*starts, game])
    return stages


def seeds_of(games: int, seed: int) -> Any:
    return np.array([arena_seed(seed, number) for number in range(games)])


def test_round_starts__are_the_positions_at_the_start_of_each_round(
    greedy_study: Study, replays: list[list[Game]]
) -> None:
    board = Board.load()
    for rows, stages in zip(greedy_study.rounds, replays, strict=True):
        starts = [to_dict(board, row) for row in rows if row["round"]]
        assert starts == [game.to_dict() for game in stages[:-1]]


def test_summarize__matches_games_of_game(greedy_study: Study, replays: list[list[Game]]) -> None:
    found = summarize(greedy_study)
    ends = [stages[-1] for stages in replays]
    points = [game.scores() for game in ends]
    for name in ("faith", "commerce", "culture", "total"):
        both = mean(mean(seat[name] for seat in seats) for seats in points)
        assert found["points"][name]["mean"] == pytest.approx(both, abs=1e-5)
    lead = mean(first["total"] - second["total"] for first, second in points)
    assert found["player_0"]["lead"]["mean"] == pytest.approx(lead, abs=1e-5)
    won = mean({0: 1.0, 1: 0.0, None: 0.5}[game.winner()] for game in ends)
    assert found["player_0"]["score"]["mean"] == pytest.approx(won, abs=1e-5)
    assert found["rounds"]["mean"] == pytest.approx(mean(g.rounds for g in ends), abs=1e-5)
    assert found["rounds"]["counts"][ends[0].rounds] == [g.rounds for g in ends].count(
        ends[0].rounds
    )
    gardens = mean(any(p["garden"] == 6 for p in g.to_dict()["players"]) for g in ends)
    assert found["triggers"]["garden"]["mean"] == pytest.approx(gardens, abs=1e-5)
    leads = [game.to_dict()["lead"] for game in ends]
    of_leader = mean(
        {lead: 1.0, 1 - lead: 0.0, None: 0.5}[game.winner()]
        for game, lead in zip(ends, leads, strict=True)
    )
    last = found["last_round"]
    assert last["led_by_player_0"]["mean"] == pytest.approx(leads.count(0) / 24, abs=1e-5)
    assert last["leader_score"]["mean"] == pytest.approx(of_leader, abs=1e-5)
    decided = [(g.winner(), seats) for g, seats in zip(ends, points, strict=True)]
    ahead = [s[w]["faith"] - s[1 - w]["faith"] for w, s in decided if w is not None]
    assert found["winner_lead"]["faith"]["mean"] == pytest.approx(mean(ahead), abs=1e-5)


def test_summarize__counts_rounds_with_an_owned_tile(
    greedy_study: Study, replays: list[list[Game]]
) -> None:
    found = summarize(greedy_study)["tiles"]
    held = []
    for stages in replays:
        waves = [game.to_dict()["waves"]["pilgrim"] for game in stages[:-1]]
        if waves[0]["side"] == "hasty":
            held.append(mean(wave["owner"] is not None for wave in waves))
    assert found["hasty"]["held"]["n"] == len(held)
    assert found["hasty"]["held"]["mean"] == pytest.approx(mean(held), abs=1e-5)


def test_play_on__plays_as_game_does(greedy_study: Study) -> None:
    board, greedy = Board.load(), make("greedy")
    rows = greedy_study.rounds[:6, SWAP_ROUNDS[0] - 1]
    results, leads = rollout_positions(greedy, board, rows, np.arange(6))
    for seed, row in enumerate(rows):
        game = Game.from_dict(to_dict(board, row), seed=seed)
        decision = 0
        while not game.is_over:
            game.play(int(one_action(greedy, game, seed, decision)))
            decision += 1
        first, second = game.scores()
        assert leads[seed] == first["total"] - second["total"]
        assert results[seed] == {0: 1.0, 1: 0.0, None: 0.5}[game.winner()]


def one_action(agent: Any, game: Game, seed: int, decision: int) -> Any:
    legal = np.array([sum(1 << action for action in game.legal_actions())], np.uint64)
    keys = np.zeros(1, np.uint64)
    agent_keys(np.array([seed]), game.state["player"], np.array([decision]), keys)
    return agent.act(game.board.record, game.state, legal, keys)[0]


def test_swap_tiles__has_no_effect_on_an_agent_without_tiles() -> None:
    study = study_board(WithoutTiles(), Board.load(), 20, 20, seed=1)
    # Robust adds room and inspired more places for the same gift: both work without an action.
    used = [TILES.index(name) for name in ("robust", "inspired")]
    swaps = study.swaps[~np.isin(study.swaps["tile"], used)]
    assert (study.games["end"] == 1).all()
    assert len(swaps) > 80
    assert not swaps["result"].any()
    assert not swaps["points"].any()


def test_study_boards__makes_each_board_a_cluster() -> None:
    boards, executor = [Board.generate(seed) for seed in range(3)], RepeatingExecutor()
    study = study_boards(make("greedy"), boards, 4, 2, seed=0, executor=executor)
    assert executor.tasks == [
        f"4 games of 'greedy' on board {repr_short(b.name)}" for b in boards[::-1]
    ]
    assert list(study.clusters) == [0] * 4 + [1] * 4 + [2] * 4
    assert set(study.swaps["cluster"]) == {0, 1, 2}
    assert study.hashes == tuple(board.hash for board in boards)
    single = study_board(make("greedy"), boards[2], 4, 2, arena_seed(0, 2))
    assert (study.games[8:] == single.games).all()
    longest = single.rounds.shape[1]
    assert (study.rounds[8:, :longest] == single.rounds).all()


def test_study_board__is_the_same_with_every_executor(greedy_study: Study) -> None:
    executor = RepeatingExecutor()
    again = study_board(make("greedy"), Board.load(), 24, 12, seed=5, executor=executor)
    for name in ("games", "rounds", "swaps"):
        assert getattr(again, name).tobytes() == getattr(greedy_study, name).tobytes()
    assert len(executor.tasks) == 24 + 2 * 24
    assert executor.tasks[23].startswith("game 1 of 24 and 0 more")
    assert re.search(r"game 1 of \d+ and \d+ more", executor.tasks[-1])


def test_study_board__refuses_more_swaps_than_games() -> None:
    with pytest.raises(ValueError, match="games, swaps: expected"):
        study_board(make("greedy"), Board.load(), 4, 5, seed=0)


# The command


def test_command__writes_the_same_bytes_for_a_seed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = "--agent greedy --also random --games 8 --swaps 4 --family 2 --seed 3 --boards"
    words = [*command.split(), "shikoku", "shikoku_ring", "--json"]
    for name, executor in (("one.json", "serial"), ("two.json", "processes:1")):
        assert analysis.main([*words, str(tmp_path / name), "--executor", executor]) == 0
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()
    found = json.loads((tmp_path / "one.json").read_text())
    named = [(s["board"], s["agent"], s["games"]) for s in found["studies"]]
    assert named == [
        ("shikoku", "greedy", 8),
        ("shikoku", "random", 4),
        ("shikoku_ring", "greedy", 4),
        ("family", "greedy", 4),
    ]
    assert "player_0 scores" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore:.*found in sys.modules")
def test_command__as_a_script_sends_tasks_of_an_importable_module(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    executor = RepeatingExecutor()
    words = "--agent greedy --games 2 --swaps 0 --boards shikoku --family 2 --seed 3"
    monkeypatch.setattr(sys, "argv", ["analysis", *words.split()])
    monkeypatch.setattr(analysis, "open_executor", lambda text: nullcontext(executor))
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("tokaido_env.study.analysis", run_name="__main__")
    assert ended.value.code == 0
    assert sum("of 'greedy' on board" in unit for unit in executor.tasks) == 2


@pytest.mark.parametrize(
    "words",
    [
        *("--boards honshu", "--games 0", "--family -1", "--executor nobody"),
        "--agent python:custom_agents:Fails,how=raise --games 2",
    ],
)
def test_command__refuses_bad_options_in_one_line(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert analysis.main(["--swaps", "0", "--family", "0", *words.split()]) == 1
    error = capsys.readouterr().err
    assert error.startswith("analysis: ")
    assert error.count("\n") == 1


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.name)
def test_committed_results__are_of_the_current_boards(path: Path) -> None:
    studies = json.loads(path.read_text(encoding="utf-8"))["studies"]
    assert {study["board"] for study in studies} == {*built_in_boards(), "plausible"}
    for study in studies:
        if study["board"] == "plausible":  # of an older generator
            assert len(study["hashes"]) == study["boards"] > 1
        else:
            assert study["hashes"] == [Board.load(study["board"]).hash]
        assert set(study["triggers"]) == set(TRIGGERS)
        assert set(study["tiles"]) == set(TILES)
