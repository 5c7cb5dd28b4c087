"""Links, tables of contents and API pages of the documentation, checked without Sphinx.

`make docs` checks more, but takes its tools and minutes.
"""

import json
import re
import tomllib
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

import tokaido_env
from tokaido_env.agents.champion import CHAMPION, GENERALIST
from tokaido_env.agents.policy import Policy
from tokaido_env.arena.ladder import FAMILY_LADDER, LADDER, Ladder
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.core.board_features import N_BOARD_FEATURES
from tokaido_env.core.observation import N_FEATURES
from tokaido_env.learn.settings import TdSettings
from tokaido_env.study.regret_set import RegretSet

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob(".github/*.md"),
        *(page for page in DOCS.rglob("*.md") if not {"_build", "notebooks"} & set(page.parts)),
        *(ROOT / folder / "README.md" for folder in ("agents", "benchmarks", "data")),
    ]
)
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
ON_THE_SITE = [page for page in PAGES if page.is_relative_to(DOCS)]
READ = [
    *(ROOT / name for name in ("README.md", "agents/README.md", "CONTRIBUTING.md")),
    *(page for page in ON_THE_SITE if not page.is_relative_to(DOCS / "dev")),
]
QUOTING = [*READ, ROOT / "CHANGELOG.md", ROOT / "benchmarks" / "README.md"]
FIGURES = tomllib.loads((DOCS / "benchmarks" / "figures.toml").read_text(encoding="utf-8"))
ADAPTERS = ["gym", "observers", "openspiel", "rllib", "sb3"]
ADAPTERS += ["text", "torchrl"]
FEWEST_WORDS = 8  # of a page that says something


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def prose_of(page: Path) -> str:
    """Return a page without code, in which brackets are no links."""
    text = page.read_text(encoding="utf-8")
    return re.sub(r"^ *```.*?^ *```$|`[^`\n]*`", "code", text, flags=re.DOTALL | re.MULTILINE)


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


