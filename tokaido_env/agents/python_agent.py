"""Custom agents: `python:MODULE:CLASS` plays a class of a Python module or file.

The class has `act(boards, states, legal, keys)` as every agent does, or plays one game at a time:

    class Careful:
        def choose(self, game, rng):
            return game.legal_actions()[0]

`choose` gets a `tokaido_env.Game` at a decision and a `numpy.random.Generator`, and returns the id
or the label of an action. The game is a copy to try actions on; its random numbers are not those of
the match. A match is repeatable if the choice depends on nothing else.
"""

from __future__ import annotations

import ast
import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from tokaido_env.agent import Agent, AgentError
from tokaido_env.agents.adapters import AgentAdapter, PerGameAdapter
from tokaido_env.agents.content import sha256_of_files
from tokaido_env.core.arguments import escape_text
from tokaido_env.files import expand_home, is_file


def make_python_agent(location: str, /, **parameters: str) -> Agent:
    """Make the agent of `python:MODULE:CLASS,NAME=VALUE`.

    Args:
        location: MODULE:CLASS or FILE:CLASS.
        parameters: of the class. A literal of Python (a number, True, None, …) becomes its value,
            any other text a string.

    Raises:
        AgentError: if the module or the class does not exist, or the class is not an agent's.
    """
    spec = ",".join([f"python:{location}", *(f"{key}={text}" for key, text in parameters.items())])
    module_name, _, class_name = location.rpartition(":")
    if not module_name or not class_name.isidentifier():
        raise AgentError(
            f"agent {spec!r}: expected python:MODULE:CLASS, for example python:my_bots:Careful or "
            "python:bots/my_bots.py:Careful"
        )
    cls = _agent_class(spec, _import(spec, module_name), class_name)
    try:
        player = cls(**{name: _literal(text) for name, text in parameters.items()})
    except (Exception, SystemExit) as error:
        raise AgentError(
            f"agent {spec!r}: {class_name} cannot be made: {type(error).__name__}: {error}"
        ) from error
    return (AgentAdapter if callable(getattr(cls, "act", None)) else PerGameAdapter)(player, spec)


def _import(spec: str, name: str) -> ModuleType:
    """Import the file or module of a spec; raise `AgentError` if there is none or it fails."""
    file = Path(expand_home(name)) if name.endswith(".py") or "/" in name else None
    if file is None and is_file(Path(f"{name}.py")):
        file = Path(f"{name}.py")  # in the current folder
    if file and not is_file(file):
        raise AgentError(f"agent {spec!r}: {escape_text(str(file))}: no such file")
    if not file and str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
        importlib.invalidate_caches()
    try:
        return _load(file) if file else _imported(name)
    except (Exception, SystemExit) as error:
        raise AgentError(
            f"agent {spec!r}: module {name!r} cannot be imported: {type(error).__name__}: {error}"
        ) from error


def _imported(name: str) -> ModuleType:
    """Import a module; refuse it if its file has changed since, because Python keeps the old."""
    module = importlib.import_module(name)
    now = sha256_of_files([module.__file__ or ""])
    if module.__dict__.setdefault("__sha256__", now) != now:
        raise ImportError("its file has changed since it was imported: restart Python")
    return module


def _load(file: Path) -> ModuleType:
    """Execute a file under its path, again if it or a module next to it has changed since.

    Modules in its folder come first, as for a script, and are its own: files of two folders may
    import different modules of one name. Its functions cannot import them later.
    """
    path, folder = str(file.resolve()), file.resolve().parent
    known = sys.modules.get(path)
    if known and known.__dict__["__sha256__"] == sha256_of_files(known.__dict__["__files__"]):
        return known
    module = sys.modules[path] = ModuleType(path)
    module.__file__, module.__package__ = path, ""
    foreign = {name: one for name, one in _named_in(folder).items() if not _is_in(folder, one)}
    for name in foreign:
        del sys.modules[name]
    before = {*sys.modules}
    sys.path.insert(0, str(folder))
    try:
        exec(compile(file.read_bytes(), path, "exec"), module.__dict__)
    except BaseException:
        sys.modules.pop(path, None)
        raise
    finally:
        sys.path.remove(str(folder))
        own = {name: one for name, one in _named_in(folder).items() if name not in before}
        for name in own:
            del sys.modules[name]
        sys.modules |= foreign
    files = [path, *(one.__file__ for one in own.values() if one.__file__)]
    module.__dict__.update(__files__=files, __sha256__=sha256_of_files(files))
    return module


def _named_in(folder: Path) -> dict[str, ModuleType]:
    """Return the imported modules with names that a folder has too, but for Python's own."""
    found = [*folder.glob("*.py"), *(one.parent for one in folder.glob("*/__init__.py"))]
    names = {one.stem for one in found} - {*sys.stdlib_module_names, "__main__", "tokaido_env"}
    return {name: one for name, one in sys.modules.items() if name.partition(".")[0] in names}


def _is_in(folder: Path, module: ModuleType) -> bool:
    return folder in Path(module.__file__ or "").resolve().parents


def _agent_class(spec: str, module: ModuleType, name: str) -> type:
    """Return a class of a module, if its instances are agents."""
    cls = getattr(module, name, None)
    if not isinstance(cls, type):
        classes = {key: each for key, each in vars(module).items() if isinstance(each, type)}
        own = [key for key, each in classes.items() if each.__module__ == module.__name__]
        raise AgentError(
            f"agent {spec!r}: no class {name!r} in {module.__file__}: its classes are "
            f"{escape_text(', '.join(own) or 'none', 200)}"
        )
    if not any(callable(getattr(cls, method, None)) for method in ("act", "choose")):
        raise AgentError(
            f"agent {spec!r}: {name} has neither choose(game, rng) nor "
            "act(boards, states, legal, keys)"
        )
    return cls


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
