"""Games of a match, recorded as they are played, and handed over again."""

import numpy as np

from tokaido_env.agents import Agent
from tokaido_env.arena.playing import Finished, Numbers, widened
from tokaido_env.arena.records import Records
from tokaido_env.arena.tournament import Sheet, finished_games
from tokaido_env.trajectory import in_parts


def play_recorded(records: Records, sheet: Sheet, a: Agent, b: Agent) -> None:
    """Play a match, every game recorded as it finishes."""
    for some in finished_games(sheet, a, b):
        records.append(sheet, some)


def finished(sheet: Sheet, numbers: Numbers | None = None) -> Finished:
    """Games of a sheet as they came when they were played, with their events."""
    numbers = np.arange(len(sheet)) if numbers is None else numbers
    games, actions = sheet.games[numbers], sheet.actions[numbers]
    events = np.full((len(numbers), 0), -1, np.int16)
    for some, played in in_parts(sheet.pool, games["seed"], actions, games["board"]):
        found = played.events_by_game
        events = widened(events, found.shape[1])
        events[some, : found.shape[1]] = found
    forfeits = {n: sheet.forfeits[n] for n in numbers.tolist() if n in sheet.forfeits}
    return Finished(numbers, games, actions, events, forfeits)
