"""Tests of render/motions.py: what moves is what has changed."""

import re
from collections import Counter

import pytest

from tokaido_env.render.icons import GLYPHS
from tokaido_env.render.motions import motions_of
from tokaido_env.render.svg import panels_of
from tokaido_env.web.game_session import Session


@pytest.fixture(scope="module")
def session() -> Session:
    """A whole game of two agents that use all effects."""
    session = Session(("greedy", "heuristic"), seed=4)
    while session.waits_for == "agent":
        session.play_agent_move()
    return session


def test_motions__go_where_the_pawns_and_parts_are(session: Session) -> None:
    kinds, panels = Counter(), list(map(panels_of, session.scenes))
    for row, entry in enumerate(session.log):
        for kind, *rest in motions_of(*session.scenes[row : row + 2]):
            kinds[kind] += 1
            if kind == "pawn":
                seat, character, way = rest
                places = [
                    re.search(
                        r"translate\((\S+) (\S+)\)", panel["island"][f"pawn {seat} {character}"]
                    )
                    for panel in panels[row : row + 2]
                ]
                ends = [[round(float(at[1])), round(float(at[2]))] for at in places if at]
                assert [way[0], way[-1]] == ends
                assert entry.event.startswith(character)
            elif kind == "move":
                icon, *ends = rest
                assert icon in GLYPHS
                for end in ends:
                    panel, _, part = end.partition(" ")
                    assert panels[row][panel][part]
    moves = [
        entry
        for entry in session.log
        if entry.event.split(":")[0] in ("pilgrim", "merchant", "artist")
    ]
    assert kinds["pawn"] == len(moves)
    assert kinds["roll"] == session.game.rounds
