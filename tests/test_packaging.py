"""The wheel plays without the checkout."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

PLAY = """
import tokaido_env
from tokaido_env import agents
assert tokaido_env.__file__.startswith({folder!r}), tokaido_env.__file__
game = tokaido_env.Game(seed=1)
while not game.is_over:
    game.play(game.legal_actions()[-1])
env = tokaido_env.env(render_mode="ansi")
env.reset(seed=1)
env.step(env.last()[0]["action_mask"].argmax())
assert env.render()
assert agents.make("greedy").spec == "greedy"
assert tokaido_env.Board.load().name == "shikoku"
from tokaido_env.web.replay_page import scrubber
assert "<iframe" in scrubber(game)._repr_html_()
from tokaido_env.agents.players.heuristic import load_weights
assert load_weights().any()
assert agents.make("champion").policy.training is not None
import sys
assert "torch" not in sys.modules
"""


def test_wheel_plays_a_game_without_the_checkout(tmp_path):
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path)]
    # Built from a copy, so that the checkout is left as it was.
    source = tmp_path / "source"
    left_out = shutil.ignore_patterns(".*", "runs", "build", "dist", "*.egg-info")
    shutil.copytree(ROOT, source, symlinks=True, ignore=left_out)
    subprocess.run([*build, str(source)], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    folder = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    code = PLAY.format(folder=str(folder))
    environment = {"PYTHONPATH": str(folder), "XDG_CACHE_HOME": str(tmp_path), "PATH": ""}
    played = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert played.returncode == 0, played.stderr
