"""Policies: models that generate responses, evaluate their log-probabilities and are trained."""
