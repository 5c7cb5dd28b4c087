"""The examples of README, pages and CONTRIBUTING, run as a reader would paste them."""

import re
from pathlib import Path
from textwrap import dedent

import pytest

from tokaido_env import agents
from tokaido_env.agents import registry
from tokaido_env.arena.tournament import play_match

README = Path(__file__).resolve().parents[1] / "README.md"
DOCS = README.parent / "docs"
CONTRIBUTING = README.parent / "CONTRIBUTING.md"


def examples_of(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


TUTORIAL = DOCS / "get-started" / "tutorial.md"
EXAMPLES = [*examples_of(README), *examples_of(TUTORIAL)]
# The tutorial's examples run one by one; those of the other pages need files of the reader's.
APART = ("tutorial", "export-data", "review")
OTHER_PAGES = [
    page
    for page in sorted(DOCS.rglob("*.md"))
    if page.stem not in APART and "_build" not in page.parts and examples_of(page)
]


def test_pages__have_examples() -> None:
    assert len(examples_of(README)) >= 2
    assert len(EXAMPLES) >= 12
    assert len(OTHER_PAGES) >= 9


# RLlib registers its vector of games again each time.
@pytest.mark.filterwarnings("ignore:.*Overriding environment rllib:UserWarning")
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda code: code.split("\n", 1)[0])
def test_example__of_readme_and_quickstart_runs_by_itself(
    example: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for module in ("pyspiel", "sb3_contrib", "tokaido_env.rllib"):
        if module in example:
            pytest.importorskip(module, exc_type=ImportError)
    monkeypatch.chdir(tmp_path)
    exec(compile(example, str(README), "exec"), {"__name__": "example"})
    assert ("print" in example) == bool(capsys.readouterr().out)


@pytest.mark.parametrize("page", OTHER_PAGES, ids=lambda page: page.stem)
def test_page__examples_run_in_order(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    examples = examples_of(page)
    if any("tokaido_env.torchrl" in example for example in examples):
        pytest.importorskip("torchrl")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "example"}
    for example in examples:
        exec(compile(example, str(page), "exec"), names)


def test_contributing__has_an_agent_that_plays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent of *Add an agent*, with its entry of `KINDS`."""
    recipe = CONTRIBUTING.read_text(encoding="utf-8").partition("## Add an agent")[2]
    module, entry = map(dedent, re.findall(r"```python\n(.*?)```", recipe, re.DOTALL)[:2])
    (name,) = re.findall(r"`tokaido_env/agents/(\w+)\.py`", recipe.partition("```")[0])
    (tmp_path / f"{name}.py").write_text(module, encoding="utf-8")
    monkeypatch.setattr("tokaido_env.agents.__path__", [*agents.__path__, str(tmp_path)])
    kinds = eval("{" + entry + "}", {"AgentKind": registry.AgentKind})
    monkeypatch.setattr(registry, "KINDS", registry.KINDS | kinds)
    (spec,) = kinds
    assert len(play_match(agents.make(spec), agents.make("random"), 4, seed=0).games) == 2
