"""Training of policy networks: TD(λ), PPO and AlphaZero."""
