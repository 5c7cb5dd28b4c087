"""Tests of the report page in a browser."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsers import Browser
from test_report import FIGURES, ladder

from tokaido_env.report import page

SCRIPT = "<script>document.title = 'gone'</script>"
IMAGE = "<img src=x onerror=\"document.title='gone'\">"

# Colours of a table's dots, sizes of figures, background and title of the page.
APPEARANCE = """
const style = (e) => getComputedStyle(e);
return {
  dots: [...document.querySelectorAll("table i")].map((e) => style(e).backgroundColor),
  figures: [...document.querySelectorAll("figure svg")].map((e) => e.clientHeight),
  lines: [...document.querySelectorAll("figure svg path")].map((e) => style(e).stroke),
  ground: style(document.body).maxWidth,
  title: document.title,
};
"""


def opened(browser: Browser, path: Path) -> dict[str, Any]:
    browser.get("about:blank")
    browser.get_log("browser")
    browser.get(path.as_uri())
    displayed: dict[str, Any] = browser.execute_script(APPEARANCE)
    return displayed


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "report.html"
    matches, ratings = ladder(["strong", SCRIPT, IMAGE])
    page.write_report(matches, ratings, path, title=SCRIPT + IMAGE, command=IMAGE, board=SCRIPT)
    return path


def test_report__is_complete_and_runs_no_script(browser: Browser, report: Path) -> None:
    displayed = opened(browser, report)
    assert displayed["title"] == SCRIPT + IMAGE
    assert len(displayed["figures"]) == len(FIGURES) - 1
    assert min(displayed["figures"]) > 100
    assert len(set(displayed["dots"])) == 3
    assert len(set(displayed["lines"])) > 3
    assert displayed["ground"] == "1200px"
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("markup", [SCRIPT, IMAGE])
def test_report__policy_blocks_injected_markup(
    browser: Browser,
    report: Path,
    markup: str,
) -> None:
    """As if a name were not escaped. Without the policy the markup runs, so the test detects it."""
    text = report.read_text(encoding="utf-8").replace("<dl>", f"{markup}<dl>")
    report.write_text(text, encoding="utf-8")
    assert opened(browser, report)["title"] == SCRIPT + IMAGE
    (refusal, *_) = browser.get_log("browser")
    assert "Content Security Policy" in refusal["message"]
    assert text.count(page._POLICY) == 1
    report.write_text(text.replace(page._POLICY, ""), encoding="utf-8")
    assert opened(browser, report)["title"] == "gone"


# A tournament of twenty

AGENTS = [f"policy:runs/agent-{i},temperature=0.{i:02}" for i in range(18)] + [SCRIPT, "x" * 300]


@pytest.fixture(scope="module")
def tournament(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tournament")
    matches, ratings = ladder(AGENTS)
    (folder / "game.html").write_text("<title>a game</title>", encoding="utf-8")
    page.write_report(
        *(matches, ratings, folder / "report.html"),
        title="20 agents",
        command=" ".join(AGENTS),
        games=[{0: f"game.html#game={i}"} for i in range(1, len(matches) + 1)],
    )
    return folder / "report.html"


def narrow(browser: Browser, width: int) -> None:
    shape = {"width": width, "height": 740, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", shape)


@pytest.fixture
def phone(browser: Browser) -> Iterator[Browser]:
    narrow(browser, 360)
    yield browser
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_report__fits_a_phone_with_contrast(phone: Browser, tournament: Path, scheme: str) -> None:
    """Nothing is wider than the screen, folded or not; the text has enough contrast."""
    feature = {"name": "prefers-color-scheme", "value": scheme}
    phone.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    opened(phone, tournament)
    for _ in range(2):
        width = phone.execute_script("return document.documentElement.scrollWidth")
        assert width == phone.execute_script("return innerWidth") == 360
        phone.execute_script("document.querySelectorAll('details').forEach((d) => (d.open = true))")
    assert phone.execute_script(CUT_OFF) == []
    assert min(phone.execute_script(CONTRASTS)) >= 4.5
    phone.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


# Elements outside what scrolls by itself that end beyond the screen.
CUT_OFF = """
return [...document.querySelectorAll("body *")]
  .filter((e) => !e.closest(".wide, .matrix") && !e.closest("thead"))
  .filter((e) => e.getBoundingClientRect().right > innerWidth)
  .map((e) => e.outerHTML.slice(0, 80));
"""

# Of the cells of the matrix: the contrast of their text (WCAG 2.2, 1.4.3).
CONTRASTS = """
const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
const over = ([r, g, b, a = 1], ground) => [r, g, b].map((x, i) => a * x + (1 - a) * ground[i]);
const light = (colour) => {
  const linear = (x) => (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
  const [r, g, b] = colour.map((x) => linear(x / 255));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
};
const paper = parts(getComputedStyle(document.body).backgroundColor);
return [...document.querySelectorAll(".matrix td a")].map((e) => {
  const style = getComputedStyle(e.parentElement);
  const ground = light(over(parts(style.backgroundColor), paper));
  const ink = light(parts(getComputedStyle(e).color));
  return Math.max(ink, ground) / Math.min(ink, ground);
});
"""


def test_report__matrix_links_matches_and_games(browser: Browser, tournament: Path) -> None:
    """Clicks open folded parts; the names of rows and columns stay visible."""
    opened(browser, tournament)
    assert browser.execute_script("return document.querySelectorAll('details[open]').length") == 0
    browser.find_element("css selector", "#all-pairs summary").click()
    cell = browser.find_element(
        "css selector",
        ".matrix tbody tr:nth-child(20) td:last-of-type a, "
        ".matrix tbody tr:nth-child(20) td:nth-of-type(19) a",
    )
    browser.execute_script("document.querySelector('.matrix').scrollTo(9999, 9999)")
    seen = browser.execute_script(VISIBLE)
    assert seen == {"column": True, "row": True}
    number = cell.get_attribute("href").rpartition("-")[2]
    cell.click()
    match = browser.find_element("css selector", f"#match-{number}")
    assert match.is_displayed()
    match.find_element("css selector", "li a").click()
    assert browser.title == "a game"
    assert browser.current_url.endswith(f"game.html#game={number}")


VISIBLE = """
const box = document.querySelector(".matrix").getBoundingClientRect();
const inside = (e) => {
  const { left, top } = e.getBoundingClientRect();
  return left >= box.left && left < box.right && top >= box.top && top < box.bottom;
};
return {
  column: inside(document.querySelector(".matrix thead th:last-child")),
  row: inside(document.querySelector(".matrix tbody tr:last-child th")),
};
"""
