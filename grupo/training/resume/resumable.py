"""Messages about runs that cannot be resumed, because their recipes have objects in memory."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from grupo.core.component import walk
from grupo.core.serialization import objects_in_memory
from grupo.models.loaded import LoadedModel
from grupo.recipe import Recipe
from grupo.util.errors import ConfigError
from grupo.util.in_memory import MissingObject


def not_resumable_message(recipe: Recipe) -> str:
    """A line that names the objects in memory of a recipe; "" if the run can be resumed."""
    objects = objects_in_memory(recipe)
    if not objects:
        return ""
    return f"Not resumable: only this process has {_list_names(objects)}."


def check_resumable(recipe: Recipe, run: Path) -> None:
    """Raise `ConfigError` if the recipe of a run had objects in memory.

    Args:
        recipe: The recipe, as it was read from the run's folder.
        run: The folder of the run.
    """
    objects = objects_in_memory(recipe)
    if objects:
        remedies = dict.fromkeys(missing.remedy for missing in objects.values())
        raise ConfigError(
            f"run: {str(run)!r} cannot be resumed: only the process that began it had"
            f" {_list_names(objects)}. Train in a new folder; to make that run resumable,"
            f" {'; '.join(remedies)}."
        )


@contextmanager
def release_loaded_models_on_error(recipe: Recipe) -> Generator[None]:
    """Release the models in memory of a recipe if the block raises."""
    try:
        yield
    except BaseException:
        release_loaded_models(recipe)
        raise


def release_loaded_models(recipe: Recipe) -> None:
    """Release the models in memory that a run has trained, so that other code can use them."""
    for part in walk((recipe.policy, recipe.aux_models)):
        if isinstance(part, LoadedModel):
            part.release()


def _list_names(objects: dict[str, MissingObject]) -> str:
    return ", ".join(f"{path.removeprefix('recipe.')} ({x})" for path, x in objects.items())
