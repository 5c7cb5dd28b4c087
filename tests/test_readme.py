"""The examples of README, pages and CONTRIBUTING, run as a reader would paste them."""

import re
from pathlib import Path
from textwrap import dedent

import pytest

from tokaido_env import agents
from tokaido_env.agents import registry
from tokaido_env.arena.ladder import LADDER, Ladder
from tokaido_env.arena.tournament import play_match
from tokaido_env.boards.board import Board

README = Path(__file__).resolve().parents[1] / "README.md"
DOCS = README.parent / "docs"
CONTRIBUTING = README.parent / "CONTRIBUTING.md"


def examples_of(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


LIBRARIES = DOCS / "how-to" / "other-libraries.md"
EXAMPLES = [
    *examples_of(README),
    *(pytest.param(example, marks=pytest.mark.slow) for example in examples_of(LIBRARIES)),
]
OTHER_PAGES = [
    page
    for page in sorted(DOCS.rglob("*.md"))
    if page != LIBRARIES and "_build" not in page.parts and examples_of(page)
]


def test_ladder_rows__agree_with_the_ladder() -> None:
    """Rows of the table: the agent, its Elo, its interval."""
    number = "[\N{MINUS SIGN}0-9]+"
    row = rf"^\| `([^`]+)` \| ({number}) \| ({number} – {number}|reference) \|"
    page = (DOCS / "benchmarks" / "ladder.md").read_text(encoding="utf-8")
    text = page.partition("## Epsilon baselines")[0]
    quoted = {agent: (elo, interval) for agent, elo, interval in re.findall(row, text, re.M)}
    assert len(quoted) >= 7
    rated = {one.agent: one for one in Ladder.load(LADDER, Board.load()).agents}
    for agent in quoted:
        low, high = map(rounded, rated[agent].interval)
        interval = "reference" if agent == "mcts:sims=400" else f"{low} – {high}"
        assert quoted[agent] == (rounded(rated[agent].value), interval), agent


def rounded(elo: float) -> str:
    return f"{elo:.0f}".replace("-", "\N{MINUS SIGN}")


# RLlib registers its vector of games again each time.
@pytest.mark.filterwarnings("ignore:.*Overriding environment rllib:UserWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("example", EXAMPLES)
def test_example__of_readme_and_libraries_runs_by_itself(
    example: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    import_or_skip(example)
    monkeypatch.chdir(tmp_path)
    exec(compile(example, str(README), "exec"), {"__name__": "example"})
    assert ("print" in example) == bool(capsys.readouterr().out)


# RLlib registers its vector of games again each time.
@pytest.mark.filterwarnings("ignore:.*Overriding environment rllib:UserWarning")
@pytest.mark.slow
@pytest.mark.parametrize("page", OTHER_PAGES, ids=lambda page: page.stem)
def test_page__examples_run_in_order(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An output that follows an example at once is compared with what it prints."""
    examples = [
        re.sub(r"^STEPS = .*", "STEPS = 32_768", each, flags=re.M) for each in examples_of(page)
    ]
    monkeypatch.syspath_prepend(DOCS / "recipes")
    import_or_skip("".join(examples))
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "example"}
    pairs = r"```python\n(.*?)```\n\n```\n(.*?)```"
    shown = dict(re.findall(pairs, page.read_text(encoding="utf-8"), re.DOTALL))
    for example in examples:
        exec(compile(example, str(page), "exec"), names)
        printed = capsys.readouterr().out
        assert printed == shown.get(example, printed)


def import_or_skip(code: str) -> None:
    """Skip an example of a library that is not installed.

    `make certify-all` runs those of Tianshou, skrl, SuperSuit, Shimmy, TorchRL and OpenSpiel in
    .venv-others, that of AgileRL in .venv-agilerl, and that of RLlib in .venv-rllib.
    """
    modules = ["pyspiel", "stable_baselines3", "sb3_contrib", "tokaido_env.rllib", "torchrl"]
    for module in (*modules, "tianshou.env", "agilerl", "skrl", "supersuit", "shimmy"):
        if re.search(rf"\b(import|from) \S*{module}\b", code):
            pytest.importorskip(module, exc_type=ImportError)


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
