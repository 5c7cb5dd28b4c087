"""The README's examples, run as a reader would paste them."""

import re
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[1] / "README.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def test_the_readme_has_examples() -> None:
    assert len(EXAMPLES) >= 7


# RLlib registers its vector of games anew each time.
@pytest.mark.filterwarnings("ignore:.*Overriding environment rllib:UserWarning")
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda code: code.split("\n", 1)[0])
def test_an_example_of_the_readme_runs(
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


def test_the_examples_of_the_page_on_libraries_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torchrl")
    page = README.parent / "docs" / "libraries.md"
    examples = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert len(examples) >= 3
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "example"}
    for example in examples:
        exec(compile(example, str(page), "exec"), names)
