import json
import re
from pathlib import Path

from tokaido_env.arena.ladder import LADDER, Ladder
from tokaido_env.report.curve import curve_line, write_curve


def test_write_curve__shows_ratings_next_to_agents_of_the_ladder(tmp_path: Path) -> None:
    rated = [(1, -150.0), (2, -20.0)]
    lines = [
        {"updates": done, "rating/elo": elo, "rating/low": elo - 30, "rating/high": elo + 30}
        for done, elo in rated
    ]
    lines.insert(1, {"updates": 1, "loss": 0.5})  # without a rating
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (tmp_path / "metrics.jsonl").write_text(text, encoding="utf-8")
    drawn = write_curve(tmp_path, Ladder.load(LADDER)).read_text(encoding="utf-8")
    shown = re.findall(r">([a-z:=0-9]+)</text>", drawn)
    assert {"updates", "heuristic", "mcts:sims=100", "mcts:sims=400"} <= set(shown)
    assert not {"greedy", "champion"} & set(shown)
    assert curve_line(tmp_path) == "-150 ▁█ -20"
