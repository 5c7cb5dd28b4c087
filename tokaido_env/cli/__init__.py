"""Commands: what `tokaido COMMAND` and `python -m tokaido_env COMMAND` run, each a `main`."""
