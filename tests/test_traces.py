"""Loading a file executes nothing from it and reads no other files: hostile files, way by way.

Each way loads a good file first, which shows that the file is read. Then Python's audit events
(PEP 578) show what the process does with hostile files. A payload leaves a file, `trace`.
"""

import functools
import json
import os
import pickle
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import safetensors
from fuzz import TINY
from networks import random_policy
from positions import position, shikoku_data, write_board
from regrets import small_set
from valid_files import generalisation, ladder

from tokaido_env import Batch, Game, env
from tokaido_env.__main__ import main
from tokaido_env.agents import make
from tokaido_env.record import load

pytest.importorskip("torch")
from tokaido_env.learn import run
from tokaido_env.learn.settings import METHODS

SECRET, PASSWORD = "../secret", "swordfish"  # a folder, and a word in one of its files
SPEC = "python:payload:Payload"  # the module is in the working directory
SHELL, EXEC = "python:os:system,command=touch trace", "exec:touch trace"
FORBIDDEN = ("os.system", "os.exec", "os.fork", "os.posix_spawn", "subprocess.Popen", "socket.conn")
PAYLOAD = """
from pathlib import Path
Path("trace").touch()
class Payload:
    def choose(self, game, rng):
        return game.legal_actions()[0]
"""


@functools.cache
def audited() -> list[str]:
    """Return a list that gets the forbidden events from now on: processes, and secrets read."""
    events: list[str] = []

    def check(event: str, arguments: tuple[Any, ...]) -> None:
        if event.startswith(FORBIDDEN):
            events.append(event)
        elif event == "open" and "secret" in str(arguments[0]):
            events.append(f"read {Path(arguments[0]).name}")

    sys.addaudithook(check)
    return events


