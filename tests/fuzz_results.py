"""Results of `evaluate generalise`: read, compared in a table and told, or refused."""

import io
import random
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import mutants
from fuzz import check_message, refusal

from tokaido_env.arena.generalisation import Generalisation, ResultsError
from tokaido_env.cli.evaluate import main as evaluate
from tokaido_env.report.protocols import generalisation_table, meaning


def _scores(pool: str, boards: int) -> dict[str, Any]:
    score = {"value": 0.5, "ci95": [0.375, 0.625]}
    each = [{"board": f"family:{number}", **score} for number in range(boards)]
    head = {"pool": pool, "hash": "0123456789abcdef", "boards": boards, "pairs": 40, "drawn": True}
    return head | {"mean": score, "iqm": score, "above_even": score, "each": each}


def _results(trained_on: str | None, *, split: bool = True) -> dict[str, Any]:
    return {
        "version": 1,
        "agent": "policy:runs/a",
        "opponent": "mcts:sims=400",
        "seed": 0,
        "trained_on": trained_on,
        "test": _scores("family:test/3", 3),
        "train": _scores("family:train/2", 2) if split else None,
        "gap": {"value": -0.125, "ci95": [-0.25, 0.0625]} if split else None,
    }


class Cases:
    """Results of an agent trained on boards of the family, of another, and on no split at all."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "results.json"
        self.other = folder / "other.json"
        self.table = folder / "table.md"
        self.results = (
            _results("family:train/10"),
            _results("shikoku"),
            _results(None, split=False),
        )

    def check_sound(self) -> None:
        for data in self.results:
            self.path.write_bytes(mutants.dumps(data))
            self._check_taken()
            assert self._compare(data) == 0

    def case(self, rng: random.Random) -> bool:
        data: Any = rng.choice(self.results)
        self.path.write_bytes(mutants.as_json(rng, data))
        with refusal(ResultsError, names=self.path) as messages:
            self._check_taken()
        if rng.random() < 0.1:
            status = self._compare(data)
            assert status or not messages
        return not messages

    def _check_taken(self) -> None:
        """What was taken is told, and taken again when it is written."""
        result = Generalisation.load(self.path)
        assert generalisation_table(result).rows
        assert meaning(result)
        assert result.boards_trained_on != 0
        self.path.write_bytes(mutants.dumps(result.to_dict()))
        assert Generalisation.load(self.path).to_dict() == result.to_dict()

    def _compare(self, data: Any) -> int:
        """Compare with results that are sound: a table, or a line that says why there is none."""
        self.table.unlink(missing_ok=True)
        self.other.write_bytes(mutants.dumps(data))
        files = str(self.other), str(self.path)
        wrong = io.StringIO()
        with redirect_stdout(io.StringIO()), redirect_stderr(wrong):
            status = evaluate(["generalise", "--table", *files, "--markdown", str(self.table)])
        if status:
            check_message(wrong.getvalue().removesuffix("\n"))
        assert self.table.exists() == (status == 0)
        return status
