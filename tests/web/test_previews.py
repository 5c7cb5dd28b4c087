"""Tests of web/previews.py: the announced gains against games that make the choice."""

import random
import re

import pytest
from slow_cases import slow_except_first

from tokaido_env import Game
from tokaido_env.core.actions import IDS
from tokaido_env.core.state import Phase
from tokaido_env.render.icons import GLYPHS
from tokaido_env.web.previews import previews_of


def gains(text: str) -> tuple[int, int]:
    """Return the coins and points that a text announces."""
    coins, points = (re.search(rf"\+(\d+) {name}", text) for name in ("coin", "point"))
    return int(coins[1]) if coins else 0, int(points[1]) if points else 0


def gained(before: Game, after: Game, seat: int) -> tuple[int, int]:
    coins = [game.to_dict()["players"][seat] for game in (before, after)]
    total = [game.scores()[seat]["total"] for game in (before, after)]
    earned = (one["coins"] + 10 * one["gold"] for one in coins)
    return -next(earned) + next(earned), total[1] - total[0]


@pytest.mark.parametrize("board", slow_except_first(["shikoku", "family:7"]))
def test_previews__are_what_the_choices_give(board: str) -> None:
    seen, luck = set(), random.Random(board)
    for seed in range(4):
        game = Game(board, seed=seed, chance="explicit")
        while not game.is_over:
            if game.player is None:
                game.play(luck.choice(game.outcomes())[0])
                continue
            previews = previews_of(game.board, game.states)
            assert sorted(one["label"] for one in previews) == sorted(game.legal_labels())
            for one in previews:
                after = game.copy("same")
                after.play(one["label"])
                check(game, after, one)
                seen.add(one["label"].split(":")[0])
            game.play(
                luck.choice(
                    [one["label"] for one in previews if one["label"] != "pass"] or ["pass"]
                )
            )
    assert seen == {label.split(":")[0] for label in IDS}


def check(game: Game, after: Game, one: dict[str, object]) -> None:
    """Compare a preview with the position after its choice, and after each effect there."""
    seat, name, text = int(game.player or 0), str(one["name"]), str(one["text"])
    assert name
    if game.phase in (Phase.EFFECT, Phase.DISCARD):
        assert gains(name) == gained(game, after, seat)
        odds = dict(re.findall(r"(\w+) (\d+)%", text))
        exact = {label.partition(":")[2]: share for label, share in after.outcomes()}
        if after.phase in (Phase.DRAW, Phase.REVEAL):
            assert {key: float(share) for key, share in odds.items()} == pytest.approx(
                {key: 100 * share for key, share in exact.items()}, abs=0.51
            )
        return
    if after.phase != Phase.EFFECT:
        assert text in ("no effect", "")
        return
    results = set()
    for effect in after.legal_labels():
        then = after.copy("same")
        then.play(effect)
        results.add(gained(after, then, seat))
    assert max(results) == max(map(gains, text.split(" or ")))
    assert one["icon"] in GLYPHS
