"""Configuration of the site, which `make docs` builds into docs/_build/html without the network."""

from __future__ import annotations

import os
import re
import shutil
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent

project = "tokaido_env"
author = "the authors of tokaido_env"
project_copyright = "2026, the authors of tokaido_env"
release = version = version_of("tokaido-env")

# Pages from files outside this folder.
SOURCES = {
    f"get-started/notebooks/{path.name}": f"notebooks/{path.name}"
    for path in (HERE.parent / "notebooks").glob("*.ipynb")
}

# Directives of modules in place of `automodule`.
DIRECTIVES = tomllib.loads((HERE / "api_directives.toml").read_text(encoding="utf-8"))

# The repository's workflow sets it: there the address exists, other than that of pyproject.toml.
FORGE = os.environ.get("GITHUB_REPOSITORY", "")

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
]
exclude_patterns = ["_build", "_templates", "recipes", "Thumbs.db"]
highlight_language = "none"  # only blocks that name their language are highlighted
# Output and usage are not for copying.
copybutton_selector = (
    ":not(.highlight-none, .highlight-text, .highlight-myst-ansi) > .highlight > pre"
)
copybutton_prompt_text = ">>> "
# "more than one target": two classes have an attribute `slice`, which a return type names too.
suppress_warnings = ["ref.python"]
viewcode_follow_imported_members = False  # no pages of other libraries' sources
nitpicky = True
# Names of other libraries are not linked, since building needs no network. Ours must resolve.
nitpick_ignore_regex = [("py:.*", r"(?!tokaido_env\.).*")]

myst_enable_extensions = ["alert"]  # pages are plain Markdown
myst_heading_anchors = 4
nb_execution_mode = "cache"  # executes changed notebooks only
nb_execution_cache_path = str(HERE / "_build" / "notebooks")
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_execution_show_tb = True

autodoc_mock_imports = ["ray"]  # RLlib needs another version of Gymnasium
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_preserve_defaults = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
python_use_unqualified_type_names = True

html_theme = "pydata_sphinx_theme"
html_title = f"tokaido_env {version}"
templates_path = ["_templates"]
html_sidebars = {"**": ["pages"]}
html_static_path = ["_static"]
html_favicon = "_static/favicon.svg"
html_context = {
    "default_mode": "auto",  # as the reader's system, until they choose
    "sources": SOURCES,
    "edit_page_provider_name": "GitHub",
    "edit_page_url_template": f"https://github.com/{FORGE}/edit/main/"
    "{{ sources.get(file_name, 'docs/' + file_name) }}",
}
html_css_files = ["site.css"]
html_search_scorer = str(HERE / "_static" / "scorer.js")
html_show_sourcelink = False
html_theme_options = {
    "navbar_center": [],
    "use_edit_page_button": bool(FORGE),
    "navigation_with_keys": False,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc", "edit-this-page"],
    "footer_start": ["copyright"],
    "footer_end": [],
}


def copy_notebooks() -> None:
    """Copy changed notebooks to the folder that Sphinx reads."""
    target = HERE / "get-started" / "notebooks"
    target.mkdir(parents=True, exist_ok=True)
    for notebook in sorted((HERE.parent / "notebooks").glob("*.ipynb")):
        copy = target / notebook.name
        if not copy.exists() or copy.read_bytes() != notebook.read_bytes():
            shutil.copyfile(notebook, copy)


def link_to_copies(app: Any, name: str, source: list[str]) -> None:
    """Turn links to files outside this folder into links to their pages or to copies of them."""
    folder = HERE.joinpath(name).parent
    pages = {path: page for page, path in SOURCES.items()}

    def link(match: re.Match[str]) -> str:
        path = os.path.relpath(folder / match[1], HERE.parent)
        if path in pages:
            return f"]({os.path.relpath(HERE / pages[path], folder)}{match[2] or ''})"
        return match[0] if path.startswith("docs/") else f"](path:{match[1]})"

    source[0] = re.sub(r"\]\((?![a-z]+:|#|<)([^)#\s]+)(#[^)\s]+)?\)", link, source[0])


def add_directives(app: Any, name: str, source: list[str]) -> None:
    """Add what a forge does not show: docstrings of modules, and tables of contents."""
    folder, text = HERE.joinpath(name).parent, source[0]
    if name == "index":
        source[0] += _tables_of_contents(text.partition("## All pages")[2])
    elif name == "reference/api/index":
        pages = dict.fromkeys(re.findall(r"\]\((\w+)\.md\)", text))
        source[0] += _table_of_contents("", pages)
    elif folder == HERE / "reference" / "api":
        source[0] = re.sub(r"^- \[`([\w.]+)`\]\(.*\)$", _with_docstrings, text, flags=re.MULTILINE)


def _tables_of_contents(text: str) -> str:
    """Return a hidden table of contents for each paragraph of links under a bold word."""
    groups = re.findall(r"\*\*(.+?)\*\*: (.+?)(?:\n\n|$)", text, re.DOTALL)
    return "".join(
        _table_of_contents(group, re.findall(r"\]\((\S+)\.(?:md|ipynb)\)", links))
        for group, links in groups
    )


def _table_of_contents(caption: str, pages: Iterable[str]) -> str:
    lines = ["", "```{toctree}", ":hidden:", *([f":caption: {caption}"] if caption else [])]
    return "\n".join([*lines, "", *pages, "```", ""])


def _with_docstrings(match: re.Match[str]) -> str:
    """Return a section with the docstrings of a module."""
    directive = DIRECTIVES.get(match[1], f".. automodule:: {match[1]}")
    return f"## `{match[1]}`\n\n```{{eval-rst}}\n{directive.strip()}\n```\n"


def convert_markdown(
    app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Convert Markdown in docstrings to reStructuredText: code, examples, tables."""
    lines[:] = list(_with_tables(_with_examples([_with_code(line) for line in lines])))


def _with_code(line: str) -> str:
    """Mark text in single backquotes as code; escape asterisks elsewhere."""
    parts = re.split(r"(`[^`]+`)", line)
    for k, part in enumerate(parts):
        code = k % 2 == 1
        parts[k] = f"`{part}`" if code else re.sub(r"(?<!\*)\*(?!\*)", r"\\*", part)
    return "".join(parts)


def _with_examples(lines: list[str]) -> Iterator[str]:
    """Mark indented blocks after an empty line as examples."""
    for k, line in enumerate(lines):
        begins = line.startswith("    ") and k > 0 and not lines[k - 1].strip()
        above = next((one for one in reversed(lines[:k]) if one.strip()), "")
        if begins and not above.startswith(" ") and not line.strip().startswith(">>>"):
            yield from (".. code-block:: python", "")
        yield line


def _with_tables(lines: Iterable[str]) -> Iterator[str]:
    """Convert Markdown tables to `list-table` directives."""
    inside = False
    for line in lines:
        if not line.startswith("|"):
            inside = False
            yield line
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not inside:
            yield from (".. list-table::", *(["   :header-rows: 1"] if any(cells) else []), "")
            inside = True
            if not any(cells):  # a table without a header
                continue
        if set("".join(cells)) <= {"-", ":"}:
            continue
        for k, cell in enumerate(cells):
            yield f"   {'* -' if k == 0 else '  -'} {cell}"


def setup(app: Any) -> None:
    """Connect the conversions; Sphinx calls this function."""
    copy_notebooks()
    app.connect("source-read", link_to_copies, priority=400)
    app.connect("source-read", add_directives)
    app.connect("autodoc-process-docstring", convert_markdown, priority=400)
