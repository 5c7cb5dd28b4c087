"""What the game and an agent are like."""
