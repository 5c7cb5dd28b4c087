"""A search that knows its opponent: an approximate best response to one agent.

The tree is that of `policy_search`, led by the champion's network, but where the opponent decides
there is nothing to search: its own play answers (`opponent`), surely or by its odds. What an agent
loses to this searcher it loses to who knows it: a lower bound of how far it can be exploited, as
local best response is for poker programs (Lisý and Bowling 2017, "Equilibrium approximation quality
of current no-limit poker bots"). More simulations may find more.
"""

from __future__ import annotations

from tokaido_env.agent import Agent, AgentError
from tokaido_env.agents.champion import CHAMPION
from tokaido_env.agents.opponent_model import make_opponent_model
from tokaido_env.agents.policy import Policy, quote_path
from tokaido_env.agents.search import SearchAgent, games_per_round
from tokaido_env.agents.search_config import network_search_config
from tokaido_env.core.arguments import repr_short


class ExploiterAgent(SearchAgent):
    """Tree search against one agent, whose replies it knows.

    It knows how the agent decides, not with what luck: neither the game's nor what the agent draws
    for a decision.

    Args:
        victim: the agent, one that answers without search.
        sims: simulations for a decision, from 1.

    Raises:
        AgentError: if nothing compiled tells what the victim answers.
    """

    def __init__(self, victim: Agent, sims: int = 400) -> None:
        self.opponent = make_opponent_model(victim)
        if self.opponent is None:
            raise AgentError(
                "exploiter: victim: expected an agent whose replies need no search: random, "
                "greedy[:epsilon=E], heuristic, champion, generalist "
                f"or policy:PATH[,temperature=T], got {repr_short(victim.spec)}"
            )
        self.network = Policy.load(CHAMPION).network()
        self.config = network_search_config(sims)
        self.spec = f"exploiter:{quote_path(victim.spec)},sims={sims}"
        self.games_at_once = games_per_round(sims, network=True)
