"""Recipes in TOML and YAML files: `load_recipe_file` reads one, `recipe_to_toml` writes one."""

from grupo.config.recipe_files.load import load_recipe_file, recipe_from_data
from grupo.config.recipe_files.write import method_to_data, recipe_to_toml

__all__ = [
    "load_recipe_file",
    "method_to_data",
    "recipe_from_data",
    "recipe_to_toml",
]
