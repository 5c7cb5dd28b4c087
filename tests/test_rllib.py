"""The environment of RLlib, its modules and what they train: against games that are played apart.

RLlib asks for a Gymnasium of its own, so these run in an environment of their own:
`make certify-rllib`.
"""

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip(
    "tokaido_env.rllib", reason="RLlib is not installed: make certify-rllib", exc_type=ImportError
)

import ray
import torch
from ray.rllib.algorithms.ppo.torch.default_ppo_torch_rl_module import DefaultPPOTorchRLModule
from ray.rllib.core.columns import Columns
from ray.rllib.core.distribution.torch.torch_distribution import TorchCategorical
from ray.rllib.core.rl_module import RLModuleSpec
from ray.rllib.env.multi_agent_env_runner import MultiAgentEnvRunner
from ray.tune.registry import ENV_CREATOR, _global_registry

from tokaido_env import Game
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.rng import episode_seed, game_seed
from tokaido_env.rllib import NAME, POLICY, MaskedModule, TokaidoMultiAgentEnv, self_play_config

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docs" / "recipes"))

from rllib_ppo import ActionModule, LearnerEnv, NetworkAgent, self_play

# RLlib registers its vector environment again each time.
pytestmark = pytest.mark.filterwarnings("ignore:.*Overriding environment rllib:UserWarning")

AGENTS = ["player_0", "player_1"]


def positions(cls: Any, games: int) -> Iterator[tuple[Game, dict[str, Any]]]:
    """Yield every decision of random games with the deciding agent's observation."""
    rng, e = np.random.default_rng(1), cls()
    for seed in range(games):
        seen, _ = e.reset(seed=seed)
        while len(seen) == 1:
            ((agent, observation),) = seen.items()
            yield e.aec.game, observation
            seen, *_ = e.step({agent: int(rng.choice(np.flatnonzero(observation["action_mask"])))})


