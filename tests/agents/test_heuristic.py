"""The evaluation's terms against a slow count from `Game.to_dict`; its symmetry and its play."""

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from evaluated import BOARD, swapped, terms_of, value_of
from positions import random_move

from tokaido_env import Game
from tokaido_env.agents import make
from tokaido_env.agents.eval_tables import TERMS, load_weights
from tokaido_env.agents.heuristic import MAX_GAME_PHASE
from tokaido_env.arena.tournament import play_match
from tokaido_env.core.constants import WARES
from tokaido_env.core.state import CHANCE_PHASES, Phase

NAMES = [name for name, _ in TERMS]


def positions(games: int = 12) -> Iterator[Game]:
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
    for game in positions():
        terms, _ = terms_of(game.state)
        for seat in range(2):
            counted = dict(zip(NAMES, terms[seat].tolist(), strict=True))
            assert counted == slow_terms(game, seat)
        phases.add(game.phase)
    assert {Phase.ROLL, Phase.MOVE, Phase.DRAW, Phase.REVEAL} <= phases


def slow_terms(game: Game, seat: int) -> dict[str, int]:
    """Return `TERMS` of a seat from `Game.to_dict` and the board file."""
    position = game.to_dict()
    mine, theirs = (position["players"][who] for who in (seat, 1 - seat))
    terms = dict.fromkeys(NAMES, 0)
    terms |= {key: game.scores()[seat][key] for key in ("faith", "commerce", "culture")}
    terms |= {key: mine[key] for key in ("temple", "garden", "gold", "gifted", "coins")}
    held = sum(mine["wares"].values())
    best = {ware: max(price for w, price in BOARD.boutiques if w == ware) for ware in WARES}
    terms["wares"] = sum(best[ware] * number for ware, number in mine["wares"].items())
    terms["held"] = held
    terms["easel"] = len(mine["easel"])
    terms["hot_spring"] = int(position["hot_spring"] == seat)
    for wave in position["waves"].values():
        terms[wave["side"]] = int(wave["owner"] == seat)
    dice = len(position["dice_left"])
    leads = position["lead"] == seat
    picks = {3: 2 if leads else 1, 2: 1, 1: int(leads), 0: 0}[dice]
    terms["picks"] = (2 if leads else 1) if position["phase"] == "ROLL" else picks
    share = 0 if position["phase"] == "ROLL" or not dice else 6 * picks // dice
    if position["phase"] == "DRAW" and picker(position) == seat:
        terms["drawing"] = min(position["pending"], 6 - held)
    if position["phase"] == "REVEAL" and picker(position) == seat:
        terms["revealing"] = position["pending"]
    _count_pilgrim(position, mine, share, terms)
    _count_merchant(position, mine, theirs, share, terms)
    _count_artist(position, mine, share, terms)
    return terms


def picker(position: dict[str, Any]) -> int:
    taken = 3 - len(position["dice_left"]) - (position["die"] is not None)
    return int(position["lead"]) ^ int(taken == 1)


def _count_pilgrim(
    position: dict[str, Any], mine: dict[str, Any], share: int, terms: dict[str, int]
) -> None:
    if "pilgrim" not in position["dice_left"]:
        return
    ring = BOARD.stations
    station = ring[(mine["pilgrim"] + position["dice"]["pilgrim"]) % len(ring)]
    if station == "temple" and mine["temple"] < 9:
        terms["temple_now"] = share * mine["garden"]
    if station == "garden" and mine["garden"] < 6:
        terms["garden_now"] = share * mine["temple"]
    terms["seashore_now"] = share * (station == "seashore")
    terms["spring_now"] = share * (station == "hot spring")


def _count_merchant(
    position: dict[str, Any],
    mine: dict[str, Any],
    theirs: dict[str, Any],
    share: int,
    terms: dict[str, int],
) -> None:
    links: dict[str, list[str]] = {}
    for a, b in BOARD.routes:
        links.setdefault(a, []).append(b)
        links.setdefault(b, []).append(a)
    room = max(5 - sum(mine["wares"].values()), 0)

    def most_drawn(die: int) -> int:
        ends = {path[-1] for path in paths(links, mine["merchant"], die)}
        mountains = [BOARD.mountain_numbers[int(town[1]) - 1] for town in ends if town[0] == "M"]
        return min(max(mountains, default=0), room)

    if "merchant" not in position["dice_left"]:
        terms["draw_next"] = sum(most_drawn(die) for die in BOARD.faces[1])
        return
    die = position["dice"]["merchant"]
    closed = {BOARD.stations[player["pilgrim"]] for player in position["players"]}
    closed.add(theirs["merchant"])
    ends = {path[-1] for path in paths(links, mine["merchant"], die)} - closed
    sales = [position["boutiques"][town] for town in ends if town[0] == "C"]
    terms["sale_now"] = share * max((mine["wares"][w] * price for w, price in sales), default=0)
    terms["draw_now"] = share * most_drawn(die)


