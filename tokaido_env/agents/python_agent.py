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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from tokaido_env.agent import Agent, AgentError
from tokaido_env.agents.adapters import AgentAdapter, PerGameAdapter
from tokaido_env.agents.content import script_file, sha256_of_files
from tokaido_env.core.arguments import escape_text
from tokaido_env.files import is_file


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
    module = _import(spec, module_name)
    cls = _agent_class(spec, module, class_name)
    values = {name: _literal(text) for name, text in parameters.items()}
    try:
        with _neighbours(module):
            player = cls(**values)
    except (Exception, SystemExit) as error:
        raise AgentError(
            f"agent {spec!r}: {class_name} cannot be made: {type(error).__name__}: {error}"
        ) from error
    return (AgentAdapter if callable(getattr(cls, "act", None)) else PerGameAdapter)(player, spec)


def _import(spec: str, name: str) -> ModuleType:
    """Import the file or module of a spec; raise `AgentError` if there is none or it fails."""
    file = Path(script) if (script := script_file(name)) else None
    if file and not is_file(file):
        raise AgentError(f"agent {spec!r}: {escape_text(str(file))}: no such file")
    if not file and str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
        importlib.invalidate_caches()
    try:
        if file:
            return _load(file)
        module = importlib.import_module(name)
        if _has_changed(module):  # Python keeps the old
            raise ImportError("its file has changed since it was imported: restart Python")
        return module
    except (Exception, SystemExit) as error:
        raise AgentError(
            f"agent {spec!r}: module {name!r} cannot be imported: {type(error).__name__}: {error}"
        ) from error


def _load(file: Path) -> ModuleType:
    """Execute a file under its path, again if it or a module next to it has changed since."""
    path = str(file.resolve())
    known = sys.modules.get(path)
    if known and not any(map(_has_changed, [known, *vars(known)["__neighbours__"].values()])):
        return known
    module = ModuleType(path)
    vars(module).update(__file__=path, __package__="", __neighbours__={})
    _has_changed(module)
    sys.modules[path] = module
    try:
        with _neighbours(module):
            exec(compile(file.read_bytes(), path, "exec", dont_inherit=True), vars(module))
    except BaseException:
        sys.modules.pop(path, None)
        raise
    return module


def _has_changed(module: ModuleType) -> bool:
    """Whether a module's file is another one than at the first call."""
    now = sha256_of_files([getattr(module, "__file__", None) or ""])
    return bool(vars(module.__spec__ or module).setdefault("__sha256__", now) != now)


@contextmanager
def _neighbours(module: ModuleType) -> Iterator[None]:
    """Let imports find the modules in the folder of a loaded file first, as for a script.

    They are its own: files of two folders may import different modules of one name. Its functions
    cannot import them later.
    """
    own: dict[str, ModuleType] | None = vars(module).get("__neighbours__")
    if own is None:
        yield
        return
    folder = Path(str(module.__file__)).parent
    others = _named_in(folder)
    for name in others:
        del sys.modules[name]
    sys.modules |= own
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        own |= _named_in(folder)
        for name in own:
            _has_changed(own[name])
            sys.modules.pop(name, None)
        sys.modules |= others


def _named_in(folder: Path) -> dict[str, ModuleType]:
    """Return the imported modules with names that a folder has too, but for Python's own."""
    tops = {name.partition(".")[0] for name in sys.modules} - {"__main__", "tokaido_env"}
    names = {top for top in tops if top.isidentifier() and _is_in(folder, top)}
    return {name: one for name, one in sys.modules.items() if name.partition(".")[0] in names}


def _is_in(folder: Path, name: str) -> bool:
    file = getattr(sys.modules.get(name), "__file__", "")
    if file is None:  # a package without __init__.py
        return (folder / name).is_dir()
    is_own = name not in sys.stdlib_module_names or folder in Path(file).parents
    return is_own and any(map(is_file, (folder / f"{name}.py", folder / name / "__init__.py")))


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
    if text.lower() in ("true", "false"):  # "false" as text would be true
        return text.lower() == "true"
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
