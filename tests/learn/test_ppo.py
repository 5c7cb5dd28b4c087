"""The learner of `ppo`: what its games show it, what it learns from, and what it exports."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from cases import rest_slow
from gymnasium import spaces
from networks import inputs_of
from positions import shikoku_data, write_board
from safetensors.numpy import load_file
from short_run import VALUES, contents, metrics
from stable_baselines3.common.callbacks import BaseCallback

from tokaido_env import Game
from tokaido_env.agents.network_inputs import MAX_LEGAL, N_AFTERSTATE, N_INPUTS
from tokaido_env.agents.policy import Policy
from tokaido_env.arena.executors import SerialExecutor
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.observation import N_FEATURES
from tokaido_env.learn import ppo, run as runs
from tokaido_env.learn.network import VALUE_AGAINST, PolicyNetwork
from tokaido_env.learn.opponent_pool import LATEST
from tokaido_env.learn.ppo import learning_rate, make_model
from tokaido_env.learn.ppo_policy import (
    BOARD,
    LEGAL,
    OBSERVATION_SIZE,
    RESULTS,
    SELF_PLAY,
    LearnerEnv,
)
from tokaido_env.learn.settings import PpoSettings
from tokaido_env.learn.value_calibration import calibrate_value
from tokaido_env.sb3 import TokaidoVecEnv

SETTINGS = PpoSettings(
    games=8, n_steps=8, minibatch_size=64, width=32, opponent_slots=2, agents="greedy"
)
ON_POOL = PpoSettings(**VALUES | {"board": "family:train/6"})
LAST = ("policies/000000000", "last")


@pytest.fixture(scope="module")
def env() -> LearnerEnv:
    return LearnerEnv(SETTINGS, ["random", "greedy"])


def learner_of(env: LearnerEnv, settings: PpoSettings) -> Any:
    """Stable-Baselines3's learner of a new network."""
    torch.manual_seed(0)
    network = PolicyNetwork(settings.sizes, settings.network_boards, against_others=True)
    return make_model(env, settings, network)


def network_of(model: Any) -> PolicyNetwork:
    return cast(PolicyNetwork, model.policy.mlp_extractor.network)


def walk(env: TokaidoVecEnv, steps: int) -> Iterator[Any]:
    """What each step of random play tells."""
    rng = np.random.default_rng(0)
    for _ in range(steps):
        weights = rng.random((env.num_envs, N_ACTIONS)) * env.action_masks()
        yield env.step(weights.argmax(axis=1))


def test_the_spaces_of_the_learners_games(env: LearnerEnv) -> None:
    observation, action = env.observation_space, env.action_space
    assert isinstance(observation, spaces.Box)
    assert (observation.shape, observation.dtype) == ((OBSERVATION_SIZE,), np.float32)
    assert isinstance(action, spaces.Discrete)
    assert action.n == N_ACTIONS
    seen = env.reset()
    assert all(observation.contains(row) for row in seen)


@pytest.mark.parametrize("settings", [SETTINGS, ON_POOL], ids=["one board", "a pool"])
def test_the_learner_sees_what_the_network_reads(settings: PpoSettings) -> None:
    env, pool = LearnerEnv(settings, ["random", "greedy"]), settings.pool
    env.reset()
    plain = TokaidoVecEnv(env.num_envs, ["random", "greedy"], settings.seed, pool)
    plain.reset()
    ended, boards = 0, set[int]()
    for told, other in zip(walk(env, 200), walk(plain, 200), strict=True):
        (observation, rewards, dones, infos), (seen, other_rewards, other_dones, _) = told, other
        batch, masks = env.games.batch, env.action_masks()
        board = observation[:, BOARD].astype(int)
        wanted = [pool.board_of_seed(int(seed)).name for seed in batch.episode_info["seed"]]
        assert [pool[place].name for place in board] == wanted
        boards |= set(board.tolist())
        inputs, results = inputs_of(pool.records[board], batch.states, batch.legal)
        assert (observation[:, :N_INPUTS] == inputs).all()
        rows = observation[:, RESULTS].reshape(-1, MAX_LEGAL, N_AFTERSTATE)
        counts = masks.sum(axis=1, keepdims=True)
        assert (rows[np.arange(MAX_LEGAL) < counts] == results).all()
        assert not rows[np.arange(MAX_LEGAL) >= counts].any()
        assert (observation[:, LEGAL] == masks).all()
        assert (observation[:, :N_FEATURES] == seen).all()
        assert (observation[:, SELF_PLAY] == 0).all()
        assert (rewards == other_rewards).all()
        assert (dones == other_dones).all()
        for game in np.flatnonzero(dones):
            last = infos[game]["terminal_observation"]
            assert env.observation_space.contains(last)
            assert last[:N_FEATURES].any()
            assert not last[N_FEATURES:].any()
            ended += 1
    assert ended > 5
    assert boards == set(range(len(pool)))


