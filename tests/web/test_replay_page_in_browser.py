"""Tests of replay pages in a browser: the screen shows the data of the page."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from browsers import Browser, quiet, until
from game_pages import GameData, games_of
from test_replay_page import HOSTILE, Reader, TempleAgent, panels_at, played

from tokaido_env.__main__ import main
from tokaido_env.record import Record, load, replay
from tokaido_env.web.replay_page import replay_page

pytest.importorskip("selenium.webdriver")
from selenium.webdriver.common.keys import Keys

pytestmark = pytest.mark.slow

# Collects the content of the page in one call.
PAGE_CONTENT = """
const text = (name) => document.querySelector(`.${name}`).textContent;
const panels = {};
for (const svg of document.querySelectorAll("[data-panel]"))
  panels[svg.dataset.panel] = [...svg.querySelectorAll("text, title")].map((e) => e.textContent);
return {
  panels,
  sentence: text("status"),
  position: text("position"),
  slider: document.querySelector(".slider").value,
  cells: [...document.querySelectorAll("tbody td")].map((e) => e.textContent),
  current: [...document.querySelectorAll("[aria-current]")].map((e) => e.textContent),
  names: [...document.querySelectorAll("thead th")].map((e) => e.textContent),
  moves: [...document.querySelectorAll(".log li")].map((e) => e.textContent),
  images: document.querySelectorAll("img").length,
  title: document.title,
  hash: location.hash,
};
"""


@pytest.fixture(scope="module")
def records() -> list[Record]:
    return [played(60, seed=3).record(["Ann", "Bob"]), played(90, seed=8).record([HOSTILE, "Bob"])]


@pytest.fixture(scope="module")
def page(records: list[Record], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "games.html"
    path.write_text(replay_page(records, agent=TempleAgent()), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def games(page: Path) -> list[GameData]:
    return games_of(page.read_text(encoding="utf-8"))


@pytest.fixture
def opened(browser: Browser, page: Path) -> Iterator[Browser]:
    """The page just after it was opened; checks at the end that it logged nothing."""
    with quiet(browser, page.as_uri()):
        wait_for_game(browser)
        yield browser


def wait_for_game(browser: Browser) -> None:
    """Wait until the page's script has run: a busy driver can return before the end of the file."""
    until(browser, lambda b: b.find_elements("css selector", ".log li"))


def page_content(browser: Browser) -> dict[str, Any]:
    content: dict[str, Any] = browser.execute_script(PAGE_CONTENT)
    return content


def check(browser: Browser, data: GameData, move: int) -> None:
    """Check that the page shows the data of a move, which test_replay_page.py tests."""
    content, last = page_content(browser), len(data["log"])
    for panel, parts in panels_at(data, move).items():
        assert content["panels"][panel] == Reader("".join(parts.values())).of("text", "title")
    sentence = data["log"][move - 1][2] if move else "Start"
    assert content["sentence"] == sentence
    assert content["current"] == [sentence]
    assert content["position"] == f"move {move} of {last}"
    assert int(content["slider"]) == move
    points, win = data["points"][move], data["wins"][move]
    rows = [*zip(*points, strict=True), [sum(one) for one in points]]
    wins = [f"{one:.0%}".replace("%", "\xa0%") for one in (win, 1 - win)] if win is not None else []
    cells = [*(str(cell) for row in rows for cell in row), *(wins or ["–"] * 2)]
    assert content["cells"] == cells
    assert content["title"] == f"{data['title']}, Tokaido Duo"
    assert content["names"] == data["names"]
    assert content["moves"] == ["Start", *(text for _, _, text in data["log"])]
    assert content["images"] == 0  # a hostile name stays text


def press(browser: Browser, *keys: str) -> None:
    for key in keys:
        browser.switch_to.active_element.send_keys(key)


def put(browser: Browser, name: str, property_name: str, value: int, event: str) -> None:
    browser.execute_script(
        "const [name, property, value, event] = arguments, s = document.querySelector('.' + name);"
        "s[property] = value; s.dispatchEvent(new Event(event, {bubbles: true}));",
        *(name, property_name, value, event),
    )


def set_slider(browser: Browser, move: int) -> None:
    put(browser, "slider", "value", move, "input")


