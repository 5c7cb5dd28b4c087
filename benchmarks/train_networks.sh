#!/usr/bin/env bash
# The commands that trained the shipped networks, on 2026-11-28 at the commits below.
# They need hours. Later commits play other games, so they give other bytes there.
#
#   bash benchmarks/train_networks.sh champion      two hours of a core, 45 minutes of two
#   bash benchmarks/train_networks.sh generalist    the same
#
# Both begin with the value of an older network, of policy and value, which this extracts:
#   git show 279937b:tokaido_env/agents/champion.safetensors > old.safetensors
set -euo pipefail

python - <<'PYTHON'
import numpy as np
from safetensors.numpy import load_file

from tokaido_env.agents.policy import Policy

old = load_file("old.safetensors")
units = old["value.0.weight"].shape[1]  # the last of the first layer
first = old["trunk.0.weight"][-units:]
names = {"second": "value.0", "value": "value.1"}
tensors = {
    "first.weight": np.delete(first, np.s_[401:450], axis=1),  # without values of afterstates
    "first.bias": old["trunk.0.bias"][-units:].copy(),
} | {
    f"{new}.{part}": old[f"{name}.{part}"]
    for new, name in names.items()
    for part in ("weight", "bias")
}
Policy(tensors).save("old-value")
PYTHON

size="--width 512 --second-width 128"
td="$size --value-lambda 0.85 --threads 1"
rounds="$size --method alphazero --threads 2 --executor processes:2 --search-share 0.33 \
  --side-share 0.5 --result-weight 0.25 --learning-rate 0.0003 --samples-per-position 1.5 \
  --promotion-games 4000"

champion() { # commits 279937b (11, 12), e014bd84 (13), 70db0cb4 (15)
  tokaido train --run runs/11 --start-from old-value $td --updates 426 --seed 41 --learning-rate 0.0005
  tokaido train --run runs/12 --start-from runs/11/last $td --updates 750 --seed 43 --learning-rate 0.0004
  tokaido train --run runs/13 --start-from runs/12/last $td --updates 1500 --seed 45 --learning-rate 0.0005
  tokaido train --run runs/15 --start-from runs/13/last $rounds --rounds 3 --shards 96 --seed 49
}

generalist() { # commits 279937b (7, 8), e014bd84 (9), 70db0cb4 (11)
  hand_made=shikoku,shikoku_ring,shikoku_dice,shikoku_routes,shikoku_market,shikoku_art,shikoku_remix
  many="--board family:train/10000 --extra-boards $hand_made --extra-boards-every 4"
  tokaido train --run runs/7 --start-from old-value $many $td --updates 399 --seed 42 --learning-rate 0.0006
  tokaido train --run runs/8 --start-from runs/7/last $many $td --updates 700 --seed 44 --learning-rate 0.0005
  tokaido train --run runs/9 --start-from runs/8/last $many $td --updates 1400 --seed 46 --learning-rate 0.0005
  tokaido train --run runs/11 --start-from runs/9/last $many $rounds --rounds 2 --shards 128 --seed 50
}

"$1"
