"""Tests of `tokaido_env.agent`: attributes of agents, `as_agent`, `choose` and `judge`."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tokaido_env import Batch, Game
from tokaido_env.agent import Agent, AgentError
from tokaido_env.agents import make
from tokaido_env.agents.adapters import AgentAdapter
from tokaido_env.agents.baselines import RandomAgent
from tokaido_env.agents.registry import as_agent, as_agents, cost_of, labels_of
from tokaido_env.arena.tournament import play_match
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.bitmask import actions_of
from tokaido_env.core.bots import GREEDY, NO_BOT, RANDOM
from tokaido_env.gym import TokaidoDuoVectorEnv
from tokaido_env.observers import afterstates


class Lowest:
    """An object with `act` only."""

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> Any:
        return np.array([actions_of(int(mask))[0] for mask in legal], np.int64)


def asked(agent: Agent, what: str = "act") -> Any:
    """Return an agent's judgement of the first position of a game."""
    game = Game(seed=7)
    legal, keys = np.array([game.legal_mask], np.uint64), np.array([3], np.uint64)
    return getattr(agent, what)(game.boards, game.state, legal, keys)


def test_choose__returns_a_legal_action_of_one_game() -> None:
    """The choice equals that of `act` for many games, with keys from the seed."""
    game = Game(seed=7)
    legal = np.array([game.legal_mask], np.uint64)
    for name in ("random", "greedy"):
        agent, chosen = make(name), []
        for seed in range(20):
            keys = np.random.default_rng(seed).integers(0, 2**64, 1, np.uint64)
            chosen.append(int(agent.act(game.boards, game.state, legal, keys)[0]))
            assert agent.choose(game, seed) == chosen[-1]
        assert agent.choose(game, np.random.default_rng(19)) == chosen[-1]
        assert len(set(chosen)) > 1 or name == "greedy"
    assert make("random").choose(game) in game.legal_actions()
    assert game == Game(seed=7)


def test_choose__refuses_other_objects_and_games_without_a_decision() -> None:
    greedy: Any = make("greedy")
    for wrong in ("greedy", Game(seed=7, chance="explicit")):
        with pytest.raises((TypeError, ValueError), match=r"^game: expected a "):
            greedy.choose(wrong)
    with pytest.raises(TypeError, match=r"for one Game call agent\.choose\(game\)$"):
        greedy.act(None, Game(seed=7), None, None)
    game, zero = Game(seed=7, chance="explicit"), np.zeros(1, np.uint64)
    for spec in ("greedy", "champion", "mcts:sims=2"):
        with pytest.raises(ValueError, match=r"^legal: .* none in position 0$"):
            make(spec).judge(game.boards, game.state, zero, zero)


def test_act__refuses_masks_and_boards_of_other_positions() -> None:
    """Kernels index by what a legal action leads to, without checks."""
    batch = Batch(100, "family:test")
    batch.reset(seed=7)
    for _ in range(30):
        batch.play("random")
    boards, keys = batch.boards_of(batch.all_games), batch.keys(batch.all_games)
    for spec in ("greedy", "champion", "mcts:sims=2"):
        for wrong in ((boards, batch.legal[::-1].copy()), (batch.boards, batch.legal)):
            with pytest.raises(ValueError, match=r"^legal: expected the actions of states"):
                make(spec).act(wrong[0], batch.states, wrong[1], keys)
    with pytest.raises(ValueError, match=r"^legal: expected the actions of states"):
        afterstates(boards, batch.states, batch.legal[::-1].copy())


def test_as_agent__accepts_specs_agents_and_objects_with_act() -> None:
    greedy = as_agent("greedy")
    assert (greedy.spec, greedy.bot, greedy.batched) == ("greedy", GREEDY, True)
    assert not greedy.may_fail
    assert as_agent(greedy) is greedy
    player = Lowest()
    lowest = as_agent(player)
    assert isinstance(lowest, AgentAdapter)
    assert lowest.may_fail
    assert (lowest.spec, lowest.games_at_once, lowest.bot) == ("Lowest", 4096, NO_BOT)
    assert asked(lowest).tolist() == [Game(seed=7).legal_actions()[0]]
    player.games_at_once, player.batched, player.spec = 2, False, "low"  # type: ignore[attr-defined]
    agent = as_agent(player)
    assert (agent.games_at_once, agent.batched, agent.spec) == (2, False, "low")


@pytest.mark.parametrize("wrong", [None, 7, Lowest, lambda boards: None])
def test_as_agent__refuses_other_objects(wrong: object) -> None:
    with pytest.raises(AgentError, match=r"^agent: "):
        as_agent(wrong)


