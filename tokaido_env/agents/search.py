"""Monte Carlo tree search with explicit chance nodes, compiled.

A simulation descends from the root to a new node, evaluates this leaf, and backs its value up. At a
decision it takes the edge with the highest bound for the player who decides; a player may decide
several times in a row. At chance it takes samples (`search_tree`). The samples come from the key of
the decision: the search never sees the random numbers of the game.

An agent that only chooses stops once the simulations left cannot make another action the most
visited one (`is_decided`), which saves almost half of them.

- `MctsAgent` has no network. It evaluates a leaf by `heuristic.evaluate` or by random play to the
  end, selects by UCB1, and chooses the most visited action.
- `PolicySearchAgent` has a network. Its values evaluate leaves, and those of afterstates give the
  priors. It selects by PUCT and chooses by a lower confidence bound. A simulation continues through
  decisions with one legal action, so that it ends where the network was trained.

Numba compiles the kernels once for each of these, because `network is None` is known at compile
time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokaido_env.agent import Actions, Agent, BoardRows, Keys, Legal, States, check_agent_arguments
from tokaido_env.agents.ending_actions import EXACT, LIMIT, exact_action
from tokaido_env.agents.inference import AFTERSTATE_LOGIT, forward, value_of
from tokaido_env.agents.policy import Policy
from tokaido_env.agents.search_config import (
    C_PUCT,
    TEMPERATURE,
    SearchConfig,
    config_to_spec,
    network_search_config,
)
from tokaido_env.agents.search_tree import (
    Tree,
    back_up,
    edge_mask,
    expand,
    new_tree,
    reset_tree,
    root_value,
    sample_chance,
    write_visits,
)
from tokaido_env.agents.selection import (
    highest_bound,
    is_decided,
    most_visited,
    select_puct,
    select_ucb1,
    write_priors,
)
from tokaido_env.agents.weights import Weights, thread_copy
from tokaido_env.agents.workspaces import PositionBatch, PositionRow, Workspace, new_workspace
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.arguments import check_choice
from tokaido_env.core.bitmask import lowest_action
from tokaido_env.core.bots import random_action
from tokaido_env.core.constants import Row
from tokaido_env.core.jit import int64, kernel, pooled, subroutine, threads_for
from tokaido_env.core.rng import hash_bits, init_luck, resolve_chance
from tokaido_env.core.rules import apply, is_last_round, legal
from tokaido_env.core.state import NO_PLAYER, OVER
from tokaido_env.core.threads import fetch_add
from tokaido_env.features.endings import UNSOLVED, best_ending
from tokaido_env.features.evaluation import evaluate, final_result
from tokaido_env.features.network_inputs import active_seat
from tokaido_env.features.terms import WEIGHTS

_LEAF_LIMIT = 1_000  # positions of an exact result; a leaf with more is evaluated by the network
_ROLLOUT, _ROLLOUT_ACTION = 21, 22  # purposes of random numbers

# A network's simulation adds a decision and often the chance before it. It continues through forced
# decisions while two nodes remain for each simulation to come.
_NODES_PER_SIM, _NODES_PER_NETWORK_SIM = 1, 3

# Ctrl-C takes effect between calls of a kernel.
_SIMS_PER_CALL, _NETWORK_SIMS_PER_CALL = 1 << 20, 1 << 17
# In one round of decisions of all games of a match.
_SIMS_PER_ROUND, _NETWORK_SIMS_PER_ROUND = 1 << 18, 1 << 17


class SearchResult(NamedTuple):
    """The results of searches of n positions.

    Attributes:
        actions: int64 (n,), the chosen actions.
        values: float32 (n,), the expected results of player_0, in [-1, 1].
        visits: int32 (n, N_ACTIONS), the visit counts of the actions.
    """

    actions: npt.NDArray[np.int64]
    values: npt.NDArray[np.float32]
    visits: npt.NDArray[np.int32]

    def part(self, part: slice) -> SearchResult:
        """Return the results of the positions at a slice, as views of the same arrays."""
        return SearchResult(self.actions[part], self.values[part], self.visits[part])


class SearchAgent(Agent):
    """A tree search as an agent; `spec` names it.

    Attributes:
        config: the settings of the search.
        network: the network for priors and values, None for the heuristic's evaluation.
    """

    spec: str
    games_at_once: int
    may_fail = False
    config: SearchConfig
    network: Weights | None = None

    def act(self, boards: BoardRows, states: States, legal: Legal, keys: Keys) -> Actions:
        """Return action ids, int64 (n,), of searches that end once decided; see `Agent.act`."""
        boards, states, legal, keys = check_agent_arguments(boards, states, legal, keys)
        positions = PositionBatch(boards, states, legal)
        config = self.config._replace(stops_early=True)
        return search(self.network, config, positions, keys).actions

    def judge(
        self, boards: BoardRows, states: States, legal: Legal, keys: Keys
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Return the share of visits of each action, and the root's values; see `Agent.judge`.

        The choice of the whole search counts as visited the most; `act` may stop one early.

        Returns:
            Shares, float32 (n, N_ACTIONS), and player_0's results, float32 (n,) in [-1, 1].
        """
        boards, states, legal, keys = check_agent_arguments(boards, states, legal, keys)
        positions = PositionBatch(boards, states, legal)
        found = search(self.network, self.config, positions, keys)
        actions, values, visits = found
        # The chosen action may have fewer visits than another (`highest_bound`).
        rows, others = np.arange(len(actions)), visits.copy()
        others[rows, actions] = 0
        visits[rows, actions] = np.maximum(visits[rows, actions], others.max(axis=1) + 1)
        return np.asarray(visits / visits.sum(axis=1, keepdims=True), np.float32), values