def batch_of(seen: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a batch as RLlib passes it to a module."""
    observation = {key: np.stack([one[key] for one in seen]) for key in seen[0]}
    return {Columns.OBS: {key: torch.from_numpy(array) for key, array in observation.items()}}


def module_of(kind: Any, cls: Any, model_config: Any = None) -> Any:
    e = cls()
    return RLModuleSpec(
        module_class=kind,
        observation_space=e.observation_spaces["player_0"],
        action_space=e.action_spaces["player_0"],
        model_config=model_config,
    ).build()


# The environment


def test_step__loses_on_an_illegal_action() -> None:
    e = TokaidoMultiAgentEnv()
    seen, _ = e.reset(seed=1)
    ((agent, observation),) = seen.items()
    illegal = int(np.flatnonzero(observation["action_mask"] == 0)[0])
    _, rewards, ended, truncated, _ = e.step({agent: illegal})
    assert rewards == dict.fromkeys(AGENTS, 0.0) | {agent: -1.0}
    assert all(ended.values())
    assert not any(truncated.values())


@pytest.mark.parametrize("actions", [{}, {"player_0": 1, "player_1": 1}], ids=str)
def test_step__refuses_actions_of_the_other_agent(actions: Any) -> None:
    e = TokaidoMultiAgentEnv()
    ((agent, _),) = e.reset(seed=1)[0].items()
    with pytest.raises(ValueError, match=f"^action_dict: expected an action of {agent} only"):
        e.step(actions)


def test_env__is_registered() -> None:
    made = _global_registry.get(ENV_CREATOR, NAME)({"board": "family:7"})
    made.reset(seed=1)
    assert made.aec.game.board.name == "family:7"


# Episodes as RLlib samples them


@pytest.mark.parametrize(
    "config", [self_play_config(), self_play(width=16)], ids=["plain", "recipe"]
)
def test_env_runner__samples_complete_games(config: Any) -> None:
    """Each agent's steps are its own decisions, as a replayed game confirms."""
    runner = MultiAgentEnvRunner(
        config.debugging(seed=5).env_runners(num_env_runners=0, num_envs_per_env_runner=3)
    )
    episodes = runner.sample(num_episodes=3)
    assert len(episodes) >= 3
    for episode in episodes:
        seats = [episode.agent_episodes[agent] for agent in AGENTS]
        game = Game(seed=int(seats[0].get_infos(0)["seed"]))
        seeds = (game_seed(5 + i, 0) for i in range(3))
        assert game.seed in {int(episode_seed(seed, e)) for seed in seeds for e in range(9)}
        steps = [0, 0]
        while not game.is_over:
            assert game.player is not None
            seat, t = seats[game.player], steps[game.player]
            observation = seat.get_observations(t)["action_mask"]
            assert np.flatnonzero(observation).tolist() == game.legal_actions()
            steps[game.player] += 1
            game.play(int(seat.get_actions(t)))
        assert steps == [len(seat) for seat in seats]
        assert all(seat.is_terminated for seat in seats)
        winner = game.winner()
        wins = [0 if winner is None else 1 if winner == seat else -1 for seat in (0, 1)]
        assert [seat.get_return() for seat in seats] == wins
        assert [sum(seat.get_rewards()[:-1]) for seat in seats] == [0, 0]


def test_env_runner__plays_different_games_without_a_seed() -> None:
    """RLlib's environment check would reset all environments with one seed."""
    config = self_play_config().env_runners(num_env_runners=0, num_envs_per_env_runner=4)
    runner = MultiAgentEnvRunner(config)
    runner.sample(num_timesteps=8)
    assert len({e.unwrapped.aec.game.seed for e in runner.env.envs}) == 4


def test_env_runners__of_all_seeds_play_different_games() -> None:
    """Two runners with three environments each, which sample complete episodes twice."""
    games: list[int] = []
    for seed in (0, 3, 6):
        config = self_play_config().debugging(seed=seed)
        config = config.env_runners(num_env_runners=0, num_envs_per_env_runner=3)
        for index in (1, 2):
            runner = MultiAgentEnvRunner(config, worker_index=index)
            for _ in range(2):
                episodes = runner.sample(num_episodes=3)
                starts = (episode.agent_episodes["player_0"].get_infos(0) for episode in episodes)
                games += [start["seed"] for start in starts]
    assert len(set(games)) == len(games) >= 36


# The modules


@pytest.mark.parametrize("kind", [MaskedModule, ActionModule])
def test_masked_module__samples_legal_actions_only(kind: Any) -> None:
    """Even with logits that strongly favour illegal actions."""
    cls = LearnerEnv if kind is ActionModule else TokaidoMultiAgentEnv
    config = {"width": 16} if kind is ActionModule else None
    module = module_of(kind, cls, config)
    last = module.network.by_id if kind is ActionModule else module.pi.net.mlp[-1]
    with torch.no_grad():
        last.bias[45:] += 1e4
    batch = batch_of([observation for _, observation in positions(cls, 2)])
    legal = batch[Columns.OBS]["action_mask"].bool()
    for forward in (module.forward_exploration, module.forward_inference, module.forward_train):
        chosen = TorchCategorical.from_logits(forward(batch)[Columns.ACTION_DIST_INPUTS])
        assert not chosen._dist.probs[~legal].any()
        drawn = torch.stack([chosen.sample() for _ in range(200)])
        assert legal.gather(1, drawn.T).all()
    assert len(legal) > 100
    assert not legal.all(dim=1).any()


@pytest.mark.parametrize("kind", [MaskedModule, ActionModule])
def test_masked_module__is_finite_without_legal_actions(kind: Any) -> None:
    cls = LearnerEnv if kind is ActionModule else TokaidoMultiAgentEnv
    module = module_of(kind, cls, {"width": 16} if kind is ActionModule else None)
    seen = [observation for _, observation in itertools.islice(positions(cls, 1), 3)]
    batch = batch_of(
        [{**observation, "action_mask": observation["action_mask"] * 0} for observation in seen]
    )
    found = module.forward_train(batch)
    chosen = TorchCategorical.from_logits(found[Columns.ACTION_DIST_INPUTS])
    loss = chosen.entropy().sum() + chosen.logp(torch.zeros(3)).sum()
    (loss + module.compute_values(batch, found.get(Columns.EMBEDDINGS)).sum()).backward()
    grads = [parameter.grad for parameter in module.parameters() if parameter.grad is not None]
    assert grads
    assert all(torch.isfinite(grad).all() for grad in grads)


def test_masked_module__keeps_logits_of_legal_actions(tmp_path: Path) -> None:
    module = module_of(MaskedModule, TokaidoMultiAgentEnv)
    e = TokaidoMultiAgentEnv()
    unmasked = DefaultPPOTorchRLModule(
        observation_space=e.observation_spaces["player_0"]["observation"],
        action_space=e.action_spaces["player_0"],
        model_config=module.model_config,
    )
    unmasked.load_state_dict(module.state_dict())
    batch = batch_of([observation for _, observation in positions(TokaidoMultiAgentEnv, 1)])
    seen = {Columns.OBS: batch[Columns.OBS]["observation"]}
    legal = batch[Columns.OBS]["action_mask"].bool()
    found = module.forward_train(batch)[Columns.ACTION_DIST_INPUTS]
    assert (
        found[legal].tolist()
        == unmasked.forward_train(seen)[Columns.ACTION_DIST_INPUTS][legal].tolist()
    )
    assert module.compute_values(batch).tolist() == unmasked.compute_values(seen).tolist()
    module.save_to_path(tmp_path / "module")  # a module checkpoint
    again = MaskedModule.from_checkpoint(tmp_path / "module")
    assert again.forward_train(batch)[Columns.ACTION_DIST_INPUTS].tolist() == found.tolist()


def test_recipe_agent__plays_the_likeliest_action_of_the_module(tmp_path: Path) -> None:
    module = module_of(ActionModule, LearnerEnv, {"width": 32})
    torch.save(module.network.state_dict(), tmp_path / "weights.pt")
    agent = NetworkAgent(str(tmp_path / "weights.pt"))
    keys = np.zeros(1, np.uint64)
    for game, observation in itertools.islice(positions(LearnerEnv, 1), 0, None, 7):
        batch = batch_of([observation])
        found = module.forward_train(batch)
        likeliest = found[Columns.ACTION_DIST_INPUTS].argmax(dim=1).tolist()
        legal = np.array([game.legal_mask], np.uint64)
        assert agent.act(game.boards, game.states, legal, keys).tolist() == likeliest
        values = module.compute_values(batch, found[Columns.EMBEDDINGS])
        assert values.shape == (1,)
        torch.testing.assert_close(values, module.compute_values(batch))


# Training


@pytest.fixture
def local_ray(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    ray.shutdown()  # started by an example of the README
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.mark.usefixtures("local_ray")
def test_self_play_config__trains_rllibs_network() -> None:
    config = self_play_config().env_runners(num_env_runners=0, num_envs_per_env_runner=8)
    algorithm = config.training(
        train_batch_size_per_learner=512, minibatch_size=256, num_epochs=1
    ).build_algo()
    found = algorithm.train()["learners"][POLICY]
    weights = algorithm.get_module(POLICY).get_state()
    algorithm.stop()
    assert all(np.isfinite(array).all() for array in weights.values())
    assert np.isfinite(found["total_loss"])
    assert 0 < found["entropy"] < np.log(N_ACTIONS)
