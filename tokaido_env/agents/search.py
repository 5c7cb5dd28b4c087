"""Monte Carlo tree search with explicit chance nodes, compiled: one search, two judges.

One simulation walks from the root to a node that is new, has it judged, and backs its value up. At
a decision it goes where the bound is highest for the player who decides, each player for itself,
however often it decides in a row; at chance through samples, as `tree` tells. The search samples
its own luck from the key of the decision: it never sees the game's.

- Without a network (`MctsAgent`) a new node is worth its evaluation, or that after random play; the
  bound is UCB1.
- With one (`PolicySearchAgent`) its policy proposes and its value judges; the bound is PUCT. A
  simulation goes on through chance, and through decisions that leave no choice, so that each ends
  where the network was trained.
- With an opponent that is known (`exploiter`) besides, the tree searches the other player's
  decisions only: where the opponent decides, simulations take each action by the opponent's odds,
  and go on. What it finds is a best response, as far as the network and the simulations reach.

A kernel is compiled once for each judge: `network is None` and `opponent is None` are known then.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokaido_env.agent import Actions, Agent, BoardRows, Keys, Legal, States
from tokaido_env.agents.eval_tables import guides_of
from tokaido_env.agents.heuristic import evaluate, final_result
from tokaido_env.agents.inference import (
    FIRST_ROW,
    Network,
    Position,
    Positions,
    Workspace,
    forward,
    kept_workspaces,
    value_at_chance,
)
from tokaido_env.agents.network_inputs import viewer
from tokaido_env.agents.opponent_model import OpponentModel, decides, note_odds, opponent_at
from tokaido_env.agents.policy import Policy, path_in_spec
from tokaido_env.agents.search_config import (
    FULL,
    JUDGED,
    STRATIFIED,
    TEMPERATURE,
    SearchConfig,
    in_spec,
    led_plan,
)
from tokaido_env.agents.search_tree import (
    Tree,
    back_up,
    begin_tree,
    follow,
    kept_trees,
    mask_of,
    mean_value,
    most_visited,
    note_visits,
    sample_chance,
)
from tokaido_env.agents.selection import (
    note_priors,
    select_by_odds,
    select_by_policy,
    select_by_value,
)
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.bitmask import lowest_action
from tokaido_env.core.bots import random_action
from tokaido_env.core.constants import Row
from tokaido_env.core.jit import int64, kernel, pooled, subroutine, threads_for
from tokaido_env.core.rng import hash_bits, init_luck, resolve_chance
from tokaido_env.core.rules import apply, legal
from tokaido_env.core.state import NO_PLAYER, OVER
from tokaido_env.core.threads import fetch_add

_PLAYOUT, _PICK = 21, 22  # purposes of random numbers

# With a network a new decision, often the chance before it, and what forced decisions take, or the
# opponent's that is known: a simulation goes through those only while two nodes remain for each
# simulation to come.
_NODES_PER_SIM, _NODES_PER_LED_SIM, _NODES_PER_RESPONSE = 1, 3, 6

_SIMS_AT_ONCE, _LED_SIMS_AT_ONCE = 1 << 20, 1 << 17  # in one call, so that Ctrl-C is heard
_SIMS_OF_MATCH, _LED_SIMS_OF_MATCH = 1 << 18, 1 << 17  # in one round of decisions of all its games


class Found(NamedTuple):
    """What a search tells of n positions."""

    actions: npt.NDArray[np.int64]
    """The most visited, (n,)."""
    values: npt.NDArray[np.float32]
    """The results that player_0 can expect, (n,), in [-1, 1]."""
    visits: npt.NDArray[np.int32]
    """How often each action was visited, (n, N_ACTIONS)."""

    def part(self, part: slice) -> Found:
        """Return what is told of some of them, to read or to write."""
        return Found(self.actions[part], self.values[part], self.visits[part])


class SearchAgent(Agent):
    """An agent that searches.

    Attributes:
        plan: how.
        network: that leads the search, None to search by the evaluation.
        opponent: how the other player plays, if that is known.
    """

    spec: str
    games_at_once: int
    may_fail = False
    plan: SearchConfig
    network: Network | None = None
    opponent: OpponentModel | None = None

    def act(self, boards: BoardRows, states: States, legal: Legal, keys: Keys) -> Actions:
        """Return actions, as `Agent.act`."""
        return self.search(boards, guides_of(boards), states, legal, keys).actions

    def judge(
        self, boards: BoardRows, states: States, legal: Legal, keys: Keys
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Return the shares of the visits and the value, as `Agent.judge`."""
        _, values, visits = self.search(boards, guides_of(boards), states, legal, keys)
        return np.asarray(visits / visits.sum(axis=1, keepdims=True), np.float32), values

    def search(
        self,
        boards: BoardRows,
        guides: npt.NDArray[np.void],
        states: States,
        legal: Legal,
        keys: Keys,
    ) -> Found:
        """Search n positions.

        Args:
            boards: `BOARD` (1,) for all, or (n,).
            guides: `GUIDE`, as many.
            states: `STATE` (n,), with a decision to take.
            legal: uint64 (n,), not 0.
            keys: uint64 (n,).
        """
        positions = Positions(boards, guides, states, legal)
        return search(self.network, self.plan, positions, keys, self.opponent)