def _count_artist(
    position: dict[str, Any], mine: dict[str, Any], share: int, terms: dict[str, int]
) -> None:
    areas = {f"A{i + 1}": [f"A{j + 1}" for j in near] for i, near in enumerate(BOARD.neighbours)}
    icons = {f"A{i + 1}": icon for i, icon in enumerate(BOARD.area_icons)}
    inspired = position["waves"]["artist"]["side"] == "inspired" and bool(terms["inspired"])

    def reached(icon: str, die: int) -> bool:
        walks = paths(areas, mine["artist"], die)
        return any(icon in {icons[a] for a in (w if inspired else w[-1:])} for w in walks)

    easel = mine["easel"]
    points = BOARD.culture[mine["gifted"] + 1] - BOARD.culture[mine["gifted"]] if easel else 0
    if len(easel) > 1:
        terms["second_next"] = points * sum(reached(easel[1], die) for die in BOARD.faces[2])
    if "artist" in position["dice_left"]:
        die = position["dice"]["artist"]
        terms["gift_now"] = share * points * (bool(easel) and reached(easel[0], die))
        ends = {walk[-1] for walk in paths(areas, mine["artist"], die)}
        most = max(neighbours_of(position, area) for area in ends)
        terms["paint_now"] = share * min(most, sum(mine["hidden"].values()))
    elif easel:
        terms["gift_next"] = points * sum(reached(easel[0], die) for die in BOARD.faces[2])


def neighbours_of(position: dict[str, Any], area: str) -> int:
    """Return the number of characters in and around an area."""
    number = int(area[1])
    coasts = (f"C{number}", f"C{number % 8 + 1}")
    ring = BOARD.stations
    first, last = ring.index(coasts[0]), ring.index(coasts[1])
    stations = {first, last}
    at = first
    while at != last:
        stations.add(at)
        at = (at + 1) % len(ring)
    count = 0
    for player in position["players"]:
        count += player["pilgrim"] in stations
        count += player["merchant"] in BOARD.borders[number - 1]
        count += player["artist"] == area
    return count


def paths(links: dict[str, list[str]], start: str, steps: int) -> list[list[str]]:
    """Return all simple paths of so many steps."""
    found = [[start]]
    for _ in range(steps):
        found = [[*path, to] for path in found for to in links[path[-1]] if to not in path]
    return found


def test_evaluate__is_the_weighted_sum_as_an_expected_result() -> None:
    weights = np.rint(load_weights() * 4096) / 4096
    for game in positions(4):
        terms, game_phase = terms_of(game.state)
        phase, ahead = game_phase / MAX_GAME_PHASE, terms[0].astype(int) - terms[1]
        log_odds = ahead @ (weights[0] * (1 - phase) + weights[1] * phase)
        assert value_of(game.state) == pytest.approx(np.tanh(log_odds / 2), abs=2e-4)


def test_evaluate__is_the_opposite_for_exchanged_players() -> None:
    for game in positions(6):
        assert value_of(swapped(game.state)) == -value_of(game.state)


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
        values = [value_after(game, action, sign) for action in game.legal_actions()]
        legal, key = np.array([game.legal_mask], np.uint64), np.zeros(1, np.uint64)
        action = int(agent.act(game.boards, game.state, legal, key)[0])
        assert values[game.legal_actions().index(action)] == max(values)
        checked += 1
    assert checked > 50


def value_after(game: Game, action: int, sign: int) -> float:
    """Return the evaluation after an action and its best effect, times the sign."""
    after = game.copy()
    after.play(action)
    if after.phase != Phase.EFFECT:
        return sign * value_of(after.state)
    values = []
    for effect in after.legal_actions():
        last = after.copy()
        last.play(effect)
        values.append(sign * value_of(last.state))
    return max(values)


def test_heuristic__beats_greedy() -> None:
    assert play_match(make("heuristic"), make("greedy"), 200, seed=0).interval[0] > 0.6
