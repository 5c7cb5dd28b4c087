"""Make the pictures of the documentation, again and alike: python docs/make_pictures.py.

The champion plays itself. Drawings of the board are SVG; the replay page is photographed in
Chromium, if it is there.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

from tokaido_env import Game
from tokaido_env.agents import make
from tokaido_env.core.actions import IDS
from tokaido_env.files import write_text
from tokaido_env.record import Record
from tokaido_env.render.scene import Scene, scene_of
from tokaido_env.render.svg import draw

FOLDER = Path(__file__).resolve().parent / "pictures"
SEED = 7
PLAYERS = ("champion", "champion")
ALL_DICE = 0b111
WINDOWS = {"desktop": (1280, 780), "phone": (390, 844)}


def main() -> int:
    """Write all pictures; return the exit status."""
    FOLDER.mkdir(exist_ok=True)
    record = played()
    for name, scene in scenes(record).items():
        for theme in ("light", "dark"):
            write_text(FOLDER / f"{name}-{theme}.svg", draw(scene, theme) + "\n")
    return photograph(record)


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
    """Photograph the replay page in Chromium; return the exit status."""
    from selenium import webdriver

    from tokaido_env.web.replay_page import replay_page

    page = replay_page([record], policy="champion")
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--hide-scrollbars"):
        options.add_argument(argument)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        write_text(path, page)
        browser = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
        try:
            for name, (width, height) in WINDOWS.items():
                metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": True}
                browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
                browser.get(f"{path.as_uri()}#move={len(record.events) // 2}")
                browser.save_screenshot(str(FOLDER / f"page-{name}.png"))
        finally:
            browser.quit()
    return 0


if __name__ == "__main__":
    sys.exit(main())
