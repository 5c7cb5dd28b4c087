"""Results as figures, tables and pages; agents are unknown here."""
