"""Counter-based random numbers, kept apart from states in `LUCK`, and the sampling of outcomes.

A seed and the actions determine a game. Each random number is a hash of the game's key, a purpose
and a count, so it does not depend on the order of calls, the batch or the threads. Two games with
the same key roll the same dice, and use the same number for the n-th ware that a seat draws and
the n-th tile that it reveals:

    dice    (key, round)
    wares   (key, seat, wares that the seat drew before)
    tiles   (key, seat, tiles that the seat revealed before)
    set-up  (key, step)

The hash is SplitMix64's (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number
generators").
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.core.arguments import MAX_SEED, as_integer, check_seed, repr_short
from tokaido_env.core.constants import PAINTINGS, BoardRow, LuckRow, Mask, Outcome, Seat, StateRow
from tokaido_env.core.jit import entry, int64, kernel
from tokaido_env.core.rules import (
    apply_outcome,
    boutiques_left,
    is_chance,
    paintings_hidden,
    picker,
    setup_step,
    wares_in_bag,
)
from tokaido_env.core.state import DRAW, REVEAL, ROLL

LUCK = np.dtype(
    [
        ("key", "<u8"),
        ("drawn", "<u4", 2),  # wares drawn, by seat
        ("copies", "<u8"),  # copies made with new luck
    ]
)

MAX_EVENTS = 32
"""More than the outcomes that can follow a decision: 11 of set-up or 10 reveals, and a roll."""

_DICE, _WARES, _TILES, _SETUP, _COPY, _EPISODE, _SEED, _AGENT, _ARENA, _SEAT, _BOARD = range(11)
_GAME = 11
_GOLDEN_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_SEED_MASK = np.uint64(MAX_SEED)


def entropy_seed() -> int:
    """Return a random seed from the operating system, 0 to 2**53 - 1."""
    return int.from_bytes(os.urandom(8), "little") & MAX_SEED


def game_seed(seed: int, game: int) -> int:
    """Return the seed of one of many games that one seed starts.

    Game `i` of `Batch.reset(seed=s)`, and of all other environments of many games, is
    `Game(seed=game_seed(s, i))`. It is a hash, so neighbouring seeds have no game in common.

    Args:
        seed: an integer from 0, as for `Game`.
        game: the index of the game, from 0.

    Returns:
        A seed from 0 to 2**53 - 1.

    Raises:
        ValueError: for anything else than non-negative integers (`SeedError` for the seed).
    """
    number = as_integer(game)
    if number is None or number < 0:
        raise ValueError(f"game: expected an integer from 0, got {repr_short(game)}")
    return int(game_seeds(seed, np.array([number]))[0])


def game_seeds(seed: object, games: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the seeds of games of one seed, int64 (k,), as `game_seed` for each.

    Args:
        seed: the seed that they have in common.
        games: int64 (k,), the indices of the games, from 0.
    """
    out = np.empty(len(games), np.int64)
    _hash_games(check_seed(seed), games, out)
    return out


