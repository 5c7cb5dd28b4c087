"""What is done while a file is loaded: every way into the project, each with hostile files.

    python tests/traces.py FOLDER OUT     write, as JSON, what each loading and each control did

A loading is first tried with a good file, which imports, compiles and shows that the file is read.
Then what the interpreter does with each hostile one is heard by its audit events (PEP 578).
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import importlib
import io
import json
import os
import pickle
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SECRET = "secret"  # the folder, beside that of the files, of what is not for them to name
WORD = "swordfish"  # which stands in one of them
SPEC = "python:payload:Payload"  # the module lies where the commands run

# What no loading may do, whatever the arguments are.
NEVER = (
    *("os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "pty.spawn"),
    *("subprocess.Popen", "ctypes.dlopen", "pickle.find_class", "os.putenv", "os.kill"),
    *("import", "exec", "marshal.loads", "code.__new__", "builtins.input", "urllib.Request"),
)
# What changes the disk: allowed on what a command is to write.
CHANGES = (
    *("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.symlink", "os.link", "os.chmod"),
    *("os.chown", "os.truncate", "os.utime", "shutil.rmtree", "shutil.move", "shutil.copyfile"),
)


HARMLESS = ("socket.gethostname",)  # asks nobody else; TensorBoard names its files so


class Ear:
    """Hears what the interpreter does, as long as it listens."""

    def __init__(self) -> None:
        self.listens = False
        self.may_write: tuple[Path, ...] = ()
        self.heard: list[str] = []
        sys.addaudithook(self.hear)

    @contextlib.contextmanager
    def listening(self, *may_write: Path) -> Iterator[list[str]]:
        """Give a list that fills with what is forbidden and is done anyway."""
        self.heard, self.may_write, self.listens = [], may_write, True
        try:
            yield self.heard
        finally:
            self.listens = False

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Note an event if it is forbidden; `sys.addaudithook` calls this."""
        if not self.listens or event in HARMLESS:
            return
        wrong = ""
        if event in NEVER or event.startswith("socket."):
            wrong = "" if _harmless(event, arguments) else f"{event} {_name(arguments)}"
        elif event in CHANGES and not all(map(self._may_write, _paths(event, arguments))):
            wrong = f"{event} {_name(arguments)}"
        elif event == "open":
            wrong = self._opened(*arguments)
        if wrong and not _of_kernels():
            self.heard.append(wrong)

    def _opened(self, path: Any, mode: Any, flags: int) -> str:
        """Say what is wrong with opening a file, nothing if it is allowed."""
        if isinstance(path, int):
            return ""
        if SECRET in _resolved(path).parts:
            return f"read {Path(os.fsdecode(path)).name}"
        writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        return f"open {path}" if writes and not self._may_write(path) else ""

    def _may_write(self, path: Any) -> bool:
        place = _resolved(path)
        return any(place.is_relative_to(allowed) for allowed in (*self.may_write, Path("/dev")))


def _harmless(event: str, arguments: tuple[Any, ...]) -> bool:
    """Return whether an event stays within what was there before any file was read."""
    if event == "import":
        return str(arguments[0]).partition(".")[0] in KNOWN
    if event == "exec":
        file = getattr(arguments[0], "co_filename", "<string>")
        return "payload" not in file and file != "<string>"
    return False


def _of_kernels() -> bool:
    """Return whether a kernel is just compiled or loaded: tests/core/test_cache.py has those."""
    frame: Any = sys._getframe()
    while frame is not None:
        if Path(frame.f_code.co_filename).parts[-2:] == ("core", "cache.py"):
            return True
        frame = frame.f_back
    return False


def _name(arguments: tuple[Any, ...]) -> str:
    return ", ".join(str(each)[:80] for each in arguments[:2])


def _paths(event: str, arguments: tuple[Any, ...]) -> list[Any]:
    return list(arguments[: 2 if event in ("os.rename", "os.link", "shutil.move") else 1])


def _resolved(path: Any) -> Path:
    return Path(os.fsdecode(path)).resolve()


KNOWN: set[str] = set()  # the packages that good files need


