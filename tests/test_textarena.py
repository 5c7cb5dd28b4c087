"""Tests of `docs/recipes/textarena_env.py`: TextArena's loop with scripted players."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("textarena")
import textarena as ta
from prompt_reader import listed

from tokaido_env import Game
from tokaido_env.text import TextFormat

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docs" / "recipes"))

from textarena_env import NAME


def play(env: Any, seed: int, answer: Any) -> tuple[list[tuple[int, str]], dict[int, int], Any]:
    """Run TextArena's loop as in its examples; return messages, rewards and infos."""
    env.reset(num_players=2, seed=seed)
    said, done = [], False
    while not done:
        player, prompt = env.get_observation()
        said.append((player, answer(prompt)))
        done, _ = env.step(action=said[-1][1])
    rewards, infos = env.close()
    return said, rewards, infos


pytestmark = pytest.mark.slow


def test_env__plays_the_game_of_its_seed() -> None:
    rng = np.random.default_rng(3)
    env = ta.make(NAME, form=TextFormat("listed"))
    said, rewards, infos = play(
        env, 7, lambda prompt: f'I think {{"action": "{rng.choice(listed(prompt))}"}}'
    )
    game = Game(seed=7)
    for player, answer in said:
        while len(game.legal_actions()) == 1:
            game.play(game.legal_actions()[0])
        assert game.player == player
        game.play(answer.split('"')[3])
    while game.player is not None:
        game.play(game.legal_actions()[0])
    winner = game.winner()
    assert rewards == ({0: 0, 1: 0} if winner is None else {winner: 1, 1 - winner: -1})
    assert " to ".join(str(one["total"]) for one in game.scores()) in infos[0]["reason"]
    assert not infos[0]["invalid_move"]
    assert infos[0]["turn_count"] + infos[1]["turn_count"] == len(said)


def test_step__reports_illegal_answers_and_then_loses() -> None:
    env = ta.make(NAME, form=TextFormat(retries=2))
    env.reset(num_players=2, seed=7)
    first, prompt = env.get_observation()
    assert "Legal actions" not in prompt
    before = env.game.to_dict()
    for refused in ('{"action": "fly"}', "x" * 1_000_000):
        done, _ = env.step(refused)
        assert not done
        again, prompt = env.get_observation()
        assert again == first
        assert "Your last answer was refused: " in prompt
        assert "Legal actions" not in prompt
    assert env.game.to_dict() == before
    assert env.step(None) == (True, {})
    rewards, infos = env.close()
    assert rewards == {first: -1, 1 - first: 1}
    assert infos[first]["invalid_move"]
    assert not infos[1 - first]["invalid_move"]
    with pytest.raises(RuntimeError, match="no game is in progress: call reset first"):
        env.step('{"action": "pilgrim"}')


def test_step__restores_retries_after_a_legal_answer() -> None:
    env = ta.make(NAME, form=TextFormat("listed", retries=1))
    env.reset(num_players=2, seed=7)
    for _ in range(20):
        _, prompt = env.get_observation()
        assert env.step("no") == (False, {})
        done, _ = env.step(f'{{"action": "{listed(prompt)[-1]}"}}')
        assert not done
