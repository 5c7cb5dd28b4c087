"""The rules of the game and all that a kernel calls: NumPy and Numba only."""