class MctsAgent(SearchAgent):
    """Monte Carlo tree search without a network, by UCB1 (Kocsis and Szepesvári 2006).

    Args:
        sims: most simulations for a decision, from 1.
        rollout: "full" to evaluate a leaf by random play to the end of the game; None for the
            heuristic's evaluation.
    """

    def __init__(self, sims: int = 400, rollout: str | None = None) -> None:
        if rollout is not None:
            check_choice("mcts: rollout", rollout, ("full",))
        self.config = SearchConfig(sims, plays_out=rollout is not None)
        self.spec = f"mcts:sims={sims}" + (",rollout=full" if rollout else "")
        self.games_at_once = games_per_round(sims, network=False)


class PolicySearchAgent(SearchAgent):
    """Tree search with the network of a policy file, by PUCT (Silver et al. 2018).

    Args:
        path: a policy file, or a run folder for its best policy.
        sims: simulations for a decision, from 1.
        temperature: a number above 0 that divides the logits; the softmax then gives the priors.
        c_puct: the exploration constant of PUCT, a number above 0.
        endings: "exact" for exact results after an end trigger, and better actions where they show
            one (`endings`); or "network".
    """

    network: Weights

    def __init__(
        self,
        path: str,
        sims: int = 400,
        temperature: float = TEMPERATURE,
        c_puct: float = C_PUCT,
        endings: str = EXACT,
    ) -> None:
        config = network_search_config(sims, temperature, c_puct, endings)
        spec = f"policy_search:{path},{config_to_spec(config)}"
        self._begin(Policy.load(path), spec, config)

    @classmethod
    def from_policy(
        cls, policy: Policy, spec: str, config: int | SearchConfig
    ) -> PolicySearchAgent:
        """Make an agent from a policy in memory.

        Args:
            policy: the policy.
            spec: the agent's spec or name.
            config: the settings of the search, or the number of simulations for a decision.
        """
        agent = cls.__new__(cls)
        if isinstance(config, int):
            config = network_search_config(config)
        agent._begin(policy, spec, config)
        return agent

    def _begin(self, policy: Policy, spec: str, config: SearchConfig) -> None:
        self.policy = policy
        self.network = policy.network()
        self.spec = spec
        self.config = config
        self.games_at_once = games_per_round(config.sims, network=True)


