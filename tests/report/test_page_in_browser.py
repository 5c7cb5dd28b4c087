"""The report in a real browser: it is shown whole, and what a stranger wrote in it runs nothing."""

from pathlib import Path
from typing import Any

import pytest
from browsers import Browser
from test_report import FIGURES, ladder

from tokaido_env.agents.report import page

SCRIPT = "<script>document.title = 'gone'</script>"
IMAGE = "<img src=x onerror=\"document.title='gone'\">"

# What is drawn: colours of a table's dots, sizes of figures, the ground of the page, its title.
LOOK = """
const style = (e) => getComputedStyle(e);
return {
  dots: [...document.querySelectorAll("td i")].map((e) => style(e).backgroundColor),
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
    shown: dict[str, Any] = browser.execute_script(LOOK)
    return shown


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "report.html"
    matches, ratings = ladder(["strong", SCRIPT, IMAGE])
    page.write_report(matches, ratings, path, title=SCRIPT + IMAGE, command=IMAGE, board=SCRIPT)
    return path


def test_the_report_is_shown_whole_and_runs_nothing(browser: Browser, report: Path) -> None:
    shown = opened(browser, report)
    assert shown["title"] == SCRIPT + IMAGE
    assert len(shown["figures"]) == len(FIGURES)
    assert min(shown["figures"]) > 100
    assert len(set(shown["dots"])) == 3
    assert len(set(shown["lines"])) > 3
    assert shown["ground"] == "1200px"
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("markup", [SCRIPT, IMAGE])
def test_what_came_into_the_report_as_markup_would_not_run(
    browser: Browser,
    report: Path,
    markup: str,
) -> None:
    """As if a name had not been escaped; without the policy, which it is tested by, it runs."""
    text = report.read_text(encoding="utf-8").replace("<dl>", f"{markup}<dl>")
    report.write_text(text, encoding="utf-8")
    assert opened(browser, report)["title"] == SCRIPT + IMAGE
    (refusal, *_) = browser.get_log("browser")
    assert "Content Security Policy" in refusal["message"]
    assert text.count(page._POLICY) == 1
    report.write_text(text.replace(page._POLICY, ""), encoding="utf-8")
    assert opened(browser, report)["title"] == "gone"
