"""Import directions, rules for state and kernels, sizes, and the action table."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import reference
import structure
from structure import parsed

from tokaido_env import ACTIONS
from tokaido_env.core.actions import IDS
from tokaido_env.core.rng import LUCK
from tokaido_env.core.state import BOARD, STATE

ROOT = Path(__file__).resolve().parents[1]
SOURCES = structure.sources()

OPTIONAL = {
    *("torch", "stable_baselines3", "sb3_contrib", "tensorboard", "safetensors"),
    *("pyspiel", "open_spiel", "matplotlib", "IPython", "pyarrow", "pandas"),
    *("resvg_py", "PIL", "pygame", "ray", "starlette", "uvicorn"),
    *("anywidget", "traitlets", "torchrl", "tensordict", "textarena", "minari", "openai"),
}
# The modules that open files for writing themselves: each holds a lock meanwhile.
WRITERS = {
    "tokaido_env/core/kernel_cache.py": "a lock on the entry",
    "tokaido_env/files.py": "a lock on the temporary file",
    "tokaido_env/arena/records.py": "a lock on the record file",
    "tokaido_env/learn/metrics.py": "the lock on the run folder",
    "tokaido_env/web/game_file.py": "the lock that `tokaido play` takes",
}
POSIX_ALONE = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "readline", "syslog"}
LEARNERS = ("action_scores", "alphazero", "metrics", "network", "run", "td", "training_script")
# Modules that may import an optional dependency at their top level.
WITH_OPTIONAL = {
    "tokaido_env/sb3.py": {"stable_baselines3"},
    "tokaido_env/openspiel.py": {"pyspiel", "open_spiel"},
    "tokaido_env/rllib.py": {"ray"},
    "tokaido_env/torchrl.py": {"torch", "torchrl", "tensordict"},
    "tokaido_env/web/server.py": {"starlette", "uvicorn"},
    "tokaido_env/web/widget.py": {"anywidget", "traitlets"},
    "tokaido_env/arena/executors/ray.py": {"ray"},
    **{f"tokaido_env/learn/{name}.py": {"torch"} for name in LEARNERS},
}
Function = structure.Function


def imported(nodes: Iterator[ast.AST]) -> set[str]:
    """The full names of the modules that the nodes import."""
    names = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            names |= {str(node.module)} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def at_import(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that run at import: not function bodies, not blocks for type checkers."""
    for child in ast.iter_child_nodes(node):
        only_typing = isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
        if isinstance(child, Function) or only_typing:
            continue
        yield child
        yield from at_import(child)


def libraries(nodes: Iterator[ast.AST]) -> set[str]:
    """The top-level packages that the nodes import."""
    return {module.partition(".")[0] for module in imported(nodes)}


def functions(path: Path) -> Iterator[Function]:
    return (node for node in ast.walk(parsed(path)) if isinstance(node, Function))


def kernels(path: Path) -> Iterator[Function]:
    for function in functions(path):
        if {ast.unparse(d) for d in function.decorator_list} & structure.KERNELS:
            yield function


def rows_of_new_arrays(path: Path) -> Iterator[str]:
    """The expressions such as `np.empty(1, STATE)[0]` of a file."""
    for node in ast.walk(parsed(path)):
        text = ast.unparse(node) if isinstance(node, ast.Subscript) else ""
        if text.startswith(("np.empty(", "np.zeros(")):
            yield text


@pytest.fixture(scope="module")
def graph() -> dict[str, set[str]]:
    """The modules that each module imports."""
    found: dict[str, set[str]] = structure.graph()
    return found


# Import directions, in function bodies and for type checkers too


def test_imports__go_to_the_same_layer_or_below(graph: dict[str, set[str]]) -> None:
    assert structure.upward_imports(graph) == []


def test_imports__have_no_cycle(graph: dict[str, set[str]]) -> None:
    assert structure.import_cycle(graph) == []


def test_layers__list_every_module_and_nothing_else(graph: dict[str, set[str]]) -> None:
    assert len(graph) == len(SOURCES) > 70
    assert {structure.layer_of(module)[1] for module in graph} == {
        package for packages in structure.LAYERS for package in packages
    }


def test_core__imports_numpy_and_numba_only() -> None:
    allowed = {"numpy", "tokaido_env", "numba", "llvmlite"} | set(sys.stdlib_module_names)
    for name, path in SOURCES.items():
        if "/core/" in name:
            assert libraries(ast.walk(parsed(path))) <= allowed, name