def games_per_round(sims: int, *, network: bool) -> int:
    """Return how many games a search with `sims` simulations a decision plays at once."""
    most = _NETWORK_SIMS_PER_ROUND if network else _SIMS_PER_ROUND
    return max(16, min(1024, most // sims // 2 * 2))


def search(
    network: Weights | None,
    config: SearchConfig,
    positions: PositionBatch,
    keys: Keys,
) -> SearchResult:
    """Search n positions; the same positions and keys give the same bytes on any number of threads.

    Args:
        network: the network for priors and values, None for the heuristic's evaluation.
        config: the settings of the search.
        positions: positions at decisions.
        keys: uint64 (n,), the seeds of the searches.
    """
    n, sims = len(keys), config.sims
    found = SearchResult(
        actions=np.empty(n, np.int64),
        values=np.empty(n, np.float32),
        visits=np.zeros((n, N_ACTIONS), np.int32),
    )
    by_network = network is not None
    nodes = (_NODES_PER_NETWORK_SIM if by_network else _NODES_PER_SIM) * sims + 2
    per_call = _NETWORK_SIMS_PER_CALL if by_network else _SIMS_PER_CALL
    threads = threads_for(n)
    step = max(1, threads, per_call // sims)
    for first in range(0, n, step):
        part = slice(first, first + step)
        work = positions.part(part), keys[part], found.part(part), np.zeros(1, np.int64)
        _search_each(threads, network, config, nodes, *work)
    return found


class Job(NamedTuple):
    """The search of one position by one thread, as the kernels read it.

    Attributes:
        config: the settings of the search.
        position: the root.
        search_key: the seed of the search, uint64.
        tree: the tree.
        workspace: the memory for evaluations, of the network if there is one.
    """

    config: SearchConfig
    position: PositionRow
    search_key: np.uint64
    tree: Tree
    workspace: Workspace


@pooled(at_least=2)
def _search_each(
    first: int,
    last: int,
    network: Any,
    config: SearchConfig,
    nodes: int,
    positions: PositionBatch,
    keys: Any,
    found: SearchResult,
    taken: Any,
) -> None:
    """Search positions, each thread with its own tree of so many nodes."""
    for w in range(first, last):
        net = thread_copy(network, w)
        memory = new_tree(nodes, network is not None), new_workspace(net)
        _search_until_done(net, config, positions, keys, found, memory, taken)


@subroutine
def _search_until_done(
    network: Any,
    config: SearchConfig,
    positions: PositionBatch,
    keys: Any,
    found: SearchResult,
    memory: tuple[Tree, Workspace],
    taken: Any,
) -> None:
    """Search one position after another until the threads have taken all."""
    i = fetch_add(taken, 1)
    while i < len(keys):
        which = i if len(positions.boards) > 1 else 0
        position = PositionRow(positions.boards[which], positions.states[i], positions.legal[i])
        job = Job(config, position, keys[i], memory[0], memory[1])
        found.actions[i], found.values[i] = _search(network, job, found.visits[i])
        i = fetch_add(taken, 1)


@subroutine
def _search(network: Any, job: Job, visits: Any) -> tuple[int, np.float32]:
    """Return the chosen action of the root, and the root's value for player_0.

    A single legal action needs no search if only the action counts (`stops_early`).
    """
    config, position, tree = job.config, job.position, job.tree
    by_network = network is not None
    reset_tree(tree, position.state, position.legal)
    root = tree.nodes[0]
    root["visits"] = int64(by_network)  # PUCT counts the root's evaluation as a visit
    root["value"] = _evaluate_leaf(network, job, 0, 0)
    if int64(root["edges"]) == 1 and config.stops_early:
        visits[lowest_action(position.legal)] = config.sims
        return lowest_action(position.legal), root["value"]
    for sim in range(config.sims):
        free = len(tree.nodes) - 2 * (config.sims - 1 - sim)
        leaf, depth = _select_leaf(network, job, free)
        node = tree.nodes[leaf]
        if int64(node["visits"]) == 0:
            if config.plays_out:
                node["value"] = _rollout(job, leaf, hash_bits(job.search_key, _ROLLOUT, 0, sim))
            else:
                node["value"] = _evaluate_leaf(network, job, leaf, tree.path[depth - 1])
        node["visits"] += 1
        back_up(tree, depth, node["value"], by_network)
        if config.stops_early and is_decided(tree, config.sims - 1 - sim, by_network):
            break
    write_visits(tree, visits)
    action, value = highest_bound(tree) if by_network else most_visited(tree), root_value(tree)
    if network is not None and config.exact_endings:
        frames = job.workspace.scratch[0]["frames"]
        action = exact_action(
            *(position.board, position.state, position.legal, action, visits, frames, LIMIT)
        )
        if not config.stops_early and is_last_round(position.board, position.state):
            frames[0]["state"] = position.state
            exact = best_ending(position.board, frames, position.legal, LIMIT)
            value = value if exact == UNSOLVED else exact
    return action, value


@kernel
def _select_leaf(network: Any, job: Job, free: int) -> tuple[int, int]:
    """Descend from the root to a leaf; return the leaf and the number of edges of the path.

    Args:
        free: the number of nodes up to which a simulation continues through forced decisions.
    """
    board, tree = job.position.board, job.tree
    at = 0
    depth = 0
    while True:
        node = tree.nodes[at]
        visits = int64(node["visits"])
        new = at > 0 and visits == 0
        if int(node["over"]) or (new and _is_leaf(network, tree, node, free)):
            return at, depth
        node["visits"] = visits + 1
        if int(node["player"]) == NO_PLAYER:
            at = sample_chance(board, job.search_key, tree, at, visits, network is not None)
            continue
        edge = _select_edge(network, job, node, visits)
        tree.path[depth] = edge
        depth += 1
        at = expand(board, tree, at, tree.edges[edge])


@kernel
def _is_leaf(network: Any, tree: Tree, node: Row, free: int) -> bool:
    """Return whether a simulation ends at a new node."""
    if network is None or int(node["player"]) == NO_PLAYER:
        return True
    has_room = int64(tree.size[0]["nodes"]) + 2 <= free
    return not (int64(node["edges"]) == 1 and has_room)


@kernel
def _select_edge(network: Any, job: Job, node: Row, visits: int) -> int:
    """Return the edge that a simulation takes from a decision node."""
    if network is None:
        return select_ucb1(job.tree, node, visits)
    return select_puct(job.tree, node, visits, np.float32(job.config.c_puct))


@subroutine
def _evaluate_leaf(network: Any, job: Job, at: int, edge: int) -> np.float32:
    """Return the value of a node for player_0; with a network, write its edges' priors and values.

    Args:
        network: `Weights`; None: the heuristic's evaluation.
        job: the search.
        at: index of the node.
        edge: index of the edge that leads to it; not read at the root.
    """
    board, tree, workspace = job.position.board, job.tree, job.workspace
    s, node = tree.states[at], tree.nodes[at]
    if network is None:
        return evaluate(board, s, WEIGHTS, workspace.scratch[0])
    if int(node["over"]):
        return final_result(board, s)
    mask = edge_mask(tree, node) if int(node["player"]) != NO_PLAYER else np.uint64(0)
    if job.config.exact_endings and at > 0 and is_last_round(board, s):
        frames = workspace.scratch[0]["frames"]
        frames[0]["state"] = s
        value = best_ending(board, frames, mask, _LEAF_LIMIT)
        if value != UNSOLVED:
            node["over"] = 1  # its value is final
            return value
    leaf = PositionRow(board, s, mask)
    if int(node["player"]) == NO_PLAYER:
        if not np.isnan(tree.values[edge]):
            return np.float32(tree.values[edge])
        return np.float32(1 - 2 * active_seat(s)) * value_of(network, leaf, workspace)
    value = forward(network, leaf, workspace, workspace.logits)
    write_priors(tree, node, workspace.logits, np.float32(job.config.temperature))
    _write_values(tree, node, workspace.logits)
    return np.float32(1 - 2 * int64(node["player"])) * value


@kernel
def _write_values(tree: Tree, node: Row, logits: Any) -> None:
    """Write the values behind a node's edges for player_0, from the logits of `forward`."""
    unit = np.float32(1 - 2 * int64(node["player"])) / AFTERSTATE_LOGIT
    first = int64(node["first"])
    for k in range(first, first + int64(node["edges"])):
        tree.values[k] = unit * logits[int64(tree.edges[k]["move"])]


@subroutine
def _rollout(job: Job, at: int, bits: np.uint64) -> np.float32:
    """Return the result for player_0 of random play from a node to the end of the game."""
    board, luck, states = job.position.board, job.tree.luck[0], job.workspace.scratch[0]["states"]
    states[0] = job.tree.states[at]
    s = states[0]
    init_luck(luck, bits)
    mask = np.uint64(0)
    if int(s["phase"]) != OVER:
        mask = resolve_chance(board, s, luck, legal(board, s))
    number = 0
    while mask != np.uint64(0):
        action = random_action(mask, hash_bits(bits, _ROLLOUT_ACTION, 0, number))
        mask = resolve_chance(board, s, luck, apply(board, s, action))
        number += 1
    return final_result(board, s)