# Files


class Payload:
    """A pickle that leaves a trace."""

    def __reduce__(self) -> Any:
        return Path.touch, (Path("trace").absolute(),)


def pickled(path: Path) -> None:
    path.write_bytes(pickle.dumps(Payload()))


def objects(path: Path) -> None:
    """An .npz with the arrays of the one that is there, all but one as pickled objects."""
    import numpy as np

    with np.load(path) as arrays:
        names = arrays.files
    np.savez(path, **{name: np.array([Payload()], object) for name in names})


def climbing(path: Path) -> None:
    """An .npz whose members have names that lead elsewhere."""
    import zipfile

    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(f"../{name}", data)
        archive.writestr("/tmp/trace.npy", b"x")


def edited(path: Path, *changes: tuple[str, str]) -> None:
    text = path.read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text, (path, old)
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")


def policy_file(path: Path) -> None:
    from networks import random_policy

    random_policy().save(path)


def record_file(path: Path, **changes: Any) -> None:
    from tokaido_env import Game

    game = Game(seed=0)
    for _ in range(3):  # each is some pictures of `replay --gif`
        game.play(game.legal_actions()[0])
    data = json.loads(game.record(["random", "greedy"]).to_json()) | changes
    path.write_text(json.dumps(data) + "\n", encoding="utf-8")


def position_file(path: Path, **changes: Any) -> None:
    from positions import position

    path.write_text(json.dumps(position(**changes)), encoding="utf-8")


def board_file(path: Path, **changes: Any) -> None:
    from positions import shikoku_data, write_board

    write_board(path, shikoku_data() | changes)


def ladder_file(path: Path, spec: str = "greedy", **changes: Any) -> None:
    """The project's ladder, with another agent in the place of a fast one, its hash made anew."""
    from tokaido_env.arena.ladder import LADDER

    data = json.loads(LADDER.read_text(encoding="utf-8").replace('"greedy"', json.dumps(spec)))
    data |= changes
    del data["hash"]
    data["hash"] = hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]
    path.write_text(json.dumps(data), encoding="utf-8")


def regret_file(path: Path, board: str = "shikoku", policy: str = "champion") -> None:
    """A small regret set, its hash made anew."""
    from dataclasses import replace

    from regrets import small_set

    told = small_set(blocks=2, most=4)
    boards = [[board, told.card["boards"][0][1]], *told.card["boards"][1:]]
    card = told.card | {"boards": boards, "policies": [policy, "heuristic"]}
    replace(told, card=card).save(path)


def climbing_regrets(path: Path) -> None:
    """Members of names that lead elsewhere."""
    regret_file(path)
    climbing(path)


def results_file(path: Path, trained_on: str = "family:train/10", **changes: Any) -> None:
    """What `generalise --json` writes of an agent that was trained on ten boards."""
    share = {"value": 0.5, "ci95": [0.4, 0.6]}
    scores = {"pool": "family:test/1", "hash": "0", "boards": 1, "pairs": 2, "drawn": True}
    scores |= dict.fromkeys(("mean", "iqm", "above_even"), share)
    scores["each"] = [{"board": "family:2000000", **share}]
    data = {"version": 1, "agent": "greedy", "opponent": "random", "seed": 0}
    data |= {"trained_on": trained_on, "test": scores, "train": scores, "gap": share}
    path.write_text(json.dumps(data | changes), encoding="utf-8")


def suite_file(path: Path, **changes: Any) -> None:
    """A small suite, with its hash made anew."""
    text = (ROOT / "tests" / "golden" / "small-suite.json").read_text(encoding="utf-8")
    data = json.loads(text) | changes
    del data["hash"]
    data["hash"] = hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]
    path.write_text(json.dumps(data), encoding="utf-8")


def submission_file(path: Path, agent: str = "greedy", **changes: Any) -> None:
    """What `suite --json` writes of an agent, with the suite and the games beside it."""
    from tokaido_env.cli.evaluate import main

    suite_file(path.with_name("suite.json"))
    files = ("--json", str(path), "--records", str(path.with_name("mine.jsonl")))
    main(["suite", "greedy", "--suite", str(path.with_name("suite.json")), *files])
    data = json.loads(path.read_text(encoding="utf-8")) | {"agent": agent} | changes
    path.write_text(json.dumps(data), encoding="utf-8")


