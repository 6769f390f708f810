"""Policies: models that generate actions, evaluate their log-probabilities and are trained."""
