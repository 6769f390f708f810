"""Recipes as users write them: defaults, checks, overrides, recipe files, other libraries."""
