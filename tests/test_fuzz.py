"""A few cases of the fuzzer for every format; `make fuzz N=…` runs more."""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from formats import FORMATS
from fuzz import Fuzzer, check_message, limit_values
from mutants import entries_of

from tokaido_env.core.jit import INTERPRETED
from tokaido_env.record import Forfeit

FEW = 40
MANY = 300


@pytest.mark.parametrize("name", FORMATS)
def test_fuzz__takes_or_refuses_damaged_files(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # restored after the test
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fuzzer = Fuzzer(name, tmp_path)
        refused = [bool(fuzzer.case(number)) for number in range(FEW)]
    assert sum(refused) > FEW // 5


@pytest.mark.parametrize("name", ["records", "positions", "ladders", "results"])
def test_load__refuses_a_lone_surrogate_in_any_text(name: str, tmp_path: Path) -> None:
    found = FORMATS[name]
    path, data = tmp_path / found.name, json.loads(found.examples(tmp_path)[0])
    texts = [one for one in entries_of(data) if isinstance(one[0][one[1]], str)]
    assert len(texts) > 5
    for container, key in texts:
        kept, container[key] = container[key], "\udfff"
        path.write_text(json.dumps(data), encoding="utf-8")
        message = rf"\b{key}\b.*: expected a text of valid Unicode, got '\\udfff'$"
        with pytest.raises(found.errors, match=message) as error:
            found.use(path)
        check_message(str(error.value))
        container[key] = kept


@pytest.mark.parametrize("name", ["boards", "configs"])
def test_load__refuses_a_lone_surrogate_in_toml(name: str, tmp_path: Path) -> None:
    path = tmp_path / FORMATS[name].name
    path.write_text(r'name = "\ud800"', encoding="utf-8")
    with pytest.raises(FORMATS[name].errors, match=r"not a TOML file: .* not a Unicode scalar v"):
        FORMATS[name].use(path)


def test_limit_values__are_from_the_types() -> None:
    assert limit_values([Forfeit])[:4] == [-1, 0, 1, 2]
    assert {"illegal", "time"} <= {*limit_values([Forfeit])}


@pytest.mark.slow
@pytest.mark.skipif(INTERPRETED, reason="its process compiles the kernels")
def test_fuzz__stays_within_bounds_time_and_memory() -> None:
    command = [sys.executable, str(Path(__file__).with_name("fuzz.py")), str(MANY)]
    environment = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_NUM_THREADS": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=1800, check=False, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert done.stdout.count(f"{MANY} cases") == len(FORMATS)