@kernel
def hash_bits(key: np.uint64, purpose: int, a: int, b: int) -> np.uint64:
    """Return 64 random bits of a key at the counter (purpose, a, b), by SplitMix64's hash."""
    counter = np.uint64(purpose << 56 | a << 40 | b) + np.uint64(1)
    z = key + counter * _GOLDEN_GAMMA
    z = (z ^ (z >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    return z ^ (z >> np.uint64(31))


@kernel
def random_below(bits: np.uint64, n: int) -> int:
    """Map 64 random bits to an integer from 0 to n - 1, with a bias below n / 2**32."""
    return int64((bits >> np.uint64(32)) * np.uint64(n) >> np.uint64(32))


@kernel
def key_of_seed(seed: int) -> np.uint64:
    """Return the key, 64 bits, from which all dice and draws of a seed's game follow."""
    return hash_bits(np.uint64(seed), _SEED, 0, 0)


@kernel
def seed_of_episode(seed: int, episode: int) -> int:
    """Return the seed of an episode of an environment that was reset with `seed`.

    The seed of episode 0 is `seed`. Episode e is the game `Game(seed=seed_of_episode(seed, e))`.
    """
    if episode == 0:
        return seed
    return int64(hash_bits(np.uint64(seed), _EPISODE, 0, episode) & _SEED_MASK)


@kernel
def board_of_seed(seed: int, boards: int) -> int:
    """Return the index of the board of a seed's game, drawn uniformly from 0 to `boards` - 1."""
    return random_below(hash_bits(np.uint64(seed), _BOARD, 0, 0), boards)


@kernel
def sample(board: BoardRow, s: StateRow, luck: LuckRow) -> Outcome:
    """Return an outcome id of a chance phase, sampled by `outcome_weights`; update `luck`."""
    key = luck["key"]
    phase = int(s["phase"])
    if phase == ROLL:
        return outcome_of_roll(board, random_below(hash_bits(key, _DICE, 0, int(s["round"])), 216))
    if phase == DRAW:
        seat = picker(s)
        drawn = int(luck["drawn"][seat])
        luck["drawn"][seat] = drawn + 1
        return _sample_ware(s, hash_bits(key, _WARES, seat, drawn))
    if phase == REVEAL:
        seat = picker(s)
        revealed = PAINTINGS - paintings_hidden(s, seat)
        return _sample_tile(s, seat, hash_bits(key, _TILES, seat, revealed))
    return _sample_setup(board, s, hash_bits(key, _SETUP, 0, setup_step(s)))


@kernel
def resolve_chance(board: BoardRow, s: StateRow, luck: LuckRow, mask: Mask) -> Mask:
    """Play sampled outcomes until a decision or the end of the game; `s` and `luck` change.

    Args:
        mask: the legal actions as bits, returned unchanged at a decision.

    Returns:
        The new legal actions as bits, 0 at the end.
    """
    while is_chance(s):
        mask = apply_outcome(board, s, sample(board, s, luck))
    return mask


@kernel
def resolve_chance_logged(
    board: BoardRow, s: StateRow, luck: LuckRow, mask: Mask, events: Any, n: int
) -> tuple[Mask, int]:
    """Play sampled outcomes as `resolve_chance`, and write their ids to `events` from index `n`.

    `events` is int32 with room for `MAX_EVENTS` more. Return the new legal mask, 0 at the end, and
    the index after the last event.
    """
    while is_chance(s):
        outcome = sample(board, s, luck)
        events[n] = outcome
        n += 1
        mask = apply_outcome(board, s, outcome)
    return mask, n


@kernel
def outcome_of_roll(board: BoardRow, roll: int) -> Outcome:
    """Return the outcome id of one of 216 equally likely rolls, 36 p + 6 m + a by faces from 0."""
    faces = board["faces"]
    pilgrim = int(faces[0, roll // 36]) - 1
    merchant = int(faces[1, roll // 6 % 6]) - 1
    return 36 * pilgrim + 6 * merchant + int(faces[2, roll % 6]) - 1


@kernel
def _sample_ware(s: StateRow, bits: np.uint64) -> Outcome:
    return _pick(s["bag"], random_below(bits, wares_in_bag(s)))


@kernel
def _sample_tile(s: StateRow, seat: Seat, bits: np.uint64) -> Outcome:
    return _pick(s["hidden"][seat], random_below(bits, paintings_hidden(s, seat)))


@kernel
def _pick(counts: Any, n: int) -> int:
    """Return the kind of the n-th piece, from 0, by the counts of four kinds."""
    first = int(counts[0])
    second = first + int(counts[1])
    third = second + int(counts[2])
    return int64(n >= first) + int64(n >= second) + int64(n >= third)


@kernel
def _sample_setup(board: BoardRow, s: StateRow, bits: np.uint64) -> Outcome:
    """Sample a set-up draw, with the weights of `outcome_weights`."""
    step = setup_step(s)
    if step >= len(s["boutiques"]):
        return random_below(bits, 2)
    left = -step
    for kind in range(int(board["kinds"])):
        left += int(board["kind_count"][kind])
    rest = random_below(bits, left)
    kind = 0
    while rest >= boutiques_left(board, s, kind):
        rest -= boutiques_left(board, s, kind)
        kind += 1
    return kind


@kernel
def init_luck(luck: LuckRow, key: np.uint64) -> None:
    """Begin the luck of a game: nothing has been drawn yet.

    Args:
        luck: a row of `LUCK`, overwritten.
        key: from which all rolls and draws follow, as of `key_of_seed`.
    """
    luck["key"] = key
    luck["drawn"][0] = 0
    luck["drawn"][1] = 0
    luck["copies"] = 0


@entry
def _hash_games(seed: int, games: Any, out: Any) -> None:
    key = hash_bits(np.uint64(seed), _GAME, 0, 0)  # else some distant seeds had shifted games
    for i in range(len(games)):
        out[i] = int64(hash_bits(key, _GAME, 0, games[i]) & _SEED_MASK)


@entry
def seed_luck(lucks: Any, i: int, seed: int) -> None:
    """Set row `i` of `lucks`, `LUCK` (n,), to the luck of a seed's game before any draw."""
    init_luck(lucks[i], key_of_seed(seed))


@entry
def fork_luck(lucks: Any, i: int, copies: Any, j: int) -> None:
    """Set new luck for copy `j` of game `i`, derived from the game's key and its number of copies.

    Args:
        lucks: `LUCK` (n,) of the games; the number of copies is updated.
        i: index of the game.
        copies: `LUCK` (m,) of the copies.
        j: index of the copy.
    """
    count = int(lucks[i]["copies"])
    lucks[i]["copies"] = count + 1
    init_luck(copies[j], hash_bits(lucks[i]["key"], _COPY, 0, count))


@kernel
def agent_key_of_seed(seed: int) -> np.uint64:
    """Return the key of agents in a seed's game; its stream is independent of dice and draws."""
    return hash_bits(np.uint64(seed), _AGENT, 0, 0)


@kernel
def agent_key(key: np.uint64, seat: Seat, decision: int) -> np.uint64:
    """Return the key of an agent's random numbers for one decision.

    Args:
        key: of the agents in the game, `agent_key_of_seed`.
        seat: of the agent.
        decision: number of decisions made in the game.
    """
    return hash_bits(key, _AGENT, seat, decision)


@entry
def agent_keys(seeds: Any, seats: Any, decisions: Any, out: Any) -> None:
    """Write the key of one decision in each of n games: an agent's only source of randomness.

    Args:
        seeds: int64 (n,), seeds of the games.
        seats: int8 (n,), the players to decide.
        decisions: int64 (n,), the number of decisions made in each game.
        out: uint64 (n,).
    """
    for i in range(len(seeds)):
        key = agent_key_of_seed(seeds[i])
        out[i] = agent_key(key, int64(seats[i]), int64(decisions[i]))


@entry
def arena_seed(seed: int, pair: int) -> int:
    """Return the seed, 0 to 2**53 - 1, of pair number `pair` (from 0) of a match with a seed."""
    return int64(hash_bits(np.uint64(seed), _ARENA, 0, pair) & _SEED_MASK)


@entry
def seats_of_seeds(seeds: Any, out: Any) -> None:
    """Write a random seat, 0 or 1, of each game to `out`, int8 (n,), by `seeds`, int64 (n,)."""
    for i in range(len(seeds)):
        out[i] = int64(hash_bits(np.uint64(seeds[i]), _SEAT, 0, 0) >> np.uint64(63))


@entry
def boards_of_seeds(seeds: Any, boards: int, out: Any) -> None:
    """Write `board_of_seed` of `seeds`, int64 (n,), and a number of boards to `out`, int64 (n,)."""
    for i in range(len(seeds)):
        out[i] = board_of_seed(seeds[i], boards)


@entry
def episode_seeds(seeds: Any, episodes: Any, out: Any) -> None:
    """Write `seed_of_episode` of `seeds` and `episodes` to `out`; all are int64 (n,)."""
    for i in range(len(out)):
        out[i] = seed_of_episode(seeds[i], episodes[i])


@entry
def episode_seed(seed: int, episode: int) -> int:
    """Return `seed_of_episode` for callers in Python: 0 to 2**53 - 1, `seed` itself for 0."""
    return seed_of_episode(seed, episode)
