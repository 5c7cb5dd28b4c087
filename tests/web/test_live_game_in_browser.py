"""Tests of the play page in a browser: clicks, keys, tabs and a phone."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from browsers import Browser, quiet, until
from live_pages import Served, act_and_wait, click, play_first, press, text, until_shown, wait_for
from positions import verified

from tokaido_env import record
from tokaido_env.web.game_session import HUMAN
from tokaido_env.web.static_files import css_text, module_text

pytest.importorskip("selenium.webdriver")
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

PICTURE = """
const island = document.querySelector('[data-panel=island]');
return island.innerHTML.replaceAll(" hovered", "");
"""

# Contrast of every visible HTML text with its background, by WCAG 2.
CONTRASTS = """
const light = (part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
const luminance = ([r, g, b]) =>
  0.2126 * light(r / 255) + 0.7152 * light(g / 255) + 0.0722 * light(b / 255);
const ground = (one) => {
  for (let at = one; at; at = at.parentElement) {
    const colour = parts(getComputedStyle(at).backgroundColor);
    if (colour.length === 3 || colour[3] === 1) return colour;
  }
  return [255, 255, 255];
};
const found = [];
for (const one of document.querySelectorAll("body *:not(svg, svg *)")) {
  const words = [...one.childNodes].filter((n) => n.nodeType === 3 && n.data.trim()).length;
  if (!words || !one.checkVisibility() || one.closest(":disabled")) continue;
  const [a, b] = [luminance(parts(getComputedStyle(one).color)), luminance(ground(one))];
  found.push([one.outerHTML.slice(0, 80), (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)]);
}
return found;
"""


@pytest.mark.slow
def test_board__plays_a_clicked_destination(opened: Browser, served: Served) -> None:
    places = opened.find_elements(By.CSS_SELECTOR, "[data-panel=island] .go")
    titles = [place.find_element(By.CSS_SELECTOR, "title") for place in places]
    labels = [title.get_attribute("textContent").removeprefix("legal: ") for title in titles]
    legal = served.live_game.session.game.legal_labels()
    assert sorted(", ".join(labels).split(", ")) == sorted(legal)
    at = next(i for i, label in enumerate(labels) if label.startswith("artist"))
    click = ActionChains(opened).move_to_element(places[at]).click()
    act_and_wait(opened, served, click.perform)
    assert labels[at] in served.live_game.session.game.events()


@pytest.mark.slow
def test_page__without_its_token_names_the_remedy(browser: Browser, served: Served) -> None:
    address, _, token = served.page.partition("#")
    browser.get("about:blank")
    for wrong in (address, f"{address}#other"):
        browser.get(wrong)
        until(browser, lambda b: "open the address that tokaido play printed" in b.page_source)
    browser.execute_script("location.hash = arguments[0]", token)  # pasted into the same tab
    wait_for(browser, ".choices button")


@pytest.mark.slow
def test_keys__undo_and_get_advice(opened: Browser, served: Served) -> None:
    events = served.live_game.session.game.events()

    def key(sign: str) -> Any:
        return ActionChains(opened).send_keys(sign).perform

    act_and_wait(opened, served, key("2"))
    assert len(served.live_game.session.game.events()) > len(events)
    act_and_wait(opened, served, key("u"))
    assert served.live_game.session.game.events() == events
    opened.execute_script("document.activeElement.blur()")
    key("a")()
    until(opened, lambda b: "champion: you win" in text(b, "advice"))
    best = served.live_game.session.advice_task("champion")()[0].label
    choice = {one["label"]: one for one in served.live_game.state()["choices"]}[best]
    assert f"{choice['group']}, {choice['name']}: wins" in text(opened, "advice")


def hold(browser: Browser, key: str, text: str = "", repeats: int = 8) -> None:
    """Hold a key down; the browser repeats it while the page answers."""
    named = {"key": key, "code": key, "text": text, "windowsVirtualKeyCode": KEY_CODES[key]}
    for repeat in range(repeats):
        down = {**named, "type": "keyDown", "autoRepeat": repeat > 0}
        browser.execute_cdp_cmd("Input.dispatchKeyEvent", down)
        time.sleep(0.05)
    browser.execute_cdp_cmd("Input.dispatchKeyEvent", {**named, "type": "keyUp"})


KEY_CODES = {"1": 49, "u": 85, " ": 32, "Enter": 13, "ArrowLeft": 37}


# Answers to queries come in the reverse order of the requests.
LATE_ANSWERS = """
const send = window.fetch;
let wait = 800;
window.fetch = async (path, options) => {
  const delay = path.startsWith("query/frame") ? (wait -= 60) : 0;
  const answer = await send(path, options);
  await new Promise((resolve) => setTimeout(resolve, delay));
  return answer;
};
"""


@pytest.mark.slow
def test_history__steps_once_for_each_press_and_click(opened: Browser, served: Served) -> None:
    for _ in range(8):
        play_first(opened, served)
    now, last = opened.execute_script(PICTURE), len(served.live_game.session.log)
    opened.execute_script(LATE_ANSWERS)
    press(opened, *[Keys.ARROW_LEFT] * 8)
    until(opened, lambda b: f"move {last - 8} of {last}" == text(b, "position"))
    eighth = opened.execute_script(PICTURE)
    time.sleep(0.5)  # late answers are dropped
    assert opened.execute_script(PICTURE) == eighth != now
    hold(opened, "ArrowLeft", repeats=4)
    until(opened, lambda b: f"move {last - 12} of {last}" == text(b, "position"))
    press(opened, *[Keys.ARROW_RIGHT] * 12)
    until(opened, lambda b: opened.execute_script(PICTURE) == now)


@pytest.mark.slow
def test_held_key_and_double_click__make_one_move(opened: Browser, served: Served) -> None:
    session = served.live_game.session
    counts = []

    def one_move(act: Any) -> None:
        undos = len(session._undo_points)
        act_and_wait(opened, served, act)
        time.sleep(0.3)
        counts.append(len(session._undo_points) - undos)

    one_move(lambda: hold(opened, "1", "1"))
    one_move(lambda: hold(opened, "u", "u"))
    first = wait_for(opened, ".choices button")
    one_move(ActionChains(opened).click(first).pause(0.15).click().perform)
    assert counts == [1, -1, 1]
    # More presses than there are choices to undo: no error, nothing logged.
    opened.execute_script("for (let i = 0; i < 9; i += 1) document.querySelector('.undo').click()")
    until(opened, lambda b: not served.live_game.state()["can_undo"])
    until(opened, lambda b: not b.find_element(By.CLASS_NAME, "undo").is_enabled())
    press(opened, "1")  # also after the focused button was disabled
    until(opened, lambda b: served.live_game.session.decisions)


@pytest.mark.slow
def test_new_game__asks_once_in_mid_game(opened: Browser, served: Served, tmp_path: Path) -> None:
    def start() -> None:
        click(opened, "new-game")
        opened.find_element(By.CSS_SELECTOR, ".start .done").click()

    def question() -> Any:
        (found,) = until(opened, lambda b: b.find_elements(By.CSS_SELECTOR, ".question[open]"))
        return found

    act_and_wait(opened, served, start)  # nothing to lose: not asked
    first = served.live_game.session
    play_first(opened, served)
    file = tmp_path / "game.jsonl"
    record.save([first.record()], file)
    opened.find_element(By.CLASS_NAME, "load").send_keys(str(file))
    question().find_element(By.CLASS_NAME, "cancel").click()
    start()
    asked = question()
    assert (asked.aria_role, asked.accessible_name) == ("alertdialog", "Leave this game?")
    press(opened, "1", "u", Keys.ENTER)  # Cancel has the focus
    until(opened, lambda b: not b.find_elements(By.CSS_SELECTOR, ".question[open]"))
    assert served.live_game.session is first
    opened.find_element(By.CSS_SELECTOR, ".start .done").click()
    question()
    act_and_wait(opened, served, lambda: press(opened, Keys.TAB, Keys.ENTER))
    assert served.live_game.session is not first
    assert not opened.find_elements(By.CSS_SELECTOR, "dialog[open]")


@pytest.mark.slow
def test_tabs__show_the_same_game(opened: Browser, served: Served) -> None:
    play_first(opened, served)
    log = text(opened, "log")
    opened.refresh()
    wait_for(opened, ".choices button")
    assert text(opened, "log") == log
    first = opened.current_window_handle
    opened.switch_to.new_window("tab")
    opened.get(served.page)
    play_first(opened, served)
    second = text(opened, "log")
    opened.close()
    opened.switch_to.window(first)
    until(opened, lambda b: text(b, "log") == second)


@pytest.mark.slow
def test_new_game__starts_the_chosen_game(opened: Browser, served: Served) -> None:
    click(opened, "new-game")
    opened.find_element(By.CLASS_NAME, "seed").send_keys("5")
    opened.find_element(By.CSS_SELECTOR, ".board-name option[value=shikoku_ring]").click()
    opened.find_element(By.CSS_SELECTOR, ".seat option[value='1']").click()
    opened.find_element(By.CSS_SELECTOR, ".level [value=heuristic]").click()
    opened.find_element(By.CSS_SELECTOR, ".start .done").click()
    until(opened, lambda b: "shikoku_ring" in text(b, "players"))
    session = served.live_game.session
    assert (session.game.seed, session.names) == (5, ("heuristic", HUMAN))
    wait_for(opened, ".choices button")  # the agent has moved


@pytest.mark.slow
@pytest.mark.parametrize(
    "live_game", [((HUMAN, HUMAN), "shikoku", None, "explicit")], indirect=True
)
def test_physical_game__enters_rolls_and_draws(opened: Browser, served: Served) -> None:
    for _ in range(11):  # the boutiques and the waves
        play_first(opened, served)
    dice = opened.find_elements(By.CSS_SELECTOR, ".dice fieldset")
    for number, character in enumerate(("pilgrim", "merchant", "artist")):
        assert dice[number].find_element(By.TAG_NAME, "legend").text == f"{character}'s die"
        faces = dice[number].find_elements(By.TAG_NAME, "button")
        of_board = sorted(set(served.live_game.session.game.board.faces[number]))
        assert [one.text.split()[0] for one in faces] == list(map(str, of_board))
        if number < 2:
            faces[-1].click()
            assert faces[-1].get_attribute("aria-pressed") == "true"
        else:
            act_and_wait(opened, served, faces[0].click)
    assert served.live_game.session.game.events()[-1] == "roll:4/3/1"
    click(opened, "undo")
    until(opened, lambda b: b.find_elements(By.CSS_SELECTOR, ".dice fieldset"))
    assert len(served.live_game.session.game.events()) == 11


def until_reviewed(browser: Browser, served: Served) -> Any:
    """Wait for the whole review and return it."""
    game = served.live_game
    until(browser, lambda b: game.state()["review"] and not game.state()["jobs"])
    until_shown(browser, served)
    return game.state()["review"]


@pytest.mark.slow
def test_move_log_and_review__show_earlier_positions(opened: Browser, served: Served) -> None:
    for _ in range(6):
        play_first(opened, served)
    now = opened.execute_script(PICTURE)
    last = len(opened.find_elements(By.CSS_SELECTOR, ".log li")) - 1
    click(opened, "review-game")
    remarks = until_reviewed(opened, served)["remarks"]
    until(opened, lambda b: len(b.find_elements(By.CSS_SELECTOR, ".review li a")) == len(remarks))
    assert "champion" in text(opened, "review")
    worst = opened.find_elements(By.CSS_SELECTOR, ".review li a")
    for link in worst[:1]:
        row = int(link.text.removeprefix("Move ")) - 1
        link.click()
        until(opened, lambda b, row=row: f"move {row + 1} of {last}" == text(b, "position"))
        assert remarks[str(row)] in text(opened, "status")
        press(opened, Keys.ESCAPE)
    ActionChains(opened).send_keys(Keys.ARROW_LEFT).perform()
    until(opened, lambda b: f"move {last - 1} of {last}" == text(b, "position"))
    assert opened.execute_script(PICTURE) != now
    assert not opened.find_elements(By.CSS_SELECTOR, ".choices button")
    opened.find_elements(By.CSS_SELECTOR, ".log button")[0].click()
    until(opened, lambda b: f"move 0 of {last}" == text(b, "position"))
    ActionChains(opened).send_keys(Keys.ESCAPE).perform()
    until(opened, lambda b: b.execute_script(PICTURE) == now)
    assert opened.find_elements(By.CSS_SELECTOR, ".choices button")


@pytest.mark.parametrize("live_game", [((HUMAN, "random"), "shikoku", 7)], indirect=True)
def test_keys__play_a_whole_game(opened: Browser, served: Served) -> None:
    while (state := served.live_game.state())["waits_for"] == "human":
        if len(state["log"]) in range(100, 104):
            opened.refresh()
            wait_for(opened, ".choices button")
        act_and_wait(opened, served, ActionChains(opened).send_keys("1").perform)
    assert verified(served.live_game.query("record", {})).end == "triggers"
    assert "wins" in text(opened, "status")
    assert opened.title == f"human against {state['names'][1]}, Tokaido Duo"
    until(opened, lambda b: b.find_elements(By.CSS_SELECTOR, ".moments li"))
    press(opened, "n", Keys.ENTER)  # the dialog starts with its button
    until(opened, lambda b: served.live_game.session.decisions == 0)


@pytest.mark.slow
@pytest.mark.parametrize("tone", ["light", "dark"])
def test_text__has_enough_contrast(opened: Browser, served: Served, tone: str) -> None:
    for _ in range(3):
        play_first(opened, served)
    features = [{"name": "prefers-color-scheme", "value": tone}]
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    for act, shown in (("new-game", ".start .level"), ("resign", ".moments li")):
        click(opened, act)
        wait_for(opened, shown)
        found = opened.execute_script(CONTRASTS)
        assert len(found) > 50
        assert [one for one in found if one[1] < 4.5] == []
        press(opened, Keys.ESCAPE)
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@pytest.mark.slow
def test_controls__have_accessible_names(opened: Browser) -> None:
    """Screen readers find a name for each control and section."""
    roles = ("button", "textbox", "combobox", "checkbox", "radio", "spinbutton", "region", "img")
    roles += ("dialog", "alertdialog")
    for key in (Keys.ESCAPE, "n", "?"):
        press(opened, Keys.ESCAPE, key)
        for node in opened.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]:
            if node.get("role", {}).get("value") in roles and not node.get("ignored"):
                assert node["name"]["value"].strip(), (key, node)
    live = opened.find_elements(By.CSS_SELECTOR, "[aria-live=polite], [role=alert]")
    assert len(live) >= 4


@pytest.mark.slow
def test_module__works_with_any_model(browser: Browser, served: Served, tmp_path: Path) -> None:
    """As in a notebook: only the module and the style sheet, with a model that records messages."""
    state = json.dumps(served.live_game.state()).replace("<", "\\u003c")
    file = tmp_path / "page.html"
    file.write_text(
        "<!DOCTYPE html><meta charset='utf-8'><title>stub</title>"
        f"<style>{css_text()}</style><p id=outside>outside</p><div id=view></div>"
        f"<div id=other></div><script type=module>{module_text()}".replace(
            "export default", "const module ="
        )
        + f"""
        const listeners = {{}};
        let state = {state};
        const model = {{
          get: (name) => ({{ state }})[name],
          on: (name, listener) => (listeners[name] ??= new Set()).add(listener),
          off: (name, listener) => listeners[name].delete(listener),
          send: (message) => sent.push(message),
        }};
        window.sent = [];
        window.listeners = listeners;
        window.update = (next) => {{
          state = {{ ...state, ...next }};
          listeners["change:state"].forEach((listener) => listener());
        }};
        window.remove = module.render({{ model, el: document.getElementById("view") }});
        module.render({{ model, el: document.getElementById("other") }});
        </script>""",
        encoding="utf-8",
    )
    with quiet(browser, file.as_uri()):
        check_views(browser, served)


def check_views(browser: Browser, served: Served) -> None:
    button = wait_for(browser, "#view .choices button")
    button.click()
    (message,) = browser.execute_script("return sent")
    label = served.live_game.state()["choices"][0]["label"]
    assert (message["kind"], message["name"]) == ("command", "play")
    assert message["arguments"] == {
        "move": label,
        "game": served.live_game.state()["game"],
        "log_length": len(served.live_game.state()["log"]),
    }
    answer = {"id": message["id"], "error": "not today"}
    browser.execute_script("listeners['msg:custom'].forEach((f) => f(arguments[0]))", answer)
    assert browser.find_element(By.CSS_SELECTOR, "#view .error").text == "not today"
    assert browser.find_element(By.CSS_SELECTOR, "#other .error").text == ""
    browser.execute_script("update(arguments[0])", {"version": 10**6, "status": "news"})
    for view in ("view", "other"):
        assert browser.find_element(By.CSS_SELECTOR, f"#{view} .status").text == "news"
    browser.execute_script("remove()")
    assert browser.execute_script("return listeners['change:state'].size") == 1
    outside = browser.find_element(By.ID, "outside")
    assert "Times" in outside.value_of_css_property("font-family")  # the style sheet is scoped


@pytest.mark.slow
def test_phone__needs_no_sideways_scrolling(opened: Browser, served: Served) -> None:
    opened.set_window_size(500, 900)
    widths = opened.execute_script(
        "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert widths[0] <= widths[1]
    press(opened, "n")
    start = wait_for(opened, ".start .level").find_element(By.XPATH, "ancestor::dialog")
    assert start.get_property("scrollWidth") <= start.get_property("clientWidth")
    press(opened, Keys.ESCAPE)
    tops = opened.execute_script(
        "return ['[data-panel=island]', '[data-panel=player_0]', '.undo', '.log']"
        ".map((one) => document.querySelector(one).getBoundingClientRect().top)"
    )
    assert tops == sorted(tops)
    for scrolled in (0, 600):  # the choices stay
        box = opened.execute_script(
            "scrollTo(0, arguments[0]);"
            "return document.querySelector('.choices button').getBoundingClientRect().toJSON()",
            scrolled,
        )
        assert 0 < box["top"] < box["bottom"] <= 900


@pytest.mark.slow
def test_end__shows_why_without_storage_too(opened: Browser, served: Served) -> None:
    opened.execute_script("Storage.prototype.setItem = () => { throw new Error('full'); }")
    session = served.live_game.session
    while len(session.log) < 60:
        act_and_wait(opened, served, lambda: press(opened, "1"))
    click(opened, "resign")
    until_reviewed(opened, served)
    until(opened, lambda b: not b.find_elements(By.CSS_SELECTOR, ".skip"))
    assert "human resigns" in text(opened, "status")
    assert "The browser stores nothing here" in text(opened, "error")
    review = served.live_game.state()["review"]
    assert review is not None
    event, last = review["moments"][0]["event"], len(session.log)
    opened.find_element(By.CSS_SELECTOR, ".moments button").click()
    until(opened, lambda b: f"move {event + 1} of {last}" == text(b, "position"))
    press(opened, Keys.ESCAPE)
    act_and_wait(opened, served, lambda: click(opened, "rematch"))
    assert served.live_game.session.names == (HUMAN, "greedy")


@pytest.mark.slow
def test_last_game__is_resumed_from_the_browser(opened: Browser, served: Served) -> None:
    play_first(opened, served)
    events = served.live_game.session.game.events()
    saved = "return JSON.parse(localStorage['tokaido.games'] ?? '[{}]')[0].title"
    until(
        opened,
        lambda b: f"{len(served.live_game.session.log)} events" in str(b.execute_script(saved)),
    )
    served.live_game.command("new_game", {"seats": [HUMAN, HUMAN]})  # as another run of the command
    opened.refresh()
    wait_for(opened, ".choices button")
    press(opened, "n")
    wait_for(opened, ".start[open] .resume").click()
    until(opened, lambda b: served.live_game.session.game.events() == events)
    assert served.live_game.session.names == (HUMAN, "greedy")