class MctsAgent(SearchAgent):
    """Monte Carlo tree search with a fixed number of simulations for each decision.

    Args:
        sims: simulations for a decision, from 1.
        rollout: what a new node is worth: 0 its evaluation, n that after n rounds of random play,
            "full" the end of a random game.
    """

    def __init__(self, sims: int = 400, rollout: int | str = 0) -> None:
        self.plan = SearchConfig(sims, FULL if rollout == "full" else int(rollout))
        self.spec = f"mcts:sims={sims}" + (f",rollout={rollout}" if self.plan.rollout else "")
        self.games_at_once = _games_at_once(_SIMS_OF_MATCH, sims)


class PolicySearchAgent(SearchAgent):
    """Tree search by a policy file.

    Args:
        path: a policy file, or a run folder for its best.
        sims: simulations for a decision, from 1.
        temperature: what logits are divided by before they propose, more than 0.
        dice: "stratified", or "drawn" for samples of chance as a game draws its own.
        chance: "judged" where the network can, or "sampled" before it judges.
    """

    def __init__(
        self,
        path: str,
        sims: int = 400,
        temperature: float = TEMPERATURE,
        dice: str = STRATIFIED,
        chance: str = JUDGED,
    ) -> None:
        plan = led_plan(sims, temperature, dice, chance)
        self._begin(Policy.load(path), f"policy_search:{path_in_spec(path)},{in_spec(plan)}", plan)

    @classmethod
    def of(cls, policy: Policy, spec: str, plan: int | SearchConfig) -> PolicySearchAgent:
        """Make an agent from a policy in memory, by a plan or by so many simulations."""
        agent = cls.__new__(cls)
        agent._begin(policy, spec, led_plan(plan) if isinstance(plan, int) else plan)
        return agent

    def _begin(self, policy: Policy, spec: str, plan: SearchConfig) -> None:
        self.policy = policy
        self.network = policy.network()
        self.spec = spec
        self.plan = plan
        self.games_at_once = led_games_at_once(plan.sims)


def led_games_at_once(sims: int) -> int:
    """Return the `Agent.games_at_once` of a search by a network."""
    return _games_at_once(_LED_SIMS_OF_MATCH, sims)


