"""Expert iteration: samples that are true, runs that go on where they stopped."""

import json
import pickle
import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from cases import rest_slow
from networks import SIGHTED, SMALL

from tokaido_env import Game, SeedError
from tokaido_env.agents import Policy
from tokaido_env.arena.ratings import Rating
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.luck import episode_seed
from tokaido_env.learn import expert, sighted
from tokaido_env.learn.declared import RunError
from tokaido_env.learn.expert import (
    ExpertSettings,
    iterate,
    learn,
    main,
    self_play,
)
from tokaido_env.learn.network import MoveNetwork, frozen
from tokaido_env.learn.samples import Samples, load_samples
from tokaido_env.learn.self_play import drawn
from tokaido_env.learn.sighted import SightedNetwork

TINY = ExpertSettings(
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


# Samples


def replayed(seed: int) -> tuple[dict[bytes, int], float]:
    """Positions with a choice, and who decides there, of a game of `highest`; its result."""
    game, seen = Game(seed=seed), {}
    while not game.is_over:
        legal = game.legal_actions()
        if len(legal) > 1:
            seen[game.state.tobytes()] = int(game.player)
        game.play(legal[-1])
    return seen, {0: 1.0, 1: -1.0, None: 0.0}[game.winner()]


def test_samples_are_the_choices_of_whole_games_with_their_results() -> None:
    samples = self_play(highest, 5000, 50, PLAIN)
    known = {row.tobytes(): i for i, row in enumerate(samples.states)}
    assert len(known) == len(samples.legal)
    found, whole, signs = 0, 0, set()
    for game in range(PLAIN.games):
        for episode in range(12):
            seen, result = replayed(episode_seed(50 + game, episode))
            rows = [known[state] for state in seen if state in known]
            assert len(rows) in (0, len(seen))  # no part of a game
            found += len(rows)
            whole += bool(rows)
            for row, player in zip(rows, seen.values(), strict=False):
                sign = 1 - 2 * player
                assert samples.results[row] == sign * result
                assert samples.values[row] == sign * np.float32(0.25)
                signs.add(sign)
    assert found == len(samples.legal)
    assert whole > 8
    assert signs == {1, -1}


def test_samples_hold_legal_actions_and_visits() -> None:
    samples = self_play(highest, 2500, 50, PLAIN)
    for mask, visits in zip(samples.legal.tolist(), samples.visits, strict=True):
        assert mask & (mask - 1)
        assert visits[mask.bit_length() - 1] == visits.sum() == 4


def test_games_vary_by_the_shares_that_are_set() -> None:
    """What was played shows in what comes next: here, whether games are as `highest` plays."""
    plain = self_play(highest, 2500, 50, PLAIN)
    by_visits = self_play(highest, 2500, 50, replace(PLAIN, sampled=1.0))
    assert (plain.states == by_visits.states).all()  # all visits are of the highest action
    uniform = self_play(highest, 2500, 50, replace(PLAIN, uniform=1.0))
    played = {row.tobytes() for row in plain.states}
    assert sum(row.tobytes() in played for row in uniform.states) < 0.2 * len(uniform.states)


def test_actions_are_drawn_in_proportion() -> None:
    n = 20_000
    weights = np.zeros((n, N_ACTIONS), np.uint16)
    weights[:, [2, 7, 48]] = 1, 3, 4
    numbers = np.random.default_rng(0).random(n)
    counts = np.bincount(drawn(weights, numbers), minlength=N_ACTIONS)
    assert counts[[2, 7, 48]] / n == pytest.approx(np.array([1, 3, 4]) / 8, abs=0.015)
    assert counts.sum() == counts[[2, 7, 48]].sum()


def test_too_few_positions_for_a_game_are_refused() -> None:
    with pytest.raises(RunError, match="positions: expected enough for a game to end, got 5"):
        self_play(highest, 5, 50, PLAIN)


def test_samples_that_are_pickled_are_not_loaded(tmp_path: Path) -> None:
    touched, path = tmp_path / "touched", tmp_path / "lessons-01.npz"

    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (touched,))

    np.savez(path, **dict.fromkeys(Samples._fields, np.array([Trap()], object)))
    with pytest.raises(RunError, match=r"npz: not a file of arrays: .*expected object of shape"):
        load_samples(path, "shikoku")
    path.write_bytes(pickle.dumps(Trap()))
    with pytest.raises(RunError, match="npz: not a file of arrays: File is not a zip file"):
        load_samples(path, "shikoku")
    assert not touched.exists()


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("states", lambda a: a | 0x55, "game 0: .*: expected"),
        ("states", lambda a: a[:, :5], r"states: expected uint8 of shape \(40, 75\), got uint8"),
        ("legal", lambda a: a * 0, "game 0: legal: expected what is legal in its state"),
        ("legal", lambda a: a.astype(np.int64), "legal: expected uint64 of shape .* got int64"),
        ("visits", lambda a: a * 0, "visits: expected some, of legal actions only"),
        ("visits", lambda a: a + 1, "visits: expected some, of legal actions only"),
        ("values", lambda a: a * np.nan, "values: expected numbers from -1 to 1"),
        ("results", lambda a: a + 2, "results: expected numbers from -1 to 1"),
    ],
)
def test_samples_of_a_stranger_are_looked_at_before_a_kernel_reads_them(
    tmp_path: Path, name: str, change: Any, message: str
) -> None:
    path = tmp_path / "lessons-07.npz"
    samples = Samples(*(column[:40] for column in self_play(highest, 2500, 50, PLAIN)))
    raw = samples.states.copy().view(np.uint8).reshape(40, -1)
    arrays = samples._asdict() | {"states": raw}
    np.savez(path, **arrays)
    loaded = load_samples(path, "shikoku")
    assert all((one == other).all() for one, other in zip(loaded, samples, strict=True))
    np.savez(path, **arrays | {name: change(arrays[name])})
    with pytest.raises(RunError, match=f"broken samples: {message}.* and the policies 07 and"):
        load_samples(path, "shikoku")


