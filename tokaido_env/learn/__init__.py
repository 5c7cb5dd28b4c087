"""Training of value networks: TD(λ), PPO and AlphaZero."""
