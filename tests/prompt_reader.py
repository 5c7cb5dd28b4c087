"""A player that reads nothing but its prompt, as a language model does, and plays legally."""

import json
import re
from collections.abc import Iterator


def reads_and_answers(prompt: str) -> str:
    """Return an answer with a legal action, found by the rules and the position of the prompt."""
    panel = own_panel(prompt)
    question = re.findall(r"You are player_[01]\. (.*)", prompt)[-1]
    if "return one" in question:
        held = re.findall(r"(kimono|pottery|doll|fan) ([0-9])", panel["wares"])
        action = next(f"discard:{ware}" for ware, number in held if number != "0")
    elif "Use this place" in question:
        action = effect(prompt, panel)
    else:
        action = "pass" if "pass" in question else move(prompt, panel)
    return f'I look at the dice first. {{"plan": "{action}"}} So: {json.dumps({"action": action})}'


def listed(prompt: str) -> list[str]:
    """Return the legal actions that a prompt lists."""
    return re.findall(r"Legal actions: (.*)", prompt)[-1].split(", ")


def own_panel(prompt: str, *, other: bool = False) -> dict[str, str]:
    """Return the cells of a player's column by label, and the places of the characters."""
    seat = int(re.findall(r"You are player_([01])\.", prompt)[-1]) ^ int(other)
    lines = prompt.partition("\nPLAYERS ")[2].partition("\n\n")[0].splitlines()[1:]
    panel = {line[:8].strip(): (line[9:44], line[45:])[seat].strip() for line in lines}
    places = re.fullmatch(r"\[.\] (.*)  \[.\] (\w+)  \[.\] (\w+)", panel["pawns"])
    assert places is not None
    return panel | dict(zip(("pilgrim", "merchant", "artist"), places.groups(), strict=True))


def effect(prompt: str, panel: dict[str, str]) -> str:
    forms = prompt.partition("Labels of actions:\n")[2]
    if "visit" in forms:
        return "visit" if "seashore" not in panel["pilgrim"] else "pass"
    if "draw" in forms:
        return "draw" if panel["merchant"].startswith("M") else "sell:1"
    icon = re.findall(rf"{panel['artist']} ([☾≋▲╫])", prompt)
    front = re.findall(r"front (\S)", panel["easel"])
    return "gift" if front == icon else "paint"


def move(prompt: str, panel: dict[str, str]) -> str:
    dice = re.search(r"^die +([1-6]) (\w+) +([1-6]) (\w+) +([1-6]) (\w+)", prompt, re.MULTILINE)
    assert dice is not None
    pilgrim, merchant, artist = (
        int(dice[i]) if dice[i + 1] == "available" else 0 for i in (1, 3, 5)
    )
    if artist:
        found = re.findall(r"^- (A[1-8]): .* next to (.*)$", prompt, re.MULTILINE)
        ways = {area: set(others.split()) for area, others in found}
        return go("artist", ways, panel, artist, set())
    if merchant:
        routes = prompt.partition("Routes: ")[2].splitlines()[0]
        ways = {}
        for one, two in re.findall(r"([CM][1-8])-([CM][1-8])", routes):
            ways.setdefault(one, set()).add(two)
            ways.setdefault(two, set()).add(one)
        others = own_panel(prompt, other=True)
        taken = {panel["pilgrim"].split()[0], others["pilgrim"].split()[0]}
        taken |= {others["merchant"].split()[0]} - {"M1", "M2", "M3", "M4"}
        return go("merchant", ways, panel, merchant, taken)
    assert pilgrim
    return "pilgrim"


def go(
    character: str, ways: dict[str, set[str]], panel: dict[str, str], steps: int, taken: set[str]
) -> str:
    """Return a move by exactly that many steps that enters no place twice, or a stay."""
    ends = set(paths(ways, [panel[character].split()[0]], steps)) - taken
    return f"{character}:{min(ends) if ends else 'stay'}"


def paths(ways: dict[str, set[str]], path: list[str], steps: int) -> Iterator[str]:
    if not steps:
        yield path[-1]
        return
    for place in ways[path[-1]] - set(path):
        yield from paths(ways, [*path, place], steps - 1)
