"""Checks for methods: properties that every method must have, and smoke training."""
