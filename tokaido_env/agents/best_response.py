"""The agent `exploiter`: tree search for an approximate best response to one agent.

It searches as `policy_search` with the champion's network. Where the opponent decides, the
opponent's own play (`opponent_model`) gives the odds of its replies. What the victim loses to this
search is a lower bound of its exploitability, as with local best response for poker programs (Lisý
and Bowling 2017, "Equilibrium approximation quality of current no-limit poker bots"). More
simulations may find more.
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
    """Tree search against one agent, with a model of its replies.

    The model has the agent's odds for each action. It knows neither the random numbers of the game
    nor those of the agent.

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
        self.spec = f"exploiter:{quote_path(victim.spec)},sims={sims}"
        self.games_at_once = games_per_round(sims, network=True)
