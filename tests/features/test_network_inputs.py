"""Network inputs against the encoder, the heuristic's terms and games played one by one."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest
from evaluated import best_leaf, terms_of, value_of
from networks import decisions, inputs_of, random_play

from tokaido_env import Game
from tokaido_env.boards.board import Board, built_in_boards
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.observation import N_FEATURES, encode_game
from tokaido_env.core.state import CHANCE_PHASES, Phase
from tokaido_env.features.eval_tables import N_TERMS, load_weights
from tokaido_env.features.network_inputs import (
    AFTERSTATE_VALUES,
    MAX_LEGAL,
    MIN_AFTERSTATE_VALUE,
    TERM_SCALES,
)

Floats = npt.NDArray[np.float32]


def games_to_decide() -> Iterator[Game]:
    """Yield decisions of random games, of every phase."""
    for game, rng in random_play():
        share = 0.1 if game.phase in (Phase.MOVE, Phase.EFFECT) else 0.8
        if game.phase not in CHANCE_PHASES and rng.random() < share:
            yield game


def read(game: Game) -> tuple[Floats, Floats]:
    """Return the inputs, and the terms of the afterstates (legal actions, N_TERMS), of one game."""
    legal = np.array([game.legal_mask], np.uint64)
    inputs, afterstates = inputs_of(game.boards, game.state, legal)
    return inputs[0], afterstates[:, :N_TERMS]


def test_term_scales__are_the_largest_weights() -> None:
    assert (np.maximum(np.abs(load_weights()).max(axis=0), 0.02) == TERM_SCALES).all()


def test_max_legal__bounds_the_legal_actions() -> None:
    """On every board a character can reach at most all places of its kind."""
    for name in built_in_boards():
        record = Board.load(name).record[0]
        towns = max(int(reach).bit_count() for reach in record["town_reach"].flat)
        areas = max(int(reach).bit_count() for reach in record["area_reach"].flat)
        assert 2 + towns + areas <= MAX_LEGAL
    _, _, legal = decisions(tuple(built_in_boards()))
    assert max(int(mask).bit_count() for mask in legal) <= MAX_LEGAL


def test_inputs_are_what_games_played_one_by_one_tell() -> None:
    phases, over, seen = set(), 0, np.empty(N_FEATURES, np.float32)
    for game in games_to_decide():
        seat, legal = game.player, game.legal_actions()
        sign = 1 - 2 * seat
        inputs, afterstates = read(game)
        encode_game(game.boards, game.state, 0, seat, seen)
        assert (inputs[:N_FEATURES] == seen).all()
        terms, _ = terms_of(game.state)
        mine_and_theirs = np.concatenate([terms[seat], terms[1 - seat]]) * np.tile(TERM_SCALES, 2)
        assert inputs[N_FEATURES:AFTERSTATE_VALUES] == pytest.approx(mine_and_theirs)
        leaves = {action: best_leaf(game, action) for action in legal}
        values = {action: sign * value_of(leaf.state) for action, leaf in leaves.items()}
        best = max(values.values())
        for action in range(N_ACTIONS):
            value = inputs[AFTERSTATE_VALUES + action]
            if action not in legal:
                assert value == 0
                continue
            afterstate = afterstates[legal.index(action)]
            assert value == pytest.approx(
                max(values[action] - best, MIN_AFTERSTATE_VALUE), abs=1e-6
            )
            if leaves[action].is_over:
                over += 1
                assert not afterstate.any()
                continue
            after, _ = terms_of(leaves[action].state)
            ahead = after[seat].astype(int) - after[1 - seat]
            assert afterstate == pytest.approx(ahead * TERM_SCALES)
        assert len(afterstates) == len(legal)
        phases.add(game.phase)
    assert phases == {Phase.MOVE, Phase.EFFECT, Phase.DISCARD, Phase.REPEAT}
    assert over > 3
