"""Audit of file loading: each way into the project loads hostile files and must not act on them.

    python tests/traces.py FOLDER OUT     write the results of all loadings and controls as JSON

Each loading first runs with a good file, which imports and compiles and shows that the file is
read. Then Python's audit events (PEP 578) record the actions of the process with hostile files.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import io
import json
import os
import pickle
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SECRET = "secret"  # a folder next to the working directory; no file may name its contents
PASSWORD = "swordfish"  # in a file of that folder
TEMPORARY = re.compile(r"\.[0-9a-f]{16}\.tmp\Z")  # the end of the name of a file being written
SPEC = "python:payload:Payload"  # the module is in the working directory

# Events that no loading may cause.
FORBIDDEN = (
    *("os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "pty.spawn"),
    *("subprocess.Popen", "ctypes.dlopen", "pickle.find_class", "os.putenv", "os.kill"),
    *("import", "exec", "marshal.loads", "code.__new__", "builtins.input", "urllib.Request"),
)
# Events that change the disk; allowed for the files that a command writes.
DISK_EVENTS = (
    *("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.symlink", "os.link", "os.chmod"),
    *("os.chown", "os.truncate", "os.utime", "shutil.rmtree", "shutil.move", "shutil.copyfile"),
)
HARMLESS = ("socket.gethostname",)  # local; TensorBoard puts it into file names


class AuditMonitor:
    """Records forbidden audit events while it is active."""

    def __init__(self) -> None:
        self.active = False
        self.may_write: tuple[Path, ...] = ()
        self.violations: list[str] = []
        sys.addaudithook(self.check)

    @contextlib.contextmanager
    def recording(self, *may_write: Path) -> Iterator[list[str]]:
        """Yield a list that receives the forbidden events until the context ends."""
        self.violations, self.may_write, self.active = [], may_write, True
        try:
            yield self.violations
        finally:
            self.active = False

    def check(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Record an event if it is forbidden; the interpreter calls this for each event."""
        if not self.active or event in HARMLESS or _changes_nothing(event, arguments):
            return
        wrong = ""
        if event in FORBIDDEN or event.startswith("socket."):
            wrong = "" if _harmless(event, arguments) else f"{event} {_name(arguments)}"
        elif event in DISK_EVENTS and not all(map(self._may_write, _paths(event, arguments))):
            wrong = f"{event} {_name(arguments)}"
        elif event == "open":
            wrong = self._opened(*arguments)
        if wrong and not _is_compiling() and not (event == "exec" and _is_declaring()):
            self.violations.append(wrong)

    def _opened(self, path: Any, mode: Any, flags: int) -> str:
        """Return the violation of opening a file, "" if it is allowed."""
        if isinstance(path, int):
            return ""
        if SECRET in _resolved(path).parts:
            return f"read {Path(os.fsdecode(path)).name}"
        writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        return f"open {path}" if writes and not self._may_write(path) else ""

    def _may_write(self, path: Any) -> bool:
        resolved = Path(TEMPORARY.sub("", str(_resolved(path))))
        return any(resolved.is_relative_to(allowed) for allowed in (*self.may_write, Path("/dev")))


def _changes_nothing(event: str, arguments: tuple[Any, ...]) -> bool:
    """Return whether an event makes or opens a folder that exists, as filelock does."""
    return (
        event in ("os.mkdir", "open")
        and not isinstance(arguments[0], int)
        and (_resolved(arguments[0]).is_dir())
    )


def _harmless(event: str, arguments: tuple[Any, ...]) -> bool:
    """Return whether an event uses only code that good files use too."""
    if event == "import":
        return str(arguments[0]).partition(".")[0] in KNOWN
    if event == "exec":
        file = getattr(arguments[0], "co_filename", "<string>")
        return "payload" not in file and file != "<string>"
    return False


def _is_compiling() -> bool:
    """Return whether a kernel is being compiled or loaded; `test_kernel_cache.py` tests those."""
    frame: Any = sys._getframe()
    while frame is not None:
        if Path(frame.f_code.co_filename).parts[-2:] == ("core", "kernel_cache.py"):
            return True
        frame = frame.f_back
    return False