class Last:
    """An object with `choose` only, as the documentation teaches."""

    def choose(self, game: Game, rng: np.random.Generator) -> Any:
        assert isinstance(rng, np.random.Generator)
        return game.legal_labels()[-1] if rng.random() < 0.5 else game.legal_actions()[-1]


class Highest:
    """Chooses as `Last`, but for many games at once."""

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> Any:
        return np.array([actions_of(int(mask))[-1] for mask in legal], np.int64)


def check_equal_games(first: TokaidoDuoVectorEnv, second: TokaidoDuoVectorEnv) -> None:
    for games in (first, second):
        games.reset(seed=5)
    for _ in range(20):
        actions = first.action_masks().argmax(axis=1)
        first.step(actions)
        second.step(actions)
        assert first.batch.states.tobytes() == second.batch.states.tobytes()


@pytest.mark.parametrize("board", ["file", "family:train/4"])
def test_as_agent__accepts_objects_with_choose_wherever_it_is_called(
    short: Path, board: Any
) -> None:
    """Opponents of learners, in a batch, in pictures: equal to the same agent with `act`."""
    board = short if board == "file" else board
    player = Last()
    first, second = (
        TokaidoDuoVectorEnv(6, [one, "greedy"], board=board) for one in (player, Highest())
    )
    assert first.opponents[0] is player
    check_equal_games(first, second)
    batch = Batch(2, board)
    timestep = batch.reset(seed=3)
    highest = [actions_of(int(mask))[-1] for mask in timestep.legal]
    assert batch.decide(as_agent(player, batch.pool), batch.all_games).tolist() == highest
    if board == short:
        game = Game(board, seed=3)
        assert game.show(as_agent(player)).svg == game.show(as_agent(Highest())).svg
        assert as_agent(player).choose(game) == game.legal_actions()[-1]  # `prepare` gets its board


class Loose(Agent):
    """A class of a user that inherits from `Agent`, and decides as `Highest`."""

    act = Highest.act


class Mine(RandomAgent):
    """A class of a user that inherits from a compiled bot, and decides as `Highest`."""

    act = Highest.act


PLAYED = {"bot": 1, "spec": "greedy", "name": "random", "source": "x", "may_fail": False}


@pytest.mark.parametrize("kind", [Last, Highest, Loose, Mine])
def test_as_agent__ignores_attributes_without_a_documented_meaning(kind: type) -> None:
    """The object itself plays: in the seat of an opponent and in a match."""
    player = kind()
    for name, value in PLAYED.items():
        setattr(player, name, value)
        check_equal_games(TokaidoDuoVectorEnv(4, player), TokaidoDuoVectorEnv(4, Highest()))
    expected = play_match(as_agent(Highest()), make("random"), 4, 0)
    assert (play_match(player, make("random"), 4, 0).games == expected.games).all()


@pytest.mark.parametrize("name", [7, "a\nb", "human"])
def test_as_agent__refuses_a_name_that_is_not_printable_or_a_persons(name: Any) -> None:
    player = Last()
    player.spec = name  # type: ignore[attr-defined]
    with pytest.raises(AgentError, match=r"^spec: expected a printable name"):
        as_agent(player)


def test_labels_of__numbers_objects_and_keeps_specs() -> None:
    first, second = Lowest(), Lowest()
    second.spec = "greedy"  # type: ignore[attr-defined]
    players = [as_agent(one) for one in (first, Lowest(), first, second, "greedy", "greedy")]
    expected = ["Lowest", "Lowest 2", "Lowest", "greedy 2", "greedy", "greedy"]
    assert labels_of(players) == expected
    assert [one.spec for one in as_agents(*players)] == expected
    assert [one.spec for one in players][1::2] == ["Lowest", "greedy", "greedy"]


def test_judge__defaults_to_the_action_of_act() -> None:
    shares, values = asked(as_agent("greedy"), "judge")
    assert values is None
    assert shares.shape == (1, N_ACTIONS)
    assert np.flatnonzero(shares[0]).tolist() == asked(as_agent("greedy")).tolist()
    assert asked(as_agent(Lowest()), "judge")[0].sum() == 1


def test_bot__is_set_for_compiled_bots_only() -> None:
    bots = {"random": RANDOM, "greedy": GREEDY, "greedy:epsilon=0.5": NO_BOT, "heuristic": NO_BOT}
    assert {spec: make(spec).bot for spec in bots} == bots


# Costs


def test_cost__counts_a_network_simulation_as_sixteen() -> None:
    specs = ("greedy", "mcts", "mcts:sims=20", "champion", "generalist:sims=64", "policy:x")
    assert [cost_of(spec) for spec in specs] == [0, 400, 20, 0, 1024, 0]
    assert cost_of("policy_search:x,sims=10") == 160
    with pytest.raises(AgentError, match="from 0 to 1"):
        cost_of("greedy:epsilon=5")
