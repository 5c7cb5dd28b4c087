"""Links, tables of contents and API pages of the documentation, checked without Sphinx.

`make docs` checks more, but takes its tools and minutes.
"""

import re
from pathlib import Path

import pytest

import tokaido_env

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob(".github/*.md"),
        *(page for page in DOCS.rglob("*.md") if not {"_build", "notebooks"} & set(page.parts)),
        ROOT / "benchmarks" / "README.md",
    ]
)
ON_THE_SITE = [
    page for page in PAGES if page.is_relative_to(DOCS) and not page.is_relative_to(DOCS / "dev")
]
ADAPTERS = ["gym", "kaggle", "observers", "openspiel", "rllib", "sb3"]
ADAPTERS += ["text", "textarena", "torchrl"]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def prose_of(page: Path) -> str:
    """Return a page without code, in which brackets are no links."""
    text = page.read_text(encoding="utf-8")
    return re.sub(r"```(?!\{).*?```|`[^`\n]*`", "code", text, flags=re.DOTALL)


def anchors_of(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as forges and MyST make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.M)
    headings = re.findall(r"^#{1,6} +(.+?) *$", text, re.MULTILINE)
    kept = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    named = re.findall(r'<a (?:id|name)="([^"]+)"', text) + re.findall(r"^\((.+)\)=$", text, re.M)
    return {anchor.replace(" ", "-") for anchor in kept} | set(named)


def local_links_of(page: Path) -> list[str]:
    links = re.findall(r"\]\(([^)\s]+)(?: \"[^\"]*\")?\)", prose_of(page))
    return [link for link in links if not re.match(r"[a-z]+:", link)]


def pages_below(page: Path) -> set[Path]:
    """Return the pages in a page's tables of contents, and in theirs."""
    found: set[Path] = set()
    for tree in re.findall(
        r"```\{toctree\}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL
    ):
        for line in tree.split("\n"):
            if re.fullmatch(r"[\w\-/]+", line):
                below = page.parent / f"{line}.md"
                found |= {below, *pages_below(below)}
    return found


def test_pages__and_links_are_found() -> None:
    assert len(ON_THE_SITE) > 40
    assert sum(len(local_links_of(page)) for page in PAGES) > 100


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_local_links__lead_to_files_and_headings(page: Path) -> None:
    for link in local_links_of(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert target.is_relative_to(ROOT), link
        if anchor and target.suffix == ".md":
            assert anchor in anchors_of(target), link


def test_pages__are_all_in_a_table_of_contents() -> None:
    index = DOCS / "index.md"
    assert {index, *pages_below(index)} == set(ON_THE_SITE)


@pytest.mark.parametrize("name", ADAPTERS)
def test_adapters__are_on_an_api_page(name: str) -> None:
    pages = (DOCS / "reference" / "api").glob("*.md")
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    assert re.search(rf"automodule:: tokaido_env\.{name}\b", text)


def test_api_index__names_all_public_objects() -> None:
    text = (DOCS / "reference" / "api" / "index.md").read_text(encoding="utf-8")
    assert set(tokaido_env.__all__) <= set(re.findall(r"`(\w+)`", text))


def test_comparison__quotes_rows_of_the_table_of_speeds() -> None:
    speeds = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8").splitlines()
    page = (DOCS / "benchmarks" / "comparison.md").read_text(encoding="utf-8")
    rows = [line.rstrip(" |") for line in page.partition("## Speeds")[2].splitlines()]
    quoted = [row for row in rows if row.endswith("decisions/s")]
    assert len(quoted) >= 9
    for row in quoted:
        assert sum(line.startswith(f"{row} |") for line in speeds) == 1, row