PLOTS = ("--plots", "o")

SETTINGS: dict[str, Any] = {
    **{"games": 8, "rollout": 32, "minibatch": 128, "width": 32, "slots": 4, "agents": "greedy"},
    **{"steps": 256, "freeze_every": 256, "pool_size": 4, "rate_every": 0, "refit_games": 0},
}


def config_file(path: Path, **changes: Any) -> None:
    lines = [f"{name} = {json.dumps(value)}" for name, value in (SETTINGS | changes).items()]
    path.write_text("[settings]\n" + "\n".join(lines) + "\n", encoding="utf-8")


def config_with_ladder(path: Path) -> None:
    ladder_file(path.with_name("l.json"), SPEC)
    config_file(path, ladder="l.json", rate_every=256)


def config_beside_run(path: Path) -> None:
    run_folder(Path("run"))
    config_file(path)


def headed(path: Path, header: dict[str, Any]) -> None:
    """A safetensors file of nothing but a header."""
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text)


def run_folder(path: Path) -> None:
    """A finished run, made once."""
    kept = ROOT_OF_ALL / "a run"
    if not kept.exists():
        from tokaido_env.learn import ppo
        from tokaido_env.learn.settings import Settings

        ppo.begin(kept, Settings(**SETTINGS))
        assert ppo.train(kept)
    shutil.copytree(kept, path)


def expert_folder(path: Path) -> None:
    """A course that stands before its only round, its lessons learnt."""
    kept = ROOT_OF_ALL / "a course"
    if not kept.exists():
        expert_main(kept)
    shutil.copytree(kept, path)
    (path / "01").unlink()


ROOT_OF_ALL = Path()


# Ways in


def command(*words: str) -> Callable[[], int]:
    def run() -> int:
        from tokaido_env.__main__ import main

        return main(list(words))

    return run


def load_records() -> Any:
    from tokaido_env.record import load

    return load("games.jsonl")


def one_record() -> Any:
    from tokaido_env.record import Record, replay

    return replay(Record.from_json(Path("games.jsonl").read_text(encoding="utf-8")))


def boards() -> Any:
    from tokaido_env import Batch, Board, Game

    board = Board.load("theirs.toml")
    Batch(2, "theirs.toml").reset(seed=0)
    return Game(board="theirs.toml", seed=0).record(), board.record


def positions_of_games() -> Any:
    from tokaido_env import Game

    return Game.from_dict(json.loads(Path("position.json").read_text(encoding="utf-8")), seed=0)


def positions_of_environments() -> Any:
    from tokaido_env import Batch, env

    position = json.loads(Path("position.json").read_text(encoding="utf-8"))
    Batch(2).reset(seed=0, positions=[position, position])
    return env().reset(seed=0, options={"position": position})


def policies() -> Any:
    from tokaido_env.agents import make

    return make("policy:theirs"), make("policy_search:theirs,sims=2")


def policies_of_runs() -> Any:
    from tokaido_env.agents import make

    return make("policy:run"), make("policy_search:run,sims=2")


def weights() -> Any:
    from tokaido_env.agents.guide import load_weights

    return load_weights(Path("weights.toml"))


def weights_file(path: Path) -> None:
    from tokaido_env.agents.guide import WEIGHTS_FILE

    shutil.copyfile(WEIGHTS_FILE, path)


def analysis() -> int:
    from tokaido_env.study.analysis import main

    words = "--agent random --boards theirs.toml --games 2 --swaps 1 --family 0"
    return main(words.split())


def expert_main(folder: Path) -> int:
    """Go through a course of one small round; its rating, which takes long, reads no file of it."""
    from tokaido_env.arena.ratings import Rating
    from tokaido_env.learn import expert

    expert.place = lambda *arguments: Rating("learner", 5.0, (1.0, 9.0), 6)
    words = "--rounds 1 --first-sims 3 --first-positions 3000 --games 8 --minibatch 256 --width 16"
    return expert.main(["--run", str(folder), *words.split()])


