"""Tests of faults that other pages of games have, in a browser; and random sequences of actions."""

import json
import random
import threading
import time
from typing import Any

import numpy as np
import pytest
import uvicorn
from browsers import Browser, quiet, until
from live_pages import Served, click, play_first, press, text, until_shown, wait_for
from positions import verified

from tokaido_env import Game
from tokaido_env.web.game_session import HUMAN, Session
from tokaido_env.web.live_game import LiveGame
from tokaido_env.web.server import create_app, listen, new_token, page_address

from selenium.webdriver.common.by import By  # isort: skip
from selenium.webdriver.common.keys import Keys  # isort: skip

pytestmark = pytest.mark.slow

KEPT = "return JSON.parse(localStorage['tokaido.games'] ?? '[]')"


class Wrong:
    """Answers an illegal action at first, then the first legal one."""

    def __init__(self) -> None:
        self.asked = 0

    def choose(self, game: Game, rng: np.random.Generator) -> Any:
        self.asked += 1
        return 48 if self.asked == 1 else game.legal_actions()[0]


@pytest.mark.parametrize("live_game", [((Wrong(), HUMAN), "shikoku", 7)], indirect=True)
@pytest.mark.parametrize("remedy", ["try-again", "choose-another"])
def test_wrong_answer__is_shown_with_its_remedies(
    browser: Browser, served: Served, remedy: str
) -> None:
    until(browser, lambda b: not served.live_game.state()["jobs"])
    served.live_game.session.agents[0].wrapped.asked = 0  # type: ignore[union-attr]
    served.live_game.command("new_game", {"seats": ["Wrong", HUMAN]})
    with quiet(browser, served.page):
        shown = wait_for(browser, ".failure:not([hidden])")
        assert "Wrong answered" in shown.text
        assert "illegal here" in shown.text
        click(browser, remedy)
        if remedy == "choose-another":
            wait_for(browser, ".start[open] .level input").click()
            browser.find_element(By.CSS_SELECTOR, ".start .done").click()
        wait_for(browser, ".choices button")
        assert not browser.find_element(By.CLASS_NAME, "failure").is_displayed()
    names = served.live_game.session.names
    assert names == (("Wrong" if remedy == "try-again" else "random"), HUMAN)


def test_pause__is_said_and_ends_with_the_game(opened: Browser, served: Served) -> None:
    served.live_game._pace = 0.5
    served.live_game.command("new_game", {"seats": ["greedy", "random"]})
    until(opened, lambda b: "Beginner 1" in text(b, "players"))
    press(opened, Keys.SPACE)
    until(opened, lambda b: "Paused. Press the space bar" in text(b, "status"))
    served.live_game.command("new_game", {"seats": [HUMAN, "greedy"]})
    until(opened, lambda b: "Your turn" in text(b, "status"))


def test_caps_lock__leaves_the_keys(opened: Browser, served: Served) -> None:
    play_first(opened, served)
    before = len(served.live_game.session._undo_points)
    press(opened, "U")
    until(opened, lambda b: len(served.live_game.session._undo_points) < before)


def test_displaced_question__is_answered_with_no(opened: Browser, served: Served) -> None:
    play_first(opened, served)
    first = served.live_game.session
    start = "document.querySelector('.new .done').click()"
    press(opened, "n")
    opened.execute_script(start + ";" + start)
    until(opened, lambda b: len(b.find_elements(By.CSS_SELECTOR, ".question")) == 1)
    opened.find_element(By.CSS_SELECTOR, ".question .cancel").click()
    time.sleep(0.3)
    assert served.live_game.session is first


def test_kept_games__are_ten_and_all_resume(opened: Browser, served: Served) -> None:
    for _ in range(11):
        served.live_game.command("new_game", {"seats": [HUMAN, "greedy"]})
        wanted = served.live_game.state()["game"]
        until(opened, lambda b: served.live_game.state()["waits_for"] == "human")
        until_shown(opened, served)
        press(opened, "1")
        until(
            opened, lambda b, wanted=wanted: wanted in [one["id"] for one in b.execute_script(KEPT)]
        )
    kept = opened.execute_script(KEPT)
    assert len(kept) == 10
    press(opened, "n")
    items = until(opened, lambda b: b.find_elements(By.CSS_SELECTOR, ".start[open] .resume"))
    assert len(items) == 9  # all but the one that is on
    items[-1].click()
    wait_for(opened, ".question .done").click()
    until(opened, lambda b: served.live_game.state()["game"] == kept[-1]["id"])
    expected = verified(kept[-1]["record"]).events
    assert served.live_game.session.record().events[: len(expected)] == expected