# Learning


def test_a_network_learns_what_the_samples_say() -> None:
    torch.manual_seed(0)
    network = MoveNetwork(SMALL)
    samples = self_play(highest, 2500, 50, PLAIN)
    settings = replace(PLAIN, learning_rate=0.01)
    loss = learn(network, samples, 150, 1, settings)
    assert loss < 0.5 * learn(MoveNetwork(SMALL), samples, 1, 1, settings)
    boards = Game(seed=0).boards
    logits, values = frozen(network).evaluate(boards, samples.states, samples.legal)
    wanted = samples.visits.argmax(axis=1)
    assert (logits.argmax(axis=1) == wanted).mean() > 0.9
    towards: npt.NDArray[Any] = (samples.results + samples.values) / 2
    assert np.corrcoef(values, towards)[0, 1] > 0.5


def test_a_network_with_sight_learns_what_the_search_visited() -> None:
    torch.manual_seed(0)
    network = SightedNetwork(SIGHTED)
    samples = self_play(highest, 2500, 50, PLAIN)
    none = samples._replace(
        visits=samples.visits * (np.arange(len(samples.legal)) % 2 == 0)[:, None]
    )
    assert learn(network, none, 150, 1, replace(PLAIN, learning_rate=0.01)) < 0.5
    boards = Game(seed=0).boards
    logits, _ = sighted.frozen(network).evaluate(boards, samples.states, samples.legal)
    hit = logits.argmax(axis=1) == samples.visits.argmax(axis=1)
    assert hit.mean() > 0.9  # also where it was told nothing


# Runs


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that went to its end; not to be changed."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(expert, "place", lambda *arguments: Rating("learner", 5.0, (1.0, 9.0), 6))
        iterate(folder, TINY)
    return folder


def test_a_run_leaves_policies_samples_and_figures(finished: Path) -> None:
    files = {"settings.json", "rounds.jsonl", "01", "02", "lessons-01.npz", "lessons-02.npz"}
    assert set(contents(finished)) == files
    rows = [json.loads(line) for line in (finished / "rounds.jsonl").read_text().splitlines()]
    assert [line["round"] for line in rows] == [1, 2]
    assert rows[1]["positions"] > rows[0]["positions"] > 500  # two rounds are learnt together
    assert rows[0]["elo"] == 5.0
    first, second = Policy.load(finished / "01"), Policy.load(finished / "02")
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
        iterate(folder, TINY, stop)
    assert (folder / "01").is_file()