def probe_folder(path: Path) -> None:
    """The folder of a probe of an agent that has ended."""
    kept = ROOT_OF_ALL / "a probe"
    if not kept.exists():
        assert command(*_probe(kept))() == 0
    shutil.copytree(kept, path)


def _probe(folder: Path) -> list[str]:
    return [
        "evaluate",
        "exploit",
        "random",
        "--steps",
        "16384",
        "--games",
        "2",
        "--search-games",
        "0",
        "--run",
        str(folder),
    ]


class Loading(NamedTuple):
    """A way into the project.

    Attributes:
        good: makes the file or folder that is loaded.
        name: of that.
        load: loads it.
        hostile: by what they are, the makers of hostile files, where the good one is.
        writes: what the loading may write, beside a file's lock.
    """

    name: str
    good: Callable[[Path], None]
    load: Callable[[], Any]
    hostile: dict[str, Callable[[Path], None]]
    writes: tuple[str, ...] = ()


Maker = Callable[[Path], None]


def remade(make: Callable[..., None], **changes: Any) -> Maker:
    return lambda path: make(path, **changes)


def within(name: str, spoil: Callable[..., None], *arguments: Any) -> Maker:
    return lambda folder: spoil(folder / name, *arguments)


def in_checkpoint(name: str, spoil: Callable[..., None], *arguments: Any) -> Maker:
    """Spoil a file of the run's checkpoint, which is then as one from before there were sums."""

    def spoil_it(folder: Path) -> None:
        checkpoint = folder / "checkpoints" / "000000256"
        spoil(checkpoint / name, *arguments)
        (checkpoint / "SHA256SUMS").unlink()

    return spoil_it


def begun_with_code(folder: Path) -> None:
    """A run that has no checkpoint yet, so that all its agents are made."""
    shutil.rmtree(folder / "checkpoints")
    edited(folder / "config.toml", ('"greedy"', json.dumps(SPEC)))


def linked(name: str, to: str) -> Maker:
    """Put a link to what is secret in the place of a part."""

    def spoil(folder: Path) -> None:
        part = folder / name
        shutil.rmtree(part) if part.is_dir() else part.unlink(missing_ok=True)
        part.symlink_to(Path("..", SECRET, to).resolve())

    return spoil


BESIDE = f"../{SECRET}"
OUTSIDE = f"policy:{BESIDE}/policy"
CLIMBS = f"policy:run/../{BESIDE}/policy"
SHELL = "python:os:system,command=touch trace"
POPEN = "python:subprocess:Popen,args=touch trace,shell=True"

