"""How to sample fast."""
