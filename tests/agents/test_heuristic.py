"""The evaluation's terms against a slow count from `Game.to_dict`; its symmetry and its play."""

import random
from collections.abc import Iterator

import numpy as np
import pytest
from evaluated import best_leaf, terms_of, value_of
from learner_games import picker
from naive_reach import KINDS, NaiveReach
from positions import SHIKOKU, random_move
from reference import Board as NaiveBoard

from tokaido_env import Game
from tokaido_env.agents import make
from tokaido_env.arena.tournament import play_match
from tokaido_env.core.constants import ICONS, WARES
from tokaido_env.core.state import CHANCE_PHASES, Phase
from tokaido_env.features.evaluation import MAX_GAME_PHASE
from tokaido_env.features.terms import LOG_ODDS, TERMS

NAMES = [term.name for term in TERMS]
NAIVE_BOARD = NaiveBoard(SHIKOKU)


def positions(games: int) -> Iterator[Game]:
    """Yield positions of random games in every phase that has terms."""
    for seed in range(games):
        game, rng = Game(seed=seed, chance="explicit"), random.Random(seed)
        while not game.is_over:
            odds = 0.2 if game.legal_mask else 1.0
            if game.phase not in (Phase.SETUP, Phase.EFFECT) and rng.random() < odds:
                yield game
            game.play(random_move(game, rng))


def test_count_terms__agrees_with_a_slow_count() -> None:
    phases = set()
    for game in positions(5):
        terms, _ = terms_of(game.state)
        for seat in range(2):
            counted = dict(zip(NAMES, terms[seat].tolist(), strict=True))
            assert counted == slow_terms(game, seat)
        phases.add(game.phase)
    assert {Phase.ROLL, Phase.MOVE, Phase.DRAW, Phase.REVEAL} <= phases


def slow_terms(game: Game, seat: int) -> dict[str, int]:
    """Return `TERMS` of a seat from `Game.to_dict` and the reference's board."""
    position = game.to_dict()
    naive = NaiveReach(NAIVE_BOARD, position, seat)
    mine, dice, left = naive.mine, position["dice"], position["dice_left"]
    terms = dict.fromkeys(NAMES, 0)
    terms |= {key: game.scores()[seat][key] for key in ("faith", "commerce", "culture")}
    terms |= {key: mine[key] for key in ("temple", "garden", "gold", "gifted", "coins")}
    held, easel = sum(mine["wares"].values()), mine["easel"]
    best = {ware: max(price for w, price in NAIVE_BOARD.tokens if w == ware) for ware in WARES}
    terms["wares"] = sum(best[ware] * number for ware, number in mine["wares"].items())
    terms |= {"held": held, "easel": len(easel), "hot_spring": position["hot_spring"] == seat}
    for wave in position["waves"].values():
        terms[wave["side"]] = int(wave["owner"] == seat)
    leads = position["lead"] == seat
    picks = {3: 2 if leads else 1, 2: 1, 1: int(leads), 0: 0}[len(left)]
    terms["picks"] = (2 if leads else 1) if position["phase"] == "ROLL" else picks
    share = 0 if position["phase"] == "ROLL" or not left else 6 * picks // len(left)
    if position["phase"] == "DRAW" and picker(position) == seat:
        terms["drawing"] = min(position["pending"], max(6 - held, 0))
    if position["phase"] == "REVEAL" and picker(position) == seat:
        terms["revealing"] = position["pending"]
    if "pilgrim" in left:
        kind = KINDS[naive.station(dice["pilgrim"])[0]]
        terms["temple_now"] = share * mine["garden"] * (kind == "temple" and mine["temple"] < 9)
        terms["garden_now"] = share * mine["temple"] * (kind == "garden" and mine["garden"] < 6)
        terms["seashore_now"] = share * (kind == "seashore")
        terms["spring_now"] = share * (kind == "hot spring")
    room = max(5 - held, 0)
    if "merchant" in left:
        *_, sale, draw = naive.market(dice["merchant"])
        terms |= {"sale_now": share * sale, "draw_now": share * min(draw, room)}
    else:
        faces = NAIVE_BOARD.faces["merchant"]
        terms["draw_next"] = sum(min(naive.market(die)[-1], room) for die in faces)
    return terms | artist_terms(naive, share)


def artist_terms(naive: NaiveReach, share: int) -> dict[str, int]:
    """Return the terms of the artist."""
    mine, easel, terms = naive.mine, naive.mine["easel"], {}
    culture, gifted = NAIVE_BOARD.culture, mine["gifted"]
    points = culture[gifted + 1] - culture[gifted] if easel else 0
    faces = NAIVE_BOARD.faces["artist"]
    in_reach = [[naive.areas(die)[ICONS.index(icon)] for die in range(1, 7)] for icon in easel]
    by_faces = [points * sum(reached[die - 1] for die in faces) for reached in in_reach]
    if len(easel) > 1:
        terms["second_next"] = by_faces[1]
    if "artist" in naive.position["dice_left"]:
        die = naive.position["dice"]["artist"]
        terms["gift_now"] = share * points * in_reach[0][die - 1] if easel else 0
        terms["paint_now"] = share * min(naive.areas(die)[-1], sum(mine["hidden"].values()))
    elif easel:
        terms["gift_next"] = by_faces[0]
    return terms


def test_evaluate__is_the_weighted_sum_as_an_expected_result() -> None:
    weights = np.rint(LOG_ODDS * 4096) / 4096
    for game in positions(4):
        terms, game_phase = terms_of(game.state)
        phase, ahead = game_phase / MAX_GAME_PHASE, terms[0].astype(int) - terms[1]
        log_odds = ahead @ (weights[0] * (1 - phase) + weights[1] * phase)
        assert value_of(game.state) == pytest.approx(np.tanh(log_odds / 2), abs=2e-4)


def test_evaluate__is_the_result_of_a_finished_game() -> None:
    for seed in range(4):
        game = Game(seed=seed)
        while not game.is_over:
            game.play(game.legal_actions()[-1])
        assert value_of(game.state) == {0: 1.0, 1: -1.0, None: 0.0}[game.winner()]


def test_heuristic__takes_the_action_with_the_best_effect() -> None:
    agent, checked = make("heuristic"), 0
    for game in positions(6):
        if game.phase in CHANCE_PHASES:
            continue
        sign = 1 - 2 * game.player
        values = [sign * value_of(best_leaf(game, a).state) for a in game.legal_actions()]
        legal, key = np.array([game.legal_mask], np.uint64), np.zeros(1, np.uint64)
        action = int(agent.act(game.boards, game.state, legal, key)[0])
        assert values[game.legal_actions().index(action)] == max(values)
        checked += 1
    assert checked > 50


def test_heuristic__beats_greedy() -> None:
    assert play_match(make("heuristic"), make("greedy"), 200, seed=0).interval[0] > 0.6


def test_styles__play_differently_and_not_much_worse() -> None:
    """The rusher ends games early by paintings, the hoarder by slabs."""
    found = {}
    for spec in ("heuristic", "rusher", "hoarder"):
        match = play_match(make(spec), make("heuristic"), 400, 0)
        shares = (match.games["triggers"][..., 0, :] != 0).mean(axis=(0, 1))
        found[spec] = match.score, match.games["rounds"].mean(), *shares[2:]
    standard, rusher, hoarder = found.values()
    assert 0.2 < rusher[0] < 0.4
    assert 0.2 < hoarder[0] < 0.4
    assert rusher[1] < standard[1] - 2
    assert rusher[3] > 2 * standard[3]
    assert hoarder[2] > 2 * standard[2]
