"""Tests of replay pages in a browser: the screen shows the data of the page."""

import itertools
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from browsers import Browser, quiet, until
from test_replay_page import HOSTILE, Reader, TempleAgent, games_of, played

from tokaido_env.__main__ import main
from tokaido_env.record import Record, load, replay
from tokaido_env.render.svg import PANELS
from tokaido_env.web.replay_page import replay_frame, replay_page

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
  round: document.querySelector(".round").value,
  cells: [...document.querySelectorAll("tbody td")].map((e) => e.textContent),
  current: [...document.querySelectorAll("[aria-current]")].map((e) => e.textContent),
  markers: [...document.querySelectorAll(".marker")].map((e) => parseFloat(e.style.left)),
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
def games(page: Path) -> list[dict[str, Any]]:
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


def texts_of(markup: str) -> list[str]:
    reader = Reader(markup)
    named = zip(reader.elements, reader.texts, strict=True)
    return [text for (tag, _), text in named if tag in ("text", "title")]


def check(browser: Browser, data: dict[str, Any], move: int) -> None:
    """Check that the page shows the data of a move, which test_replay_page.py tests."""
    content, last = page_content(browser), len(data["log"])
    for panel, parts in data["panels"].items():
        expected = []
        for _, changes in parts:
            newest = [i for at, i in zip(changes[::2], changes[1::2], strict=True) if at <= move]
            expected += texts_of(data["markup"][newest[-1]]) if newest else []
        assert content["panels"][panel] == expected
    sentence = data["log"][move - 1][2] if move else "Start"
    assert content["sentence"] == sentence
    assert content["current"] == [sentence]
    assert content["position"] == f"move {move} of {last}"
    assert int(content["slider"]) == move
    assert int(content["round"]) == max(first for _, first in data["rounds"] if first <= move)
    points, win = data["points"][move], data["wins"][move]
    rows = [*zip(*points, strict=True), [sum(one) for one in points]]
    wins = (
        ["–"] * 2 if win is None else [f"{one:.0%}".replace("%", "\xa0%") for one in (win, 1 - win)]
    )
    assert content["cells"] == [*(str(cell) for row in rows for cell in row), *wins]
    assert content["markers"] == [pytest.approx(100 * move / last, abs=0.01)] * 2
    assert content["title"] == f"{data['title']}, Tokaido Duo"
    assert content["names"] == data["names"]
    assert content["moves"] == ["Start", *(text for _, _, text in data["log"])]
    assert content["images"] == 0  # a hostile name stays text


def press(browser: Browser, *keys: str) -> None:
    for key in keys:
        browser.switch_to.active_element.send_keys(key)


def set_slider(browser: Browser, move: int) -> None:
    put(browser, "slider", "value", move, "input")


def choose(browser: Browser, select: str, index: int) -> None:
    put(browser, select, "selectedIndex", index, "change")


def put(browser: Browser, name: str, property_name: str, value: int, event: str) -> None:
    browser.execute_script(
        "const [name, property, value, event] = arguments, s = document.querySelector('.' + name);"
        "s[property] = value; s.dispatchEvent(new Event(event, {bubbles: true}));",
        *(name, property_name, value, event),
    )


def click(browser: Browser, name: str) -> None:
    browser.find_element("class name", name).click()


def screen(browser: Browser, width: int, height: int) -> None:
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500},
    )


def test_controls__show_their_positions(opened: Browser, games: list[dict[str, Any]]) -> None:
    check(opened, games[0], 0)
    for move in (37, 60, 5, 0):
        set_slider(opened, move)
        check(opened, games[0], move)
    for index, (_, first) in enumerate(games[0]["rounds"]):
        choose(opened, "round", index)
        check(opened, games[0], first)
    for name, move in (("last", 60), ("previous", 59), ("first", 0), ("next", 1)):
        click(opened, name)
        check(opened, games[0], move)
    opened.find_element("css selector", ".continue summary").click()
    for control in opened.find_elements("css selector", "button:not(.log *), select, input"):
        assert control.accessible_name


