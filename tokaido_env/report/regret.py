"""Tables of regret: the mean loss of decisions, in thousandths of a result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tokaido_env.report import tables
from tokaido_env.report.tables import Table

JsonDict = dict[str, Any]

MAIN = ("agent", "regret", "at most", "errors", "blunders")
_DASH = "–"
_VALUE_GROUPS = {"rounds": "rounds", "distance": "steps to an end trigger"}


def title_of(card: JsonDict) -> str:
    """Return the title of a regret set from its name, hash and number of positions."""
    return f"{card['name']}, hash {card['hash']}, {card['positions']:,} positions"


def main_table(title: str, found: Sequence[JsonDict]) -> Table:
    """Return the regret of agents, lowest first."""
    timed = any("core_seconds" in one for one in found)
    headers = (*MAIN, "core-seconds") if timed else MAIN
    rows = []
    for one in in_order(found):
        shares = [f"{100 * one[key]['mean']:.1f} %" for key in ("errors", "blunders")]
        row = (
            one["agent"],
            with_interval(one["regret"]),
            f"{1000 * one['at_most']['mean']:.1f}".replace("-", "−"),
        )
        clock = (seconds(one.get("core_seconds")),) if timed else ()
        rows.append((*row, *shares, *clock))
    return Table(f"{title}: regret per choice, in 1/1000 of a result", headers, rows)


def groups_table(key: str, found: Sequence[JsonDict]) -> Table:
    """Return the regret of agents by boards, phase or rounds."""
    names = list(found[0][key])
    rows = [
        (one["agent"], *(with_interval(one[key][name]) for name in names))
        for one in in_order(found)
    ]
    return Table(f"by {key}", ("agent", *names), rows)


def differences_table(differences: Sequence[JsonDict]) -> Table:
    """Return the paired differences in regret between agents."""
    rows = [(one["a"], one["b"], with_interval(one, sign=True)) for one in differences]
    return Table("paired, in 1/1000 of a result", ("agent", "than", "more"), rows)


def value_tables(found: Sequence[JsonDict]) -> list[Table]:
    """Return bias and error of the agents that give values, for each kind of boards."""
    judged = [one for one in in_order(found) if "values" in one]
    found_tables = []
    for boards in judged[0]["values"] if judged else ():
        found_tables.append(_bias_table(boards, judged))
        for key in ("rounds", "distance"):
            names = list(judged[0]["values"][boards][key])
            rows = [(one["agent"], *_value_errors(one["values"][boards], key)) for one in judged]
            title = f"value error and share explained, {boards}, by {_VALUE_GROUPS[key]}"
            found_tables.append(Table(title, ("agent", "all", *names), rows))
    return found_tables


def _bias_table(boards: str, judged: Sequence[JsonDict]) -> Table:
    """Return the bias of values on a kind of boards, of all positions and by rounds."""
    headers = ("agent", "all", *judged[0]["values"][boards]["rounds"])
    rows = []
    for one in judged:
        measured = one["values"][boards]
        groups = measured["all"], *measured["rounds"].values()
        biases = (f"{group['bias']['mean']:+.3f}".replace("-", "−") for group in groups)
        rows.append((one["agent"], *biases))
    return Table(f"value bias, {boards}, by rounds", headers, rows)


def _value_errors(measured: JsonDict, key: str) -> Iterator[str]:
    """Yield the cells of all positions and of each group: the error, the share explained."""
    for group in (measured["all"], *measured[key].values()):
        explained = group["explained"]
        share = _DASH if explained is None else f"{100 * explained:.0f} %".replace("-", "−")
        yield f"{group['error']['mean']:.3f}, {share}"


def in_order(found: Sequence[JsonDict]) -> list[JsonDict]:
    """Return agents by regret, lowest first."""
    return sorted(found, key=lambda one: float(one["regret"]["mean"]))


def with_interval(estimate: JsonDict, *, sign: bool = False) -> str:
    """Return a mean with its interval, in thousandths."""
    form = "+.1f" if sign else ".1f"
    return tables.with_interval(estimate["mean"], estimate["ci95"], form, 1000)


def seconds(value: float | None) -> str:
    """Return core-seconds per decision to two digits, a dash if not measured."""
    return _DASH if value is None else f"{value:.2g}"
