"""What the code looks like from outside: sizes, arguments, and which file knows which.

    python benchmarks/structure.py            this checkout
    python benchmarks/structure.py --root DIR another one

Imports are read as text, those inside functions and those for type checkers included; nothing of
the project is run.
"""

from __future__ import annotations

import argparse
import ast
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
KERNELS = {"kernel", "subroutine", "allocator", "entry", "parallel"}
SCRIPTS = ("train.py", "evaluate.py")

# Rooms and the files between them, lowest first: a file may know those of its own row and below.
FLOORS: tuple[tuple[str, ...], ...] = (
    ("core",),
    ("files", "decoding"),
    ("boards",),
    ("render",),
    (
        *("agent", "batch_validation", "position", "trajectory", "record", "game", "timestep"),
        *("observers", "batch", "single_agent", "spaces"),
    ),
    ("text", "aec", "gym", "sb3", "openspiel", "rllib", "torchrl"),
    ("textarena", "kaggle"),
    ("cuda_kernels",),
    ("cuda",),
    ("agents",),
    ("arena",),
    ("report",),
    ("learn",),
    ("study",),
    ("",),
    ("web", "cli"),
    ("__main__", *(script.removesuffix(".py") for script in SCRIPTS)),
)
# What a room may not know although it lies below.
BLIND = {"report": ("agents",)}
# The one import upwards: what makes an agent of a spec, when asked.
UPWARDS = {("agent", "agents")}

Function = ast.FunctionDef | ast.AsyncFunctionDef
Graph = dict[str, set[str]]


class Size(NamedTuple):
    """A function: its file, name, lines of code and number of arguments."""

    file: str
    name: str
    lines: int
    arguments: int
    is_kernel: bool


def sources(root: Path = ROOT) -> dict[str, Path]:
    """Return the files of the package and the scripts, by their paths in the root."""
    found = [*(root / "tokaido_env").rglob("*.py"), *(root / script for script in SCRIPTS)]
    return {str(path.relative_to(root)): path for path in sorted(found)}


@functools.cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a file, which is read once."""
    return ast.parse(path.read_text(encoding="utf-8"))


def module_of(file: str) -> str:
    """Return the name of a file's module, without the package's.

    >>> module_of("tokaido_env/core/rules.py"), module_of("tokaido_env/agents/__init__.py")
    ('core.rules', 'agents')
    """
    name = file.removesuffix(".py").replace("/", ".").removesuffix("__init__").rstrip(".")
    return name.removeprefix("tokaido_env").lstrip(".")


def imported(tree: ast.AST) -> Iterator[str]:
    """Yield every module of the package, and every name of one, that a tree imports anywhere."""
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


def graph(root: Path = ROOT) -> Graph:
    """Return which modules each module imports, wherever in the file it does."""
    files = {module_of(file): path for file, path in sources(root).items()}
    return {
        name: {_module(one, files) for one in imported(parsed(path))} - {name}
        for name, path in files.items()
    }


def _module(name: str, known: dict[str, Path]) -> str:
    """Return the module that a name belongs to, the package itself for its public names."""
    while name not in known and name:
        name = name.rpartition(".")[0]
    return name


def floor_of(module: str) -> tuple[int, str]:
    """Return the floor of a module and its room: the longest name on a floor that it begins with.

    Raises:
        ValueError: if it has no place.
    """
    room = module
    while True:
        for floor, rooms in enumerate(FLOORS):
            if room in rooms:
                return floor, room
        room = room.rpartition(".")[0]
        if not room:
            raise ValueError(f"{module}: no place on any floor")


def arrows_up(edges: Graph) -> list[tuple[str, str]]:
    """Return the imports of what lies above, or of what a room may not know."""
    wrong = []
    for module, others in edges.items():
        floor, room = floor_of(module)
        for other in others:
            above, place = floor_of(other)
            if (above > floor or place in BLIND.get(room, ())) and (module, other) not in UPWARDS:
                wrong.append((module, other))
    return sorted(wrong)


def circles(edges: Graph) -> list[list[str]]:
    """Return the groups of modules that import each other, directly or not (Tarjan 1972)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []

    def visit(node: str) -> None:
        order[node] = low[node] = len(order)
        stack.append(node)
        for other in sorted(edges.get(node, ())):
            if (node, other) in UPWARDS:
                continue
            if other not in order:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == order[node]:
            at = stack.index(node)
            groups.append(stack[at:])
            del stack[at:]

    for node in sorted(edges):
        if node not in order:
            visit(node)
    return [sorted(group) for group in groups if len(group) > 1]


