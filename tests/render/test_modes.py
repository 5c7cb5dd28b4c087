"""Tests of render/modes.py: environments as pixels and as text."""

import sys
from typing import Any, cast
from unittest.mock import Mock

import gymnasium
import numpy as np
import pytest

from tokaido_env import env
from tokaido_env.render import raster

for needed in ("resvg_py", "matplotlib", "PIL.Image"):
    pytest.importorskip(needed)

# Pixels


def test_rgb_array__returns_pixels_of_the_position() -> None:
    e: Any = env(render_mode="rgb_array")
    e.reset(seed=3)
    first = e.render()
    assert first.shape == (668, 1000, 3)
    assert first.dtype == np.uint8
    assert (e.render() == first).all()
    e.step(int(e.last()[0]["action_mask"].argmax()))
    assert (e.render() != first).any()
    twin: Any = env(render_mode="rgb_array")
    twin.reset(seed=3)
    assert (twin.render() == first).all()


@pytest.mark.parametrize("missing", ["resvg_py", "PIL.Image", "matplotlib"])
def test_missing_package__is_named_with_the_remedy(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    raster._font_files.cache_clear()
    monkeypatch.setitem(sys.modules, missing, None)
    e: Any = env(render_mode="rgb_array")
    package = missing.partition(".")[0]
    remedy = rf"^pictures need {package}: pip install '\.\[render\]'$"
    e.reset(seed=3)
    with pytest.raises(ModuleNotFoundError, match=remedy):
        e.render()


# Text


@pytest.mark.parametrize(
    ("settings", "colours"),
    [
        ({}, True),
        ({"TERM": "xterm-256color", "NO_COLOR": ""}, True),
        ({"TERM": "dumb"}, False),
        ({"NO_COLOR": "1"}, False),
    ],
)
def test_ansi__has_colours_on_a_terminal_that_allows_them(
    settings: dict[str, str], colours: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in ("TERM", "NO_COLOR"):
        monkeypatch.delenv(key, raising=False)
    for key, value in settings.items():
        monkeypatch.setenv(key, value)
    e: Any = env(render_mode="ansi")
    e.reset(seed=3)
    assert "\x1b" not in e.render()
    monkeypatch.setattr(sys, "stdout", Mock(isatty=lambda: True))
    assert ("\x1b[" in e.render()) is colours


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Display without a screen."""
    pygame = pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setattr("tokaido_env.render.modes.RENDER_FPS", 1000)
    return pygame.display


def test_human__shows_every_step_in_a_window(screen: Any) -> None:
    import pygame

    e, twin = (cast("Any", env(render_mode=mode)) for mode in ("human", "rgb_array"))
    for one in (e, twin):
        one.reset(seed=3)
    for _ in range(3):
        shown = pygame.surfarray.array3d(screen.get_surface()).swapaxes(0, 1)
        assert (shown == twin.render()).all()
        action = int(e.last()[0]["action_mask"].argmax())
        e.step(action)
        twin.step(action)
    assert e.render() is None
    e.close()
    assert not screen.get_init()


def test_human__is_a_window_of_gymnasiums(screen: Any) -> None:
    with pytest.warns(UserWarning, match="HumanRendering"):
        e = gymnasium.make("TokaidoDuo-v0", render_mode="human", seat=0)
    e.reset(seed=3)
    assert screen.get_surface().get_size() == (1000, 668)
    e.close()
