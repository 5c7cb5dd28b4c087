"""Boards: read, check, compile and generate them."""
