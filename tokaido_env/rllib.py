"""RLlib multi-agent environment and PPO settings for the new API stack.

    from tokaido_env.rllib import self_play_config

    algorithm = self_play_config().build_algo()  # PPO, one policy for both seats

| | |
|---|---|
| agents | `player_0`, `player_1`; a step observes the agent to decide, at the end both |
| actions | Discrete(49), the table of `tokaido_env.core.actions` |
| observation | `{"observation": float32 (N_FEATURES,) in [0, 1], "action_mask": int8 (49,)}` |
| afterstates | with `observation="afterstates"`, the inputs of the networks, and `actions` |
| reward | at the end: +1 to the winner, -1 to the other player, 0 to both for a shared victory |
| step | one decision; for an agent, from one decision of its own to its next |
| illegal action | ends the game, -1 for the offender, since RLlib's checks play any action |

The environment wraps `tokaido_env.aec`. Importing this module registers `tokaido_duo`.
"""

from __future__ import annotations

from typing import Any

from tokaido_env.core.optional_deps import extra_error

try:
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.algorithms.ppo.ppo_catalog import PPOCatalog
    from ray.rllib.algorithms.ppo.torch.default_ppo_torch_rl_module import DefaultPPOTorchRLModule
    from ray.rllib.core.columns import Columns
    from ray.rllib.core.rl_module import MultiRLModuleSpec, RLModuleSpec
    from ray.rllib.env.env_context import EnvContext
    from ray.rllib.env.multi_agent_env import MultiAgentEnv
    from ray.rllib.utils.torch_utils import FLOAT_MIN
    from ray.tune.registry import register_env
except ModuleNotFoundError as error:
    # RLlib pins one version of Gymnasium, hence the separate environment.
    raise extra_error(
        "RLlib, best in a separate virtual environment, needs", error.name, "rllib"
    ) from error

from tokaido_env import aec
from tokaido_env.core.copying import CopiedWhole
from tokaido_env.core.rng import game_seed

NAME = "tokaido_duo"
POLICY = "learner"
"""The policy that plays both seats in `self_play_config`."""

StepResult = tuple[
    dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Any]
]


class TokaidoMultiAgentEnv(CopiedWhole, MultiAgentEnv):
    """A game of two agents as an environment of RLlib, with the mask in each observation.

    A seed starts at its first episode, and resets without a seed continue with the next. RLlib's
    runner `w` passes a number `n`, `seed + w + i`, to its environment `i`, with complete episodes
    before each sample: the first `n` starts seed `game_seed(n, w)`, the same `n` again continues.
    Pass `environment(…, disable_env_checking=True)` in your own settings: RLlib's check resets
    every environment with seed 42, so that all would play the same dice and draws.

    Args:
        config: options of `tokaido_env.env`, such as `{"board": "family:train/1000"}`.

    Attributes:
        aec: the wrapped PettingZoo environment.
    """

    def __init__(self, config: dict[str, Any] | None = None) -> None:
        self.aec = aec.env(**(config or {}))
        self._runner = config.worker_index or 0 if isinstance(config, EnvContext) else None
        self._runner_seed: int | None = None
        self.agents = self.possible_agents = list(aec.AGENTS)
        super().__init__()
        self.metadata = self.aec.metadata
        self.render_mode = self.aec.render_mode
        self.observation_spaces = dict(self.aec.observation_spaces)
        self.action_spaces = dict(self.aec.action_spaces)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Start an episode; return observation and info of the agent to decide, by its name.

        Arguments and errors are those of `TokaidoEnv.reset`.
        """
        if self._runner is not None and seed is not None:
            own = None if seed == self._runner_seed else game_seed(seed, self._runner)
            seed, self._runner_seed = own, seed
        self.aec.reset(seed, options)
        agents = [self.aec.agent_selection]
        return self._observations_of(agents), self._infos_of(agents)

    def step(self, action_dict: dict[str, Any]) -> StepResult:
        """Play an action of the agent to decide.

        Returns:
            Observations, rewards, terminated, truncated and infos by agent: of the agent to decide
            next, at the end of both. The key "__all__" is about the game.

        Raises:
            ValueError: for an action of another agent.
            AssertionError: for an action outside the action space.
        """
        agent = self.aec.agent_selection
        if list(action_dict) != [agent]:
            raise ValueError(f"action_dict: expected an action of {agent} only, got {action_dict}")
        self.aec.step(action_dict[agent])
        terminated, truncated = (
            any(d.values()) for d in (self.aec.terminations, self.aec.truncations)
        )
        agents = self.possible_agents if terminated or truncated else [self.aec.agent_selection]
        # After an illegal action PettingZoo sets both; the game has then ended by its rules.
        return (
            self._observations_of(agents),
            {agent: self.aec.rewards[agent] for agent in agents},
            dict.fromkeys([*agents, "__all__"], terminated),
            dict.fromkeys([*agents, "__all__"], truncated and not terminated),
            self._infos_of(agents),
        )

    def observe(self, agent: str) -> Any:
        """Return the observation of an agent: a dict with "observation" and "action_mask"."""
        return self.aec.observe(agent)

    def render(self) -> Any:
        """Return text or pixels, uint8 (height, width, 3), or show them, by the render mode."""
        return self.aec.render()

    def close(self) -> None:
        """Close the window, if one is open."""
        self.aec.close()

    def _observations_of(self, agents: list[str]) -> dict[str, Any]:
        return {agent: self.observe(agent) for agent in agents}

    def _infos_of(self, agents: list[str]) -> dict[str, Any]:
        return {agent: self.aec.infos[agent] for agent in agents}


class MaskedCatalog(PPOCatalog):
    """Builds RLlib's networks for the observation without the mask."""

    def __init__(self, observation_space: Any, *args: Any, **options: Any) -> None:
        super().__init__(observation_space["observation"], *args, **options)


