"""Commands: what `python -m tokaido_env` runs."""
