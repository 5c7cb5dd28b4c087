"""Notebooks: executed from top to bottom, and stored without outputs.

`make docs`, which CI runs for every push, executes them at full length too.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

# In a new process: warnings of its libraries do not count, warnings of cells do.
EXECUTE = """
import sys
from pathlib import Path
import nbformat
from nbclient import NotebookClient
path = Path(sys.argv[1])
notebook = nbformat.read(path, as_version=4)
nbformat.validate(notebook)
tagged = [i for i, c in enumerate(notebook.cells) if "parameters" in c.metadata.get("tags", ())]
for i in tagged:
    notebook.cells.insert(i + 1, nbformat.v4.new_code_cell(sys.argv[3]))
options = {"timeout": 1200, "kernel_name": "this", "resources": {"metadata": {"path": path.parent}}}
NotebookClient(notebook, **options).execute()
nbformat.write(notebook, sys.argv[2])
"""

# Inserted after the cell with the tag `parameters`, for a shorter run.
SHORT = {
    "02_environment": "STEPS = 32_768",
    "03_train": """
SETTINGS = {"updates": 4, "games": 16, "width": 32, "rate_every": 2, "rating_games": 4}
""",
}


def execute(path: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Execute a notebook with this interpreter; write the result to the folder."""
    kernel = folder / "kernels" / "this"
    kernel.mkdir(parents=True)
    launcher = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": launcher, "display_name": "this", "language": "python"}
    (kernel / "kernel.json").write_text(json.dumps(spec))
    words = [str(path), str(folder / path.name), SHORT.get(path.stem, "")]
    command = [sys.executable, "-c", EXECUTE, *words]
    environment = jupyter_environment(folder)
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def jupyter_environment(folder: Path) -> dict[str, str]:
    wanted = {
        "JUPYTER_PATH": str(folder),
        "JUPYTER_RUNTIME_DIR": str(folder),
        "IPYTHONDIR": str(folder),
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        "TMPDIR": str(folder),
    }
    return os.environ | wanted


def outputs(path: Path) -> list[dict[str, object]]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [output for cell in cells for output in cell.get("outputs", [])]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook__is_stored_without_outputs(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert not outputs(path)
    assert {cell.get("execution_count") for cell in cells} == {None}
    tagged = [cell for cell in cells if "parameters" in cell["metadata"].get("tags", ())]
    assert len(tagged) == (path.stem in SHORT)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook__runs_from_top_to_bottom(path: Path, tmp_path: Path) -> None:
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    done = execute(path, tmp_path)
    assert done.returncode == 0, done.stderr
    made = outputs(tmp_path / path.name)
    assert made
    assert not [each for each in made if each.get("name") == "stderr"]