@pytest.fixture
def learner(env: LearnerEnv) -> Iterator[Any]:
    """A learner with weights of all kinds, at the beginning of its games."""
    model = learner_of(env, SETTINGS)
    with torch.no_grad():
        for weights in network_of(model).parameters():
            weights += 0.1 * torch.randn_like(weights)
    env.reset()
    yield model
    env.self_play[:] = False


@pytest.mark.parametrize("settings", [SETTINGS, ON_POOL], ids=["one board", "a pool"])
def test_the_learners_distribution_is_the_exported_policys_softmax(settings: PpoSettings) -> None:
    env = LearnerEnv(settings, "random")
    learner = learner_of(env, settings)
    with torch.no_grad():
        for weights in network_of(learner).parameters():
            weights += 0.05 * torch.randn_like(weights)
    env.self_play[:] = True
    seen, masks, batch = torch.from_numpy(env.observe()), env.action_masks(), env.games.batch
    with torch.no_grad():
        policy: Any = learner.policy
        learnt = policy.get_distribution(seen, action_masks=masks).distribution.probs.numpy()
        learnt_values = policy.predict_values(seen)[:, 0].numpy()
    boards = settings.pool.records[batch.episode_info["board"].astype(int)]
    logits, values = network_of(learner).to_policy().evaluate(boards, batch.states, batch.legal)
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares = odds / odds.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(learnt, shares, atol=1e-5)
    assert (learnt[~masks] < 1e-12).all()
    np.testing.assert_allclose(learnt_values, values, atol=1e-5)
    assert not np.allclose(values, 0)


def test_whom_a_game_is_against_changes_the_value_and_not_the_policy(
    env: LearnerEnv, learner: Any
) -> None:
    """The second value, by hand, where the opponent is another; the policy never sees who it is."""
    tensors = {name: tensor.numpy() for name, tensor in network_of(learner).state_dict().items()}
    told = []
    for some in (np.zeros(8, bool), np.arange(8) % 3 == 0, np.ones(8, bool)):
        env.self_play[:] = some
        seen = torch.from_numpy(env.observe())
        with torch.no_grad():
            values = learner.policy.predict_values(seen)[:, 0].numpy()
            odds = learner.policy.get_distribution(seen, action_masks=env.action_masks())
        told.append((values, odds.distribution.logits.numpy().tobytes()))
    (others, first), (mixed, second), (own, third) = told
    assert first == second == third
    assert (mixed == np.where(np.arange(8) % 3 == 0, own, others)).all()
    assert (own != others).all()
    swapped = network_of(learner).to_policy().tensors
    swapped |= {value: tensors[name] for name, value in VALUE_AGAINST.items()}
    batch = env.games.batch
    _, expected = Policy(swapped).evaluate(batch.boards, batch.states, batch.legal)
    np.testing.assert_allclose(others, expected, atol=1e-5)


def test_the_loss_in_a_game_against_another_leaves_the_policys_value_alone(
    env: LearnerEnv, learner: Any
) -> None:
    network = network_of(learner)
    for itself, trained, left in (
        (True, network.value[1], network.against),
        (False, network.against, network.value[1]),
    ):
        env.self_play[:] = itself
        learner.policy.zero_grad()
        learner.policy.predict_values(torch.from_numpy(env.observe())).sum().backward()
        assert trained.weight.grad.any()  # type: ignore[union-attr]
        assert not left.weight.grad.any()  # type: ignore[union-attr]


