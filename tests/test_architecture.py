"""What the layers may import, how state and kernels are written, and the action table by hand."""

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tokaido_env import ACTIONS
from tokaido_env.actions import IDS
from tokaido_env.board import BOARD
from tokaido_env.luck import LUCK
from tokaido_env.state import STATE

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = sorted(
    path for path in (ROOT / "tokaido_env").rglob("*.py") if "agents" not in path.parts
)
AGENTS = sorted((ROOT / "agents").glob("*.py"))
SCRIPTS = [ROOT / "train.py", ROOT / "evaluate.py"]
SOURCES = {str(path.relative_to(ROOT)): path for path in [*PACKAGE, *AGENTS, *SCRIPTS]}

# Each imports only those before it.
LAYERS = (
    *("jit", "board", "actions", "state", "rules", "position", "luck"),
    *("observation", "bots", "engine", "game", "batch", "versus", "record", "dataset"),
)
# Of the agents that think: what a network reads, the network, search with or without one.
AGENT_LAYERS = (
    *("base", "simple", "heuristic", "expectimax"),
    *("inputs", "inference", "policy", "tree", "search", "champion"),
)
LEARNING = {"gymnasium", "pettingzoo", "stable_baselines3", "sb3_contrib", "torch", "pyspiel"}
OPTIONAL = {
    *("torch", "stable_baselines3", "sb3_contrib", "tensorboard", "rich", "safetensors"),
    *("pyspiel", "open_spiel", "matplotlib", "IPython", "pyarrow", "pandas"),
    *("resvg_py", "PIL", "pygame"),
}
WITH_OPTIONAL = (
    *("tokaido_env/sb3.py", "tokaido_env/openspiel.py"),
    *("agents/network.py", "agents/checkpoint.py", "agents/selfplay.py", "agents/expert.py"),
)

Function = ast.FunctionDef | ast.AsyncFunctionDef


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(nodes: Iterator[ast.AST]) -> set[str]:
    """The modules that some nodes import, by their whole names."""
    names = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            names |= {str(node.module)} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def at_import(node: ast.AST) -> Iterator[ast.AST]:
    """What runs when a module is imported: no bodies of functions, nothing for type checkers."""
    for child in ast.iter_child_nodes(node):
        only_typing = isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
        if isinstance(child, Function) or only_typing:
            continue
        yield child
        yield from at_import(child)


def functions(path: Path) -> Iterator[Function]:
    return (node for node in ast.walk(parsed(path)) if isinstance(node, Function))


def kernels(path: Path) -> Iterator[Function]:
    compiled = {"kernel", "subroutine", "allocator", "entry", "parallel"}
    for function in functions(path):
        if {ast.unparse(d) for d in function.decorator_list} & compiled:
            yield function


# Directions of import


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_imports_only_those_below(name: str) -> None:
    path = ROOT / "tokaido_env" / f"{name}.py"
    modules = {
        module.split(".")[1]
        for module in imported(at_import(parsed(path)))
        if "." in module and module.startswith("tokaido_env.")
    }
    assert modules <= set(LAYERS[: LAYERS.index(name)])


@pytest.mark.parametrize("name", AGENT_LAYERS)
def test_an_agent_imports_only_those_below(name: str) -> None:
    """So that playing needs nothing of training."""
    prefix = "tokaido_env.agents."
    modules = {
        module.removeprefix(prefix).partition(".")[0]
        for module in imported(ast.walk(parsed(ROOT / "agents" / f"{name}.py")))
        if module.startswith(prefix)
    }
    assert modules <= set(AGENT_LAYERS[: AGENT_LAYERS.index(name)])


@pytest.mark.parametrize("name", LAYERS)
def test_no_learning_library_below_the_adapters(name: str) -> None:
    everywhere = imported(ast.walk(parsed(ROOT / "tokaido_env" / f"{name}.py")))
    assert not {module.partition(".")[0] for module in everywhere} & LEARNING


@pytest.mark.parametrize("name", [name for name in SOURCES if name.startswith("tokaido_env/")])
def test_nothing_in_the_package_imports_agents(name: str) -> None:
    assert not {m for m in imported(at_import(parsed(SOURCES[name]))) if "agents" in m.split(".")}


