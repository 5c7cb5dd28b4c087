"""The games in a replay page."""

import base64
import gzip
import json
import re
from typing import Any

GameData = dict[str, Any]


def games_of(page: str) -> list[GameData]:
    """Return the data of each game, by a way of its own."""
    packed = re.findall(r'<script type="application/gzip">(.*?)</script>', page)
    return [json.loads(gzip.decompress(base64.b64decode(one))) for one in packed]
