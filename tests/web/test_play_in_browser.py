"""The page in a real browser: games by clicks, by keys, in two tabs, on a phone."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn
from browsers import Browser

from tokaido_env import record
from tokaido_env.web.server import address, app_of, listen, new_token
from tokaido_env.web.session import HUMAN, Session
from tokaido_env.web.table import Table

pytest.importorskip("selenium.webdriver")
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait


class Served:
    """A table that is served, as the command does it."""

    def __init__(self, table: Table) -> None:
        self.table = table
        listener, token = listen(), new_token()
        port = listener.getsockname()[1]
        self.page = address(port, token)
        config = uvicorn.Config(app_of(table, port, token), log_level="critical")
        self.server = uvicorn.Server(config)
        run = lambda: self.server.run(sockets=[listener])  # noqa: E731
        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.table.close()
        self.server.should_exit = True
        self.thread.join(20)


@pytest.fixture
def served() -> Iterator[Served]:
    one = Served(Table(Session((HUMAN, "greedy"), seed=7), advisor="champion", pace=0.0))
    yield one
    one.close()


@pytest.fixture
def opened(browser: Browser, served: Served) -> Iterator[Browser]:
    """The page when it shows the game; at the end it has logged nothing and asked nobody else."""
    browser.set_window_size(1280, 900)
    browser.get("about:blank")
    browser.get_log("browser")
    browser.get(served.page)
    shows(browser, ".choices button")
    yield browser
    assert browser.get_log("browser") == []
    names = browser.execute_script(
        "return performance.getEntriesByType('resource').map((one) => one.name)"
    )
    own = served.page.partition("#")[0]
    assert all(name.startswith((own, "data:")) for name in names)
    browser.get("about:blank")


def shows(browser: Browser, what: str) -> Any:
    found = WebDriverWait(browser, 20).until(lambda b: b.find_elements(By.CSS_SELECTOR, what))
    return found[0]


def text(browser: Browser, name: str) -> str:
    said: str = browser.find_element(By.CLASS_NAME, name).text
    return said


def moves_on(browser: Browser, served: Served, act: Any) -> None:
    """Do something, and wait until the page shows what came of it, and nobody thinks."""
    before = served.table.version
    act()
    WebDriverWait(browser, 20).until(lambda b: served.table.version > before)
    told = served.table.look()
    while told["waits_for"] == "agent":
        told = served.table.look(told["version"], 5)
    WebDriverWait(browser, 20).until(
        lambda b: (
            len(b.find_elements(By.CSS_SELECTOR, ".log li")) == len(told["log"])
            and len(b.find_elements(By.CSS_SELECTOR, ".choices button")) == len(told["choices"])
        )
    )


def test_a_whole_game_by_clicks(opened: Browser, served: Served) -> None:
    while served.table.look()["waits_for"] == "human":
        buttons = opened.find_elements(By.CSS_SELECTOR, ".choices button")
        moves_on(opened, served, buttons[-1].click)
    game = record.read_line(served.table.ask("record", {}))
    assert game.end == "triggers"
    assert len(opened.find_elements(By.CSS_SELECTOR, ".log li")) == len(game.events)
    assert "wins" in text(opened, "story")
    assert opened.title == "human against greedy, Tokaido Duo"


def test_a_place_on_the_board_is_clicked(opened: Browser, served: Served) -> None:
    places = opened.find_elements(By.CSS_SELECTOR, "[data-panel=island] .go")
    titles = [place.find_element(By.CSS_SELECTOR, "title") for place in places]
    labels = [title.get_attribute("textContent").removeprefix("legal: ") for title in titles]
    legal = served.table.session.game.legal_labels()
    assert sorted(", ".join(labels).split(", ")) == sorted(legal)
    at = next(i for i, label in enumerate(labels) if label.startswith("artist"))
    click = ActionChains(opened).move_to_element(places[at]).click()
    moves_on(opened, served, click.perform)
    assert labels[at] in served.table.session.game.events()


def test_keys_take_back_and_ask_for_advice(opened: Browser, served: Served) -> None:
    events = served.table.session.game.events()

    def key(sign: str) -> Any:
        return ActionChains(opened).send_keys(sign).perform

    moves_on(opened, served, key("2"))
    assert len(served.table.session.game.events()) > len(events)
    moves_on(opened, served, key("u"))
    assert served.table.session.game.events() == events
    opened.execute_script("document.activeElement.blur()")
    key("a")()
    WebDriverWait(opened, 20).until(lambda b: "champion: you win" in text(b, "advice"))
    best = served.table.session.advise("champion").moves[0].label
    assert best in text(opened, "advice")


def test_a_page_that_is_opened_again_and_a_second_one(opened: Browser, served: Served) -> None:
    moves_on(opened, served, shows(opened, ".choices button").click)
    said = text(opened, "log")
    opened.refresh()
    shows(opened, ".choices button")
    assert text(opened, "log") == said
    first = opened.current_window_handle
    opened.switch_to.new_window("tab")
    opened.get(served.page)
    moves_on(opened, served, lambda: shows(opened, ".choices button").click())
    second = text(opened, "log")
    opened.close()
    opened.switch_to.window(first)
    WebDriverWait(opened, 20).until(lambda b: text(b, "log") == second)


def test_a_new_game_is_begun(opened: Browser, served: Served) -> None:
    opened.find_element(By.CSS_SELECTOR, ".setup summary").click()
    opened.find_element(By.CLASS_NAME, "seed").send_keys("5")
    board = opened.find_element(By.CLASS_NAME, "board-name")
    board.clear()
    board.send_keys("shikoku_ring")
    chooser = opened.find_element(By.CSS_SELECTOR, ".seat1 option[value=human]")
    chooser.click()
    opened.find_element(By.CSS_SELECTOR, ".new button").click()
    WebDriverWait(opened, 20).until(lambda b: "shikoku_ring" in text(b, "who"))
    session = served.table.session
    assert (session.seed, session.names) == (5, (HUMAN, HUMAN))
    opened.find_element(By.CSS_SELECTOR, ".setup summary").click()
    board.clear()
    board.send_keys("/etc/passwd")
    opened.find_element(By.CSS_SELECTOR, ".new button").click()
    WebDriverWait(opened, 20).until(lambda b: "board: expected" in text(b, "error"))
    assert served.table.session is session
    logged = opened.get_log("browser")  # the browser itself tells of an answer that refuses
    assert [entry["message"] for entry in logged if "400" not in entry["message"]] == []


def test_a_phone_shows_it_all_without_scrolling_sideways(opened: Browser, served: Served) -> None:
    opened.set_window_size(500, 900)
    widths = opened.execute_script(
        "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert widths[0] <= widths[1]
    tops = opened.execute_script(
        "return ['[data-panel=island]', '.choices', '[data-panel=player_0]', '.undo', '.log']"
        ".map((one) => document.querySelector(one).getBoundingClientRect().top)"
    )
    assert tops == sorted(tops)
