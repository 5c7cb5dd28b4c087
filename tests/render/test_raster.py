"""Tests of render/raster.py: pixels of pictures and animated GIFs."""

import sys
from pathlib import Path

import numpy as np
import pytest

from tokaido_env import Game
from tokaido_env.__main__ import main
from tokaido_env.record import save
from tokaido_env.render.raster import frames_of, rasterise, write_gif
from tokaido_env.render.scene import Scene
from tokaido_env.render.svg import draw

for needed in ("resvg_py", "matplotlib"):
    pytest.importorskip(needed)
images = pytest.importorskip("PIL.Image")

MARK = (0xD5, 0x5E, 0x00)  # colour of legal destinations in the light theme


def svg(inside: str, width: int = 10, height: int = 4) -> str:
    size = f'viewBox="0 0 {width} {height}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{inside}</svg>'


def test_rasterise__has_the_colours_of_the_picture() -> None:
    pixels = rasterise(svg('<rect width="5" height="2" fill="#d55e00"/>'), 20)
    assert pixels.shape == (8, 20, 3)
    assert pixels.dtype == np.uint8
    expected = np.full((8, 20, 3), 255)
    expected[:4, :10] = MARK
    assert pixels.tolist() == expected.tolist()


# Animations


def played(board: Path | str = "shikoku", seed: int = 3) -> Game:
    game = Game(board, seed=seed)
    while not game.is_over:
        game.play(game.legal_actions()[-1])
    return game


def moves_of(game: Game) -> int:
    kinds = [event.partition(":")[0] for event in game.events()]
    return sum(kinds.count(character) for character in ("pilgrim", "merchant", "artist"))


def scenes_of_moves(game: Game, names: tuple[str, str] = ("anna", "ben")) -> list[Scene]:
    """Return the scene of each frame of a game's animation."""
    whole = game.trajectory()
    return list(frames_of(game.board, whole.states, whole.events, names))


@pytest.mark.slow
def test_gif__has_a_frame_for_each_move(
    short: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    game = played(short)
    games, out, again = (tmp_path / name for name in ("games.jsonl", "game.gif", "again.gif"))
    save([game.record(("anna", "ben"))] * 2, games)
    arguments = ["replay", str(games), "--board", str(short), "--gif", str(out)]
    assert main(arguments) == 1
    message = capsys.readouterr().err
    assert message == "replay: --gif: expected one game, got 2: choose it with --game\n"
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "resvg_py", None)
        assert main([*arguments, "--game", "2"]) == 1
    message = capsys.readouterr().err
    assert message == "replay: pictures need resvg_py: pip install '.[render]'\n"
    assert not list(tmp_path.glob("*.gif*"))
    assert main([*arguments, "--game", "2"]) == 0
    frames = write_gif(scenes_of_moves(game), again)
    assert frames == moves_of(game) + 1 > 3
    assert capsys.readouterr().out == f"{out}: game 2 in {frames} frames\n"
    assert out.read_bytes() == again.read_bytes()
    assert {path.name for path in tmp_path.glob("*.gif*")} == {"again.gif", "game.gif"}
    with images.open(out) as image:
        assert image.size == (1000, 668)
        assert image.n_frames == frames  # type: ignore[attr-defined]
        assert image.info["loop"] == 0
        pictures, times = [], []
        for number in range(frames):
            image.seek(number)
            pictures.append(np.asarray(image.convert("RGB")).astype(int))
            times.append(image.info["duration"])
    assert len(set(times[:-1])) == 1
    assert times[-1] > times[0]
    scenes = scenes_of_moves(game)
    assert len(scenes) == len(pictures)
    assert [scene.position["phase"] for scene in (scenes[0], scenes[-1])] == ["MOVE", "OVER"]
    assert not scenes[0].last
    assert scenes[-1].position == game.to_dict()
    for scene, pixels in [*zip(scenes, pictures, strict=True)][::4]:
        exact = rasterise(draw(scene, "light"), 1000)
        assert (pixels == exact).all(axis=2).mean() > 0.9  # the rest: soft edges
        assert abs(pixels - exact).mean() < 1