def choose(browser: Browser, select: str, index: int) -> None:
    put(browser, select, "selectedIndex", index, "change")


def click(browser: Browser, name: str) -> None:
    browser.find_element("class name", name).click()


def test_controls_and_keys__show_their_positions(opened: Browser, games: list[GameData]) -> None:
    data = games[0]
    check(opened, data, 0)
    set_slider(opened, 37)
    check(opened, data, 37)
    for name, move in (("last", 60), ("previous", 59), ("first", 0), ("next", 1)):
        click(opened, name)
        check(opened, data, move)
    opened.find_elements("css selector", ".log button")[20].click()
    check(opened, data, 20)
    press(opened, Keys.ARROW_RIGHT)
    check(opened, data, 21)
    assert opened.switch_to.active_element.text == data["log"][20][2]  # the focus follows
    opened.find_element("css selector", ".plot").click()  # in its middle
    check(opened, data, 30)
    for key, move in ((Keys.END, 60), (Keys.ARROW_RIGHT, 60), (Keys.ARROW_LEFT, 59)):
        press(opened, key)
        check(opened, data, move)
    opened.find_element("class name", "slider").send_keys(Keys.HOME, Keys.ARROW_RIGHT)
    check(opened, data, 1)  # once, although the browser handles it too
    choose(opened, "games", 1)
    check(opened, games[1], 0)
    for control in opened.find_elements("css selector", "button:not(.log *), select, input"):
        assert control.accessible_name or not control.is_displayed()


def test_continue_from_here__is_a_command_for_the_shown_move(
    opened: Browser,
    records: list[Record],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def no_input(prompt: str) -> str:
        raise EOFError

    monkeypatch.setattr("builtins.input", no_input)
    monkeypatch.chdir(tmp_path)
    opened.find_element("css selector", ".continue summary").click()
    choose(opened, "games", 1)
    set_slider(opened, 37)
    link = opened.find_element("class name", "download")
    name, line = link.get_attribute("download"), link.get_attribute("href").partition(",")[2]
    Path(name).write_text(unquote(line), encoding="utf-8")
    assert load(name) == [records[1]]
    command = opened.find_element("class name", "command").text
    asked = [*shlex.split(command)[1:], "--terminal", "--opponent", "greedy", "--save", "on.jsonl"]
    assert main(asked) == 0, capsys.readouterr().err
    (kept,) = load("on.jsonl")
    assert kept.start == replay(records[1]).position(37)


def test_playback__plays_to_the_end_and_pauses(opened: Browser, games: list[GameData]) -> None:
    choose(opened, "speed", 4)
    press(opened, Keys.SPACE)
    until(opened, lambda b: int(page_content(b)["slider"]) >= 2)
    play = opened.find_element("class name", "play")
    press(opened, Keys.SPACE)
    assert play.accessible_name == "Play"
    check(opened, games[0], int(page_content(opened)["slider"]))
    set_slider(opened, 58)
    play.click()
    until(opened, lambda b: play.accessible_name == "Play")
    check(opened, games[0], 60)


def test_address__shows_and_follows_the_position(
    opened: Browser, page: Path, games: list[GameData]
) -> None:
    opened.get("about:blank")
    opened.get(f"{page.as_uri()}#game=2&move=57")
    wait_for_game(opened)
    check(opened, games[1], 57)
    set_slider(opened, 33)
    until(opened, lambda b: page_content(b)["hash"] == "#game=2&move=33")
    for asked, shown in (("game=9&move=900", "90 of 90"), ("game=x&move=<b>", "0 of 60")):
        opened.execute_script("location.hash = arguments[0]", asked)
        until(opened, lambda b, shown=shown: page_content(b)["position"] == f"move {shown}")


def test_phone__needs_no_sideways_scrolling(opened: Browser) -> None:
    shape = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", shape)
    try:
        opened.refresh()
        wait_for_game(opened)
        set_slider(opened, 50)
        width = "return [document.documentElement.scrollWidth, innerWidth]"
        assert opened.execute_script(width) == [390, 390]
        bottom = "return document.querySelector('.playback').getBoundingClientRect().bottom"
        assert opened.execute_script(bottom) == 844  # the controls stay visible
    finally:
        opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