def test_the_learning_rate_falls_along_a_line(finished_run: Callable[[str], Path]) -> None:
    rate = learning_rate(PpoSettings(learning_rate=0.01, final_learning_rate=0.2))
    assert [rate(x) for x in (1.0, 0.5, 0.0, -0.1)] == pytest.approx([0.01, 0.006, 0.002, 0.002])
    constant = learning_rate(PpoSettings(learning_rate=0.01))
    assert [constant(x) for x in (1.0, 0.5, 0.0)] == [0.01] * 3
    told = [line["train/learning_rate"] for line in metrics(finished_run("ppo"))]
    expected = [1e-3 * (1 - 0.5 * update / 5) for update in range(1, 6)]
    assert told == pytest.approx(expected)


# What the learner learns from


class Highest:
    """Plays the legal action of the highest number: known without a random number."""

    spec = "highest"

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> Any:
        return np.array([int(mask).bit_length() - 1 for mask in legal], np.int64)


class Rollout(BaseCallback):
    """Keeps the first rollout, its last observations and whatever ended in it."""

    def __init__(self) -> None:
        super().__init__()
        self.ended: list[tuple[int, int, dict[str, Any]]] = []

    def _on_step(self) -> bool:
        step = self.num_timesteps // self.training_env.num_envs - 1
        for game in np.flatnonzero(self.locals["dones"]).tolist():
            self.ended.append((step, game, self.locals["infos"][game]))
        return True

    def _on_rollout_end(self) -> None:
        buffer = self.model.rollout_buffer  # type: ignore[attr-defined]
        names = ("returns", "values", "actions", "observations")
        self.kept = {name: getattr(buffer, name).copy() for name in names}


def first_rollout(gae_lambda: float, board: str = "shikoku") -> tuple[Rollout, Policy]:
    """Let an untrained learner play whole games; return them, and its network of that time."""
    settings = PpoSettings(
        **VALUES
        | {"games": 8, "n_steps": 400, "minibatch_size": 3200, "epochs": 1}
        | {"opponent_slots": 1, "gae_lambda": gae_lambda, "board": board}
    )
    env = LearnerEnv(settings, [Highest()])
    env.self_play[:] = True  # `Highest` in its place: the value is the policy's
    model = learner_of(env, settings)
    network_of(model).outlook["weight"].data.zero_()  # else it would win every game
    policy, rollout = network_of(model).to_policy(), Rollout()
    model.learn(1, rollout)
    return rollout, policy


def own_decisions(seed: int, seat: int, actions: list[int]) -> tuple[Game, list[Any], list[int]]:
    """Play a game again, the learner's decisions as given.

    Returns:
        The finished game, the position and the legal actions at each decision of the learner, and
        how many decisions the opponent made before each of them.
    """
    game, left = Game(seed=seed), iter(actions)
    seen, between, others = [], [], 0
    while not game.is_over:
        if game.player != seat:
            game.play(game.legal_actions()[-1])
            others += 1
            continue
        seen.append((game.state.copy(), game.legal_mask))
        between.append(others)
        others = 0
        game.play(next(left))
    return game, seen, between


def replayed(rollout: Rollout) -> list[tuple[Game, int, slice, int, list[Any], list[int]]]:
    """Return each finished game of a rollout with its seat, steps and index, and its replay."""
    games = []
    for step, index, info in rollout.ended:
        steps = slice(step + 1 - info["episode"]["l"], step + 1)
        actions = rollout.kept["actions"][steps, index, 0].astype(int).tolist()
        seat = info["seat"]
        game, seen, between = own_decisions(info["seed"], seat, actions)
        assert len(seen) == len(actions)
        games.append((game, seat, steps, index, seen, between))
    assert len(games) >= 10
    assert {seat for _, seat, *_ in games} == {0, 1}
    return games


