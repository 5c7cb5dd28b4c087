"""Environments as pixels and in a window, recorded games as animations."""

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
from positions import shikoku_data, write_board

from tokaido_env import Game, env
from tokaido_env.__main__ import main
from tokaido_env.boards.board import Board
from tokaido_env.gym import TokaidoDuoEnv
from tokaido_env.record import save
from tokaido_env.render import modes, raster
from tokaido_env.render.raster import frames_of, rasterise, write_gif
from tokaido_env.render.scene import Scene, scene_of
from tokaido_env.render.svg import draw

for needed in ("resvg_py", "matplotlib"):
    pytest.importorskip(needed)
images = pytest.importorskip("PIL.Image")
pygame = pytest.importorskip("pygame")

MARK = (0xD5, 0x5E, 0x00)  # what legal destinations are ringed with in the light theme

Pixels = npt.NDArray[np.uint8]
Make = Callable[..., Any]


@pytest.fixture(params=["pettingzoo", "gymnasium"])
def make(request: pytest.FixtureRequest) -> Make:
    """Makes an environment of either library."""
    if request.param == "pettingzoo":
        return env
    return lambda **options: TokaidoDuoEnv("random", seat=0, **options)


@pytest.fixture
def short(tmp_path: Path) -> Path:
    """A board on which games end after one round."""
    return write_board(tmp_path / "short.toml", shikoku_data() | {"max_rounds": 1})


def step(e: Any) -> None:
    """Play the lowest legal action."""
    bare = e.unwrapped
    mask = bare.action_masks() if isinstance(bare, TokaidoDuoEnv) else e.last()[0]["action_mask"]
    e.step(int(mask.argmax()))


def svg(inside: str, width: int = 10, height: int = 4) -> str:
    size = f'viewBox="0 0 {width} {height}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{inside}</svg>'


# Pixels


def test_colours_are_where_the_picture_has_them() -> None:
    pixels = rasterise(svg('<rect width="5" height="2" fill="#d55e00"/>'), 20)
    assert pixels.shape == (8, 20, 3)
    assert pixels.dtype == np.uint8
    expected = np.full((8, 20, 3), 255)
    expected[:4, :10] = MARK
    assert pixels.tolist() == expected.tolist()


def test_text_needs_no_font_of_the_machine() -> None:
    """A full block is a block, whatever font was asked for; bold letters have more ink."""
    text = '<text x="0" y="9" font-size="10" font-family="No Such Font" {}>{}</text>'
    block = rasterise(svg(text.format("", "\u2588"), 10, 12), 50)
    assert (block[10:40, 5:20] == 0).all()
    ink = [
        255 - int(rasterise(svg(text.format(weight, "Tokaido"), 60, 12), 240).mean())
        for weight in ("", 'font-weight="700"')
    ]
    assert 0 < ink[0] < ink[1]


def test_an_environment_gives_pixels(make: Make) -> None:
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


def test_the_newest_move_is_shown() -> None:
    """With PettingZoo, where it is the only one since the picture before."""
    e = env(render_mode="rgb_array")
    e.reset(seed=3)
    step(e)
    without = rasterise(draw(scene_of(e.game.board, e.game.states), "light"), 1000)
    assert (e.render() != without).any()


def test_players_of_gymnasium_are_called_what_they_are() -> None:
    for seat, names in ((0, ("learner", "greedy")), (1, ("greedy", "learner"))):
        e = TokaidoDuoEnv("greedy", seat=seat, render_mode="rgb_array")
        e.reset(seed=3)
        scene = scene_of(Board.load(), e.games.batch.states, names=names)
        assert (e.render() == rasterise(draw(scene, "light"), 1000)).all()


