"""Measure agents against each other: `python evaluate.py --help`, as `tokaido evaluate`."""

import sys

from tokaido_env.cli.evaluate import main

if __name__ == "__main__":
    sys.exit(main())
