"""Reproducible pictures of the documentation: python docs/make_pictures.py.

The champion plays itself. Drawings of the board are SVG, the game is a GIF; screenshots of pages
need Chromium. `python docs/make_pictures.py family` makes only the picture of boards of the family,
`round` those of one round, `drawings` all drawings without screenshots, `curve RUN` only the
tutorial's learning curve, and `simulations LADDER...` only the champion's Elo by simulations, from
ladders of several seeds:

    tokaido train --run runs/curve
    python docs/make_pictures.py curve runs/curve
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from tokaido_env import Board, Game
from tokaido_env.agents import make
from tokaido_env.arena.ladder import LADDER, Ladder
from tokaido_env.core.actions import IDS
from tokaido_env.files import write_text
from tokaido_env.record import Record, replay, save
from tokaido_env.render.elements import text_at
from tokaido_env.render.raster import frames_of, rasterise
from tokaido_env.render.scene import Scene, scene_of
from tokaido_env.render.style import Theme, style
from tokaido_env.render.svg import PANELS, draw, panels_of
from tokaido_env.report.curve import write_curve
from tokaido_env.report.style import PALETTE, as_svg, drawing, new_axes, new_figure

FOLDER = Path(__file__).resolve().parent / "pictures"
SEED = 7
PLAYERS = ("champion", "champion")
ROUND = ((), ("merchant:M4", "draw"), ("artist:A1", "paint", "pilgrim", "visit"))
ALL_DICE = 0b111
DRAWN = range(16)  # numbers of the pictured boards
COLUMNS, CAPTION = 4, 36
GIF_WIDTH, GIF_COLOURS = 760, 64  # a file of at most 400 KB
GIF_STEP, GIF_MILLISECONDS = 2, 900  # moves of characters and time of a frame
DESKTOP, PHONE = {"desktop": (1280, 870)}, {"phone": (390, 844)}
WINDOWS = {  # by picture: as high as its page
    "page": {"desktop": (1280, 780), **PHONE},
    "play": {**DESKTOP, **PHONE},
    "play-end": {"desktop": (1280, 1110)},
    "play-review": {"desktop": (1280, 1330)},
}


Browser = Any
Action = Callable[[Browser], object]


def main() -> int:
    """Write all pictures; return the exit status."""
    FOLDER.mkdir(exist_ok=True)
    if sys.argv[1:2] == ["curve"]:
        write_curve(Path(sys.argv[2]), Ladder.load(LADDER)).replace(FOLDER / "tutorial.svg")
        return 0
    if sys.argv[1:2] == ["simulations"]:
        write_text(FOLDER / "simulations.svg", simulations_picture(sys.argv[2:]))
        return 0
    write_text(FOLDER / "family.svg", family_picture() + "\n")
    if sys.argv[1:] == ["family"]:
        return 0
    draw_round()
    if sys.argv[1:] == ["round"]:
        return 0
    record = played()
    for name, scene in scenes(record).items():
        for theme in ("light", "dark"):
            write_text(FOLDER / f"{name}-{theme}.svg", draw(scene, theme) + "\n")
    animate(record)
    return 0 if sys.argv[1:] == ["drawings"] else take_screenshots(record)


def family_picture(theme: Theme = "auto") -> str:
    """Return a picture of boards of the family at the beginning of a game."""
    *_, width, height = PANELS["island"]
    wide, high = width + 10, height + CAPTION
    islands = []
    for place, number in enumerate(DRAWN):
        game = Game(Board.generate(number), seed=SEED)
        island = panels_of(scene_of(game.board, game.states))["island"]
        caption = text_at(8, -10, game.board.name, "bold big")
        x, y = place % COLUMNS * wide + 5, place // COLUMNS * high + CAPTION
        drawn = "".join((caption, *island.values()))
        islands.append(f'<g transform="translate({x} {y})">{drawn}</g>')
    size = f"0 0 {COLUMNS * wide} {-(-len(DRAWN) // COLUMNS) * high + 5}"
    paper = '<rect width="100%" height="100%" class="paper"/>'
    title = f"<title>Boards {DRAWN[0]} to {DRAWN[-1]} of the family</title>"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}" '
        f'class="tokaido tokaido-{theme}" role="graphics-document document">'
        f"{title}<style>{style(theme)}</style>{paper}{''.join(islands)}</svg>"
    )


def played() -> Record:
    """Return a whole game of the champion against itself."""
    game, agent = Game(seed=SEED), make("champion")
    while not game.is_over:
        legal = np.array([game.legal_mask], np.uint64)
        keys = np.array([game.rounds], np.uint64)
        game.play(int(agent.act(game.boards, game.states, legal, keys)[0]))
    return game.record(PLAYERS)


def scenes(record: Record) -> dict[str, Scene]:
    """Return the opening, a position from the middle with the champion's view, and the end."""
    game, picks = Game(seed=record.seed), []
    opening = scene_of(game.board, game.states)
    for action in (IDS[event] for event in record.events if event in IDS):
        if game.states["dice_left"][0] == ALL_DICE:
            picks.append(game.copy(luck="same"))
        game.play(action)
    middle = picks[len(picks) // 2]
    return {"opening": opening, "middle": middle.scene(make("champion")), "end": game.scene()}


def draw_round() -> None:
    """Draw the first round of the game of `get-started/round.md`: its roll, middle and end."""
    game = Game(seed=SEED)
    for number, labels in enumerate(ROUND, 1):
        for label in labels:
            game.play(label)
        write_text(FOLDER / f"round-{number}.svg", draw(game.scene(), "light") + "\n")


def animate(record: Record) -> None:
    """Write a game as a small animated GIF."""
    played = replay(record)
    shown = list(frames_of(played.board, played.states, played.events))
    shown = [*shown[:-1:GIF_STEP], shown[-1]]
    pictures = [Image.fromarray(rasterise(draw(scene, "light"), GIF_WIDTH)) for scene in shown]
    middle = pictures[len(pictures) // 2]
    palette = middle.quantize(GIF_COLOURS, Image.Quantize.MAXCOVERAGE, kmeans=1)
    first, *others = (
        picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures
    )
    times = [GIF_MILLISECONDS] * len(others) + [5 * GIF_MILLISECONDS]
    options: dict[str, Any] = {"save_all": True, "append_images": others, "loop": 0}
    first.save(FOLDER / "game.gif", duration=times, **options)


def simulations_picture(files: Sequence[str]) -> str:
    """Return the Elo of `champion:sims=N` by N, one line a ladder, as SVG."""
    with drawing():
        figure = new_figure(4.2, "Elo of champion:sims=N", "without search: 0; 95 % intervals")
        axes = new_axes(figure, 0.9, 0.7, 0.4, 0.1)
        for colour, file in zip(PALETTE, files, strict=False):
            ladder = Ladder.load(file)
            rated = {int(one.agent.partition("=")[2] or 1): one for one in ladder.agents}
            sims = sorted(rated)
            elo = np.array([rated[one].value for one in sims])
            bounds = np.array([(rated[one].low, rated[one].high) for one in sims]).T
            label = f"seed {ladder.seed}"
            errors = np.abs(bounds - elo)
            axes.errorbar(sims, elo, errors, color=colour, marker="o", ms=4, capsize=3, label=label)
        axes.set_xscale("log")
        axes.set_xticks(sims, ["none", *(f"{one:,}" for one in sims[1:])])
        axes.minorticks_off()
        axes.legend(frameon=False)
        axes.set_xlabel("simulations for a decision")
        axes.set_ylabel("Elo")
        return as_svg(figure, "simulations")


def take_screenshots(record: Record) -> int:
    """Take screenshots of the pages in Chromium; return the exit status."""
    from tokaido_env.web.replay_page import replay_page

    page = replay_page([record], agent="champion")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        write_text(path, page)
        screenshot("page", f"{path.as_uri()}#move={len(record.events) // 2}", lambda browser: None)
        served("play", ["--seed", str(SEED)], previewed)
        served("play-start", [], started)
        served("play-end", ["--seed", str(SEED), "--opponent", "greedy"], ended)
        save([record], Path(folder) / "game.jsonl")
        kept = ["--save", str(Path(folder) / "game.jsonl"), "--advice", "champion:sims=400"]
        served("play-review", kept, reviewed)
    served("play-physical", ["--physical", "--opponent", "human"], at_dice)
    return 0


def served(name: str, options: list[str], action: Action) -> None:
    """Take screenshots of the play page, served by the command."""
    command = [sys.executable, "-m", "tokaido_env", "play", "--no-browser", *options]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        screenshot(name, server.stdout.readline().strip(), action)
    finally:
        server.terminate()


# Actions before a screenshot


def find(browser: Browser, selector: str) -> Any:
    """Wait for the first element of a selector and return it."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    wait = WebDriverWait(browser, 120, poll_frequency=0.05)
    return wait.until(lambda one: one.find_elements(By.CSS_SELECTOR, selector))[0]


def previewed(browser: Browser) -> None:
    """Show the gain of a choice."""
    find(browser, ".choices button")
    over = "arguments[0].dispatchEvent(new PointerEvent('pointerover', { bubbles: true }))"
    browser.execute_script(over, find(browser, ".go"))
    find(browser, ".preview:not([hidden])")


def started(browser: Browser) -> None:
    """Wait for the dialog that starts a game."""
    find(browser, ".start[open] .level")


def ended(browser: Browser) -> None:
    """Make the first choice until the game is over, and wait for its review."""
    while not browser.find_elements("css selector", ".choices .rematch"):
        browser.execute_script("document.querySelector('.choices [data-label]')?.click()")
    find(browser, ".moments li:nth-child(3)")
    find(browser, ".review-game:enabled")  # the review is complete


def reviewed(browser: Browser) -> None:
    """Review the game and show the worst decision."""
    find(browser, ".review-game:enabled").click()
    find(browser, ".review li a")
    find(browser, ".review-game:enabled")  # the review is complete
    find(browser, ".review li a").click()
    find(browser, ".history:not([hidden])")


def at_dice(browser: Browser) -> None:
    """Enter the outcomes of the set-up, up to the first roll."""
    for number in range(12, 23):
        find(browser, ".choices button").click()
        find(browser, f".log li:nth-child({number - 10})")
    find(browser, ".dice button").click()


def screenshot(name: str, address: str, action: Action) -> None:
    """Take screenshots of a page in windows, each after an action."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--hide-scrollbars"):
        options.add_argument(argument)
    browser = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        for window, (width, height) in WINDOWS.get(name, DESKTOP).items():
            metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": True}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
            browser.get("about:blank")
            browser.get(address)
            action(browser)
            file = FOLDER / f"{name}-{window}.png"
            browser.save_screenshot(str(file))
            with Image.open(file) as image:  # a small file: 256 colours
                small = image.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE, kmeans=1)
            small.save(file, optimize=True)
    finally:
        browser.quit()


if __name__ == "__main__":
    raise SystemExit(main())