@pytest.fixture
def events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Change to a new folder with a module to import, next to one with secrets."""
    work, secret = tmp_path / "theirs", tmp_path / "secret"
    work.mkdir()
    secret.mkdir()
    (work / "payload.py").write_text(PAYLOAD)
    write_board(secret / "board.toml", shikoku_data())
    random_policy().save(secret / "policy")
    (secret / "note.toml").write_text(f"word = '{PASSWORD}'\n")
    monkeypatch.chdir(work)
    monkeypatch.syspath_prepend("")
    found, safe_open = audited(), safetensors.safe_open

    def audited_open(path: Any, *arguments: Any, **options: Any) -> Any:
        sys.audit("open", str(path), "r", os.O_RDONLY)  # safetensors opens files without Python
        return safe_open(path, *arguments, **options)

    monkeypatch.setattr(safetensors, "safe_open", audited_open)
    monkeypatch.delitem(sys.modules, "payload", raising=False)
    found.clear()
    return found


# Files

Maker = Callable[[Path], object]


class Payload:
    """An object that creates a file when it is unpickled."""

    def __reduce__(self) -> Any:
        return Path.touch, (Path("trace").absolute(),)


def pickled(path: Path) -> None:
    path.write_bytes(pickle.dumps(Payload()))


def json_file(path: Path, data: Any) -> None:
    path.write_text(json.dumps(data) + "\n", encoding="utf-8")


def record_file(path: Path, **changes: Any) -> None:
    game = Game(seed=0)
    game.play(game.legal_actions()[0])
    json_file(path, json.loads(game.record(["random", "greedy"]).to_json()) | changes)


def regret_file(path: Path, board: str = "shikoku", policy: str = "champion") -> None:
    regrets = small_set(blocks=2, most=4)
    boards = [[board, regrets.card["boards"][0][1]], *regrets.card["boards"][1:]]
    card = regrets.card | {"boards": boards, "policies": [policy, "heuristic"]}
    replace(regrets, card=card).save(path)


def config_file(path: Path, **changes: Any) -> None:
    settings = {"width": 32, **TINY["td"], **changes}
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    path.write_text("\n".join(["[run]", 'method = "td"', "[settings]", *lines, ""]))


def run_folder(path: Path, method: str = "td") -> None:
    run.begin(path, METHODS[method](width=32, **TINY[method]))
    assert run.train(path)


def within(pattern: str) -> Maker:
    """Return a function that replaces the files of a folder that match a pattern by pickles."""
    return lambda folder: [pickled(path) for path in folder.glob(pattern)]


# Ways in


class Loading(NamedTuple):
    """A way to load a file: its name, how a good one is made, and the words of a command or a call.

    `hostile` are functions that replace the good file by hostile ones.
    """

    name: str
    good: Maker
    load: str | Callable[[], object]
    hostile: dict[str, Maker]


def _positions() -> None:
    given = json.loads(Path("position.json").read_text(encoding="utf-8"))
    Batch(2).reset(seed=0, positions=[given, given])
    env().reset(seed=0, options={"position": given})
    Game.from_dict(given, seed=0)


BOARD = f"{SECRET}/board.toml"
PICKLE: dict[str, Maker] = {"a pickle": pickled}
RECORDS = PICKLE | {
    "players are code": lambda path: record_file(path, players=[SPEC, EXEC]),
    "board is a path": lambda path: record_file(path, board=BOARD),
    "start names a board": lambda path: record_file(path, start={"board": BOARD}),
    "events are code": lambda path: record_file(path, events=[SPEC, "__import__('payload')"]),
}
LADDERS = PICKLE | {
    **{
        f"agents are {spec}": lambda path, spec=spec: json_file(path, ladder(spec))  # type: ignore[misc]
        for spec in (SPEC, SHELL, EXEC)
    },
    "board is a path": lambda path: json_file(path, ladder(board=BOARD)),
}


def _config_with_ladder(path: Path) -> None:
    json_file(path.with_name("l.json"), ladder(SPEC))
    config_file(path, ladder="l.json", rate_every=1)


LOADINGS: dict[str, Loading] = {
    "record.load": Loading("g.jsonl", record_file, lambda: load("g.jsonl"), RECORDS),
    "replay": Loading(
        "g.jsonl", record_file, "replay g.jsonl --html o.html --value-agent greedy", RECORDS
    ),
    "evaluate --records": Loading(
        *("g.jsonl", lambda path: None, "evaluate random greedy --games 2 --records g.jsonl"),
        RECORDS,
    ),
    "boards": Loading(
        *("b.toml", lambda path: write_board(path, shikoku_data())),
        lambda: Batch(2, "b.toml").reset(seed=0),
        PICKLE
        | {"name is a path": lambda path: write_board(path, shikoku_data() | {"name": BOARD})},
    ),
    "positions": Loading(
        *("position.json", lambda path: json_file(path, position()), _positions),
        {"board is a path": lambda path: json_file(path, position(board=BOARD))},
    ),
    "policy:FILE": Loading(
        "theirs", lambda path: random_policy().save(path), lambda: make("policy:theirs"), PICKLE
    ),
    "rate --ladder": Loading(
        *("l.json", lambda path: json_file(path, ladder())),
        *("rate random --games 2 --ladder l.json", LADDERS),
    ),
    "ladder --out": Loading(
        *("l.json", lambda path: None, "ladder random greedy --games 2 --out l.json", LADDERS)
    ),
    "regret --set": Loading(
        *("set.npz", regret_file, "regret greedy --set set.npz --markdown o.md"),
        PICKLE
        | {
            "boards lie outside": lambda path: regret_file(path, board=BOARD),
            "policies are code": lambda path: regret_file(path, policy=SPEC),
        },
    ),
    "generalise --compare": Loading(
        *("r.json", lambda path: json_file(path, generalisation())),
        "generalise --compare r.json --markdown o.md",
        PICKLE
        | {
            "agents are code": lambda path: json_file(path, generalisation(agents=[SPEC])),
            "trained on a path": lambda path: json_file(path, generalisation(BOARD)),
        },
    ),
    "train --config": Loading(
        *("my.toml", config_file, "train --run new --config my.toml"),
        PICKLE
        | {
            "a ladder with code": _config_with_ladder,
            **{
                f"{name} is a secret": lambda path, name=name: config_file(  # type: ignore[misc]
                    path, rate_every=1, **{name: f"{SECRET}/note.toml"}
                )
                for name in ("board", "ladder", "start_from")  # it may be read, but not printed
            },
        },
    ),
    "train --resume": Loading(
        *("run", run_folder, "train --resume run --updates 2"),
        {"pickles": within("checkpoints/*"), "metrics": within("metrics.jsonl")},
    ),
    "train --resume, alphazero": Loading(
        *("run", lambda path: run_folder(path, "alphazero"), "train --resume run --rounds 2"),
        {"pickles": within("shards/*")},
    ),
}


def outcome(loading: Loading) -> bool:
    """Load; return whether that succeeded."""
    try:
        if isinstance(loading.load, str):
            return main(shlex.split(loading.load)) == 0
        loading.load()
    except (ValueError, OSError):
        return False
    return True


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LOADINGS)
def test_loading__executes_nothing(
    name: str, events: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    loading = LOADINGS[name]
    path = Path(loading.name)
    loading.good(path)
    events.clear()
    assert outcome(loading), capfd.readouterr().err
    assert not events
    for why, hostile in loading.hostile.items():
        hostile(path)
        before = sorted(path.parent.parent.rglob("*"))
        events.clear()
        outcome(loading)
        allowed = ["read note.toml"] if why.endswith("secret") else []
        assert [event for event in events if event not in allowed] == [], why
        assert not Path("trace").exists(), why
        assert "payload" not in sys.modules, why
        assert sorted(path.parent.parent.rglob("*")) == before or isinstance(loading.load, str)
        printed = capfd.readouterr()
        assert PASSWORD not in printed.out + printed.err, why


def test_audit__sees_what_the_user_asks_for(events: list[str]) -> None:
    """Otherwise the tests of hostile files would prove nothing."""
    make(SPEC)
    assert Path("trace").exists()
    make(f"policy:{SECRET}/policy")
    Path(SECRET, "note.toml").read_text()
    subprocess.run(["true"], check=True)
    assert {"read policy", "read note.toml", "subprocess.Popen"} <= {*events}
    Path("trace").unlink()
    pickle.loads(pickle.dumps(Payload()))
    assert Path("trace").exists()
