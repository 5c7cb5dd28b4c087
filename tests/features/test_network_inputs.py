"""Network inputs against the encoder and the heuristic's terms."""

import numpy as np
import pytest
from evaluated import terms_of
from networks import inputs_of, random_play

from tokaido_env.core.observation import N_FEATURES, encode_game
from tokaido_env.core.state import CHANCE_PHASES, Phase
from tokaido_env.features.network_inputs import TERM_SCALES
from tokaido_env.features.terms import LOG_ODDS, N_TERMS


def test_term_scales__are_the_largest_weights() -> None:
    assert (np.maximum(np.abs(LOG_ODDS).max(axis=0), 0.02) == TERM_SCALES).all()


def test_inputs__begin_with_the_observation_and_the_terms_of_both_players() -> None:
    phases, seen = set(), np.empty(N_FEATURES, np.float32)
    for game, rng in random_play():
        if game.phase in CHANCE_PHASES or rng.random() > 0.2:
            continue
        (inputs,) = inputs_of(game.boards, game.state)
        encode_game(game.boards, game.state, 0, game.player, seen)
        assert (inputs[:N_FEATURES] == seen).all()
        terms, _ = terms_of(game.state)
        mine_and_theirs = np.concatenate([terms[game.player], terms[1 - game.player]])
        expected = mine_and_theirs * np.tile(TERM_SCALES, 2)
        assert inputs[N_FEATURES : N_FEATURES + 2 * N_TERMS] == pytest.approx(expected)
        phases.add(game.phase)
    assert phases == {Phase.MOVE, Phase.EFFECT, Phase.DISCARD, Phase.REPEAT}
