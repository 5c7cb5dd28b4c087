"""Code structure: import directions between packages.

Imports are read from the syntax trees, also those in function bodies and for type checkers.
"""

from __future__ import annotations

import ast
import functools
import graphlib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KERNELS = {"kernel", "subroutine", "allocator", "entry", "parallel"}
SCRIPTS = ("train.py", "evaluate.py")

# Packages and modules in layers, lowest first: a module may import from its own layer and below.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("core",),
    ("files", "decoding", "tensor_file"),
    ("boards",),
    ("features",),
    ("render",),
    (
        *("agent", "batch_validation", "position", "trajectory", "record", "game", "timestep"),
        *("observers", "batch", "spaces"),
    ),
    ("text_rules",),
    ("cuda_kernels",),
    ("cuda",),
    ("agents",),
    ("opponents", "text", "aec", "gym", "sb3", "openspiel", "rllib", "torchrl"),
    ("arena",),
    ("report",),
    ("learn",),
    ("study",),
    ("",),
    ("web", "cli"),
    ("__main__", *(script.removesuffix(".py") for script in SCRIPTS)),
)
# Packages that may not import from these lower packages.
FORBIDDEN = {"report": ("agents",)}

Function = ast.FunctionDef | ast.AsyncFunctionDef
Graph = dict[str, set[str]]


def sources() -> dict[str, Path]:
    """Return the files of the package and the scripts, by path in the root."""
    found = [*(ROOT / "tokaido_env").rglob("*.py"), *(ROOT / script for script in SCRIPTS)]
    return {str(path.relative_to(ROOT)): path for path in sorted(found)}


@functools.cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a file; read once."""
    return ast.parse(path.read_text(encoding="utf-8"))


def module_of(file: str) -> str:
    """Return the module name of a file, without `tokaido_env`.

    >>> module_of("tokaido_env/core/rules.py"), module_of("tokaido_env/agents/__init__.py")
    ('core.rules', 'agents')
    """
    name = file.removesuffix(".py").replace("/", ".").removesuffix("__init__").rstrip(".")
    return name.removeprefix("tokaido_env").lstrip(".")


def imported(tree: ast.AST) -> Iterator[str]:
    """Yield the modules of the package, and their names, that a tree imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            if name == "tokaido_env" or name.startswith("tokaido_env."):
                yield name.removeprefix("tokaido_env").lstrip(".")


def graph() -> Graph:
    """Return the modules that each module imports."""
    files = {module_of(file): path for file, path in sources().items()}
    return {
        name: {_module(one, files) for one in imported(parsed(path))} - {name}
        for name, path in files.items()
    }


def _module(name: str, known: dict[str, Path]) -> str:
    """Return the module of a name, "" for public names of the package."""
    while name not in known and name:
        name = name.rpartition(".")[0]
    return name


def layer_of(module: str) -> tuple[int, str]:
    """Return the layer of a module, and the package or module that `LAYERS` lists for it.

    Raises:
        ValueError: if no layer lists it.
    """
    package = module
    while True:
        for layer, packages in enumerate(LAYERS):
            if package in packages:
                return layer, package
        package = package.rpartition(".")[0]
        if not package:
            raise ValueError(f"{module}: expected a package or module of LAYERS")


def upward_imports(edges: Graph) -> list[tuple[str, str]]:
    """Return the imports from a higher layer or a forbidden package."""
    wrong = []
    for module, others in edges.items():
        layer, package = layer_of(module)
        for other in others:
            other_layer, other_package = layer_of(other)
            if other_layer > layer or other_package in FORBIDDEN.get(package, ()):
                wrong.append((module, other))
    return sorted(wrong)


def import_cycle(edges: Graph) -> list[str]:
    """Return the modules of one import cycle in order, [] without one."""
    try:
        graphlib.TopologicalSorter(edges).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []
