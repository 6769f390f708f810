"""Recipes that several ranks can train, checked before anything is loaded."""

from importlib import metadata

from grupo.core.component import walk
from grupo.distributed.agreement import check_same_values
from grupo.distributed.base import Ranks
from grupo.inference.vllm import Vllm
from grupo.recipe import Recipe
from grupo.training.recipe_file import RecipeFile
from grupo.util.errors import ConfigError


def check_ranks(recipe: Recipe, ranks: Ranks) -> None:
    """Raise `ConfigError` if the ranks differ, or cannot train the recipe together."""
    if ranks.size == 1:
        return
    for part in walk(recipe.policy):
        if isinstance(part, Vllm) and part.python:
            raise ConfigError(
                f"policy.engine.python: {part.python!r}. Allowed with several ranks: '', and the"
                " urls of running servers; `grupo serve` starts them."
            )
        if (device := getattr(part, "device", "")).startswith("cuda:"):
            raise ConfigError(
                f"device: {device!r}, which all {ranks.size} ranks would share. Allowed with"
                ' several ranks: "auto", "cuda" (the GPU of the rank) or "cpu".'
            )
    check_same_values(
        ranks,
        {
            "grupo": metadata.version("grupo"),
            "torch": metadata.version("torch"),
            "the recipe": RecipeFile(recipe).fingerprint,
        },
    )
