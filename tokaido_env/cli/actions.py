"""`tokaido actions`: print the tables of actions and of chance outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tokaido_env.cli import command as cli
from tokaido_env.core.actions import IDS, LABELS
from tokaido_env.core.constants import CHARACTERS, ICONS, SIDES, WARES

_WAVE = ", with the wave held"

# By the first word of a label; {} is what the next word names.
_MEANINGS = {
    "pilgrim": "take the pilgrim's die and walk on by it (R5.1)",
    "merchant": "take the merchant's die and go to {} (R4.1)",
    "artist": "take the artist's die and go to {} (R3.1)",
    "pass": "decline the effect, or the repeat by the hot spring token (R6.1)",
    "visit": "use the station where the pilgrim stands (R5.2-R5.5)",
    "take": "at a seashore: take the wave of {}, from the board or the opponent (R5.5)",
    "draw": "draw wares in a mountain town (R4.3)",
    "sell": "sell {} in a coastal town (R4.4)",
    "paint": "reveal paintings (R3.3)",
    "gift": "give the front painting (R3.5)",
    "discard": "return {} to the bag, one too many is held (R4.3, R7.4)",
}
# What {} is for all labels with a first word.
_ANY = {
    **{"merchant": "this town", "artist": "this area", "take": "this character"},
    **{"sell": "so many wares", "discard": "this ware"},
}
# Effects of the wave by the first word of a label.
_WAVES = {
    "pilgrim": ": one step fewer, never under 1, or one more (R7.1)",
    "draw": ": one more (R7.3)",
    "sell": ": one coin more for each (R7.3)",
    "paint": ": one more (R7.2)",
}


class Outcomes(NamedTuple):
    """A row of the table of outcomes: of a chance phase, or of a step of the set-up.

    Attributes:
        phase: name of the phase.
        ids: one id, or several in words.
        label: the label, or its form.
        meaning: a phrase with the number of the rule.
    """

    phase: str
    ids: str
    label: str
    meaning: str


OUTCOMES = (
    Outcomes(
        *("SETUP", "0 on", "boutique:TOWN=WARE/PRICE"),
        "a boutique token for C1, then C2 to C8 (R1.2); the ids number the kinds of token of the "
        "board that differ",
    ),
    *(
        Outcomes("SETUP", str(i), f"side:{one}={side}", f"the side of the {one}'s wave (R1.4)")
        for one, sides in zip(CHARACTERS, SIDES, strict=True)
        for i, side in enumerate(sides)
    ),
    Outcomes(
        *("ROLL", "0 to 215", "roll:P/M/A"),
        "faces of the dice, pilgrim's first: the id is 36 (P - 1) + 6 (M - 1) + A - 1 (R2.1)",
    ),
    *(
        Outcomes("DRAW", str(i), f"ware:{ware}", "this ware comes out of the bag (R4.3)")
        for i, ware in enumerate(WARES)
    ),
    *(
        Outcomes("REVEAL", str(i), f"tile:{icon}", "the next painting shows this icon (R3.3)")
        for i, icon in enumerate(ICONS)
    ),
)


@cli.command("actions")
def main(options: cli.NoOptions) -> int:
    """Print the tables of actions and of chance outcomes.

    A row has the id, the label and the meaning, with the number of its rule in
    docs/reference/rules.md.
    """
    print("\n\n".join(tables()))
    return 0


def tables() -> list[str]:
    """Return the tables of actions and of chance outcomes as text, one string a table."""
    actions = [f"{'id':>3}  {'action':<16} meaning"]
    actions += [f"{IDS[label]:>3}  {label:<16} {meaning_of(label)}" for label in LABELS]
    outcomes = [f"{'phase':<7} {'ids':<9} {'outcome':<25} meaning"]
    outcomes += [f"{o.phase:<7} {o.ids:<9} {o.label:<25} {o.meaning}" for o in OUTCOMES]
    return ["\n".join(actions), "\n".join(outcomes)]


def meaning_of(label: str, *, general: bool = False) -> str:
    """Return the meaning of an action by its label.

    Args:
        label: of the action.
        general: whether labels such as `merchant:C1` and `merchant:C2` get the same text.
    """
    word, *details = label.split(":")
    if details == ["stay"]:
        rule = {"merchant": "R4.2", "artist": "R3.7"}[word]
        return f"take the {word}'s die and stay: no way has its length ({rule})"
    wave = _WAVES[word] if "wave" in details else ""
    object_ = _ANY.get(word, "") if general else _object(word, details)
    return _MEANINGS[word].format(object_) + (f"{_WAVE}{wave}" if wave else "")


def _object(word: str, details: Sequence[str]) -> str:
    detail = next((each for each in details if each != "wave"), "")
    match word:
        case "artist":
            return f"area {detail}"
        case "take":
            return f"the {detail}"
        case "sell":
            return f"{detail} ware{'s' if detail != '1' else ''}"
        case "discard":
            return f"a {detail}"
    return detail
