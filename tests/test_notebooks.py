"""Every notebook runs from top to bottom, and is stored without outputs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

# In a process of its own: what its libraries warn of is not our concern, what cells warn of is.
EXECUTE = """
import sys
from pathlib import Path
import nbformat
from nbclient import NotebookClient
path = Path(sys.argv[1])
notebook = nbformat.read(path, as_version=4)
nbformat.validate(notebook)
options = {"timeout": 300, "kernel_name": "this", "resources": {"metadata": {"path": path.parent}}}
NotebookClient(notebook, **options).execute()
nbformat.write(notebook, sys.argv[2])
"""


def execute(path: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a notebook by this interpreter; the executed one is then in the folder."""
    kernel = folder / "kernels" / "this"
    kernel.mkdir(parents=True)
    words = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": words, "display_name": "this", "language": "python"}
    (kernel / "kernel.json").write_text(json.dumps(spec))
    command = [sys.executable, "-c", EXECUTE, str(path), str(folder / path.name)]
    environment = jupyter_environment(folder)
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def jupyter_environment(folder: Path) -> dict[str, str]:
    wanted = {
        "JUPYTER_PATH": str(folder),
        "JUPYTER_RUNTIME_DIR": str(folder),
        "IPYTHONDIR": str(folder),
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    return os.environ | wanted


def outputs(path: Path) -> list[dict[str, object]]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [output for cell in cells for output in cell.get("outputs", [])]


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_outputs(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert not outputs(path)
    assert {cell.get("execution_count") for cell in cells} == {None}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom(path: Path, tmp_path: Path) -> None:
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    done = execute(path, tmp_path)
    assert done.returncode == 0, done.stderr
    made = outputs(tmp_path / path.name)
    assert made
    assert not [each for each in made if each.get("name") == "stderr"]


def test_a_notebook_that_fails_is_found_out(tmp_path: Path) -> None:
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    cell = {
        "cell_type": "code",
        "id": "a",
        "metadata": {},
        "source": "1 / 0",
        "outputs": [],
        "execution_count": None,
    }
    broken = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path = tmp_path / "broken.ipynb"
    path.write_text(json.dumps(broken))
    done = execute(path, tmp_path / "run")
    assert done.returncode != 0
    assert "ZeroDivisionError" in done.stderr
