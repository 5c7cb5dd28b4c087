"""Tokaido Duo for RLlib, by its new API stack: both seats as agents that see the mask too.

    from tokaido_env.rllib import self_play_config

    algorithm = self_play_config().build_algo()  # PPO, one policy for both seats

| | |
|---|---|
| agents | `player_0`, `player_1`; observed is who decides next, at the end both |
| actions | Discrete(49), the table of `tokaido_env.core.actions` |
| observation | `{"observation": float32 (N_FEATURES,) in [0, 1], "action_mask": int8 (49,)}` |
| reward | at the end: +1 to the winner, -1 to the other, 0 to both if shared |
| step | one decision; for an agent, from one decision of its own to its next |
| illegal | ends the game, -1 for who chose it: RLlib tries an environment with any action |

`tokaido_env.aec` plays the games; this translates. Importing this module registers `tokaido_duo`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tokaido_env.core.optional_deps import extra_error

try:
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.algorithms.ppo.ppo_catalog import PPOCatalog
    from ray.rllib.algorithms.ppo.torch.default_ppo_torch_rl_module import DefaultPPOTorchRLModule
    from ray.rllib.core.columns import Columns
    from ray.rllib.core.rl_module import MultiRLModuleSpec, RLModuleSpec
    from ray.rllib.env.multi_agent_env import MultiAgentEnv
    from ray.rllib.utils.torch_utils import FLOAT_MIN
    from ray.tune.registry import register_env
except ModuleNotFoundError as error:
    # In an environment of its own: it asks for one version of Gymnasium.
    raise extra_error(
        "RLlib, best in an environment of its own, needs", error.name, "rllib"
    ) from error

from tokaido_env import aec
from tokaido_env.core.arguments import as_integer, repr_short

NAME = "tokaido_duo"
POLICY = "learner"
"""The policy that plays both seats in `self_play_config`."""

Told = tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Any]]


class TokaidoMultiAgentEnv(MultiAgentEnv):
    """One game.

    A seed begins with its first episode; resets without one go on to its next, as everywhere. So in
    settings of your own say `environment(…, disable_env_checking=True)`: RLlib's check resets each
    environment with the seed 42, and all would then play the same luck.

    Args:
        config: options of `tokaido_env.env`, such as `{"board": "family:train/1000"}`.

    Attributes:
        aec: the environment of PettingZoo that is played.
    """

    def __init__(self, config: dict[str, Any] | None = None) -> None:
        self.aec = aec.env(**(config or {}))
        self.agents = self.possible_agents = list(aec.AGENTS)
        super().__init__()
        self.metadata = self.aec.metadata
        self.render_mode = self.aec.render_mode
        self.observation_spaces = dict(self.aec.observation_spaces)
        self.action_spaces = dict(self.aec.action_spaces)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begin a game, as `RawTokaidoEnv.reset`; return what is seen and infos, by agent."""
        self.aec.reset(seed, options)
        return self._seen_by(here := [self.aec.agent_selection]), self._infos_of(here)

    def step(self, action_dict: dict[str, Any]) -> Told:
        """Play the decision of the agent whose turn it is.

        Returns:
            What is seen, rewards, whether it is terminated, truncated, and infos: of the agent
            that decides next, at the end of both; "__all__" tells of the game.

        Raises:
            ValueError: if other agents act than the one to decide, or by no integer.
        """
        self.aec.step(_action_of(action_dict, self.aec.agent_selection))
        ended, cut = (any(d.values()) for d in (self.aec.terminations, self.aec.truncations))
        here = self.possible_agents if ended or cut else [self.aec.agent_selection]
        # After an illegal action PettingZoo tells both ends at once: nothing is to be expected.
        return (
            self._seen_by(here),
            {agent: self.aec.rewards[agent] for agent in here},
            dict.fromkeys([*here, "__all__"], ended),
            dict.fromkeys([*here, "__all__"], cut and not ended),
            self._infos_of(here),
        )

    def observe(self, agent: str) -> Any:
        """Return what an agent sees: a dict with "action_mask", by its observation space."""
        return self.aec.observe(agent)

    def render(self) -> Any:
        """Return the position as text or pixels, or show it, as the render mode says."""
        return self.aec.render()

    def close(self) -> None:
        """Close the window, if there is one."""
        self.aec.close()

    def _seen_by(self, agents: list[str]) -> dict[str, Any]:
        return {agent: self.observe(agent) for agent in agents}

    def _infos_of(self, agents: list[str]) -> dict[str, Any]:
        return {agent: self.aec.infos[agent] for agent in agents}


class MaskedCatalog(PPOCatalog):
    """Makes RLlib's networks for what is seen without the mask."""

    def __init__(self, observation_space: Any, *args: Any, **options: Any) -> None:
        super().__init__(observation_space["observation"], *args, **options)


class MaskedModule(DefaultPPOTorchRLModule):
    """RLlib's own networks for PPO, in which illegal actions have the probability 0.

    `model_config` is RLlib's `DefaultModelConfig`, as for any of its modules.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options | {"catalog_class": MaskedCatalog})

    def _forward(self, batch: dict[str, Any], **options: Any) -> dict[str, Any]:
        return masked(super()._forward(_without_mask(batch), **options), batch)

    def _forward_train(self, batch: dict[str, Any], **options: Any) -> dict[str, Any]:
        return masked(super()._forward_train(_without_mask(batch), **options), batch)

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> Any:
        """Return the values (n,) that the agents can expect."""
        return super().compute_values(_without_mask(batch), embeddings)


def masked(output: dict[str, Any], batch: dict[str, Any]) -> dict[str, Any]:
    """Return what a module has found, with the least logit for actions that the mask forbids.

    The least number, not minus infinity: at the end of a game nothing is legal, and RLlib computes
    a distribution there too, to which it then gives no weight.
    """
    legal, logits = batch[Columns.OBS]["action_mask"], output[Columns.ACTION_DIST_INPUTS]
    return output | {Columns.ACTION_DIST_INPUTS: logits.masked_fill(legal == 0, FLOAT_MIN)}


def self_play_config(
    environment: type[TokaidoMultiAgentEnv] = TokaidoMultiAgentEnv,
    module: type[Any] = MaskedModule,
    model_config: Any = None,
    **options: Any,
) -> PPOConfig:
    """Return settings of PPO in which one policy, `POLICY`, plays both seats against itself.

    gamma is 1, for the only reward is the result, and RLlib's check is off, see
    `TokaidoMultiAgentEnv`; all else is RLlib's default, to be set as usual:
    `self_play_config().env_runners(num_env_runners=8).training(lr=1e-3)`. RLlib hands a `seed` to
    its runners as `seed + 1`, `seed + 2` and so on: with one, they share most of their luck.

    Args:
        environment: the class of the games.
        module: the class of the policy's module: it masks.
        model_config: of the module.
        options: of the environment, as for `tokaido_env.env`.
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
    """Return the policy of an agent: the same for both."""
    return POLICY


def _without_mask(batch: dict[str, Any]) -> dict[str, Any]:
    return batch | {Columns.OBS: batch[Columns.OBS]["observation"]}


def _action_of(actions: object, agent: str) -> int:
    if isinstance(actions, Mapping) and list(actions) == [agent]:
        action = as_integer(actions[agent])
        if action is not None:
            return action
    raise ValueError(
        f"action_dict: expected an integer of {agent} alone, got {repr_short(actions)}"
    )


register_env(NAME, TokaidoMultiAgentEnv)
