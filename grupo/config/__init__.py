"""Validation of recipes, and command-line overrides of their fields."""