def test_keys__show_their_positions(opened: Browser, games: list[dict[str, Any]]) -> None:
    press(opened, Keys.TAB)
    style = "return getComputedStyle(document.activeElement).outlineStyle"
    assert opened.execute_script(style) == "solid"  # the focus is visible
    opened.execute_script("document.activeElement.blur()")
    press(opened, *[Keys.ARROW_RIGHT] * 14, Keys.ARROW_LEFT)
    check(opened, games[0], 13)
    press(opened, Keys.END)
    check(opened, games[0], 60)
    press(opened, Keys.ARROW_RIGHT, Keys.ARROW_LEFT)
    check(opened, games[0], 59)
    press(opened, Keys.HOME, Keys.ARROW_LEFT)
    check(opened, games[0], 0)
    # On the slider too, where the browser also handles them.
    opened.find_element("class name", "slider").send_keys(Keys.ARROW_RIGHT)
    check(opened, games[0], 1)


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
    for game, move in ((0, 37), (1, 60), (1, 0)):
        choose(opened, "games", game)
        set_slider(opened, move)
        link = opened.find_element("class name", "download")
        name, line = link.get_attribute("download"), link.get_attribute("href").partition(",")[2]
        Path(name).write_text(unquote(line), encoding="utf-8")
        assert load(name) == [records[game]]
        command = opened.find_element("class name", "command").text
        saved = f"{game}-{move}.jsonl"
        asked = [*shlex.split(command)[1:], "--terminal", "--opponent", "greedy", "--save", saved]
        assert main(asked) == 0, capsys.readouterr().err
        (kept,) = load(saved)
        assert kept.start == replay(records[game]).position(move)
    opened.find_element("class name", "copy").click()
    assert opened.find_element("class name", "copy").text == "Copied"
    opened.execute_cdp_cmd("Browser.grantPermissions", {"permissions": ["clipboardReadWrite"]})
    pasted = opened.execute_async_script("navigator.clipboard.readText().then(arguments[0])")
    assert pasted == command


def test_move_list_and_graph__show_the_clicked_position(
    opened: Browser, games: list[dict[str, Any]]
) -> None:
    opened.find_elements("css selector", ".log button")[20].click()
    check(opened, games[0], 20)
    press(opened, Keys.ARROW_RIGHT)
    check(opened, games[0], 21)
    focused = opened.switch_to.active_element
    assert focused.text == games[0]["log"][20][2]  # the focus follows
    tabbed = "return document.querySelectorAll('.log [tabindex=\"0\"]').length"
    assert opened.execute_script(tabbed) == 1
    opened.find_element("css selector", ".plot").click()  # in its middle
    check(opened, games[0], 30)
    totals = [[sum(one) for one in seats] for seats in games[0]["points"]]
    top = max(10, *itertools.chain(*totals))
    for seat in (0, 1):
        line = opened.find_element("css selector", f".graph .way{seat}").get_attribute("d")
        for height, total in zip(heights_of(line, 60), totals, strict=True):
            assert abs(height * top - total[seat]) < 0.1


def heights_of(path: str, moves: int) -> list[float]:
    """Return the height of a step line at each move, 0 to 1."""
    start, *steps = re.findall(r"[MHV]([\d.]+) ?([\d.]*)", path)
    known, level = {}, float(start[1])
    turns = [float(number) for number, _ in steps[:-1]]
    for across, down in zip(turns[::2], turns[1::2], strict=True):
        known[round(across * moves / 1000)] = down
    heights = []
    for move in range(moves + 1):
        level = known.get(move, level)
        heights.append(1 - level / 1000)
    return heights


def test_animations__run_for_the_next_move_only(
    opened: Browser, games: list[dict[str, Any]]
) -> None:
    animated = "return document.getAnimations().length"
    data = games[0]
    motions = data["motions"]["events"]
    assert len(motions) == len(data["log"])
    moved = next(at for at, found in enumerate(motions) if found and found[0][0] == "pawn")
    set_slider(opened, moved)
    assert opened.execute_script(animated) == 0
    next_move = "document.querySelector('.next').click();"
    assert opened.execute_script(next_move + animated) == len(motions[moved])
    previous = "document.querySelector('.previous').click();"
    assert opened.execute_script(previous + animated) == 0
    check(opened, data, moved)


def test_playback__plays_to_the_end_and_pauses(
    opened: Browser, games: list[dict[str, Any]]
) -> None:
    choose(opened, "speed", 4)
    press(opened, Keys.SPACE)
    until(opened, lambda b: int(page_content(b)["slider"]) >= 2)
    play = opened.find_element("class name", "play")
    assert play.accessible_name == "Pause"
    press(opened, Keys.SPACE)
    assert play.accessible_name == "Play"
    check(opened, games[0], int(page_content(opened)["slider"]))
    set_slider(opened, 58)
    play.click()
    until(opened, lambda b: play.accessible_name == "Play")
    check(opened, games[0], 60)
    play.send_keys(Keys.SPACE)  # pressed once, not twice; starts at the beginning
    assert play.accessible_name == "Pause"
    until(opened, lambda b: 0 < int(page_content(b)["slider"]) < 60)
    press(opened, Keys.HOME)  # a manual step pauses
    assert play.accessible_name == "Play"
    check(opened, games[0], 0)


