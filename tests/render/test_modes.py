"""Tests of render/modes.py: environments as pixels, as text and in a window."""

import copy
import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import numpy.typing as npt
import pytest
from gymnasium.wrappers import RecordVideo
from pettingzoo.utils import wrappers

from tokaido_env import env
from tokaido_env.gym import TokaidoDuoEnv
from tokaido_env.render import modes, raster

for needed in ("resvg_py", "matplotlib", "PIL.Image"):
    pytest.importorskip(needed)
pygame = pytest.importorskip("pygame")


Pixels = npt.NDArray[np.uint8]
Make = Callable[..., Any]


@pytest.fixture(params=["pettingzoo", "gymnasium"])
def make(request: pytest.FixtureRequest) -> Make:
    """Constructor of an environment of either library."""
    if request.param == "pettingzoo":
        return env
    return lambda **options: TokaidoDuoEnv("random", seat=0, **options)


def step(e: Any) -> None:
    """Play the lowest legal action."""
    bare = e.unwrapped
    mask = bare.action_masks() if isinstance(bare, TokaidoDuoEnv) else e.last()[0]["action_mask"]
    e.step(int(mask.argmax()))


# Pixels


def test_rgb_array__returns_pixels_of_the_position(make: Make) -> None:
    e = make(render_mode="rgb_array")
    e.reset(seed=3)
    first = e.render()
    assert first.shape == (668, 1000, 3)
    assert first.dtype == np.uint8
    assert (e.render() == first).all()
    step(e)
    assert (e.render() != first).any()
    twin = make(render_mode="rgb_array")
    twin.reset(seed=3)
    assert (twin.render() == first).all()


@pytest.mark.parametrize("missing", ["resvg_py", "PIL.Image", "matplotlib", "pygame"])
def test_missing_package__is_named_with_the_remedy(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    raster._font_files.cache_clear()
    monkeypatch.setitem(sys.modules, missing, None)
    e: Any = env(render_mode="human" if missing == "pygame" else "rgb_array")
    package = missing.partition(".")[0]
    remedy = rf"^pictures need {package}: pip install '\.\[render\]'$"
    with pytest.raises(ModuleNotFoundError, match=remedy):  # noqa: PT012  either call raises
        e.reset(seed=3)
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


# The window


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Display without a screen."""
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    yield
    pygame.display.quit()


class Clock:
    """Clock that advances only during `sleep`."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.naps: list[float] = []
        self.during_nap: Callable[[], object] = lambda: None

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self.now += seconds
        self.during_nap()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(modes, "time", clock)
    return clock


def shown_pixels() -> Pixels:
    surface = pygame.display.get_surface()
    assert surface is not None
    return pygame.surfarray.array3d(surface).swapaxes(0, 1)


def press_close() -> None:
    pygame.event.post(pygame.event.Event(pygame.QUIT))


@pytest.mark.usefixtures("screen")
def test_window__shows_every_step(make: Make, clock: Clock) -> None:
    e, twin = make(render_mode="human"), make(render_mode="rgb_array")
    e.reset(seed=3)
    twin.reset(seed=3)
    for _ in range(3):
        assert (shown_pixels() == twin.render()).all()
        step(e)
        step(twin)
    assert e.render() is None
    assert (shown_pixels() == twin.render()).all()
    assert pygame.display.get_caption()[0] == "Tokaido Duo"
    e.close()
    assert not pygame.display.get_init()
    e.close()


@pytest.mark.usefixtures("screen")
def test_window__shows_each_picture_for_its_time(make: Make, clock: Clock) -> None:
    e = make(render_mode="human")
    e.metadata = e.metadata | {"render_fps": 4}
    e.reset(seed=3)
    assert clock.now == 1000
    for _ in range(3):
        step(e)
        e.render()  # shows the same picture, without a wait
    assert clock.now == pytest.approx(1000.75)
    assert max(clock.naps) <= 0.05  # and handles events in between
    clock.now += 5  # while a player thinks
    step(e)
    assert clock.now == pytest.approx(1005.75)


@pytest.mark.usefixtures("screen")
def test_window__closes_and_stays_closed_while_the_game_continues(make: Make, clock: Clock) -> None:
    e = make(render_mode="human")
    e.reset(seed=3)
    press_close()
    for _ in range(4):
        step(e)
        assert not pygame.display.get_init()
    assert e.render() is None
    e.reset(seed=4)
    assert not pygame.display.get_init()
    e.close()
    e.reset(seed=3)
    twin = make(render_mode="rgb_array")
    twin.reset(seed=3)
    assert (shown_pixels() == twin.render()).all()
    clock.naps.clear()
    clock.during_nap = press_close  # while a picture is shown
    step(e)
    assert len(clock.naps) == 1
    assert not pygame.display.get_init()


@pytest.mark.usefixtures("screen", "clock")
@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))], ids=["copy", "pickle"]
)
def test_copy__opens_another_window(copied: Callable[[Any], Any]) -> None:
    e = env(render_mode="human")
    e.reset(seed=3)
    other = copied(e)
    e.close()
    assert not pygame.display.get_init()
    step(other)
    assert pygame.display.get_init()
    other.close()


@pytest.mark.parametrize("driver", [None, "no_such_driver"])
def test_window__refuses_to_open_without_a_display(
    make: Make, driver: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if driver is None and sys.platform != "linux":
        pytest.skip("a desktop is always there")
    for key in ("SDL_VIDEODRIVER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(key, raising=False)
    if driver is not None:
        monkeypatch.setenv("SDL_VIDEODRIVER", driver)
    e = make(render_mode="human")
    with pytest.raises(RuntimeError, match=r"^render_mode: 'human' needs a display.*'rgb_array'"):
        e.reset(seed=3)
    assert not pygame.display.get_init()
    e.close()


# Videos


def test_record_video__gets_a_frame_for_each_step(
    make: Make, short: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a mock of MoviePy, a large package, that keeps the frames."""
    if make is env and not hasattr(wrappers, "RecordVideo"):
        pytest.skip("this PettingZoo records no videos")
    clip = Mock()
    for name in ("moviepy", "moviepy.video", "moviepy.video.io"):
        monkeypatch.setitem(sys.modules, name, Mock())
    monkeypatch.setitem(sys.modules, "moviepy.video.io.ImageSequenceClip", clip)
    wrap: Any = wrappers.RecordVideo if make is env else RecordVideo
    recorded = wrap(
        make(board=short, render_mode="rgb_array"), str(tmp_path / "videos"), video_length=5
    )
    recorded.reset(seed=3)
    for _ in range(4):
        step(recorded)
    recorded.close()
    ((frames,), options) = clip.ImageSequenceClip.call_args
    assert options["fps"] == modes.RENDER_FPS
    assert len(frames) == 5
    assert {frame.shape for frame in frames} == {(668, 1000, 3)}  # even, as video codecs need
    assert len({frame.tobytes() for frame in frames}) == 5
