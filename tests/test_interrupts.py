"""Ctrl-C at every instruction of `Game` and `Batch`: a call is complete or has no effect.

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

import tokaido_env
from tokaido_env import Game
from tokaido_env.batch import Batch
from tokaido_env.core import jit

pytestmark = pytest.mark.skipif(jit.INTERPRETED, reason="interpreted kernels can be interrupted")

PACKAGE = str(Path(tokaido_env.__file__).parent)


@contextmanager
def ctrl_c(at: int) -> Iterator[None]:
    """Raise KeyboardInterrupt before the package's instruction number `at`, from 1."""
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


def contents_of(game: Game) -> tuple[Any, ...]:
    """Return a game's complete state and public properties."""
    luck = game._luck.tobytes()
    public = (game.player, game.legal_mask, game.events(), game.is_over)
    return bytes(game.states), luck, *public, game.record()


def interrupt_everywhere(
    make: Callable[[], Any], act: Callable[[Any], Any], contents: Callable[[Any], Any]
) -> tuple[int, list[bool]]:
    """Interrupt an action at each of its instructions, and check that it is done or not done.

    Returns:
        The number of instructions, and for each interrupt whether the action was already done.
    """
    before, done = contents(make()), make()
    act(done)
    after, was_done = contents(done), []
    for at in itertools.count(1):
        instance = make()
        try:
            with ctrl_c(at):
                act(instance)
        except KeyboardInterrupt:
            pass
        else:
            return at - 1, was_done
        left = contents(instance)
        assert left in (before, after), f"torn at instruction {at}"
        was_done.append(left == after != before)
        if left == before:
            act(instance)
        assert contents(instance) == after
    raise AssertionError


def game_after(moves: int = 40, seed: int = 3) -> Game:
    game = Game(seed=seed)
    for _ in range(moves):
        game.play(game.legal_actions()[-1])
    return game


def play_last(game: Game) -> None:
    game.play(game.legal_actions()[-1])


def play_label(game: Game) -> None:
    game.play(game.legal_labels()[0])


@pytest.mark.parametrize(("moves", "act"), [(0, play_last), (17, play_label)])
def test_play__is_complete_or_has_no_effect(moves: int, act: Callable[[Game], None]) -> None:
    count, was_done = interrupt_everywhere(lambda: game_after(moves), act, contents_of)
    assert count > 50
    assert any(was_done)
    assert was_done == sorted(was_done)


def test_step__is_complete_or_has_no_effect() -> None:
    def make() -> Batch:
        batch = Batch(3)
        batch.reset(seed=5)
        for _ in range(30):
            batch.play("random")
        return batch

    def step(batch: Batch) -> None:
        batch.step(np.array([int(mask).bit_length() - 1 for mask in batch.legal]))

    def contents(batch: Batch) -> dict[str, bytes]:
        public = {"masks": batch.masks(batch.all_games).tobytes(), "over": batch.over.tobytes()}
        held = {name: array.tobytes() for name, array in batch.snapshot().items()}
        return held | public

    count, was_done = interrupt_everywhere(make, step, contents)
    assert count > 50
    assert any(was_done)