RECORDS: dict[str, Maker] = {
    "players are code": remade(record_file, players=[SPEC, POPEN]),
    "board is a path": remade(record_file, board=f"{BESIDE}/board.toml"),
    "board climbs": remade(record_file, board=f"../../{SECRET}/board"),
    "start names a board": remade(record_file, start={"board": f"{BESIDE}/board.toml"}),
    "events are code": remade(record_file, events=[SPEC, "__import__('payload')"]),
    "a pickle": pickled,
}
BOARDS: dict[str, Maker] = {
    "name is a path": remade(board_file, name=f"../../{SECRET}/board"),
    "name is code": remade(board_file, name="{payload.Payload}%(trace)s${trace}"),
    "a pickle": pickled,
}
POSITIONS: dict[str, Maker] = {
    "board is a path": remade(position_file, board=f"{BESIDE}/board.toml"),
    "phase is code": remade(position_file, phase="__class__", player=SPEC),
}
# A setting that names a file is read as the file that it should be, and nothing of it is shown.
MAY_READ = ("board is a secret", "ladder is a secret", "start_from is a secret")
AGENTS = {
    "agents are code": SPEC,
    "agents are a shell": SHELL,
    "agents are a process": POPEN,
    "agents lie outside": OUTSIDE,
    "agents climb": CLIMBS,
    "agents by an absolute path": "policy:/" + SECRET,
}
CONFIGS: dict[str, Maker] = {
    **{why: remade(config_file, agents=f"greedy '{spec}'") for why, spec in AGENTS.items()},
    "a ladder with code": config_with_ladder,
    **{
        f"{name} is a secret": remade(config_file, rate_every=256, **{name: f"{BESIDE}/note.toml"})
        for name in ("board", "ladder", "start_from")
    },
    "a pickle": pickled,
}
LADDERS: dict[str, Maker] = {
    **{why: remade(ladder_file, spec=spec) for why, spec in AGENTS.items()},
    "board is a path": remade(ladder_file, board=f"{BESIDE}/board.toml"),
    "a pickle": pickled,
}
SUITES: dict[str, Maker] = {
    **{
        f"opponents: {why}": remade(suite_file, opponents=[spec, "random"])
        for why, spec in AGENTS.items()
    },
    "a pickle": pickled,
}
SUBMISSIONS: dict[str, Maker] = {
    **{f"its agent: {why}": remade(submission_file, agent=spec) for why, spec in AGENTS.items()},
    "records are a secret": remade(
        submission_file,
        records={"file": f"{BESIDE}/note.toml", "sha256": "0" * 64, "games": 24},
    ),
    "a pickle": pickled,
}
NAMES = {"format": "tokaido-duo-policy", "training": SPEC, "path": f"{BESIDE}/policy"}
POLICIES: dict[str, Maker] = {
    "a pickle": pickled,
    "a header that names files": remade(headed, header={"__metadata__": NAMES}),
    "tensors beyond its end": remade(
        headed, header={"action.bias": {"dtype": "F32", "shape": [49], "data_offsets": [0, 196]}}
    ),
}
RUNS: dict[str, Maker] = {
    **{
        f"its {why}": within("config.toml", edited, ('"greedy"', json.dumps(f"greedy '{spec}'")))
        for why, spec in AGENTS.items()
    },
    "its agents are code from the start": begun_with_code,
    "code is seated": in_checkpoint("state.json", edited, ('"latest"', json.dumps(SPEC))),
    "a path is seated": in_checkpoint(
        "state.json", edited, ('"latest"', json.dumps(f"../../{SECRET}/policy"))
    ),
    "objects in its games": in_checkpoint("games.npz", objects),
    "members of its games climb": in_checkpoint("games.npz", climbing),
    "its games are a pickle": in_checkpoint("games.npz", pickled),
    "its learner is a pickle": in_checkpoint("learner.safetensors", pickled),
    "its optimiser is a pickle": in_checkpoint("optimizer.safetensors", pickled),
    "its state is a pickle": in_checkpoint("state.json", pickled),
    "its metrics are a pickle": within("metrics.jsonl", pickled),
    "its pool lies elsewhere": linked("pool", "pool"),
    "its checkpoints lie elsewhere": linked("checkpoints", "pool"),
}