def test_address__shows_and_follows_the_position(
    opened: Browser, page: Path, games: list[dict[str, Any]]
) -> None:
    opened.get("about:blank")
    opened.get(f"{page.as_uri()}#game=2&move=57")
    wait_for_game(opened)
    check(opened, games[1], 57)
    opened.execute_script("location.hash = 'game=1&move=9'")
    until(opened, lambda b: page_content(b)["position"] == "move 9 of 60")
    check(opened, games[0], 9)
    set_slider(opened, 33)
    until(opened, lambda b: page_content(b)["hash"] == "#game=1&move=33")
    for nonsense in ("game=9&move=900", "game=2&move=90"):  # clamped
        opened.execute_script("location.hash = arguments[0]", nonsense)
        until(opened, lambda b: page_content(b)["position"] == "move 90 of 90")
    opened.execute_script("location.hash = 'game=x&move=<b>'")
    until(opened, lambda b: page_content(b)["position"] == "move 0 of 60")
    check(opened, games[0], 0)


def test_phone__stacks_panels_without_sideways_scrolling(opened: Browser) -> None:
    screen(opened, 390, 844)
    try:
        opened.refresh()
        wait_for_game(opened)
        for game in (0, 1):
            choose(opened, "games", game)
            set_slider(opened, 50)
            width = "return [document.documentElement.scrollWidth, innerWidth]"
            assert opened.execute_script(width) == [390, 390]
        boxes = opened.execute_script(
            "return [...document.querySelectorAll('[data-panel]')].map((e) => {"
            "const b = e.getBoundingClientRect(); return [b.left, b.width, b.top, b.bottom];});"
        )
        assert len(boxes) == len(PANELS)
        assert all((left, width) == (0, 390) for left, width, _, _ in boxes)
        assert all(a[3] <= b[2] for a, b in itertools.pairwise(boxes))
        # The controls stay visible.
        bottom = "return document.querySelector('.playback').getBoundingClientRect().bottom"
        assert opened.execute_script(bottom) == 844
        opened.execute_script("scrollTo(0, 1e6)")
        assert opened.execute_script(bottom) <= 844
    finally:
        opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_theme__follows_the_system_and_the_button(opened: Browser) -> None:
    def tones() -> set[str]:
        found: set[str] = set(
            opened.execute_script(
                "return [document.getElementById('game').dataset.theme,"
                "...[...document.querySelectorAll('svg.tokaido')].map((e) =>"
                "['light', 'dark'].filter((t) => e.classList.contains('tokaido-' + t)).join())]"
            )
        )
        return found

    media = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    try:
        opened.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        until(opened, lambda b: tones() == {"dark"})
        ground = "return getComputedStyle(document.getElementById('game')).backgroundColor"
        dark = opened.execute_script(ground)
        assert opened.find_element("class name", "theme").text == "Light theme"
        click(opened, "theme")
        assert tones() == {"light"}
        assert opened.execute_script(ground) != dark
        choose(opened, "games", 1)  # its graph is new
        assert tones() == {"light"}
        assert opened.find_element("class name", "theme").text == "Dark theme"
    finally:
        opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_notebook_frames__are_independent(
    browser: Browser, records: list[Record], tmp_path: Path
) -> None:
    games = [*records, played(0).record()]  # the last has not begun
    frames = [replay_frame(record)._repr_html_() for record in games]
    path = tmp_path / "notebook.html"
    path.write_text(f"<!DOCTYPE html><title>n</title><p>{'<p>'.join(frames)}", encoding="utf-8")
    positions = []
    with quiet(browser, path.as_uri()):
        for index, steps in enumerate((2, 3, 0)):
            browser.switch_to.frame(index)
            wait_for_game(browser)
            for _ in range(steps):
                click(browser, "next")
            positions.append(page_content(browser)["position"])
            browser.switch_to.default_content()
        assert positions == ["move 2 of 60", "move 3 of 90", "move 0 of 0"]
        browser.switch_to.frame(0)
        assert page_content(browser)["position"] == "move 2 of 60"
        browser.switch_to.default_content()
        assert browser.execute_script("return [document.title, location.hash]") == ["n", ""]


@pytest.mark.parametrize("width", [960, 1250])
def test_notebook_frame__has_the_height_of_its_page(
    browser: Browser, tmp_path: Path, width: int
) -> None:
    notebook = tmp_path / "notebook.html"
    body = f'<!doctype html><body style="margin:0">{replay_frame(played(60))._repr_html_()}</body>'
    notebook.write_text(body, encoding="utf-8")
    screen(browser, width, 1200)
    try:
        browser.get(notebook.as_uri())
        browser.switch_to.frame(0)
        wait_for_game(browser)
        frame, page = browser.execute_script(
            "return [innerHeight, document.body.getBoundingClientRect().height]"
        )
        browser.switch_to.default_content()
    finally:
        screen(browser, 1280, 800)
    assert 0 <= frame - page < 60