@pytest.mark.parametrize("missing", ["resvg_py", "PIL.Image", "matplotlib", "pygame"])
def test_a_missing_package_is_named_with_the_remedy(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    raster._font_files.cache_clear()
    monkeypatch.setitem(sys.modules, missing, None)
    e: Any = env(render_mode="human" if missing == "pygame" else "rgb_array")
    package = missing.partition(".")[0]
    remedy = rf"^pictures need {package}: pip install '\.\[render\]'$"
    with pytest.raises(ModuleNotFoundError, match=remedy):  # noqa: PT012  which shows, differs
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
def test_text_has_colours_on_a_terminal_unless_it_says_otherwise(
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
    """A desktop that nobody sees."""
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    yield
    pygame.display.quit()


class Clock:
    """Time that passes only while somebody waits for it."""

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


def on_screen() -> Pixels:
    surface = pygame.display.get_surface()
    assert surface is not None
    return pygame.surfarray.array3d(surface).swapaxes(0, 1)


def press_close() -> None:
    pygame.event.post(pygame.event.Event(pygame.QUIT))


@pytest.mark.usefixtures("screen")
def test_the_window_shows_every_step(make: Make, clock: Clock) -> None:
    e, twin = make(render_mode="human"), make(render_mode="rgb_array")
    e.reset(seed=3)
    twin.reset(seed=3)
    for _ in range(3):
        assert (on_screen() == twin.render()).all()
        step(e)
        step(twin)
    assert e.render() is None
    assert (on_screen() == twin.render()).all()
    assert pygame.display.get_caption()[0] == "Tokaido Duo"
    e.close()
    assert not pygame.display.get_init()
    e.close()


@pytest.mark.usefixtures("screen")
def test_a_picture_stays_for_its_time(make: Make, clock: Clock) -> None:
    e = make(render_mode="human")
    e.metadata = e.metadata | {"render_fps": 4}
    e.reset(seed=3)
    assert clock.now == 1000
    for _ in range(3):
        step(e)
        e.render()  # shows nothing new, so it waits for nothing
    assert clock.now == pytest.approx(1000.75)
    assert max(clock.naps) <= 0.05  # and answers the desktop meanwhile
    clock.now += 5  # a player thinks: no need to wait as well
    step(e)
    assert clock.now == pytest.approx(1005.75)


@pytest.mark.usefixtures("screen")
def test_the_close_button_closes_and_the_game_goes_on(make: Make, clock: Clock) -> None:
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
    assert (on_screen() == twin.render()).all()
    e.close()


@pytest.mark.usefixtures("screen")
def test_the_close_button_works_while_a_picture_stays(make: Make, clock: Clock) -> None:
    e = make(render_mode="human")
    e.reset(seed=3)
    clock.during_nap = press_close
    step(e)
    assert len(clock.naps) == 1
    assert not pygame.display.get_init()


@pytest.mark.usefixtures("screen", "clock")
@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))], ids=["copy", "pickle"]
)
def test_a_copy_has_a_window_of_its_own(copied: Callable[[Any], Any]) -> None:
    e = env(render_mode="human")
    e.reset(seed=3)
    other = copied(e)
    e.close()
    assert not pygame.display.get_init()
    step(other)
    assert pygame.display.get_init()
    other.close()


@pytest.mark.parametrize("driver", [None, "no_such_driver"])
def test_without_a_display_the_error_says_what_to_do(
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


def test_videos_are_recorded(
    make: Make, short: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a stand-in for MoviePy, a large package, that keeps the frames that it is given."""
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
    assert {frame.shape for frame in frames} == {(668, 1000, 3)}  # even, as video codecs want it
    assert len({frame.tobytes() for frame in frames}) == 5


# Animations


def played(board: Path | str = "shikoku", seed: int = 3) -> Game:
    game = Game(board, seed=seed)
    while not game.is_over:
        game.play(game.legal_actions()[-1])
    return game


def moves_of(game: Game) -> int:
    kinds = [event.partition(":")[0] for event in game.events()]
    return sum(kinds.count(character) for character in ("pilgrim", "merchant", "artist"))


def film(game: Game, names: tuple[str, str] = ("anna", "ben")) -> list[Scene]:
    """What each frame of a game's animation shows."""
    whole = game.trajectory()
    return list(frames_of(game.board, whole.states, whole.events, names))


def test_an_animation_has_a_frame_for_each_move(
    short: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    game = played(short)
    games, out, again = (tmp_path / name for name in ("games.jsonl", "game.gif", "again.gif"))
    save([game.record(("anna", "ben"))] * 2, games)
    arguments = ["replay", str(games), "--board", str(short), "--gif", str(out)]
    assert main(arguments) == 1
    told = capsys.readouterr()
    assert told.err == "replay: --gif: expected one game, got 2: choose it with --game\n"
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "resvg_py", None)
        assert main([*arguments, "--game", "2"]) == 1
    told = capsys.readouterr()
    assert told.err == "replay: pictures need resvg_py: pip install '.[render]'\n"
    assert not list(tmp_path.glob("*.gif*"))
    assert main([*arguments, "--game", "2"]) == 0
    frames = write_gif(film(game), again)
    assert frames == moves_of(game) + 1 > 3
    assert capsys.readouterr().out == f"{out}: game 2 in {frames} frames\n"
    assert out.read_bytes() == again.read_bytes()
    assert {path.name for path in tmp_path.glob("*.gif*")} == {"again.gif", "game.gif"}
    with images.open(out) as image:
        assert image.size == (1000, 668)
        assert image.n_frames == frames  # type: ignore[attr-defined]
        assert image.info["loop"] == 0
        shown, times = [], []
        for number in range(frames):
            image.seek(number)
            shown.append(np.asarray(image.convert("RGB")).astype(int))
            times.append(image.info["duration"])
    assert len(set(times[:-1])) == 1
    assert times[-1] > times[0]
    for scene, pixels in zip(film(game), shown, strict=True):
        exact = rasterise(draw(scene, "light"), 1000)
        assert (pixels == exact).all(axis=2).mean() > 0.9  # the rest: soft edges
        assert abs(pixels - exact).mean() < 1


def test_an_animation_begins_with_the_first_move_and_ends_with_the_end() -> None:
    game = played()
    scenes = film(game)
    assert scenes[0].last is None
    assert all(scene.last is not None for scene in scenes[1:])
    assert [scene.position["phase"] for scene in (scenes[0], scenes[-1])] == ["MOVE", "OVER"]
    assert scenes[-1].position == game.to_dict()
    assert {scene.names for scene in scenes} == {("anna", "ben")}
