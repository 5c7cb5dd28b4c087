"""Commands of `tokaido`: each module has the `main` of the command of its name."""
