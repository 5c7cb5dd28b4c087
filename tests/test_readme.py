"""The examples of the README and of pages, run as a reader would paste them."""

import re
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[1] / "README.md"
DOCS = README.parent / "docs"


def examples_of(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


EXAMPLES = [*examples_of(README), *examples_of(DOCS / "quickstart.md")]


def test_the_pages_have_examples() -> None:
    assert len(examples_of(README)) >= 2
    assert len(EXAMPLES) >= 12


# RLlib registers its vector of games anew each time.
@pytest.mark.filterwarnings("ignore:.*Overriding environment rllib:UserWarning")
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda code: code.split("\n", 1)[0])
def test_an_example_runs_by_itself(
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


@pytest.mark.parametrize(
    ("name", "least"), [("agents", 1), ("bots", 1), ("libraries", 3), ("records", 1), ("text", 3)]
)
def test_the_examples_of_a_page_run_one_after_the_other(
    name: str, least: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "libraries":
        pytest.importorskip("torchrl")
    page = DOCS / f"{name}.md"
    examples = examples_of(page)
    assert len(examples) >= least
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "example"}
    for example in examples:
        exec(compile(example, str(page), "exec"), names)
