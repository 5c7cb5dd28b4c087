"""Previews of legal actions: the gain of each, from positions that the rules core computes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tokaido_env.boards.board import Board
from tokaido_env.core.actions import ARTIST_STAY, LABELS, PASS
from tokaido_env.core.bitmask import actions_of
from tokaido_env.core.constants import CHARACTERS, GOLD_PRICE, ICONS, SIDES, WARES
from tokaido_env.core.rules import MAX_OUTCOMES, legal_mask
from tokaido_env.core.serialization import points_of
from tokaido_env.core.state import Phase
from tokaido_env.core.stepping import weights_of
from tokaido_env.render.narration import number_of
from tokaido_env.render.scene import state_after, step_of


def previews_of(board: Board, states: Any) -> list[dict[str, Any]]:
    """Return the legal actions of the player to decide as JSON types, `pass` last.

    For each: `label`; `group`, a title; `name`, its destination or itself; `icon`, a name of
    `icons.GLYPHS` or ""; `text`, the gain before chance.
    `states` is `STATE` (1,), not changed.
    """
    legal = actions_of(legal_mask(board.record, states, 0))
    return [_preview(board, states, one) for one in sorted(legal, key=lambda a: (a == PASS, a))]


def action_text(board: Board, states: Any, action: int) -> str:
    """Return a legal action, by id, as text with destination or gain; `states`: `STATE` (1,)."""
    shown = _preview(board, states, action)
    name = str(shown["name"])
    if action > ARTIST_STAY:
        return name
    return f"{shown['group'].lower()} {name if name == 'stays' else f'to {name}'}"


def _preview(board: Board, states: Any, action: int) -> dict[str, Any]:
    after = state_after(board, states, action)
    found = {"label": LABELS[action], "group": _group(states[0], action)}
    if action > ARTIST_STAY:
        icon, name, odds = _effect(board, states, action)
        return found | {"name": name, "icon": icon, "text": odds}
    effects = [_effect(board, after, effect) for effect in _best_effects(board, after)]
    name, icon = _destination(board, states, action, after)
    return found | {
        "name": name,
        "icon": effects[0][0] if effects else icon,
        "text": " or ".join(gain for _, gain, _ in effects) or "no effect",
    }


def _group(state: Any, action: int) -> str:
    """Return the title of an action's group: its die, or the kind of decision."""
    die, phase = int(state["die"]), state["phase"]
    if phase == Phase.DISCARD:
        return "Return a ware"
    if phase == Phase.MOVE:
        die = CHARACTERS.index(LABELS[action].partition(":")[0])
    title = f"{CHARACTERS[die].capitalize()} {int(state['dice'][die])}"
    return title + {Phase.EFFECT: ": effect", Phase.REPEAT: ": move again"}.get(phase, "")


def _destination(board: Board, states: Any, action: int, after: Any) -> tuple[str, str]:
    """Return the name of a move's destination, and the icon of its station or ""."""
    _, _, start, end = step_of(board, states[0], action, after[0])
    name = board.stations[end] if isinstance(end, int) else end
    if LABELS[action] == "pilgrim:wave":
        return f"{name} with {SIDES[0][int(states['wave_side'][0][0])]}", name
    return (name, name) if start != end else ("stays", "")


def _best_effects(board: Board, states: Any) -> list[int]:
    """Return the effects that a move leads to, of each kind the largest."""
    labels = [LABELS[one] for one in actions_of(legal_mask(board.record, states, 0))]
    kinds = {one if one.startswith("take") else one.partition(":")[0]: one for one in labels}
    is_effect = states["phase"][0] == Phase.EFFECT
    return [LABELS.index(one) for one in kinds.values() if is_effect and one != "pass"]


def _effect(board: Board, states: Any, action: int) -> tuple[str, str, str]:
    """Return the icon of an effect, its gain before chance, and the odds of its first draw."""
    then = state_after(board, states, action)
    old, new, seat = states[0], then[0], int(states["player"][0])
    coins = int(new["coins"][seat]) - int(old["coins"][seat])
    coins += GOLD_PRICE * (int(new["gold"][seat]) - int(old["gold"][seat]))
    now, later = (sum(points_of(board.record, one)[seat].values()) for one in (states, then))
    icon, text = _head(LABELS[action], seat, old, new)
    gains = [f"+{number_of(coins, 'coin')}"] * (coins > 0)
    gains += [f"+{number_of(later - now, 'point')}"] * (later > now)
    gains += ["the last round"] * bool(new["end_triggered"] > old["end_triggered"])
    return icon, ": ".join(filter(None, [text, ", ".join(gains)])), _odds(board, then)


def _head(label: str, seat: int, old: Any, new: Any) -> tuple[str, str]:
    """Return the icon and the text of what an action does itself."""
    head, _, detail = label.partition(":")
    wave, pending = detail.endswith("wave"), int(new["pending"])
    sold = (old["wares"][seat] - new["wares"][seat]).tolist()
    ware, front = WARES[int(np.argmax(sold))], ICONS[int(old["easel"][seat]) & 3]
    tracks = [one for one in ("temple", "garden") if new[one][seat] > old[one][seat]]
    if head == "visit" and tracks:
        return tracks[0], f"{tracks[0]} {int(new[tracks[0]][seat])}"
    if head == "visit":
        is_spring = new["hot_spring"] != old["hot_spring"]
        return ("hot spring", "hot spring token") if is_spring else ("coin", "")
    if head == "take":
        side = CHARACTERS.index(detail)
        return "wave", f"{SIDES[side][int(old['wave_side'][side])]} wave"
    keeps = "keep the hot spring token" if old["phase"] == Phase.REPEAT else "decline"
    icon, text, tile = {
        "draw": ("bag", f"draw {number_of(pending, 'ware')}", "robust"),
        "paint": ("painting", f"reveal {number_of(pending, 'painting')}", "proficient"),
        "sell": (ware, f"sell {number_of(sum(sold), ware)}", "crafty"),
        "gift": (front, f"give the {front}", ""),
        "discard": (ware, f"return {ware}", ""),
        "pass": ("none", keeps, ""),
    }[head]
    return icon, f"{text} with {tile}" if wave else text


def _odds(board: Board, states: Any) -> str:
    """Return the odds of the next ware or painting, "" at other positions."""
    names = {Phase.DRAW: WARES, Phase.REVEAL: ICONS}.get(states["phase"][0], ())
    weights = np.zeros(MAX_OUTCOMES, np.int64)
    n, _ = weights_of(board.record, states, 0, weights) if names else (0, 0)
    odds = sorted(zip(weights[:n].tolist(), names, strict=True), reverse=True)
    return ", ".join(f"{name} {weight / weights.sum():.0%}" for weight, name in odds if weight)
