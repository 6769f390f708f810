"""The number of steps of a recipe whose length is stated in epochs."""

import math

from grupo.recipe import Recipe
from grupo.tasks import split_tasks
from grupo.util.errors import ConfigError

MAX_EPOCHS = 1_000_000


def with_epochs(recipe: Recipe, epochs: float) -> Recipe:
    """The recipe with the number of steps that reads every training task `epochs` times.

    The last step is filled from the next epoch. A run has one length, `max_steps`: epochs are
    converted once.

    Args:
        recipe: The recipe; its held-out tasks are no training tasks.
        epochs: Passes over the training tasks; a fraction is a part of a pass.

    Raises:
        ConfigError: `epochs` is not above 0.

    >>> from grupo.toy.quickstart import RECIPE
    >>> with_epochs(RECIPE, 0.5).max_steps  # of 50,000 tasks, 32 in a step
    782
    """
    tasks, _ = split_tasks(recipe.tasks, recipe.eval_tasks, recipe.seed)
    return recipe.replace(max_steps=steps_of_epochs(epochs, len(tasks), recipe.prompts_per_step))


def steps_of_epochs(epochs: float, num_tasks: int, prompts_per_step: int) -> int:
    """The number of steps that draw each of `num_tasks` tasks `epochs` times.

    >>> steps_of_epochs(3, 100, 16)
    19
    """
    if not 0 < epochs <= MAX_EPOCHS:
        raise ConfigError(f"epochs: {epochs:g}. Allowed: above 0, at most {MAX_EPOCHS:,}.")
    return math.ceil(round(epochs * num_tasks / prompts_per_step, 9))
