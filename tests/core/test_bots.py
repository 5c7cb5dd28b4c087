"""Random and greedy play: fair, and greedy as a plain search with `Game` has it."""

import random
from collections import Counter

import numpy as np
import numpy.typing as npt
from positions import random_position

from tokaido_env import Game, Phase
from tokaido_env.core.actions import IDS, N_ACTIONS
from tokaido_env.core.bitmask import actions_of, lowest_action
from tokaido_env.core.bots import greedy_actions, random_actions
from tokaido_env.core.jit import INTERPRETED, entry
from tokaido_env.core.state import STATE

POSITIONS = 40 if INTERPRETED else 400
KEYS = 30 if INTERPRETED else 200  # enough to see every one of some tied actions


def keys(n: int) -> npt.NDArray[np.uint64]:
    return np.random.default_rng(0).integers(2**64, size=n, dtype=np.uint64)


def greedy_choices(game: Game, n: int = KEYS) -> set[int]:
    """What greedy plays at a position, over many keys."""
    actions = np.empty(n, np.int64)
    masks = np.full(n, game.legal_mask, np.uint64)
    states = np.repeat(game.states, n)
    greedy_actions(game.boards, states, masks, keys(n), np.empty(2, STATE), actions)
    assert (states == game.states).all()
    return set(actions.tolist())


@entry
def _lowest(mask: np.uint64) -> int:
    return lowest_action(mask)


# Random


def test_random_picks_by_the_high_bits_of_the_key() -> None:
    """The n-th legal action, for a mask of any actions and a key of any bits."""
    rng = random.Random(0)
    masks = [rng.getrandbits(64) & rng.getrandbits(64) | 1 << rng.randrange(64) for _ in range(500)]
    masks += [1 << place for place in range(64)] + [2**64 - 1] * 50 + [(1 << N_ACTIONS) - 1] * 50
    bits = [rng.getrandbits(64) for _ in masks[2:]] + [0, 2**64 - 1]
    told = np.empty(len(masks), np.int64)
    random_actions(np.array(masks, np.uint64), np.array(bits, np.uint64), told)
    for mask, key, action in zip(masks, bits, told.tolist(), strict=True):
        possible = [place for place in range(64) if mask >> place & 1]
        assert action == possible[len(possible) * (key >> 32) // 2**32]


def test_lowest_is_the_lowest_bit() -> None:
    rng = random.Random(0)
    masks = [1 << bit for bit in range(64)] + [rng.getrandbits(64) | 1 << 63 for _ in range(200)]
    for mask in masks:
        assert _lowest(np.uint64(mask)) == actions_of(mask)[0]


# Greedy


def value(game: Game, seat: int) -> tuple[int, int]:
    """The margin in points, then in coins."""
    mine, theirs = game.scores()[seat]["total"], game.scores()[1 - seat]["total"]
    coins = [player["coins"] for player in game.to_dict()["players"]]
    return mine - theirs, coins[seat] - coins[1 - seat]


def after(game: Game, label: str) -> Game:
    other = game.copy()
    other.play(label)
    return other


def worth(game: Game, label: str, seat: int) -> tuple[int, int, bool]:
    """The value of an action with the best effect that it opens, and whether one is used."""
    then = after(game, label)
    used = game.phase == Phase.EFFECT and label != "pass"
    options = [(*value(then, seat), used)]
    if game.phase != Phase.EFFECT and then.phase == Phase.EFFECT:
        effects = [effect for effect in then.legal_labels() if effect != "pass"]
        options += [(*value(after(then, effect), seat), True) for effect in effects]
    return max(options)


def best_actions(game: Game) -> set[int]:
    """One ply of search over explicit copies of the game."""
    assert game.player is not None
    worths = {label: worth(game, label, game.player) for label in game.legal_labels()}
    return {IDS[label] for label, found in worths.items() if found == max(worths.values())}


def test_greedy_is_a_search_of_one_ply_at_made_up_positions() -> None:
    for seed in range(POSITIONS):
        game = Game.from_dict(random_position(random.Random(seed)), chance="explicit")
        assert greedy_choices(game) == best_actions(game), f"seed {seed}"


def test_greedy_is_a_search_of_one_ply_in_every_phase_of_games() -> None:
    phases: Counter[Phase] = Counter()
    rng = random.Random(0)
    playing = Game(seed=0)
    while phases.total() < 2 * POSITIONS:
        if playing.is_over:
            playing = Game(seed=phases.total())
        if playing.phase != Phase.MOVE or rng.random() < 0.3:
            game = Game.from_dict(playing.to_dict(), chance="explicit")
            assert greedy_choices(game) == best_actions(game), playing.to_dict()
            phases[game.phase] += 1
        playing.play(rng.choice(playing.legal_actions()))
    assert INTERPRETED or set(phases) == {Phase.MOVE, Phase.EFFECT, Phase.DISCARD, Phase.REPEAT}