def test_what_is_learnt_is_the_learners_own_result_at_each_of_its_decisions() -> None:
    """With gamma = lambda = 1: nothing is discounted and no sign turns, whoever decided between."""
    rollout, _ = first_rollout(gae_lambda=1.0)
    results, again, after_others = set(), 0, 0
    for game, seat, steps, index, _, between in replayed(rollout):
        winner = game.winner()
        result = 0.0 if winner is None else 1.0 if winner == seat else -1.0
        assert rollout.kept["returns"][steps, index] == pytest.approx(result, abs=1e-4)
        results.add(result)
        again += between[1:].count(0)
        after_others += len(between) - between.count(0)
    assert {1.0, -1.0} <= results
    assert again > 100 < after_others


def test_a_decision_is_worth_what_the_learner_sees_at_its_own_next_one() -> None:
    """With lambda = 0 the target is V there, its sign kept, whoever decided between."""
    rollout, policy = first_rollout(gae_lambda=0.0)
    for game, _, steps, index, seen, _between in replayed(rollout):
        states = np.concatenate([state for state, _ in seen])
        legal = np.array([mask for _, mask in seen], np.uint64)
        observations = rollout.kept["observations"][steps, index]
        inputs, _ = inputs_of(game.boards, states, legal)
        assert np.array_equal(observations[:, :N_INPUTS], inputs)
        _, values = policy.evaluate(game.boards, states, legal)
        targets = rollout.kept["returns"][steps, index]
        assert targets[:-1] == pytest.approx(values[1:], abs=1e-5)


@pytest.mark.parametrize("gae_lambda", rest_slow([0.9, 0.0, 1.0]))
def test_a_game_that_reaches_the_cap_is_worth_nothing(tmp_path: Path, gae_lambda: float) -> None:
    """R10.1: nobody wins, and nothing comes after. By hand: no reward, and 0 after the end."""
    board = write_board(tmp_path / "short.toml", shikoku_data() | {"max_rounds": 2})
    rollout, _ = first_rollout(gae_lambda, str(board))
    ended = 0
    for step, game, info in rollout.ended:
        steps = slice(step + 1 - info["episode"]["l"], step + 1)
        values = rollout.kept["values"][steps, game].tolist()
        assert info["episode"]["r"] == 0
        towards = 0.0  # V at the next decision and all after it, as lambda weighs them
        for place in reversed(range(len(values))):
            assert rollout.kept["returns"][steps, game][place] == pytest.approx(towards, abs=1e-5)
            towards = (1 - gae_lambda) * values[place] + gae_lambda * towards
        assert max(map(abs, values)) > 0.001
        ended += 1
    assert ended > 100


def test_the_value_is_learnt_from_self_play_alone(tmp_path: Path) -> None:
    """Of a run that never meets itself, for lack of slots, the value stays; the policy learns."""
    values = {"opponent_slots": 1, "share_latest": 0.001, "share_past": 0.0, "share_agents": 0.999}
    runs.begin(tmp_path / "run", PpoSettings(**VALUES | values))
    assert runs.train(tmp_path / "run")
    first, last = (Policy.load(tmp_path / "run" / name).tensors for name in LAST)
    for name in ("value.0.weight", "value.1.weight", "value.1.bias"):
        assert (first[name] == last[name]).all() == name.startswith("value.1")
    assert (first["move.weight"] != last["move.weight"]).all()
    for line in metrics(tmp_path / "run"):
        assert "win_rate/latest" not in line
        assert all(np.isfinite(number) for number in line.values())


def test_self_play_alone_trains_the_value_and_a_policy_has_no_other(tmp_path: Path) -> None:
    values = {"share_latest": 1.0, "share_past": 0.0, "share_agents": 0.0, "agents": ""}
    runs.begin(tmp_path / "run", PpoSettings(**VALUES | values))
    assert runs.train(tmp_path / "run")
    first, last = (Policy.load(tmp_path / "run" / name).tensors for name in LAST)
    assert (first["value.1.weight"] != last["value.1.weight"]).any()  # some units are never on
    assert (first["value.1.bias"] != last["value.1.bias"]).all()
    kept = load_file(tmp_path / "run" / "checkpoints" / "000000256" / "learner.safetensors")
    assert any(name.endswith("against.weight") for name in kept)
    assert not any("against" in name for name in last)


