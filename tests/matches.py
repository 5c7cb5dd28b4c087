"""Played matches, single games to compare with, and random results of known mean."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env import Game
from tokaido_env.agents import Agent, make
from tokaido_env.arena.game_runner import FinishedGames, Numbers, pad_columns
from tokaido_env.arena.match import GAME, Match
from tokaido_env.arena.records import RecordFile
from tokaido_env.arena.tournament import MatchState, games_as_completed
from tokaido_env.core.rng import agent_keys
from tokaido_env.trajectory import replay_chunks

Floats = npt.NDArray[np.float64]


def play_remaining(match_state: MatchState, a: Agent, b: Agent, **options: Any) -> None:
    """Play the unfinished games of a match."""
    for _ in games_as_completed(match_state, a, b, **options):
        pass


def played_match(a: str, b: str, games: int, seed: int, board: Any = "shikoku") -> MatchState:
    """Play a match whole."""
    match_state = MatchState(a, b, games, seed, board)
    play_remaining(match_state, make(a), make(b))
    return match_state


def match_with_luck(a: str, b: str, games: int, seed: int) -> Match:
    """Play a match and compute the luck of its games."""
    match_state = MatchState(a, b, games, seed, "shikoku")
    match_state.with_luck = True
    play_remaining(match_state, make(a), make(b))
    return match_state.to_match()


def match_of_results(results: Floats, first_seed: int = 0, a: str = "x", b: str = "y") -> Match:
    """Return a match of the given results of `a`, (pairs, 2), with consecutive seeds."""
    games = np.zeros(results.shape, GAME)
    games["result"] = results
    games["seed"] = np.arange(len(results))[:, None] + first_seed
    return Match(a, b, games, np.zeros((*results.shape, 0), np.int8))


def play_recorded(records: RecordFile, match_state: MatchState, a: Agent, b: Agent) -> None:
    """Play a match and record every game when it has finished."""
    for finished in games_as_completed(match_state, a, b):
        records.append(match_state, finished)


def finished_games(match_state: MatchState, numbers: Numbers | None = None) -> FinishedGames:
    """Return finished games of a match as an executor yields them, with their events."""
    numbers = np.arange(len(match_state)) if numbers is None else numbers
    games, actions = match_state.games[numbers], match_state.actions[numbers]
    events = np.full((len(numbers), 0), -1, np.int16)
    for some, played in replay_chunks(match_state.pool, games["seed"], actions, games["board"]):
        found = played.events_by_game
        events = pad_columns(events, found.shape[1])
        events[some, : found.shape[1]] = found
    forfeits = {n: match_state.forfeits[n] for n in numbers.tolist() if n in match_state.forfeits}
    return FinishedGames(numbers, games, actions, events, forfeits)


def same_games(one: MatchState, other: MatchState) -> bool:
    """Return whether two matches have the same games and actions."""
    return bool((one.games == other.games).all()) and one.actions.tolist() == other.actions.tolist()


def play_single_game(agents: tuple[Agent, Agent], seed: int, board: Any = "shikoku") -> Game:
    """Play a game with `Game`: agents by seat, with the keys that a match gives them."""
    game, decisions = Game(board=board, seed=seed), 0
    key = np.empty(1, np.uint64)
    while not game.is_over:
        seats, numbers = np.array([game.player], np.int8), np.array([decisions])
        agent_keys(np.array([seed]), seats, numbers, key)
        legal = np.array([game.legal_mask], np.uint64)
        game.play(int(agents[seats[0]].act(game.boards, game.state, legal, key)[0]))
        decisions += 1
    return game


# Distributions of results, (pairs, 2), of mean p

ResultModel = Callable[[np.random.Generator, int, float], Floats]


def independent(rng: np.random.Generator, pairs: int, p: float) -> Floats:
    """Draw independent wins and losses."""
    return (rng.random((pairs, 2)) < p).astype(float)


def with_draws(rng: np.random.Generator, pairs: int, p: float) -> Floats:
    """Draw independent results, some of them draws."""
    shared = rng.random((pairs, 2)) < min(p, 1 - p)
    rest = max(p, 1 - p)
    return np.where(shared, 0.5, rng.random((pairs, 2)) < (p - (1 - rest) / 2) / rest)


def decided_by_luck(rng: np.random.Generator, pairs: int, p: float) -> Floats:
    """Draw pairs in some of which the better dice win in either seat."""
    split = min(p, 1 - p)
    first = rng.integers(0, 2, (pairs, 1))
    rest = rng.random((pairs, 2)) < (p - split / 2) / (1 - split)
    return np.where(rng.random((pairs, 1)) < split, np.hstack([first, 1 - first]), rest)


def decided_by_skill(rng: np.random.Generator, pairs: int, p: float) -> Floats:
    """Draw pairs in which one agent wins both games."""
    return np.repeat(rng.random((pairs, 1)) < p, 2, axis=1).astype(float)


RESULT_MODELS = (independent, with_draws, decided_by_luck, decided_by_skill)