def _is_declaring() -> bool:
    """Return whether the types of a command's options are evaluated, which no file gives."""
    frame: Any = sys._getframe(2)
    if Path(frame.f_code.co_filename).name not in ("typing.py", "dataclasses.py"):
        return False
    while frame is not None:
        file, function = Path(frame.f_code.co_filename), frame.f_code.co_name
        if "cyclopts" in file.parts and function == "parse_args":
            return True
        frame = frame.f_back
    return False


def _name(arguments: tuple[Any, ...]) -> str:
    return ", ".join(str(each)[:80] for each in arguments[:2])


def _paths(event: str, arguments: tuple[Any, ...]) -> list[Any]:
    return list(arguments[: 2 if event in ("os.rename", "os.link", "shutil.move") else 1])


def _resolved(path: Any) -> Path:
    return Path(os.fsdecode(path)).resolve()


KNOWN: set[str] = set()  # packages that the process imports with good files


# Files


class Payload:
    """An object that creates a file when it is unpickled."""

    def __reduce__(self) -> Any:
        return Path.touch, (Path("trace").absolute(),)


def pickled(path: Path) -> None:
    path.write_bytes(pickle.dumps(Payload()))


def climbing(path: Path) -> None:
    """Give the members of an .npz file names outside its folder."""
    import zipfile

    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(f"../{name}", data)
        archive.writestr("/tmp/trace.npy", b"x")