def _games_at_once(sims_of_match: int, sims: int) -> int:
    return max(16, min(1024, sims_of_match // sims // 2 * 2))


def search(
    network: Network | None,
    plan: SearchConfig,
    positions: Positions,
    keys: Keys,
    opponent: OpponentModel | None = None,
) -> Found:
    """Search n positions; the same positions and keys give the same bytes on any threads.

    Args:
        network: that leads the search, None to search by the evaluation.
        plan: how to search.
        positions: with a decision to take.
        keys: uint64 (n,).
        opponent: how whoever does not decide in these positions plays, if that is known; only with
            a network.
    """
    n, sims = len(keys), plan.sims
    weights, rows = (None, FIRST_ROW) if network is None else network.on(positions.boards)
    positions = positions._replace(rows=rows)
    found = Found(
        actions=np.empty(n, np.int64),
        values=np.empty(n, np.float32),
        visits=np.zeros((n, N_ACTIONS), np.int32),
    )
    nodes = _nodes_per_sim(network, opponent) * sims + 2
    at_once = _SIMS_AT_ONCE if network is None else _LED_SIMS_AT_ONCE
    threads = threads_for(n)
    trees = kept_trees(threads, nodes, priors=network is not None)
    workspaces = kept_workspaces(threads, weights)
    opponents = None if opponent is None else opponent.on(positions.boards, threads)
    step = max(1, threads, at_once // sims)
    for first in range(0, n, step):
        part = slice(first, first + step)
        taken = np.zeros(1, np.int64)
        _search_each(
            *(threads, keys[part], positions.part(part), found.part(part), weights, plan),
            *(trees, workspaces, None if opponents is None else opponents.part(part), taken),
        )
    return found


def _nodes_per_sim(network: Network | None, opponent: OpponentModel | None) -> int:
    if opponent is not None:
        return _NODES_PER_RESPONSE
    return _NODES_PER_SIM if network is None else _NODES_PER_LED_SIM


@pooled(at_least=2)
def _search_each(
    first: int,
    last: int,
    keys: Any,
    positions: Positions,
    found: Found,
    network: Any,
    plan: SearchConfig,
    trees: Tree,
    workspaces: Workspace,
    opponents: Any,
    taken: Any,
) -> None:
    """Search the positions that no other thread has taken, in the trees from `first` to `last`."""
    for w in range(first, last):
        tree = Tree(
            trees.size[w, 0],
            trees.luck[w, 0],
            trees.nodes[w],
            trees.edges[w],
            trees.priors[w],
            trees.states[w],
            trees.path[w],
        )
        workspace = Workspace(
            workspaces.copy[w],
            workspaces.scratch[w, 0],
            workspaces.layers[w],
            workspaces.results[w],
            workspaces.units[w],
            workspaces.values[w],
            workspaces.logits[w],
        )
        _search_share(
            *(keys, positions, found, network, plan, tree, workspace, opponents, w, taken),
        )


@subroutine
def _search_share(
    keys: Any,
    positions: Positions,
    found: Found,
    network: Any,
    plan: SearchConfig,
    tree: Tree,
    workspace: Workspace,
    opponents: Any,
    thread: int,
    taken: Any,
) -> None:
    """Search positions that no other thread has taken, one after the other."""
    i = fetch_add(taken, 1)
    while i < len(keys):
        which = i if len(positions.boards) > 1 else 0
        position = Position(
            positions.boards[which],
            positions.guides[which],
            positions.states[i],
            positions.legal[i],
            positions.rows[i if len(positions.rows) > 1 else 0],
        )
        opponent = opponent_at(opponents, thread, i)
        found.actions[i], found.values[i] = _search(
            network, opponent, plan, position, keys[i], tree, workspace, found.visits[i]
        )
        i = fetch_add(taken, 1)


@subroutine
def _search(
    network: Any,
    opponent: Any,
    plan: SearchConfig,
    position: Position,
    key: np.uint64,
    tree: Tree,
    workspace: Workspace,
    visits: Any,
) -> tuple[int, np.float32]:
    """Return the action of the root that was visited most, and the root's value for player_0.

    Ties go to the lowest id. A single legal action is not searched.
    """
    begin_tree(tree, position.state, position.legal)
    root = tree.nodes[0]
    root["visits"] = int64(network is not None)  # of PUCT the first has begun with the root
    root["value"] = _judge(network, opponent, plan, position, tree, 0, workspace)
    if int64(root["edges"]) == 1:
        visits[lowest_action(position.legal)] = plan.sims
        return lowest_action(position.legal), root["value"]
    for sim in range(plan.sims):
        free = len(tree.nodes) - 2 * (plan.sims - 1 - sim)
        leaf, depth = _walk(network, opponent, plan, position, key, tree, free)
        node = tree.nodes[leaf]
        if int64(node["visits"]) == 0:
            if plan.rollout == 0:
                node["value"] = _judge(network, opponent, plan, position, tree, leaf, workspace)
            else:
                bits = hash_bits(key, _PLAYOUT, 0, sim)
                node["value"] = _play_out(position, tree, leaf, plan.rollout, bits, workspace)
        node["visits"] += 1
        back_up(tree, depth, node["value"])
    note_visits(tree, visits)
    return most_visited(tree), mean_value(tree)


@subroutine
def _judge(
    network: Any,
    opponent: Any,
    plan: SearchConfig,
    position: Position,
    tree: Tree,
    at: int,
    workspace: Workspace,
) -> np.float32:
    """Return the value of a node for player_0; a network notes the priors of its edges."""
    s = tree.states[at]
    if network is None:
        return evaluate(position.board, position.guide, s, workspace.scratch)
    node = tree.nodes[at]
    if int(node["over"]):
        return final_result(position.board, s)
    if int(node["player"]) == NO_PLAYER:
        asked = Position(position.board, position.guide, s, np.uint64(0), position.row)
        return np.float32(1 - 2 * viewer(s)) * value_at_chance(network, asked, workspace)
    asked = Position(position.board, position.guide, s, mask_of(tree, node), position.row)
    value = forward(network, asked, workspace, workspace.logits)
    if not decides(opponent, tree, node):
        note_priors(tree, node, workspace.logits, np.float32(plan.temperature))
    return np.float32(1 - 2 * int64(node["player"])) * value


@subroutine
def _play_out(
    position: Position, tree: Tree, at: int, rollout: int, bits: np.uint64, workspace: Workspace
) -> np.float32:
    """Return the evaluation, for player_0, after some rounds of random play from a node."""
    board = position.board
    s = workspace.scratch["states"][0]
    workspace.scratch["states"][0] = tree.states[at]
    luck = tree.luck
    init_luck(luck, bits)
    last = int64(s["round"]) + rollout
    mask = np.uint64(0)
    if int(s["phase"]) != OVER:
        mask = resolve_chance(board, s, luck, legal(board, s))
    number = 0
    while mask != np.uint64(0) and (int64(s["round"]) <= last or rollout == FULL):
        action = random_action(mask, hash_bits(bits, _PICK, 0, number))
        mask = resolve_chance(board, s, luck, apply(board, s, action))
        number += 1
    return evaluate(board, position.guide, s, workspace.scratch)


@kernel
def _walk(
    network: Any,
    opponent: Any,
    plan: SearchConfig,
    position: Position,
    key: np.uint64,
    tree: Tree,
    free: int,
) -> tuple[int, int]:
    """Go from the root to a new node or an end; return it and the number of decisions before.

    With a network to a new decision, which leaves no choice, or is the opponent's, only when the
    tree would have more than `free` nodes.
    """
    board = position.board
    at = 0
    depth = 0
    while True:
        node = tree.nodes[at]
        visits = int64(node["visits"])
        new = at > 0 and visits == 0
        if new:
            _ask(opponent, position, tree, at)
        if int(node["over"]) or (new and _ends_walk(network, opponent, plan, tree, node, free)):
            return at, depth
        node["visits"] = visits + 1
        if int(node["player"]) == NO_PLAYER:
            at = sample_chance(board, key, tree, at, visits, plan.stratified)
            continue
        edge = _select(network, opponent, tree, node, visits)
        tree.path[depth] = edge
        depth += 1
        at = follow(board, tree, at, tree.edges[edge])


@kernel
def _ask(opponent: Any, position: Position, tree: Tree, at: int) -> None:
    """Note the odds of a node where the opponent decides, if it is known."""
    if opponent is None:
        return
    if decides(opponent, tree, tree.nodes[at]):
        note_odds(opponent, position, tree, at)


@kernel
def _ends_walk(
    network: Any, opponent: Any, plan: SearchConfig, tree: Tree, node: Row, free: int
) -> bool:
    """Return whether a simulation that has come to a new node ends there."""
    if network is None:
        return True
    if int(node["player"]) == NO_PLAYER:
        return plan.judges_chance
    passed = int64(node["edges"]) == 1 or decides(opponent, tree, node)
    room = int64(tree.size["nodes"]) + 2 <= free
    return not (passed and room)


@kernel
def _select(network: Any, opponent: Any, tree: Tree, node: Row, visits: int) -> int:
    """Return the edge that a simulation takes from a decision."""
    if network is None:
        return select_by_value(tree, node, visits)
    if decides(opponent, tree, node):
        return select_by_odds(tree, node, visits)
    return select_by_policy(tree, node, visits)