LOADINGS: dict[str, Loading] = {
    "record.load": Loading("games.jsonl", record_file, load_records, RECORDS),
    "Record.from_json, replay": Loading("games.jsonl", record_file, one_record, RECORDS),
    "replay": Loading("games.jsonl", record_file, command("replay", "games.jsonl"), RECORDS),
    "replay --html --policy": Loading(
        "games.jsonl",
        record_file,
        command("replay", "games.jsonl", "--html", "o.html", "--policy", "greedy"),
        RECORDS,
        ("o.html", "o.html.tmp"),
    ),
    "replay --gif": Loading(
        "games.jsonl",
        record_file,
        command("replay", "games.jsonl", "--gif", "o.gif"),
        RECORDS,
        ("o.gif", "o.gif.tmp"),
    ),
    "export": Loading(
        "games.jsonl",
        record_file,
        command("export", "games.jsonl", "o.npz"),
        RECORDS,
        ("o.npz", "o.npz.tmp"),
    ),
    "evaluate --records": Loading(
        "games.jsonl",
        lambda path: None,
        command("evaluate", "random", "greedy", "--games", "2", "--records", "games.jsonl"),
        RECORDS,
        ("games.jsonl", "games.jsonl.tmp"),
    ),
    "Board.load, Game, Batch": Loading("theirs.toml", board_file, boards, BOARDS),
    "evaluate --board": Loading(
        "theirs.toml",
        board_file,
        command("evaluate", "random", "greedy", "--games", "2", "--board", "theirs.toml"),
        BOARDS,
    ),
    "analysis --boards": Loading("theirs.toml", board_file, analysis, BOARDS),
    "Game.from_dict": Loading("position.json", position_file, positions_of_games, POSITIONS),
    "reset(position)": Loading(
        "position.json", position_file, positions_of_environments, POSITIONS
    ),
    "load_weights": Loading("weights.toml", weights_file, weights, {"a pickle": pickled}),
    "policy:FILE": Loading("theirs", policy_file, policies, POLICIES),
    "policy:RUN": Loading(
        "run",
        run_folder,
        policies_of_runs,
        {why: within("best", make) for why, make in POLICIES.items()},
    ),
    "rate --ladder": Loading(
        "l.json",
        ladder_file,
        command("evaluate", "rate", "random", "--games", "2", "--ladder", "l.json"),
        LADDERS,
    ),
    "suite --suite": Loading(
        "suite.json",
        suite_file,
        command("evaluate", "suite", "greedy", "--suite", "suite.json"),
        SUITES,
    ),
    "verify": Loading(
        "mine.json",
        submission_file,
        command("evaluate", "verify", "mine.json", "--suite", "suite.json"),
        SUBMISSIONS,
    ),
    "ladder --ladder": Loading(
        "l.json",
        lambda path: None,
        command("evaluate", "ladder", "random", "greedy", "--games", "2", "--ladder", "l.json"),
        LADDERS,
        ("l.json", "l.json.tmp"),
    ),
    "regret --set": Loading(
        "set.npz",
        regret_file,
        command("evaluate", "regret", "greedy", "--set", "set.npz", *("--markdown", "o.md")),
        {
            "boards lie outside": remade(regret_file, board=f"{BESIDE}/board.toml"),
            "policies are code": remade(regret_file, policy=SPEC),
            "names lead elsewhere": climbing_regrets,
            "a pickle": pickled,
        },
        ("o.md", "o.md.tmp"),
    ),
    "generalise --table": Loading(
        "r.json",
        results_file,
        command("evaluate", "generalise", "--table", "r.json", *("--markdown", "o.md"), *PLOTS),
        {
            "agents are code": remade(results_file, agent=SPEC, opponent=SHELL),
            "agents lie outside": remade(results_file, agent=OUTSIDE),
            "trained on a path": remade(results_file, trained_on=f"{BESIDE}/board.toml"),
            "trained on many boards": remade(results_file, trained_on="family:train/100000"),
            "a pickle": pickled,
        },
        ("o", "o.md", "o.md.tmp"),
    ),
    "train --config": Loading(
        "my.toml",
        config_file,
        command("train", "--run", "new", "--config", "my.toml"),
        CONFIGS,
        ("new",),
    ),
    "train --resume": Loading(
        "run", run_folder, command("train", "--resume", "run", "--steps", "512"), RUNS, ("run",)
    ),
    "train --resume --config": Loading(
        "my.toml",
        config_beside_run,
        command("train", "--resume", "run", "--config", "my.toml"),
        CONFIGS,
        ("run",),
    ),
    "exploit --run": Loading("run", probe_folder, command(*_probe(Path("run"))), {
        "its agents are code": within("config.toml", edited, ('"random"', json.dumps(SPEC))),
        "its pool lies elsewhere": linked("pool", "pool"),
    }, ("run",)),
    "expert --run": Loading("run", expert_folder, lambda: expert_main(Path("run")), {
        "objects in its lessons": within("lessons-01.npz", objects),
        "members of its lessons climb": within("lessons-01.npz", climbing),
        "its lessons are a pickle": within("lessons-01.npz", pickled),
        "its settings are a pickle": within("settings.json", pickled),
        "its rounds are a pickle": within("01", pickled),
    }, ("run",)),
}  # fmt: skip