def test_optional_dependencies__are_imported_where_they_are_used() -> None:
    for name, path in SOURCES.items():
        found = libraries(at_import(parsed(path))) & OPTIONAL
        assert found <= WITH_OPTIONAL.get(name, set()), name


def test_modules__import_no_posix_module_unconditionally() -> None:
    for name, path in SOURCES.items():
        assert not libraries(iter(parsed(path).body)) & POSIX_ALONE, name


def writes_files(call: ast.AST) -> bool:
    """Return whether a call opens a file for writing, or writes one."""
    if not isinstance(call, ast.Call):
        return False
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    name = call.func.id if isinstance(call.func, ast.Name) else name
    if name != "open":
        return name in ("write_bytes", "touch") or ast.unparse(call.func).endswith(".write_text")
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    modes = (one.value for one in values if isinstance(one, ast.Constant))
    of_archive = ast.unparse(call.func) == "archive.open"  # in a file that is open
    return not of_archive and any(str(mode)[:1] in "wax" or "+" in str(mode) for mode in modes)


def test_files__are_written_by_modules_that_lock_them() -> None:
    found = {
        name for name, path in SOURCES.items() if any(map(writes_files, ast.walk(parsed(path))))
    }
    assert found == {name for name in WRITERS if name in SOURCES}


def test_package__does_not_import_the_examples_and_scripts() -> None:
    for name, path in SOURCES.items():
        assert not libraries(ast.walk(parsed(path))) & {"agents", "train", "evaluate"}, name


# State and kernels


@pytest.mark.parametrize("dtype", [STATE, BOARD, LUCK])
def test_dtypes__have_no_padding(dtype: np.dtype[np.void]) -> None:
    """NumPy drops padding in copies, Numba keeps it: bytes would differ."""
    assert dtype.names is not None
    assert dtype.itemsize == sum(dtype[name].itemsize for name in dtype.names)


def test_state__is_small_and_holds_no_luck() -> None:
    assert STATE.itemsize <= 128
    assert STATE.names is not None
    assert LUCK.names is not None
    assert not set(STATE.names) & set(LUCK.names)


def test_kernels__read_fields_by_key() -> None:
    """`s.field` runs compiled but not interpreted."""
    fields = {*(STATE.names or ()), *(BOARD.names or ()), *(LUCK.names or ())}
    assert sum(len(list(kernels(path))) for path in SOURCES.values()) > 60
    for name, path in SOURCES.items():
        for kernel in kernels(path):
            read = {node.attr for node in ast.walk(kernel) if isinstance(node, ast.Attribute)}
            assert not read & fields, (name, kernel.name)


# Sizes


def test_kernels__keep_the_arrays_of_their_rows() -> None:
    """Numba frees an array after its last use, also while a kernel reads one of its rows."""
    found = {name: list(rows_of_new_arrays(path)) for name, path in SOURCES.items()}
    assert {name: rows for name, rows in found.items() if rows} == {}


def test_files__are_short() -> None:
    """Ruff limits the complexity, the arguments and the statements of functions."""
    lengths = {
        name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in SOURCES.items()
    }
    long = {name for name, length in lengths.items() if length > 500}
    assert long <= {"tokaido_env/core/rules.py"}
    assert all(lengths[script] < 150 for script in structure.SCRIPTS)


# Assertions and actions


def is_narrowing(test: ast.expr) -> bool:
    """Whether an assertion only states a type: `… is not None`, or a call of `isinstance`."""
    if isinstance(test, ast.Compare):
        none = isinstance(test.comparators[0], ast.Constant) and test.comparators[0].value is None
        return none and isinstance(test.ops[0], ast.IsNot) and len(test.ops) == 1
    return isinstance(test, ast.Call) and ast.unparse(test.func) == "isinstance"


def test_asserts__only_narrow_types() -> None:
    """`python -O` drops assertions, so no check of input or of a result may be one."""
    folders = ("tokaido_env", "agents", "benchmarks")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    found = [
        (path.name, node.lineno, is_narrowing(node.test))
        for path in files
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Assert)
    ]
    assert found
    assert [each for each in found if not each[2]] == []


def test_actions__keep_their_ids() -> None:
    """Saved policies and records depend on every id."""
    assert list(ACTIONS) == reference.ACTIONS
    assert {label: number for number, label in enumerate(reference.ACTIONS)} == IDS
