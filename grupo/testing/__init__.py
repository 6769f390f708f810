"""Properties that every method is checked for, and smoke training."""
