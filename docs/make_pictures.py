"""Make the pictures of the documentation, again and alike: python docs/make_pictures.py.

The champion plays itself. Drawings of the board are SVG; pages are photographed in Chromium,
if it is there. `python docs/make_pictures.py family` makes only the sheet of boards of
the family.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from tokaido_env import Board, Game
from tokaido_env.agents import make
from tokaido_env.core.actions import IDS
from tokaido_env.files import write_text
from tokaido_env.record import Record
from tokaido_env.render.elements import tag, text_at
from tokaido_env.render.scene import Scene, scene_of
from tokaido_env.render.style import Theme, style
from tokaido_env.render.svg import PANELS, draw, panels_of

FOLDER = Path(__file__).resolve().parent / "pictures"
SEED = 7
PLAYERS = ("champion", "champion")
ALL_DICE = 0b111
DRAWN = range(16)  # numbers of the boards on the sheet
COLUMNS, CAPTION = 4, 36
WINDOWS = {"desktop": (1280, 780), "phone": (390, 844)}


def main() -> int:
    """Write all pictures; return the exit status."""
    FOLDER.mkdir(exist_ok=True)
    write_text(FOLDER / "family.svg", sheet() + "\n")
    if sys.argv[1:] == ["family"]:
        return 0
    record = played()
    for name, scene in scenes(record).items():
        for theme in ("light", "dark"):
            write_text(FOLDER / f"{name}-{theme}.svg", draw(scene, theme) + "\n")
    return photograph(record)


def sheet(theme: Theme = "auto") -> str:
    """Draw boards of the family side by side, each at the beginning of a game."""
    *_, width, height = PANELS["island"]
    wide, high = width + 10, height + CAPTION
    islands = []
    for place, number in enumerate(DRAWN):
        game = Game(Board.generate(number), seed=SEED)
        island = panels_of(scene_of(game.board, game.states))["island"]
        caption = text_at(8, -10, game.board.name, "bold big")
        x, y = place % COLUMNS * wide + 5, place // COLUMNS * high + CAPTION
        islands.append(tag("g", caption, *island.values(), transform=f"translate({x} {y})"))
    size = f"0 0 {COLUMNS * wide} {-(-len(DRAWN) // COLUMNS) * high + 5}"
    paper = tag("rect", width="100%", height="100%", class_="paper")
    title = tag("title", f"Boards {DRAWN[0]} to {DRAWN[-1]} of the family")
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
    return {"opening": opening, "middle": middle.scene("champion"), "end": game.scene()}


def photograph(record: Record) -> int:
    """Photograph the pages in Chromium; return the exit status."""
    from tokaido_env.web.replay_page import replay_page

    page = replay_page([record], policy="champion")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        write_text(path, page)
        shoot("page", f"{path.as_uri()}#move={len(record.events) // 2}")
    command = [sys.executable, "-m", "tokaido_env", "play", "--no-browser", "--seed", str(SEED)]
    served = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert served.stdout is not None
        shoot("play", served.stdout.readline().strip(), "#choices button")
    finally:
        served.terminate()
    return 0


def shoot(name: str, address: str, until: str = "body") -> None:
    """Photograph a page on a desktop and on a phone, once it has an element."""
    from selenium import webdriver
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--hide-scrollbars"):
        options.add_argument(argument)
    browser = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        for window, (width, height) in WINDOWS.items():
            metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": True}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
            browser.get("about:blank")
            browser.get(address)
            WebDriverWait(browser, 60).until(lambda b: b.find_elements(By.CSS_SELECTOR, until))
            browser.save_screenshot(str(FOLDER / f"{name}-{window}.png"))
    finally:
        browser.quit()


if __name__ == "__main__":
    sys.exit(main())
