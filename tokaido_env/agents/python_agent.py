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
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from tokaido_env.agent import Agent, AgentError
from tokaido_env.agents.adapters import AgentAdapter, PerGameAdapter
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
    """Import a file, or a module that is installed or in the current folder.

    Args:
        spec: of the agent, for errors.
        name: a path, or the name of a module.

    Raises:
        AgentError: if there is no such file, or its import fails.
    """
    file = Path(expand_home(name)) if name.endswith(".py") or "/" in name else None
    if file and not is_file(file):
        raise AgentError(f"agent {spec!r}: {escape_text(str(file))}: no such file")
    folder = str(file.resolve().parent if file else Path.cwd())
    if folder not in sys.path:
        sys.path.append(folder)
        importlib.invalidate_caches()
    try:
        return _load(file) if file else importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise AgentError(
            f"agent {spec!r}: module {name!r} cannot be imported: {type(error).__name__}: {error}"
        ) from error


def _load(file: Path) -> ModuleType:
    """Import a file under its path, so that no module of the same name takes its place."""
    name = str(file.resolve())
    if name not in sys.modules:
        module = sys.modules[name] = ModuleType(name)
        module.__file__, module.__package__ = name, ""
        try:
            SourceFileLoader(name, name).exec_module(module)
        except BaseException:
            sys.modules.pop(name, None)
            raise
    return sys.modules[name]


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