def test_games_against_itself_are_told_to_the_critic(tmp_path: Path) -> None:
    """By whom each slot is seated with, also where a run goes on; the share stays as it was."""
    settings = PpoSettings(**VALUES | {"steps": 512, "resample_every": 128, "n_steps": 16})
    runs.begin(tmp_path / "run", settings)
    trainer = ppo.PpoTrainer(runs.Run(tmp_path / "run", settings, (), SerialExecutor()))
    trainer.start()
    for _ in range(6):
        itself = [name == LATEST for name in trainer.pool.slot_opponents]
        assert sum(itself) == settings.opponent_slots * settings.share_latest
        own = np.resize(itself, settings.games)
        assert (trainer.env.self_play == own).all()
        assert (trainer.model._last_obs[:, SELF_PLAY] == own).all()
        trainer.advance(lambda: False)


# The value at the end


@pytest.fixture(scope="module")
def unfitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose values are as they were trained: the last is not the best."""
    run = tmp_path_factory.mktemp("unfitted") / "run"
    runs.begin(run, PpoSettings(**VALUES | {"rate_every": 128, "rating_games": 4, "n_steps": 16}))
    assert runs.train(run)
    return run


def fitting(unfitted: Path, run: Path) -> list[str]:
    """Copy a finished run to one that fits its values, train it to its end, say what was told."""
    if not run.exists():
        shutil.copytree(unfitted, run)
        config = (run / "config.toml").read_text(encoding="utf-8")
        lines = config.replace("calibration_games = 0 ", "calibration_games = 512 ")
        assert lines != config
        (run / "config.toml").write_text(lines, encoding="utf-8")
    told: list[str] = []
    assert runs.train(run, lambda progress: told.append(progress.note))
    return [note for note in told if note]


@pytest.fixture(scope="module")
def fitted(unfitted: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """The same run with its values fitted, and what was told."""
    run = tmp_path_factory.mktemp("fitted") / "run"
    return run, fitting(unfitted, run)


def test_at_the_end_the_values_are_fitted_to_games_against_itself(
    unfitted: Path, fitted: tuple[Path, list[str]]
) -> None:
    run, told = fitted
    same = (unfitted / "last").read_bytes() == (unfitted / "best").read_bytes()
    assert [note.partition(":")[0] for note in told] == (["last"] if same else ["last", "best"])
    for name in ("last", "best"):
        before, after = (Policy.load(folder / name) for folder in (unfitted, run))
        made = calibrate_value(before, games=512, seed=0)
        assert made.is_better
        assert after.training == before.training | {"value": made.policy.training["value"]}
        for tensor, values in made.policy.tensors.items():
            assert after.tensors[tensor].tobytes() == values.tobytes(), tensor
            is_fitted = tensor.startswith("value.1.")
            assert (values.tobytes() != before.tensors[tensor].tobytes()) == is_fitted, tensor
    for path in ("policies/000000256", "checkpoints/000000256/learner.safetensors"):
        assert (run / path).read_bytes() == (unfitted / path).read_bytes()


def test_a_run_that_was_stopped_while_values_were_fitted_goes_on_there(
    unfitted: Path,
    fitted: tuple[Path, list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(ppo, "calibrate_value", interrupt)
        with pytest.raises(KeyboardInterrupt):
            fitting(unfitted, tmp_path / "run")
    assert (tmp_path / "run" / "last").read_bytes() == (unfitted / "last").read_bytes()
    assert fitting(unfitted, tmp_path / "run")
    assert contents(tmp_path / "run") == contents(fitted[0])
    assert fitting(unfitted, tmp_path / "run") == []


def interrupt(*arguments: Any) -> Any:
    """Press Ctrl-C."""
    raise KeyboardInterrupt


def test_a_value_of_all_games_is_left_as_it_is(tmp_path: Path) -> None:
    values = VALUES | {"value_games": "all", "calibration_games": 16}
    runs.begin(tmp_path / "run", PpoSettings(**values))
    told: list[str] = []
    assert runs.train(tmp_path / "run", lambda progress: told.append(progress.note))
    assert not any(told)