def code_lines(path: Path) -> set[int]:
    """Return the numbers of the lines of code: no docstrings, comments or blank lines."""
    tree, lines = parsed(path), path.read_text(encoding="utf-8").splitlines()
    text: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            text |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    numbered = enumerate((line.strip() for line in lines), start=1)
    return {n for n, line in numbered if line and not line.startswith("#")} - text


def functions(root: Path = ROOT) -> list[Size]:
    """Return the sizes of all functions, decorators left out."""
    sizes = []
    for file, path in sources(root).items():
        tree = parsed(path)
        code, compiled = code_lines(path), _compiled_by_name(tree)
        for node in ast.walk(tree):
            if isinstance(node, Function):
                span = range(node.lineno, (node.end_lineno or node.lineno) + 1)
                decorators = {ast.unparse(one) for one in node.decorator_list}
                is_kernel = bool(decorators & KERNELS) or node.name in compiled
                arguments = len(node.args.posonlyargs + node.args.args + node.args.kwonlyargs)
                sizes.append(Size(file, node.name, len(code & set(span)), arguments, is_kernel))
    return sizes


def _compiled_by_name(tree: ast.AST) -> set[str]:
    """Return the functions that are compiled by a call, as `parallel(function)`."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return {
        ast.unparse(call.args[0])
        for call in calls
        if ast.unparse(call.func) in KERNELS and call.args
    }


def report(root: Path) -> str:
    """Return all figures as text."""
    sizes, edges = functions(root), graph(root)
    files = {file: len(path.read_text().splitlines()) for file, path in sources(root).items()}
    lines = sorted(size.lines for size in sizes)
    text = [
        f"files {len(files)}, functions {len(sizes)}: lines of code median "
        f"{lines[len(lines) // 2]}, 90 % under {lines[len(lines) * 9 // 10] + 1}, most {lines[-1]}"
    ]
    long = sorted((size for size in sizes if size.lines > 45), key=lambda size: -size.lines)
    text.append(f"functions over 45 lines: {len(long)}")
    text += [f"  {size.file}: {size.name} {size.lines}" for size in long]
    wide = [size for size in sizes if size.is_kernel and size.arguments > 10]
    text.append(f"kernels over 10 arguments: {len(wide)}")
    text += [f"  {size.file}: {size.name} {size.arguments}" for size in wide]
    big = {file: n for file, n in files.items() if n > 500}
    text.append(f"files over 500 lines: {len(big)}")
    text += [f"  {file} {n}" for file, n in sorted(big.items(), key=lambda one: -one[1])]
    rings = circles(edges)
    text.append(f"circles: {len(rings)}")
    text += [f"  {' '.join(ring)}" for ring in rings]
    text += _arrows(edges)
    return "\n".join(text)


def _arrows(edges: Graph) -> list[str]:
    """Tell the arrows up; of a tree without these rooms, what imports agents from below them."""
    if "core" in edges:
        up = arrows_up(edges)
    else:
        ours = {module for module in edges if module.startswith("agents")}
        below = set(edges) - ours - {"", "train", "evaluate"}
        up = sorted((module, other) for module in below for other in edges[module] & ours)
    return [f"arrows up: {len(up)}", *(f"  {module} -> {other}" for module, other in up)]


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description="Print what the code looks like from outside.")
    parser.add_argument("--root", type=Path, default=ROOT, help="of a checkout (this one)")
    print(report(parser.parse_args().root.resolve()))


if __name__ == "__main__":
    main()
