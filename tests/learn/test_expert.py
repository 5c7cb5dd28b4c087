"""Expert iteration: lessons that are true, courses that go on where they stopped."""

import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from networks import SMALL

from tokaido_env import Game, SeedError
from tokaido_env.agents import Policy
from tokaido_env.agents.arena.ratings import Rating
from tokaido_env.agents.learn import expert
from tokaido_env.agents.learn.expert import Course, Lessons, learn, main, play_lessons, teach
from tokaido_env.agents.learn.network import MoveNetwork, frozen
from tokaido_env.agents.learn.settings import RunError
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.luck import episode_seed

TINY = Course(
    **{"seed": 3, "rounds": 2, "first_sims": 3, "first_positions": 3000, "sims": 3},
    **{"positions": 2600, "games": 8, "epochs": 1.0, "minibatch": 256, "width": 16},
)
PLAIN = replace(TINY, sampled=0.0, uniform=0.0)

Output = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def rated_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ratings are tested elsewhere, and take long."""
    rating = Rating("learner", 5.0, (1.0, 9.0), 6)
    monkeypatch.setattr(expert, "place", lambda *arguments: rating)


def highest(boards: Any, guides: Any, states: Any, legal: Any, keys: Any) -> Any:
    """An expert whose play is easy to repeat: the highest legal action; player_0 is ahead."""
    actions = np.array([int(mask).bit_length() - 1 for mask in legal])
    visits = np.zeros((len(legal), N_ACTIONS), np.int32)
    visits[np.arange(len(legal)), actions] = 4
    return actions, np.full(len(legal), 0.25, np.float32), visits


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# Lessons


def replayed(seed: int) -> tuple[dict[bytes, int], float]:
    """Positions with a choice, and who decides there, of a game of `highest`; its result."""
    game, seen = Game(seed=seed), {}
    while not game.is_over:
        legal = game.legal_actions()
        if len(legal) > 1:
            seen[game.state.tobytes()] = int(game.player)
        game.play(legal[-1])
    return seen, {0: 1.0, 1: -1.0, None: 0.0}[game.winner()]


def test_lessons_are_the_choices_of_whole_games_with_their_results() -> None:
    lessons = play_lessons(highest, 5000, 50, PLAIN)
    told = {row.tobytes(): i for i, row in enumerate(lessons.states)}
    assert len(told) == len(lessons.legal)
    found, whole, signs = 0, 0, set()
    for game in range(PLAIN.games):
        for episode in range(12):
            seen, result = replayed(episode_seed(50 + game, episode))
            rows = [told[state] for state in seen if state in told]
            assert len(rows) in (0, len(seen))  # no part of a game
            found += len(rows)
            whole += bool(rows)
            for row, player in zip(rows, seen.values(), strict=False):
                sign = 1 - 2 * player
                assert lessons.results[row] == sign * result
                assert lessons.values[row] == sign * np.float32(0.25)
                signs.add(sign)
    assert found == len(lessons.legal)
    assert whole > 8
    assert signs == {1, -1}


def test_lessons_tell_legal_actions_and_visits() -> None:
    lessons = play_lessons(highest, 2500, 50, PLAIN)
    for mask, visits in zip(lessons.legal.tolist(), lessons.visits, strict=True):
        assert mask & (mask - 1)
        assert visits[mask.bit_length() - 1] == visits.sum() == 4


def test_games_vary_by_the_shares_of_the_course() -> None:
    """What was played shows in what comes next: here, whether games are as `highest` plays."""
    plain = play_lessons(highest, 2500, 50, PLAIN)
    drawn = play_lessons(highest, 2500, 50, replace(PLAIN, sampled=1.0))
    assert (plain.states == drawn.states).all()  # all visits are of the highest action
    uniform = play_lessons(highest, 2500, 50, replace(PLAIN, uniform=1.0))
    played = {row.tobytes() for row in plain.states}
    assert sum(row.tobytes() in played for row in uniform.states) < 0.2 * len(uniform.states)


def test_actions_are_drawn_in_proportion() -> None:
    n = 20_000
    weights = np.zeros((n, N_ACTIONS), np.uint16)
    weights[:, [2, 7, 48]] = 1, 3, 4
    numbers = np.random.default_rng(0).random(n)
    counts = np.bincount(expert._drawn(weights, numbers), minlength=N_ACTIONS)
    assert counts[[2, 7, 48]] / n == pytest.approx(np.array([1, 3, 4]) / 8, abs=0.015)
    assert counts.sum() == counts[[2, 7, 48]].sum()


def test_too_few_positions_for_a_game_are_refused() -> None:
    with pytest.raises(RunError, match="positions: expected enough for a game to end, got 5"):
        play_lessons(highest, 5, 50, PLAIN)


def test_lessons_that_are_pickled_are_not_loaded(tmp_path: Path) -> None:
    touched, path = tmp_path / "touched", tmp_path / "lessons-01.npz"

    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (touched,))

    np.savez(path, **dict.fromkeys(Lessons._fields, np.array([Trap()], object)))
    with pytest.raises(ValueError, match="allow_pickle="):
        expert._load_lessons(path)
    path.write_bytes(pickle.dumps(Trap()))
    with pytest.raises(ValueError, match="allow_pickle="):
        expert._load_lessons(path)
    assert not touched.exists()


# Learning


def test_a_network_learns_what_the_lessons_say() -> None:
    torch.manual_seed(0)
    network = MoveNetwork(SMALL)
    lessons = play_lessons(highest, 2500, 50, PLAIN)
    course = replace(PLAIN, learning_rate=0.01)
    loss = learn(network, lessons, 150, 1, course)
    assert loss < 0.5 * learn(MoveNetwork(SMALL), lessons, 1, 1, course)
    boards = Game(seed=0).boards
    logits, values = frozen(network).evaluate(boards, lessons.states, lessons.legal)
    wanted = lessons.visits.argmax(axis=1)
    assert (logits.argmax(axis=1) == wanted).mean() > 0.9
    towards: npt.NDArray[Any] = (lessons.results + lessons.values) / 2
    assert np.corrcoef(values, towards)[0, 1] > 0.5


# Courses


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course that went to its end; not to be changed."""
    folder = tmp_path_factory.mktemp("courses") / "whole"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(expert, "place", lambda *arguments: Rating("learner", 5.0, (1.0, 9.0), 6))
        teach(folder, TINY)
    return folder


def test_a_course_leaves_policies_lessons_and_what_is_told(taught: Path) -> None:
    files = {"settings.json", "rounds.jsonl", "01", "02", "lessons-01.npz", "lessons-02.npz"}
    assert set(contents(taught)) == files
    told = [json.loads(line) for line in (taught / "rounds.jsonl").read_text().splitlines()]
    assert [line["round"] for line in told] == [1, 2]
    assert told[1]["positions"] > told[0]["positions"] > 500  # two rounds are learnt together
    assert told[0]["elo"] == 5.0
    first, second = Policy.load(taught / "01"), Policy.load(taught / "02")
    assert first.sizes == second.sizes == TINY.sizes
    assert second.training["round"] == 2
    assert second.training["course"]["first_sims"] == 3
    assert (first.tensors["value.weight"] != second.tensors["value.weight"]).any()


class Stopped(Exception):  # noqa: N818  not an error
    pass


def stop(*arguments: Any) -> Any:
    raise Stopped


def stopped_after_a_round(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Stopped):
        teach(folder, TINY, stop)
    assert (folder / "01").is_file()


def stopped_before_learning(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(expert, "learn", stop)
        with pytest.raises(Stopped):
            teach(folder, TINY)
    assert (folder / "lessons-01.npz").is_file()


def stopped_before_the_policy_was_saved(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Policy, "save", stop)
        with pytest.raises(Stopped):
            teach(folder, TINY)
    assert (folder / "rounds.jsonl").is_file()


@pytest.mark.parametrize(
    "stopped",
    [stopped_after_a_round, stopped_before_learning, stopped_before_the_policy_was_saved],
)
def test_a_course_goes_on_where_it_was_stopped(
    taught: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stopped: Callable[[Path, pytest.MonkeyPatch], None],
) -> None:
    stopped(tmp_path / "course", monkeypatch)
    policy = teach(tmp_path / "course", TINY)
    assert contents(tmp_path / "course") == contents(taught)
    assert policy.tensors.keys() == Policy.load(taught / "02").tensors.keys()


def test_only_the_lessons_of_the_last_rounds_are_kept(tmp_path: Path) -> None:
    course = replace(TINY, kept_rounds=1, first_positions=2600, positions=2600)
    teach(tmp_path, course)
    assert {path.name for path in tmp_path.glob("*.npz")} == {"lessons-02.npz"}


def test_a_folder_of_another_course_is_refused(taught: Path, tmp_path: Path) -> None:
    before = contents(taught)
    with pytest.raises(RunError, match=r"belongs to another course") as error:
        teach(taught, replace(TINY, sims=9, board="shikoku_ring"))
    assert "sims: the folder has 3, asked for 9" in str(error.value)
    assert "board: the folder has 'shikoku', asked for 'shikoku_ring'" in str(error.value)
    assert "width" not in str(error.value)
    assert contents(taught) == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rounds": 0}, "rounds: expected a number above 0, got 0"),
        ({"learning_rate": float("nan")}, "learning_rate: expected a number above 0, got nan"),
        ({"uniform": -0.1}, "uniform: expected a share from 0 to 1, got -0.1"),
        ({"sampled": 0.9, "uniform": 0.2}, r"sampled \+ uniform: expected at most 1, got 0.9 \+"),
        ({"sims": 70_000}, "sims: expected 1 to 65535, got 70000"),
        ({"width": 20}, "width: expected a multiple of 8, got 20"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(RunError, match=message):
        Course(**change)


def test_a_seed_that_cannot_be_is_refused() -> None:
    with pytest.raises(SeedError, match="seed: expected an integer"):
        Course(seed=-1)


def test_the_command_tells_each_round_and_refuses_in_one_line(
    tmp_path: Path, capsys: Output
) -> None:
    given = {"rounds": 1, "first_sims": 2, "first_positions": 2600, "games": 8, "width": 16}
    words = [f"--{name.replace('_', '-')}={value}" for name, value in given.items()]
    assert main(["--run", str(tmp_path / "course"), *words]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["round"] == 1
    assert told["seconds"] > 0
    assert main(["--run", str(tmp_path / "course"), *words, "--sims=5"]) == 1
    refused = capsys.readouterr().err
    assert refused.startswith("expert: ")
    assert refused.count("\n") == 1
    assert main(["--run", str(tmp_path / "other"), "--width=20"]) == 1
    assert "width: expected a multiple of 8" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()
