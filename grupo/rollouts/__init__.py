"""Rollouts: samplers of groups, turn strategies, curricula, and the history of rewards."""