def stopped_before_learning(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(expert, "learn", stop)
        with pytest.raises(Stopped):
            iterate(folder, TINY)
    assert (folder / "lessons-01.npz").is_file()


def stopped_before_the_policy_was_saved(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Policy, "save", stop)
        with pytest.raises(Stopped):
            iterate(folder, TINY)
    assert (folder / "rounds.jsonl").is_file()


@pytest.mark.parametrize(
    "stopped",
    rest_slow(
        [stopped_before_learning, stopped_after_a_round, stopped_before_the_policy_was_saved]
    ),
)
def test_a_run_goes_on_where_it_was_stopped(
    finished: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stopped: Callable[[Path, pytest.MonkeyPatch], None],
) -> None:
    stopped(tmp_path / "run", monkeypatch)
    policy = iterate(tmp_path / "run", TINY)
    assert contents(tmp_path / "run") == contents(finished)
    assert policy.tensors.keys() == Policy.load(finished / "02").tensors.keys()


def test_what_a_kill_has_left_is_swept_and_the_rest_is_not(finished: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    for name in ("settings.json", "rounds.jsonl", "lessons-02.npz", "02", "mine"):
        (run / f"{name}.tmp").write_text("half", encoding="utf-8")
    iterate(run, TINY)
    assert contents(run) == contents(finished) | {"mine.tmp": b"half"}


@pytest.mark.parametrize("how", ["cut", "flipped", "another"])
def test_broken_samples_are_named_and_can_be_made_again(
    finished: Path, tmp_path: Path, how: str
) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    (run / "02").unlink()
    path = run / "lessons-01.npz"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data[: len(data) // 2] if how == "cut" else data)
    if how == "another":
        np.savez(path, legal=np.arange(3))
    with pytest.raises(
        RunError, match=r"broken samples: .*delete it, and the policies 01 and later"
    ):
        iterate(run, TINY)
    if how == "cut":
        path.unlink()
        (run / "01").unlink()
        iterate(run, TINY)
        assert contents(run) == contents(finished)


def test_only_the_samples_of_the_last_rounds_are_kept(tmp_path: Path) -> None:
    settings = replace(TINY, kept_rounds=1, first_positions=2600, positions=2600)
    iterate(tmp_path, settings)
    assert {path.name for path in tmp_path.glob("*.npz")} == {"lessons-02.npz"}


def test_a_folder_of_other_settings_is_refused(finished: Path, tmp_path: Path) -> None:
    before = contents(finished)
    with pytest.raises(RunError, match="cannot go on with other settings") as error:
        iterate(finished, replace(TINY, sims=9, board="shikoku_ring"))
    assert "sims: the run has 3, asked for 9" in str(error.value)
    assert "board: the run has 'shikoku', asked for 'shikoku_ring'" in str(error.value)
    assert "width" not in str(error.value)
    assert contents(finished) == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rounds": 0}, "rounds: expected an integer from 1, got 0"),
        ({"rounds": 1.5}, "rounds: expected an integer from 1, got 1.5"),
        ({"board": 7}, "board: expected a text, got 7"),
        ({"epochs": 0}, "epochs: expected a number from 1e-09 to 1000000, got 0"),
        (
            {"learning_rate": float("nan")},
            "learning_rate: expected a number from 1e-09 to 1, got nan",
        ),
        ({"uniform": -0.1}, "uniform: expected a number from 0 to 1, got -0.1"),
        ({"sampled": 0.9, "uniform": 0.2}, r"sampled \+ uniform: expected at most 1, got 0.9 \+"),
        ({"games": 2**25}, "games: expected at most 16777216, got 33554432"),
        ({"epochs": 1e300}, "epochs: expected a number from 1e-09 to 1000000, got 1e.300"),
        ({"sims": 70_000}, "sims: expected an integer from 1 to 65535, got 70000"),
        ({"width": 20}, "width: expected a multiple of 8, got 20"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(RunError, match=message):
        ExpertSettings(**change)


def test_a_seed_that_cannot_be_is_refused() -> None:
    with pytest.raises(SeedError, match="seed: expected an integer"):
        ExpertSettings(seed=-1)


def test_the_command_reports_each_round_and_refuses_in_one_line(
    tmp_path: Path, capsys: Output
) -> None:
    given = {"rounds": 1, "first_sims": 2, "first_positions": 2600, "games": 8, "width": 16}
    words = [f"--{name.replace('_', '-')}={value}" for name, value in given.items()]
    assert main(["--run", str(tmp_path / "run"), *words]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["round"] == 1
    assert figures["seconds"] > 0
    assert main(["--run", str(tmp_path / "run"), *words, "--sims=5"]) == 1
    refused = capsys.readouterr().err
    assert refused.startswith("expert: ")
    assert refused.count("\n") == 1
    assert main(["--run", str(tmp_path / "other"), "--width=20"]) == 1
    assert "width: expected a multiple of 8" in capsys.readouterr().err
    assert main(["--run", str(tmp_path / "other"), "--rounds=many"]) == 1
    assert "rounds: expected an integer from 1, got 'many'" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()


def test_help_tells_every_setting_its_meaning_and_its_default(capsys: Output) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    text = " ".join(capsys.readouterr().out.split())
    meanings, defaults = ExpertSettings.meanings(), ExpertSettings.defaults()
    assert set(meanings) == set(defaults) == set(asdict(ExpertSettings()))
    for name, meaning in meanings.items():
        value = defaults[name]
        shown = f"{value:,}" if isinstance(value, int) else value
        assert f"--{name.replace('_', '-')} " in text
        assert f"{meaning} ({shown})" in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "JSON file: "),
        ("\xff", "JSON file: "),
        ("[3]", "settings.json: expected an object of settings, got "),
        ("{}", "seed: the run has None, asked for 3"),
    ],
)
def test_a_folder_whose_settings_cannot_be_read_is_refused(
    tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "settings.json").write_text(text, encoding="latin-1")
    with pytest.raises(ValueError, match=message) as error:
        iterate(tmp_path, TINY)
    assert str(tmp_path) in str(error.value)
    assert "\n" not in str(error.value)
    assert not list(tmp_path.glob("lessons-*"))