def edited(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text, (path, old)
    path.write_text(text.replace(old, new), encoding="utf-8")


def headed(path: Path, header: dict[str, Any]) -> None:
    """Write a safetensors file that consists of a header."""
    import damaged_arrays

    path.write_bytes(damaged_arrays.safetensors_bytes(header, b""))


def json_file(path: Path, name: str, **changes: Any) -> None:
    """Write a ladder or results, as `valid_files` makes them."""
    import valid_files

    path.write_text(json.dumps(getattr(valid_files, name)(**changes)), encoding="utf-8")


def policy_file(path: Path) -> None:
    from networks import random_policy

    random_policy().save(path)


def record_file(path: Path, **changes: Any) -> None:
    from tokaido_env import Game

    game = Game(seed=0)
    for _ in range(3):
        game.play(game.legal_actions()[0])
    data = json.loads(game.record(["random", "greedy"]).to_json()) | changes
    path.write_text(json.dumps(data) + "\n", encoding="utf-8")


def position_file(path: Path, **changes: Any) -> None:
    from positions import position

    path.write_text(json.dumps(position(**changes)), encoding="utf-8")


def board_file(path: Path, **changes: Any) -> None:
    from positions import shikoku_data, write_board

    write_board(path, shikoku_data() | changes)


def regret_file(path: Path, board: str = "shikoku", policy: str = "champion") -> None:
    """Write a small regret set with a valid hash."""
    from dataclasses import replace

    from regrets import small_set

    regrets = small_set(blocks=2, most=4)
    boards = [[board, regrets.card["boards"][0][1]], *regrets.card["boards"][1:]]
    card = regrets.card | {"boards": boards, "policies": [policy, "heuristic"]}
    replace(regrets, card=card).save(path)


TINY: dict[str, dict[str, Any]] = {
    "td": {"updates": 1, "games": 4, "minibatch_size": 64},
    "alphazero": {
        **{"rounds": 1, "shards": 1, "games": 2, "sims": 2, "minibatch_size": 64},
        "samples_per_position": 0.1,
    },
}


def config_file(path: Path, **changes: Any) -> None:
    settings = {"width": 32, **TINY["td"], **changes}
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    table = ["[run]", 'method = "td"', "[settings]", *lines, ""]
    path.write_text("\n".join(table), encoding="utf-8")


def config_with_ladder(path: Path) -> None:
    json_file(path.with_name("l.json"), "ladder", spec=SPEC)
    config_file(path, ladder="l.json", rate_every=1)


def copy_of(name: str, make: Callable[[Path], Any], path: Path) -> None:
    """Copy a folder that takes long to make; make it at the first call."""
    if not (WORKSPACE / name).exists():
        make(WORKSPACE / name)
    shutil.copytree(WORKSPACE / name, path)


def run_folder(path: Path, method: str = "td") -> None:
    """Write the folder of a finished run."""
    from tokaido_env.learn import run
    from tokaido_env.learn.settings import METHODS

    def make(folder: Path) -> None:
        run.begin(folder, METHODS[method](width=32, **TINY[method]))
        assert run.train(folder)

    copy_of(method, make, path)


WORKSPACE = Path()


# Ways in


def run(words: str) -> int:
    from tokaido_env.__main__ import main

    return main(shlex.split(words))


def load_records() -> Any:
    from tokaido_env.record import load

    return load("games.jsonl")


def boards() -> Any:
    from tokaido_env import Batch, Board, Game

    board = Board.load("theirs.toml")
    Batch(2, "theirs.toml").reset(seed=0)
    return Game(board="theirs.toml", seed=0).record(), board.record


def positions() -> Any:
    from tokaido_env import Batch, Game, env

    position = json.loads(Path("position.json").read_text(encoding="utf-8"))
    Batch(2).reset(seed=0, positions=[position, position])
    env().reset(seed=0, options={"position": position})
    return Game.from_dict(position, seed=0)


def policies(path: str) -> Any:
    from tokaido_env.agents import make

    return make(f"policy:{path}"), make(f"policy_search:{path},sims=2")


Maker = Callable[[Path], None]


class Loading(NamedTuple):
    """A way to load a file.

    Attributes:
        name: name of the file or folder.
        good: writes a good file.
        load: loads it: a function, or a command line.
        hostile: functions that replace the good file by hostile ones, by description.
        writes: files that the loading may write, in addition to a lock file.
    """

    name: str
    good: Maker
    load: Callable[[], Any] | str
    hostile: dict[str, Maker]
    writes: tuple[str, ...] = ()


def writer(make: Callable[..., None], *arguments: Any, **changes: Any) -> Maker:
    return lambda path: make(path, *arguments, **changes)


def within(name: str, spoil: Callable[..., None], *arguments: Any) -> Maker:
    return lambda folder: spoil(folder / name, *arguments)


SECRET_PATH = f"../{SECRET}"
BOARD = f"{SECRET_PATH}/board.toml"
OUTSIDE = f"policy:{SECRET_PATH}/policy"
SHELL = "python:os:system,command=touch trace"
POPEN = "python:subprocess:Popen,args=touch trace,shell=True"
EXEC = "exec:touch trace"

AGENTS = {
    "agents are code": SPEC,
    "agents are a shell": SHELL,
    "agents are a process": POPEN,
    "agents are a program": EXEC,
    "agents by an absolute path": "policy:/" + SECRET,
}
PICKLE: dict[str, Maker] = {"a pickle": pickled}
RECORDS = PICKLE | {
    "players are code": writer(record_file, players=[SPEC, EXEC]),
    "board is a path": writer(record_file, board=BOARD),
    "board climbs": writer(record_file, board=f"../../{SECRET}/board"),
    "start names a board": writer(record_file, start={"board": BOARD}),
    "events are code": writer(record_file, events=[SPEC, "__import__('payload')"]),
}
BOARDS = PICKLE | {
    "name is a path": writer(board_file, name=f"../../{SECRET}/board"),
    "name is code": writer(board_file, name="{payload.Payload}%(trace)s${trace}"),
}
POSITIONS = {
    "board is a path": writer(position_file, board=BOARD),
    "phase is code": writer(position_file, phase="__class__", player=SPEC),
}
# These settings name a file, which is read; its contents must not be printed.
MAY_READ = ("board is a secret", "ladder is a secret", "start_from is a secret")
CONFIGS = PICKLE | {
    "a ladder with code": config_with_ladder,
    **{
        f"{name} is a secret": writer(
            config_file, rate_every=1, **{name: f"{SECRET_PATH}/note.toml"}
        )
        for name in ("board", "ladder", "start_from")
    },
}
LADDERS = PICKLE | {
    **{why: writer(json_file, "ladder", spec=spec) for why, spec in AGENTS.items()},
    "board is a path": writer(json_file, "ladder", board=BOARD),
}
NOTE = {"file": f"{SECRET_PATH}/note.toml", "sha256": "0" * 64, "games": 24}
REGRETS = PICKLE | {
    "boards lie outside": writer(regret_file, board=BOARD),
    "policies are code": writer(regret_file, policy=SPEC),
    "names lead elsewhere": climbing,
}
RESULTS = PICKLE | {
    "agents are code": writer(json_file, "generalisation", agent=SPEC, opponent=SHELL),
    "agents lie outside": writer(json_file, "generalisation", agent=OUTSIDE),
    "trained on a path": writer(json_file, "generalisation", trained_on=BOARD),
    "trained on many boards": writer(json_file, "generalisation", trained_on="family:train/100000"),
}
NAMES = {"format": "tokaido-duo-policy", "training": SPEC, "path": f"{SECRET_PATH}/policy"}
FAR = {"dtype": "F32", "shape": [49], "data_offsets": [0, 196]}
POLICIES = PICKLE | {
    "a header that names files": writer(headed, {"__metadata__": NAMES}),
    "tensors beyond its end": writer(headed, {"action.bias": FAR}),
}
CHECKPOINT, SHARD = "checkpoints/000000001.safetensors", "shards/0001-0000.safetensors"
RUNS: dict[str, Maker] = {
    "its checkpoint is a pickle": within(CHECKPOINT, pickled),
    "its metrics are a pickle": within("metrics.jsonl", pickled),
}
SHARDS = {"its samples are a pickle": within(SHARD, pickled)}


def no_file(path: Path) -> None:
    """Write no file: the command does."""


LOADINGS: dict[str, Loading] = {
    "record.load": Loading("games.jsonl", record_file, load_records, RECORDS),
    **{
        name: Loading("games.jsonl", record_file, words, RECORDS, writes)
        for name, words, writes in (
            ("replay", "replay games.jsonl --html o.html --value-agent greedy", ("o.html",)),
            ("export", "export games.jsonl o.parquet", ("o.parquet",)),
        )
    },
    "evaluate --records": Loading(
        *("games.jsonl", no_file, "evaluate random greedy --games 2 --records games.jsonl"),
        *(RECORDS, ("games.jsonl",)),
    ),
    "Board.load, Game, Batch": Loading("theirs.toml", board_file, boards, BOARDS),
    "positions": Loading("position.json", position_file, positions, POSITIONS),
    "policy:FILE": Loading("theirs", policy_file, lambda: policies("theirs"), POLICIES),
    "policy:RUN": Loading(
        *("run", run_folder, lambda: policies("run")),
        {why: within("best", make) for why, make in POLICIES.items()},
    ),
    "rate --ladder": Loading(
        *("l.json", writer(json_file, "ladder")),
        *("rate random --games 2 --ladder l.json", LADDERS),
    ),
    "ladder --ladder": Loading(
        *("l.json", no_file, "ladder random greedy --games 2 --out l.json"), *(LADDERS, ("l.json",))
    ),
    "regret --set": Loading(
        *("set.npz", regret_file, "regret greedy --set set.npz --markdown o.md"),
        *(REGRETS, ("o.md",)),
    ),
    "generalise --compare": Loading(
        *("r.json", writer(json_file, "generalisation")),
        "generalise --compare r.json --markdown o.md --plots o",
        *(RESULTS, ("o", "o.md")),
    ),
    "train --config": Loading(
        *("my.toml", config_file, "train --run new --config my.toml", CONFIGS, ("new",))
    ),
    "train --resume": Loading(
        *("run", run_folder, "train --resume run --updates 2", RUNS, ("run",))
    ),
    "train --resume, alphazero": Loading(
        *("run", writer(run_folder, "alphazero"), "train --resume run --rounds 2"),
        *(SHARDS, ("run",)),
    ),
}


# Controls: the monitor records each kind of event


def _agent_of_the_user() -> Any:
    from tokaido_env.agents import make

    return make(SPEC)


def _secret_of_the_user() -> Any:
    from tokaido_env.agents import make

    return make(OUTSIDE)


def _touched() -> None:
    Path("elsewhere").touch()


CONTROLS: dict[str, tuple[str, Callable[[], Any]]] = {
    "a module": ("import payload", lambda: __import__("payload")),
    "an agent that the user names": ("exec <code object <module>", _agent_of_the_user),
    "an expression": ("exec <code object <module>", lambda: eval("1 + 1")),
    "its file": ("open trace", _agent_of_the_user),
    "a pickle": ("pickle.find_class pathlib", lambda: pickle.loads(pickle.dumps(Payload()))),
    "a shell": ("os.system", lambda: os.system("true")),
    "a process": ("subprocess.Popen", lambda: subprocess.run(["true"], check=True)),
    "a socket": ("socket.", lambda: socket.socket().close()),
    "a library": ("ctypes.dlopen", lambda: ctypes.CDLL(None)),
    "a file": ("open elsewhere", _touched),
    "a file that is gone": ("os.remove", lambda: Path("elsewhere").unlink()),
    "a folder": ("os.mkdir", lambda: Path("folder").mkdir()),
    "a link": ("os.symlink", lambda: Path("link").symlink_to("elsewhere")),
    "a name": ("os.rename", lambda: Path("link").rename("other")),
    "a secret": ("read board.toml", lambda: Path(SECRET_PATH, "board.toml").read_text()),
    "a secret policy": ("read policy", _secret_of_the_user),
}


# Running


def main(folder: Path) -> dict[str, dict[str, Any]]:
    """Run all loadings and controls; return their events, exit status and output by name."""
    global WORKSPACE
    WORKSPACE = folder.resolve()
    sys.path.insert(0, "")
    monitor = AuditMonitor()
    _audit_safetensors(monitor)
    _start_threads()
    results = {}
    for name, loading in LOADINGS.items():
        if sys.argv[3:] and name not in sys.argv[3:]:
            continue
        _prepare(f"first {name}")
        with _quiet():
            loading.good(Path(loading.name))
            _load(loading)
        KNOWN.update(module.partition(".")[0] for module in sys.modules)
        for why in ("good", *loading.hostile):
            folder = _prepare(f"{name} {why}")
            path = Path(loading.name)
            with _quiet():
                loading.good(path)
            if why != "good":
                loading.hostile[why](path)
            written = (f"{path}.lock", f"{path}/.lock", *loading.writes)
            written += tuple(f"{each}.lock" for each in loading.writes)
            with monitor.recording(*(folder / each for each in written)) as events:
                outcome = _outcome(functools.partial(_load, loading))
            events = events + ["trace"] * Path("trace").exists()
            results[f"{name}: {why}"] = {"events": events} | outcome
    for why, (_, act) in CONTROLS.items():
        _prepare(why)
        with monitor.recording() as events:
            outcome = _outcome(act)
        results[why] = {"events": events} | outcome
    return results


def _load(loading: Loading) -> Any:
    return run(loading.load) if isinstance(loading.load, str) else loading.load()


def _prepare(name: str) -> Path:
    """Change to a new folder that holds an importable module, next to a folder of secrets."""
    outer = WORKSPACE / str(len(list(WORKSPACE.iterdir())))
    work, secret = outer / "theirs", outer / SECRET
    for folder in (work, secret / "policies"):
        folder.mkdir(parents=True)
    (outer / "name").write_text(name, encoding="utf-8")
    (work / "payload.py").write_text(PAYLOAD, encoding="utf-8")
    board_file(secret / "board.toml")
    policy_file(secret / "policy")
    (secret / "note.toml").write_text(f"word = '{PASSWORD}'\n", encoding="utf-8")
    os.chdir(work)
    sys.modules.pop("payload", None)
    importlib.invalidate_caches()
    return work


PAYLOAD = """
from pathlib import Path
Path("trace").touch()
class Payload:
    def choose(self, game, rng):
        return game.legal_actions()[0]
"""


def _outcome(act: Callable[[], Any]) -> dict[str, Any]:
    """Return the exit status, 0 for a function, and the output or the error."""
    with _quiet() as out:
        try:
            status = act()
        except (Exception, SystemExit) as error:
            return {"status": 1, "output": f"{type(error).__name__}: {error}"}
    return {"status": status if isinstance(status, int) else 0, "output": out.getvalue()}


@contextlib.contextmanager
def _quiet() -> Iterator[io.StringIO]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        yield out


def _start_threads() -> None:
    """Start Numba's threads, which loads a library."""
    from tokaido_env import Batch

    Batch(4096).reset(seed=0)


def _audit_safetensors(monitor: AuditMonitor) -> None:
    """Report the files that safetensors opens without Python."""
    import safetensors

    safe_open = safetensors.safe_open

    def audited_open(path: Any, *arguments: Any, **options: Any) -> Any:
        monitor.check("open", (path, "r", os.O_RDONLY))
        return safe_open(path, *arguments, **options)

    safetensors.safe_open = audited_open


def cases() -> list[str]:
    """Return the names of all loadings, with good and hostile files."""
    return [f"{name}: {why}" for name, each in LOADINGS.items() for why in ("good", *each.hostile)]


if __name__ == "__main__":
    results = main(Path(sys.argv[1]))
    Path(sys.argv[2]).write_text(json.dumps(results), encoding="utf-8")
