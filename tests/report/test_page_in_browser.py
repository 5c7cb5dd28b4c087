"""Tests of the report page in a browser."""

from pathlib import Path

import pytest
from browsers import Browser, quiet
from test_report import FIGURES, tournament

from tokaido_env.report import page

pytestmark = pytest.mark.slow

SCRIPT = "<script>document.title = 'gone'</script>"
IMAGE = "<img src=x onerror=\"document.title='gone'\">"
AGENTS = [f"policy:runs/agent-{i},temperature=0.{i:02}" for i in range(18)] + [SCRIPT, "x" * 300]

# Elements outside what scrolls by itself that end beyond the screen.
CUT_OFF = """
return [...document.querySelectorAll("body *")]
  .filter((e) => !e.closest(".wide"))
  .filter((e) => e.getBoundingClientRect().right > innerWidth)
  .map((e) => e.outerHTML.slice(0, 80));
"""


@pytest.fixture
def report(tmp_path: Path) -> Path:
    result = tournament(AGENTS, command=" ".join(AGENTS))
    (tmp_path / "game.html").write_text("<title>a game</title>", encoding="utf-8")
    games = [[("a game", f"game.html#game={i}")] for i in range(1, len(result.scores) + 1)]
    page.write_page(result, tmp_path / "report.html", note=SCRIPT + IMAGE, games=games)
    return tmp_path / "report.html"


def test_report__is_complete_and_fits_a_phone(browser: Browser, report: Path) -> None:
    shape = {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", shape)
    try:
        with quiet(browser, report.as_uri()):
            assert browser.title == "20 agents"
            drawn = "return [...document.images].map((e) => e.naturalWidth)"
            assert browser.execute_script(drawn) == [960] * len(FIGURES)
            assert browser.execute_script("return document.documentElement.scrollWidth") == 360
            assert browser.execute_script(CUT_OFF) == []
        browser.find_element("css selector", "li a").click()
        assert browser.current_url.endswith("game.html#game=1")
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("markup", [SCRIPT, IMAGE])
def test_report__policy_blocks_injected_markup(browser: Browser, report: Path, markup: str) -> None:
    """As if a name were not escaped. Without the policy the markup runs, so the test detects it."""
    text = report.read_text(encoding="utf-8").replace("<dl>", f"{markup}<dl>")
    for policy, title in ((page._POLICY, "20 agents"), ("", "gone")):
        report.write_text(text.replace(page._POLICY, policy), encoding="utf-8")
        browser.get("about:blank")
        browser.get(report.as_uri())
        assert browser.title == title
