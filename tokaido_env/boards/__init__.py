"""The island as data: boards in files, how they are read, checked, compiled, and drawn."""
