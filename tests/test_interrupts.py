"""Ctrl-C: whatever it interrupts is done or not begun, at every instruction of `Game` and `Batch`.

Python handles signals between instructions; a kernel runs to its end.
"""

import itertools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from positions import position

import tokaido_env
from tokaido_env import Game, IllegalMove, game as game_module
from tokaido_env.batch import Batch
from tokaido_env.core import jit

pytestmark = pytest.mark.skipif(jit.INTERPRETED, reason="a kernel does not run to its end")

PACKAGE = str(Path(tokaido_env.__file__).parent)


@contextmanager
def ctrl_c(at: int) -> Iterator[None]:
    """Raise KeyboardInterrupt before an instruction of the package, counted from 1."""
    left = at

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal left
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        left -= event == "opcode"
        if not left:
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


def seen(game: Game) -> tuple[Any, ...]:
    """All that a game is and tells."""
    luck = game._luck.tobytes()
    told = (game.player, game.legal_mask, game.events(), game.is_over)
    return bytes(game.states), luck, *told, game.record()


def everywhere(
    make: Callable[[], Any], act: Callable[[Any], Any], look: Callable[[Any], Any]
) -> tuple[int, list[bool]]:
    """Interrupt an act at each of its instructions; return how many there are, and which came late.

    What is left behind is as before or as after, and then the act can be done or was.
    """
    before, done = look(make()), make()
    act(done)
    after, late = look(done), []
    for at in itertools.count(1):
        thing = make()
        try:
            with ctrl_c(at):
                act(thing)
        except KeyboardInterrupt:
            pass
        else:
            return at - 1, late
        left = look(thing)
        assert left in (before, after), f"torn at instruction {at}"
        late.append(left == after != before)
        if left == before:
            act(thing)
        assert look(thing) == after
    raise AssertionError


def begun(moves: int = 40, seed: int = 3) -> Game:
    game = Game(seed=seed)
    for _ in range(moves):
        game.play(game.legal_actions()[-1])
    return game


def play_last(game: Game) -> None:
    game.play(game.legal_actions()[-1])


def play_label(game: Game) -> None:
    game.play(game.legal_labels()[0])


def drawn_by(game: Game) -> int:
    """How many outcomes follow its next move."""
    before = len(game.events())
    play_last(game)
    return len(game.events()) - before - 1


@pytest.mark.parametrize(("moves", "act"), [(0, play_last), (17, play_label), (40, play_last)])
def test_a_move_is_played_or_not(moves: int, act: Callable[[Game], None]) -> None:
    count, late = everywhere(lambda: begun(moves), act, seen)
    assert count > 50
    assert any(late)
    assert late == sorted(late)


def test_a_move_with_chance_after_it_is_played_or_not() -> None:
    moves = next(m for m in range(200) if drawn_by(begun(m)) > 1)
    _, late = everywhere(lambda: begun(moves), play_last, seen)
    assert any(late)


def test_a_move_for_which_there_is_no_room_yet_is_played_or_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(game_module, "_ROOM", 80)
    moves = next(m for m in range(200) if len(begun(m)._history) > 80) - 1
    _, late = everywhere(lambda: begun(moves), play_last, seen)
    assert any(late)


def test_an_outcome_is_played_or_not() -> None:
    def roll(game: Game) -> None:
        game.play("roll:3/2/1")

    def make() -> Game:
        at_roll = position(phase="ROLL", left=[])
        return Game.from_dict(at_roll, seed=0, chance="explicit")

    _, late = everywhere(make, roll, seen)
    assert any(late)


def test_what_is_refused_changes_nothing() -> None:
    def refused(game: Game) -> None:
        with pytest.raises(IllegalMove):
            game.play("discard:fan")

    _, late = everywhere(begun, refused, seen)
    assert not any(late)


@pytest.mark.parametrize("options", [{}, {"luck": "same"}, {"seed": 7}])
def test_a_copy_is_made_or_not(options: dict[str, Any]) -> None:
    """One with fresh luck is counted: the next has another future."""
    everywhere(begun, lambda game: game.copy(**options), seen)


@pytest.mark.parametrize("options", [{}, {"chance": "explicit"}, {"copy": False}])
def test_a_step_is_taken_or_not(options: dict[str, Any]) -> None:
    def make() -> Batch:
        batch = Batch(3, **options)
        batch.reset(seed=5)
        for _ in range(30):
            batch.play("random")
        return batch

    def step(batch: Batch) -> None:
        moves = [int(mask).bit_length() - 1 for mask in batch.legal]
        outcomes = batch.sample_outcomes() if options.get("chance") else moves
        chosen = np.where(batch.legal == 0, outcomes, moves)
        batch.step(chosen)

    def contents(batch: Batch) -> dict[str, bytes]:
        told = {"masks": batch.masks(batch.all_games).tobytes(), "over": batch.over.tobytes()}
        told["seen"] = batch.observe(batch.all_games, batch.states["player"]).tobytes()
        held = {name: array.tobytes() for name, array in batch.snapshot().items()}
        return held | told | {"words": batch._mask_words.tobytes()}

    count, late = everywhere(make, step, contents)
    assert count > 50
    assert any(late)
