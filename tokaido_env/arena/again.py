"""Decisions of finished games asked for again: are they what the agent decides, and how fast?"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from tokaido_env.agent import Agent
from tokaido_env.arena.playing import Numbers
from tokaido_env.arena.tournament import Sheet
from tokaido_env.batch import Batch
from tokaido_env.core.state import copy_rows

REPEATS = 5
"""How often decisions are timed; the median counts."""


class Different(NamedTuple):
    """A decision that an agent did not repeat.

    Attributes:
        game: its number within the match.
        decision: which of the game, from 0.
        recorded: the action that stands there.
        decided: the action that the agent chooses.
    """

    game: int
    decision: int
    recorded: int
    decided: int


class Again(NamedTuple):
    """Decisions that were asked for again.

    Attributes:
        decisions: how many.
        seconds: processor time of the agent, of all its threads.
        different: the first that was not repeated, None if all were.
    """

    decisions: int
    seconds: float
    different: Different | None


def decide_again(sheet: Sheet, numbers: Numbers, agent: Agent, side: int) -> Again:
    """Ask an agent for all its decisions of some finished games, at the positions of these games.

    An agent has nothing but the position and the random number of the decision, which follows from
    the seed of the game: it decides as it did.

    Args:
        sheet: of the match.
        numbers: int64 (k,), of the games.
        agent: the agent.
        side: 0 for agent `a` of the match, 1 for `b`.
    """
    games = sheet.games[numbers]
    boards = sheet.boards_of(numbers)
    agent.prepare(list({id(board): board for board in boards}.values()))
    batch = Batch(len(numbers), boards, autoreset=False, observation=None)
    batch.begin(np.arange(len(batch)), games["seed"])
    running, asked, seconds = np.arange(len(batch)), 0, 0.0
    different: list[Different] = []
    while len(running):
        at = batch.slots["decisions"][running]
        moves = sheet.actions[numbers[running], at].astype(np.int64)
        own = batch.states["player"][running] == (games["seat_of_a"][running] ^ side)
        if own.any():
            places = running[own]
            states = copy_rows(batch.states, places)
            began = time.process_time()
            chosen = agent.act(
                batch.boards_of(places), states, batch.legal[places], batch.keys(places)
            )
            seconds += time.process_time() - began
            asked += len(places)
            for i in np.flatnonzero(chosen != moves[own])[:1].tolist():
                game, decision = int(numbers[places[i]]), int(at[own][i])
                different.append(Different(game, decision, int(moves[own][i]), int(chosen[i])))
        batch.advance(running, moves, check=False)
        running = running[~batch.over[running]]
    return Again(asked, seconds, min(different, default=None))
