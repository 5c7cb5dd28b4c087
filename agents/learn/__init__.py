"""How networks are trained."""
