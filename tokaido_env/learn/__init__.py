"""Training of policy networks: PPO, self-play PPO and AlphaZero."""