class MaskedModule(DefaultPPOTorchRLModule):
    """RLlib's own PPO networks, with probability 0 for illegal actions.

    `model_config` is RLlib's `DefaultModelConfig`, as for any of its modules. With afterstates it
    reads the inputs of the position only: a network that reads `actions` is your own module.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options | {"catalog_class": MaskedCatalog})

    def _forward(self, batch: dict[str, Any], **options: Any) -> dict[str, Any]:
        return masked(super()._forward(_without_mask(batch), **options), batch)

    def _forward_train(self, batch: dict[str, Any], **options: Any) -> dict[str, Any]:
        return masked(super()._forward_train(_without_mask(batch), **options), batch)

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> Any:
        """Return value estimates of n observations for their agents, float32 (n,)."""
        return super().compute_values(_without_mask(batch), embeddings)


def masked(output: dict[str, Any], batch: dict[str, Any]) -> dict[str, Any]:
    """Return a module's output with the lowest logit for illegal actions.

    The lowest finite number instead of minus infinity: nothing is legal at the end of a game, and
    RLlib computes a distribution there too, but gives it no weight.
    """
    legal, logits = batch[Columns.OBS]["action_mask"], output[Columns.ACTION_DIST_INPUTS]
    return output | {Columns.ACTION_DIST_INPUTS: logits.masked_fill(legal == 0, FLOAT_MIN)}


def self_play_config(
    environment: type[TokaidoMultiAgentEnv] = TokaidoMultiAgentEnv,
    module: type[Any] = MaskedModule,
    model_config: Any = None,
    **options: Any,
) -> PPOConfig:
    """Return PPO settings in which one policy, `POLICY`, plays both seats against itself.

    gamma is 1, because the only reward is the result; RLlib's environment check is off, see
    `TokaidoMultiAgentEnv`. All else is RLlib's default, to set as usual:
    `self_play_config().env_runners(num_env_runners=8).training(lr=1e-3)`. With several environments
    in a runner, keep the seeds of runs (`config.debugging(seed=…)`) at least that number apart:
    see `TokaidoMultiAgentEnv`.

    Args:
        environment: class of the environment.
        module: class of the policy's module, which has to apply the mask.
        model_config: settings of the module.
        options: options of the environment, those of `tokaido_env.env`, such as `board`.
    """
    learner = RLModuleSpec(module_class=module, model_config=model_config)
    return (
        PPOConfig()
        .environment(environment, env_config=options, disable_env_checking=True)
        .multi_agent(policies={POLICY}, policy_mapping_fn=both_seats)
        .rl_module(rl_module_spec=MultiRLModuleSpec(rl_module_specs={POLICY: learner}))
        .training(gamma=1.0)
    )


def both_seats(agent: str, episode: Any, **options: Any) -> str:
    """Return `POLICY`, the name of the one policy of both agents, for `policy_mapping_fn`."""
    return POLICY


def _without_mask(batch: dict[str, Any]) -> dict[str, Any]:
    return batch | {Columns.OBS: batch[Columns.OBS]["observation"]}


register_env(NAME, TokaidoMultiAgentEnv)