def text_of(page: Path) -> list[Token]:
    """Return the tokens of a page, as a forge reads it."""
    text = re.sub(r"^---\n.*?^---\n", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    return MarkdownIt("commonmark").enable("table").parse(text)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_local_links__lead_to_files_and_headings(page: Path) -> None:
    for link in local_links_of(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert target.is_relative_to(ROOT), link
        if anchor and target.suffix == ".md":
            assert anchor in anchors_of(target), link


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_pages__are_plain_markdown(page: Path) -> None:
    """A forge shows pages without the site's tools: text and pictures, no directives or roles."""
    tokens = text_of(page)
    parts = [part for token in tokens for part in token.children or ()]
    fences = [token.info for token in tokens if token.type == "fence"]
    assert [info for info in fences if info.startswith("{")] == []
    texts = [part.content for part in parts if part.type == "text"]
    directive = r"^(:::|%|\+\+\+|\(.+\)=$)|\{[a-z:]+\}$|^\{[#.:a-z].*\}"
    assert [text for text in texts if re.search(directive, text)] == []
    raw = "".join(token.content for token in (*tokens, *parts) if "html" in token.type)
    pictures = [str(part.attrs["src"]) for part in parts if part.type == "image"]
    for picture in pictures + re.findall(r'(?:src|srcset)="([^"]+)"', raw):
        assert (page.parent / picture).is_file(), picture
    assert sum(len(text.split()) for text in texts) >= FEWEST_WORDS


def test_pages__are_all_in_the_list_of_pages() -> None:
    """`docs/conf.py` makes the tables of contents of both lists."""
    index, api = DOCS / "index.md", DOCS / "reference" / "api" / "index.md"
    listed = index.read_text(encoding="utf-8").partition("## All pages")[2]
    links = re.findall(r"\]\((\S+)\)", listed)
    assert len(set(links)) == len(links)
    found = {(DOCS / link).resolve() for link in links}
    names = re.findall(r"\]\((\w+)\.md\)", api.read_text(encoding="utf-8"))
    below = {api.parent / f"{name}.md" for name in names}
    assert found | below | {index} == {*ON_THE_SITE, *NOTEBOOKS}


@pytest.mark.parametrize("name", ADAPTERS)
def test_adapters__are_on_an_api_page(name: str) -> None:
    pages = (DOCS / "reference" / "api").glob("*.md")
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    assert f"- [`tokaido_env.{name}`](../../../tokaido_env/{name}.py)" in text


def test_api_index__names_all_public_objects() -> None:
    text = (DOCS / "reference" / "api" / "index.md").read_text(encoding="utf-8")
    assert set(tokaido_env.__all__) <= set(re.findall(r"`(\w+)`", text))


def test_counts__are_those_of_the_code() -> None:
    sizes = [
        sum(tensor.size for tensor in Policy.load(path).tensors.values())
        for path in (CHAMPION, GENERALIST)
    ]
    expected = {
        r"float32 `?\(([0-9]+),\)": {N_FEATURES},
        r"\b([0-9]+) float32\b": {N_FEATURES},
        r"Discrete\(([0-9]+)\)": {len(tokaido_env.ACTIONS)},
        r"(?<![0-9,])([0-9]+) actions\b": {len(tokaido_env.ACTIONS)},
        r"\b([0-9]+) \[?board features\b": {N_BOARD_FEATURES},
        r"\b([0-9]{3},[0-9]{3}) (?:parameters|\|)": set(sizes),
        r"--updates ([0-9]+)` \(default\)": {TdSettings.updates},
        r"--updates ([0-9]+) +# extend: twice": {2 * TdSettings.updates},
    }
    for pattern, numbers in expected.items():
        of_networks = "parameters" in pattern
        names = {"models.md", "champion.md", "generalist.md"} if of_networks else set()
        found = {
            int(number.replace(",", ""))
            for page in READ
            if not names or page.name in names
            for number in re.findall(pattern, page.read_text(encoding="utf-8"))
        }
        assert found == numbers, pattern


def test_hashes__are_those_of_the_files() -> None:
    """A changed file needs new measurements of the figures that name it."""
    networks = {"champion": CHAMPION, "generalist": GENERALIST}
    known = {
        **{name: sha256(path.read_bytes()).hexdigest()[:16] for name, path in networks.items()},
        "ladder": Ladder.load(LADDER).result.hash,
        "ladder-family": Ladder.load(FAMILY_LADDER).result.hash,
        "regret": RegretSet.load().hash,
        "solved": RegretSet.load("solved").hash,
        "tokaido-100": BoardPool.load("family:test").hash,
    }
    assert FIGURES["hashes"] == known
    assert all(set(figure["files"]) <= set(known) for figure in FIGURES["figures"])
    quoted = {
        text
        for page in READ
        for text in re.findall(r"`([0-9a-f]{16})`", page.read_text(encoding="utf-8"))
    }
    assert quoted == set(known.values()) - {known[name] for name in networks}


@pytest.mark.parametrize("figure", FIGURES["figures"], ids=lambda figure: figure["name"])
def test_figures__are_quoted_alike_on_all_pages(figure: dict[str, Any]) -> None:
    texts = [page.read_text(encoding="utf-8") for page in QUOTING]
    for quote in figure["quotes"]:
        found = [match for text in texts for match in re.finditer(quote["text"], text)]
        assert found, quote["text"]
        for match in found:
            for key, text in match.groupdict().items():
                assert text == rounded(figure[key], quote["scale"], text), match[0]


def rounded(figure: float | str, scale: float, quoted: str) -> str:
    """Return a figure with as many decimals as a quote of it."""
    if isinstance(figure, str):
        return figure
    decimals = len(quoted.partition(".")[2])
    return f"{figure / scale:,.{decimals}f}".replace("-", "\N{MINUS SIGN}")


def test_gymnasium_id__names_the_module() -> None:
    """The id alone is unknown in worker processes. TextArena has a game of that name too."""
    texts = {page.name: page.read_text("utf-8") for page in [*PAGES, *NOTEBOOKS]}
    alone = {name for name, text in texts.items() if re.search(r"(?<!env:)TokaidoDuo-v0", text)}
    assert alone == {"language-models.md"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook__is_stored_without_outputs(path: Path) -> None:
    """`make docs` runs the notebooks."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert [cell for cell in cells if cell.get("outputs") or cell.get("execution_count")] == []
