"""The agents: whatever chooses actions."""