def test_kept_game__has_the_resignation(opened: Browser, served: Served) -> None:
    play_first(opened, served)
    click(opened, "resign")
    until(opened, lambda b: served.live_game.state()["waits_for"] == "nobody")
    record = served.live_game.query("record", {})
    until(opened, lambda b: b.execute_script(KEPT)[0]["record"] == record)


def test_resume__asks_when_the_opponent_is_missing(opened: Browser, served: Served) -> None:
    game = Game(seed=5)
    for _ in range(9):
        game.play(game.legal_actions()[0])
    record = game.record((HUMAN, "python:bot.py:Bot")).to_json()
    games = [{"id": "old", "record": record, "title": "old game", "time": 0}]
    opened.execute_script("localStorage['tokaido.games'] = arguments[0]", json.dumps(games))
    press(opened, "n")
    wait_for(opened, ".start[open] .resume").click()
    question = wait_for(opened, ".question")
    assert "--opponent python:bot.py:Bot" in question.text
    question.find_element(By.CLASS_NAME, "cancel").click()
    assert served.live_game.session.names == (HUMAN, "greedy")
    opened.find_element(By.CSS_SELECTOR, ".start .resume").click()
    wait_for(opened, ".question .done").click()
    until(opened, lambda b: served.live_game.state()["game"] == "old")
    assert served.live_game.session.names == (HUMAN, "python:bot.py:Bot")


def test_seed__of_nineteen_digits_is_that_of_the_command(opened: Browser, served: Served) -> None:
    seed = 2**62 + 3
    press(opened, "n")
    wait_for(opened, ".start[open] .seed").send_keys(str(seed), Keys.ENTER)
    expected = Session((HUMAN, HUMAN), seed=seed).record().seed
    until(opened, lambda b: served.live_game.session.record().seed == expected)


def test_stalled_server__is_said(opened: Browser, served: Served) -> None:
    with served.live_game._changed:
        press(opened, "1")
        until(opened, lambda b: "No answer for 5 s" in b.find_element(By.ID, "connection").text)
    until(opened, lambda b: not b.find_element(By.ID, "connection").text)


def test_own_draws__are_announced(opened: Browser, served: Served) -> None:
    for _ in range(60):
        if "You: " in text(opened, "news"):
            break
        play_first(opened, served)
    news = opened.find_element(By.CLASS_NAME, "news")
    assert "You: " in news.text
    assert news.get_attribute("aria-live") == "polite"
    pictures = opened.find_elements(By.CSS_SELECTOR, "svg[data-panel]")
    assert all(picture.get_attribute("aria-label") for picture in pictures)


def test_help__explains_the_game(opened: Browser) -> None:
    press(opened, "?")
    shown = wait_for(opened, ".panel[open]").text
    for word in ("The goal", "A round", "The end", "The board", "Keys", "six gold slabs"):
        assert word in shown


SIZES = """
const found = [];
for (const one of document.querySelectorAll("body *")) {
  const words = [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  if (!words || !one.checkVisibility() || one.closest("title, script, noscript")) continue;
  const scale = one.closest("svg") && one.getScreenCTM ? one.getScreenCTM().a : 1;
  const size = parseFloat(getComputedStyle(one).fontSize) * scale;
  if (size < 11) found.push([one.textContent.trim(), size]);
}
return found;
"""


@pytest.mark.parametrize("size", [(1366, 768), (683, 384), (390, 844)])
def test_texts__have_at_least_11_pixels(
    opened: Browser, served: Served, size: tuple[int, int]
) -> None:
    metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False}
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    for _ in range(3):
        play_first(opened, served)
    assert opened.execute_script(SIZES) == []
    press(opened, "n")
    wait_for(opened, ".start[open]")
    assert opened.execute_script(SIZES) == []
    opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


# Random sequences


class Server:
    """A server of the page that can be stopped and started."""

    def __init__(self) -> None:
        self.port = 0
        self.start()

    def start(self) -> None:
        session = Session((HUMAN, "greedy"), seed=random.randrange(2**31))
        self.game = LiveGame(session, advisor="champion:sims=2", pace=0.0)
        listener, token = listen(self.port), new_token()
        self.port = listener.getsockname()[1]
        app = create_app(self.game, self.port, token)
        config = uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([listener],), daemon=True)
        self._thread.start()
        self.page = page_address(self.port, token)

    def stop(self) -> None:
        self.game.close()
        self._server.should_exit = True
        self._thread.join(20)