@pytest.mark.parametrize("name", [name for name in SOURCES if name not in WITH_OPTIONAL])
def test_optional_dependencies_are_imported_where_they_are_used(name: str) -> None:
    modules = {module.partition(".")[0] for module in imported(at_import(parsed(SOURCES[name])))}
    assert not modules & OPTIONAL


@pytest.mark.parametrize("name", [str(path.relative_to(ROOT)) for path in AGENTS])
def test_agents_are_imported_by_the_packages_name(name: str) -> None:
    modules = {module.partition(".")[0] for module in imported(ast.walk(parsed(SOURCES[name])))}
    assert not modules & {"agents", "train", "evaluate"}


def test_the_import_reader_sees_what_it_should() -> None:
    source = """
import a.b
if TYPE_CHECKING:
    import c
try:
    from d import e
except ImportError:
    import f
class G:
    import h
    def i(self):
        import j
"""
    assert imported(at_import(ast.parse(source))) == {"a.b", "d", "d.e", "f", "h"}


# State and kernels


@pytest.mark.parametrize("dtype", [STATE, BOARD, LUCK])
def test_records_have_no_padding(dtype: np.dtype[np.void]) -> None:
    """NumPy drops padding in copies, Numba keeps it: bytes would differ."""
    assert dtype.names is not None
    assert dtype.itemsize == sum(dtype[name].itemsize for name in dtype.names)


def test_a_state_is_small_and_holds_no_luck() -> None:
    assert STATE.itemsize <= 128
    assert STATE.names is not None
    assert LUCK.names is not None
    assert not set(STATE.names) & set(LUCK.names)


@pytest.mark.parametrize("name", SOURCES)
def test_kernels_read_fields_by_key(name: str) -> None:
    """`s.field` runs compiled but not interpreted."""
    fields = {*(STATE.names or ()), *(BOARD.names or ()), *(LUCK.names or ())}
    for kernel in kernels(SOURCES[name]):
        read = {node.attr for node in ast.walk(kernel) if isinstance(node, ast.Attribute)}
        assert not read & fields, kernel.name


def test_there_are_kernels_to_look_at() -> None:
    assert sum(len(list(kernels(path))) for path in SOURCES.values()) > 80


# Sizes


def code_lines(path: Path) -> set[int]:
    """The numbers of the lines of code: no docstrings, comments or blank lines."""
    tree, lines = parsed(path), path.read_text(encoding="utf-8").splitlines()
    text: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            text |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    numbered = enumerate((line.strip() for line in lines), start=1)
    return {n for n, line in numbered if line and not line.startswith("#")} - text


@pytest.mark.parametrize("name", SOURCES)
def test_functions_and_files_are_short(name: str) -> None:
    path = SOURCES[name]
    code = code_lines(path)
    assert len(code) < 700
    for function in functions(path):
        span = range(function.lineno, (function.end_lineno or function.lineno) + 1)
        assert len(code & set(span)) <= 60, function.name


# The action table

ACTION_TABLE = """
0 pilgrim           1 pilgrim:wave
2 merchant:C1       3 merchant:C2       4 merchant:C3       5 merchant:C4
6 merchant:C5       7 merchant:C6       8 merchant:C7       9 merchant:C8
10 merchant:M1      11 merchant:M2      12 merchant:M3      13 merchant:M4
14 merchant:stay
15 artist:A1        16 artist:A2        17 artist:A3        18 artist:A4
19 artist:A5        20 artist:A6        21 artist:A7        22 artist:A8
23 artist:stay      24 pass             25 visit
26 take:pilgrim     27 take:merchant    28 take:artist
29 draw             30 draw:wave
31 sell:1           32 sell:2           33 sell:3
34 sell:4           35 sell:5           36 sell:6
37 sell:1:wave      38 sell:2:wave      39 sell:3:wave
40 sell:4:wave      41 sell:5:wave
42 paint            43 paint:wave       44 gift
45 discard:kimono   46 discard:pottery  47 discard:doll     48 discard:fan
"""  # written out: saved policies and records depend on every id


def test_the_action_table_is_the_contract() -> None:
    numbers, labels = ACTION_TABLE.split()[::2], ACTION_TABLE.split()[1::2]
    by_hand = dict(zip(map(int, numbers), labels, strict=True))
    assert dict(enumerate(ACTIONS)) == by_hand
    assert {label: number for number, label in by_hand.items()} == IDS
