"""The agents of the shipped networks: `champion`, `generalist` and `exploiter`.

The champion is for the default board, the generalist for any board.

`docs/benchmarks/champion.md` and `docs/benchmarks/generalist.md` are their model cards.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tokaido_env.agent import Agent, AgentError
from tokaido_env.agents.ending_actions import EXACT
from tokaido_env.agents.opponent_model import make_opponent_model
from tokaido_env.agents.policy import Policy, PolicyAgent
from tokaido_env.agents.search import PolicySearchAgent, SearchAgent, games_per_round
from tokaido_env.agents.search_config import config_to_spec, network_search_config
from tokaido_env.core.arguments import repr_short

_FOLDER = Path(__file__).resolve().parent

CHAMPION = _FOLDER / "champion.safetensors"
GENERALIST = _FOLDER / "generalist.safetensors"


def make_champion(sims: int | None = None, **options: Any) -> Agent:
    """Make the champion: the best afterstate or, with `sims`, a tree search.

    Args:
        sims: simulations for a decision.
        options: `endings`, as for `PolicyAgent`; with `sims` also the other options of
            `PolicySearchAgent`.

    Raises:
        AgentError: if there are other options without `sims`.
    """
    return _make("champion", CHAMPION, sims, options)


def make_generalist(sims: int | None = None, **options: Any) -> Agent:
    """Make the generalist, as `make_champion`."""
    return _make("generalist", GENERALIST, sims, options)


def _make(name: str, path: Path, sims: int | None, options: dict[str, Any]) -> Agent:
    if sims is not None:
        config = network_search_config(sims, **options)
        return PolicySearchAgent.from_policy(
            Policy.load(path), f"{name}:{config_to_spec(config)}", config
        )
    endings = options.pop("endings", EXACT)
    if options:
        raise AgentError(f"{name}: {' and '.join(options)}: expected together with sims=N")
    spec = name if endings == EXACT else f"{name}:endings={endings}"
    return PolicyAgent.from_policy(Policy.load(path), spec, endings=endings)


class ExploiterAgent(SearchAgent):
    """Tree search for an approximate best response to one agent, with a model of its replies.

    It searches as `policy_search` with the champion's network. Where the opponent decides, the
    opponent's own play (`opponent_model`) gives the odds of its replies; the model knows neither
    the random numbers of the game nor those of the agent. What the victim loses to this search is a
    lower bound of its exploitability, as with local best response for poker programs (Lisý and
    Bowling 2017, "Equilibrium approximation quality of current no-limit poker bots"). More
    simulations may find more.

    Args:
        victim: an agent that answers without search.
        sims: simulations for a decision, from 1.

    Raises:
        AgentError: if the victim is not an agent with a compiled policy.
    """

    def __init__(self, victim: Agent, sims: int = 400) -> None:
        self.opponent = make_opponent_model(victim)
        if self.opponent is None:
            raise AgentError(
                "exploiter: victim: expected an agent that does not search: random, "
                "greedy[:epsilon=E], heuristic, champion, generalist "
                f"or policy:PATH[,temperature=T], got {repr_short(victim.spec)}"
            )
        self.network = Policy.load(CHAMPION).network()
        self.config = network_search_config(sims)
        self.spec = f"exploiter:{victim.spec},sims={sims}"
        self.games_at_once = games_per_round(sims, network=True)