# Controls: each detector hears what it is there for


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
    "a secret": ("read board.toml", lambda: Path(BESIDE, "board.toml").read_text()),
    "a secret policy": ("read policy", _secret_of_the_user),
}


# Running


def main(folder: Path) -> dict[str, dict[str, Any]]:
    """Load everything; return by the names of `cases` what was heard and what was told."""
    global ROOT_OF_ALL
    ROOT_OF_ALL = folder.resolve()
    sys.path.insert(0, "")
    ear = Ear()
    _hear_safetensors(ear)
    _start_threads()
    found = {}
    for name, loading in LOADINGS.items():
        if sys.argv[3:] and name not in sys.argv[3:]:
            continue
        _prepare(f"first {name}")
        with _quiet():
            loading.good(Path(loading.name))
            loading.load()
        KNOWN.update(module.partition(".")[0] for module in sys.modules)
        for why in ("good", *loading.hostile):
            place = _prepare(f"{name} {why}")
            path = Path(loading.name)
            with _quiet():
                loading.good(path)
            if why != "good":
                loading.hostile[why](path)
            written = (path.with_name(path.name + ".lock"), path / ".lock", *loading.writes)
            with ear.listening(*(place / each for each in written)) as heard:
                told = _told(loading.load)
            found[f"{name}: {why}"] = {"heard": heard + ["trace"] * Path("trace").exists()} | told
    for why, (_, act) in CONTROLS.items():
        _prepare(why)
        with ear.listening() as heard:
            told = _told(act)
        found[why] = {"heard": heard} | told
    return found


def _prepare(name: str) -> Path:
    """Make a folder to work in, with code that may be imported there and with secrets."""
    outer = ROOT_OF_ALL / str(len(list(ROOT_OF_ALL.iterdir())))
    place, secret = outer / "theirs", outer / SECRET
    for folder in (place, secret / "pool"):
        folder.mkdir(parents=True)
    (outer / "name").write_text(name, encoding="utf-8")
    (place / "payload.py").write_text(PAYLOAD, encoding="utf-8")
    board_file(secret / "board.toml")
    policy_file(secret / "policy")
    (secret / "note.toml").write_text(f"word = '{WORD}'\n", encoding="utf-8")
    os.chdir(place)
    sys.modules.pop("payload", None)
    importlib.invalidate_caches()
    return place


PAYLOAD = """
from pathlib import Path
Path("trace").touch()
class Payload:
    def choose(self, game, rng):
        return game.legal_actions()[0]
"""


def _told(act: Callable[[], Any]) -> dict[str, Any]:
    """Return the exit status, 0 for what is no command, and what was printed or raised."""
    with _quiet() as out:
        try:
            status = act()
        except (Exception, SystemExit) as error:
            return {"status": 1, "told": f"{type(error).__name__}: {error}"}
    return {"status": status if isinstance(status, int) else 0, "told": out.getvalue()}


@contextlib.contextmanager
def _quiet() -> Iterator[io.StringIO]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        yield out


def _start_threads() -> None:
    """Let Numba load what it starts its threads with."""
    from tokaido_env import Batch

    Batch(4096).reset(seed=0)


def _hear_safetensors(ear: Ear) -> None:
    """Let what opens a file without Python be heard."""
    import safetensors
    import safetensors.torch

    opened = safetensors.safe_open

    def heard_open(path: Any, *arguments: Any, **options: Any) -> Any:
        ear.hear("open", (path, "r", os.O_RDONLY))
        return opened(path, *arguments, **options)

    safetensors.safe_open = heard_open
    safetensors.torch.safe_open = heard_open


def cases() -> list[str]:
    """The names of all loadings."""
    return [f"{name}: {why}" for name, each in LOADINGS.items() for why in ("good", *each.hostile)]


if __name__ == "__main__":
    results = main(Path(sys.argv[1]))
    Path(sys.argv[2]).write_text(json.dumps(results), encoding="utf-8")