CLICK = "document.querySelector(arguments[0])?.click()"
ACTIONS = {
    "click": 8,
    "key": 4,
    "place": 2,
    "new game": 1,
    "answer": 3,
    "pause": 1,
    "review": 1,
    "skip": 1,
    "advise": 1,
    "reload": 1,
    "undo": 3,
    "back": 2,
    "change": 1,
    "resume": 1,
    "restart": 0.5,
}


def act(browser: Browser, server: Server, action: str, rng: random.Random) -> None:
    """Do something at random that a person can do, without waiting for an answer."""
    scripts = {
        "click": ".choices [data-label]",
        "place": "[data-panel=island] .go",
        "new game": ".new-game",
        "answer": rng.choice((".new .done", ".question .done", ".question .cancel", ".cancel")),
        "pause": ".run-agents",
        "review": ".review-game",
        "skip": ".skip",
        "advise": ".advise",
        "undo": ".undo",
        "back": rng.choice((".previous", ".first", ".current", ".continue-here")),
        "change": ".change-player",
        "resume": ".resume",
    }
    if action in scripts:
        browser.execute_script(
            CLICK.replace("?.click()", "?.dispatchEvent(new MouseEvent('click', {bubbles: true}))")
            if action == "place"
            else CLICK,
            scripts[action],
        )
    elif action == "key":
        press(browser, rng.choice("123unar? ") if rng.random() < 0.9 else Keys.ESCAPE)
    elif action == "reload":
        browser.refresh()
    elif action == "restart":
        server.stop()
        server.start()
        browser.get("about:blank")
        browser.get(server.page)


def test_random_sequences__lose_no_game(
    browser: Browser, pytestconfig: pytest.Config, record_property: Any
) -> None:
    sequences = max(1, pytestconfig.getoption("--games") // 100)
    server = Server()
    browser.get(server.page)
    for number in range(sequences):
        play_sequence(browser, server, random.Random(number))
    server.stop()
    browser.get("about:blank")


def play_sequence(browser: Browser, server: Server, rng: random.Random) -> None:
    done = []
    before = {one["id"]: one["record"] for one in browser.execute_script(KEPT)}
    for _ in range(40):
        (action,) = rng.choices([*ACTIONS], [*ACTIONS.values()])
        done.append(action)
        act(browser, server, action, rng)
        time.sleep(rng.choice((0, 0.01, 0.05)))
    browser.execute_script("for (const one of document.querySelectorAll('dialog')) one.close()")
    browser.execute_script("document.querySelector('.current')?.click()")
    server.game.command("run_agents", {"on": True})
    assert until(browser, lambda b: is_settled(b, server)), done
    logged = [one["message"] for one in browser.get_log("browser")]
    assert all("ERR_" in one or "400" in one or "403" in one for one in logged), (done, logged)
    if server.game.state()["can_undo"]:
        now = server.game.state()["game"], server.game.query("record", {})
        until(browser, lambda b: now in [(x["id"], x["record"]) for x in b.execute_script(KEPT)])
    kept = {one["id"]: one["record"] for one in browser.execute_script(KEPT)}
    assert len(kept) == 10 or before.keys() <= kept.keys(), done
    for line in kept.values():
        verified(line)
    first = browser.current_window_handle
    browser.switch_to.new_window("tab")
    second = browser.current_window_handle
    browser.get(server.page)
    until(browser, lambda b: is_settled(b, server))
    assert until(browser, lambda b: shown_in(b, first) == shown_in(b, second)), done
    browser.close()
    browser.switch_to.window(first)


def shown_in(browser: Browser, window: str) -> Any:
    browser.switch_to.window(window)
    return browser.execute_script(SHOWN)


SHOWN = """
return ["status", "log", "choices"].map((name) => document.querySelector(`.${name}`).innerText);
"""


def is_settled(browser: Browser, server: Server) -> bool:
    """Return whether no agent computes and the page shows the state."""
    state = server.game.state()
    shown = browser.execute_script("return document.querySelectorAll('.log li').length")
    return not state["jobs"] and state["waits_for"] != "agent" and shown == len(state["log"]) + 1
