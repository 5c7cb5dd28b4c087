"""Tests of the report page in a browser."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsers import Browser
from test_report import FIGURES, tournament

from tokaido_env.report import page

pytestmark = pytest.mark.slow

SCRIPT = "<script>document.title = 'gone'</script>"
IMAGE = "<img src=x onerror=\"document.title='gone'\">"
TITLE = f"strong – {SCRIPT} – {IMAGE}"

# Sizes and colours of figures, width and title of the page.
APPEARANCE = """
const style = (e) => getComputedStyle(e);
return {
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
    page.write_page(tournament(["strong", SCRIPT, IMAGE], command=IMAGE), path, note=SCRIPT)
    return path


def test_report__is_complete_and_runs_no_script(browser: Browser, report: Path) -> None:
    displayed = opened(browser, report)
    assert displayed["title"] == TITLE
    assert len(displayed["figures"]) == len(FIGURES)
    assert min(displayed["figures"]) > 100
    assert len(set(displayed["lines"])) > 3
    assert displayed["ground"] == "1200px"
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("markup", [SCRIPT, IMAGE])
def test_report__policy_blocks_injected_markup(browser: Browser, report: Path, markup: str) -> None:
    """As if a name were not escaped. Without the policy the markup runs, so the test detects it."""
    text = report.read_text(encoding="utf-8").replace("<dl>", f"{markup}<dl>")
    report.write_text(text, encoding="utf-8")
    assert opened(browser, report)["title"] == TITLE
    (refusal, *_) = browser.get_log("browser")
    assert "Content Security Policy" in refusal["message"]
    assert text.count(page._POLICY) == 1
    report.write_text(text.replace(page._POLICY, ""), encoding="utf-8")
    assert opened(browser, report)["title"] == "gone"


# A tournament of twenty

AGENTS = [f"policy:runs/agent-{i},temperature=0.{i:02}" for i in range(18)] + [SCRIPT, "x" * 300]


@pytest.fixture(scope="module")
def tournament_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tournament")
    result = tournament(AGENTS, command=" ".join(AGENTS))
    (folder / "game.html").write_text("<title>a game</title>", encoding="utf-8")
    games = [[("a game", f"game.html#game={i}")] for i in range(1, len(result.scores) + 1)]
    page.write_page(result, folder / "report.html", games=games)
    return folder / "report.html"


def narrow(browser: Browser, width: int) -> None:
    shape = {"width": width, "height": 740, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", shape)


@pytest.fixture
def phone(browser: Browser) -> Iterator[Browser]:
    narrow(browser, 360)
    yield browser
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_report__fits_a_phone_and_links_games(phone: Browser, tournament_page: Path) -> None:
    """Nothing is wider than the screen."""
    opened(phone, tournament_page)
    width = phone.execute_script("return document.documentElement.scrollWidth")
    assert width == phone.execute_script("return innerWidth") == 360
    assert phone.execute_script(CUT_OFF) == []
    phone.find_element("css selector", "li a").click()
    assert phone.title == "a game"
    assert phone.current_url.endswith("game.html#game=1")


# Elements outside what scrolls by itself that end beyond the screen.
CUT_OFF = """
return [...document.querySelectorAll("body *")]
  .filter((e) => !e.closest(".wide") && !e.closest("thead"))
  .filter((e) => e.getBoundingClientRect().right > innerWidth)
  .map((e) => e.outerHTML.slice(0, 80));
"""
