"""Players who do nothing sensible score almost nothing, also where games reach the cap (R10.1)."""

import inspect
import sys
from pathlib import Path

import pytest
from slow_cases import slow_except_first

from tokaido_env.agents import make
from tokaido_env.arena.tournament import play_match

sys.path.append(str(Path(__file__).resolve().parents[2] / "agents"))

import simple_players

CLASSES = [cls for _, cls in inspect.getmembers(simple_players, inspect.isclass)]
PLAYERS = [cls for cls in CLASSES if issubclass(cls, simple_players.LowestId)]


@pytest.mark.parametrize(
    ("opponent", "games"),
    slow_except_first([("heuristic", 200), ("greedy", 200), ("mcts:sims=100", 40)]),
)
def test_simple_players__score_at_most_two_percent(opponent: str, games: int) -> None:
    assert len(PLAYERS) == 3
    for cls in PLAYERS:
        match = play_match(cls(), make(opponent), games, 7)
        assert match.score <= 0.02, cls.__name__
