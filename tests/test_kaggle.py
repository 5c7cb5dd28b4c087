"""Tests of `tokaido_env.kaggle`, with calls as in Kaggle's harness.

Where Kaggle's package is installed, also by that harness in its environment of our OpenSpiel game.
"""

import json
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from prompt_reader import reads_and_answers

from tokaido_env import Game
from tokaido_env.kaggle import TextHarness, generate_prompt, get_legal_moves, parse_response
from tokaido_env.position import PositionError
from tokaido_env.text import TextFormat, make_prompt


def observed(game: Game, seat: int) -> dict[str, Any]:
    return {
        "observationString": json.dumps(game.to_dict()),
        "playerId": seat,
        "currentPlayer": game.player,
        "isTerminal": game.is_over,
    }


def test_harness__plays_a_game() -> None:
    game, moves = Game(seed=4), list[str]()
    while game.player is not None:
        seen = observed(game, game.player)
        assert get_legal_moves(observed(game, 1 - game.player)) == {}
        legal = get_legal_moves(seen)
        assert legal == dict(zip(game.legal_actions(), game.legal_labels(), strict=True))
        prompt = generate_prompt(seen, moves)
        assert prompt.endswith(make_prompt(game, TextFormat(history=0, retries=1)))
        begin = f"Your last moves: {', '.join(moves[-12:])}" if moves else "Tokaido Duo, for two"
        assert prompt.startswith(begin)
        assert "Legal actions" not in prompt
        label = list(legal.values())[-1]
        answer = f'Well. {{"action": "{label.upper()}"}}'
        parsed = parse_response(answer, list(legal.values()), observation=seen)
        assert parsed == (label, label.upper(), None, answer)
        assert parse_response(answer, None, observation=seen) == parsed
        game.play(label)
        moves.append(label)
    assert get_legal_moves(observed(game, 0)) == {}


MAX_RETRIES = 2  # tries of a decision, as Kaggle's harness counts them


def play_by_harness(answers: Sequence[Callable[[str], str]], seed: int) -> tuple[Game, list[str]]:
    """Play as the loop of Kaggle's harness does; return the game and the refused answers.

    A seat without a legal action ends the game there.
    """
    game, moves, refused = Game(seed=seed), ([], []), list[str]()  # type: tuple[Game, Any, Any]
    while game.player is not None:
        seat, previous = game.player, (None, None)
        seen = observed(game, seat)
        legal = get_legal_moves(seen)
        for _ in range(MAX_RETRIES):
            answer = answers[seat](generate_prompt(seen, moves[seat], *previous))
            parsed = parse_response(answer, list(legal.values()))
            if parsed.legal_action is not None:
                break
            refused.append(answer)
            previous = answer, parsed.raw_action
        else:
            return game, refused
        moves[seat].append(parsed.legal_action)
        game.play(parsed.legal_action)
    return game, refused


@pytest.mark.parametrize("games", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_harness__plays_games_of_a_player_that_reads_its_prompts(games: int) -> None:
    rng, forfeits, all_refused = random.Random(5), 0, 0

    def slips(prompt: str) -> str:
        if rng.random() < 0.02:
            return rng.choice(['{"action": "merchant:C9"}', "I am not sure."])
        return reads_and_answers(prompt)

    for seed in range(games):
        game, refused = play_by_harness((reads_and_answers, slips)[:: -1 if seed % 2 else 1], seed)
        forfeits += not game.is_over
        all_refused += len(refused)
        assert game.is_over or len(refused) >= MAX_RETRIES
    assert games // 2 <= all_refused < 10 * games
    assert forfeits < 5


def test_generate_prompt__repeats_the_error() -> None:
    game = Game(seed=4)
    seen = observed(game, 0)
    parsed = parse_response('{"action": "fly"}', list(get_legal_moves(seen).values()))
    assert parsed == (None, "fly", None, '{"action": "fly"}')
    prompt = generate_prompt(seen, [], '{"action": "fly"}', parsed.raw_action)
    assert "Your last answer was refused: fly is no legal action here" in prompt
    prompt = generate_prompt(seen, [], "I do not know", None)
    assert "It ended in:\nI do not know\n" in prompt
    assert parse_response("no", ["pilgrim"]) == (None, None, None, "no")
    assert parse_response(None, ["pilgrim"]) == (None, None, None, None)


def test_functions__refuse_invalid_observations() -> None:
    assert get_legal_moves({}) == {}
    for text in ("", "[1]", "{", 3, "[" * 100_000):
        with pytest.raises(PositionError, match="observationString: expected a position as JSON"):
            get_legal_moves({"observationString": text})


def test_harness__accepts_a_board_file() -> None:
    game = Game("family:valid/2", seed=1)
    seen = observed(game, game.player or 0)
    assert TextHarness(board="family:valid/2").get_legal_moves(seen) == get_legal_moves(seen)


def test_observations__are_those_of_the_openspiel_game() -> None:
    pyspiel = pytest.importorskip("pyspiel")
    import tokaido_env.openspiel  # noqa: F401  registers the game

    state, rng, asked = pyspiel.load_game("tokaido_duo").new_initial_state(), random.Random(2), 0
    while not state.is_terminal():
        if state.is_chance_node():
            outcomes, weights = zip(*state.chance_outcomes(), strict=True)
            state.apply_action(rng.choices(outcomes, weights)[0])
            continue
        seen = {"observationString": state.observation_string(), "playerId": state.current_player()}
        legal = get_legal_moves(seen)
        assert legal == {one: state.action_to_string(one) for one in state.legal_actions()}
        state.apply_action(rng.choice(list(legal)))
        asked += 1
    assert asked > 50


def test_harness__plays_in_kaggles_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    kaggle = pytest.importorskip("kaggle_environments")
    from kaggle_environments import core_harness
    from kaggle_environments.envs.open_spiel_env import open_spiel_env

    import tokaido_env.openspiel  # noqa: F401  registers the game

    rng = random.Random(1)

    def answer(prompt: str, model: str, options: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        said = '{"action": "fly"}' if rng.random() < 0.2 else reads_and_answers(prompt)
        return said, {"finish_reason": "stop"}

    monkeypatch.setattr(core_harness, "_call_llm", answer)
    monkeypatch.setattr(core_harness, "_build_call_detail", lambda *kept: {})
    made = open_spiel_env._build_env("tokaido_duo")
    kaggle.register(made["specification"]["name"], made)
    env = kaggle.make(made["specification"]["name"], configuration={"seed": 1}, debug=True)
    player = core_harness.create_agent_fn(
        TextHarness(TextFormat("listed", retries=19)),
        max_retries=20,
        model_override=("stand-in", {}),
    )
    env.run([player, player])
    assert [seat.status for seat in env.steps[-1]] == ["DONE", "DONE"]
    assert sum(seat.reward for seat in env.steps[-1]) == 0
    assert len(env.steps) > 50
