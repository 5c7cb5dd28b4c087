"""Training of value networks: TD(λ) and AlphaZero."""
