"""`recipe.json`: the recipe of a run, its earlier recipes, its GGUF files and a fingerprint."""

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from grupo.core.component import component, component_fields, is_component, to_code, walk
from grupo.core.non_json import describe_non_json
from grupo.core.serialization import from_data, to_data
from grupo.models.gguf.cache import gguf_digest, is_gguf
from grupo.recipe import Recipe
from grupo.util.errors import ConfigError
from grupo.util.json_text import parse_json, read_limited


@component
class ModelFile:
    """A GGUF file that a recipe names.

    Args:
        path: Path of the file, as the recipe names it.
        sha256: SHA-256 of the file when the run began.
    """

    path: str
    sha256: str

    def check(self) -> None:
        """Raise `ConfigError` if the file is gone or has changed."""
        if not Path(self.path).is_file():
            raise ConfigError(
                f"model: {self.path!r} is gone. A run needs the model that it began with whenever"
                " it is resumed, evaluated or exported: put it back."
            )
        if gguf_digest(Path(self.path)) != self.sha256:
            raise ConfigError(
                f"model: {self.path!r} is not the file that the run began with: its SHA-256"
                " differs. Put back the original, or start a new run."
            )


def model_files_with_checksums(recipe: Recipe) -> tuple[ModelFile, ...]:
    """The GGUF files of all models in a recipe: of the policy, of teachers and of judges."""
    parts = (part for part in walk(recipe) if is_component(part))
    models = [component_fields(part).get("model") for part in parts]
    names = [model for model in models if isinstance(model, str) and is_gguf(model)]
    return tuple(ModelFile(name, gguf_digest(Path(name))) for name in dict.fromkeys(names))


@component
class EarlierRecipe:
    """The recipe that a run had before one of its extensions.

    Args:
        fingerprint: Fingerprint of `recipe.json` before the extension. The checkpoints of that time
            hold it.
        recipe: The recipe.
        replaced_at_step: Number of steps that were done when the run was extended.
        run_had_ended: Whether the run had ended at this step.
    """

    fingerprint: str
    recipe: Recipe
    replaced_at_step: int
    run_had_ended: bool


@component
class StoredRecipe:
    """The contents of `recipe.json`.

    A run is extended when it is resumed with another recipe. For example, a run with
    `max_steps=100` ends at step 100, and is extended there to 150 steps. Its earlier recipe is then
    the one with `max_steps=100`, and its `replaced_at_step` is 100. If the newest checkpoints are
    damaged, the run loads one from before, such as that of step 90. It repeats steps 91 to 100 with
    the earlier recipe (`recipe_of_step`), and trains steps 101 to 150 with `recipe`.

    Args:
        recipe: The recipe of the run.
        earlier_recipes: The recipes of the run before each of its extensions, oldest first.
        model_files: The GGUF files that the recipe names, with their checksums at the run's start.
    """

    recipe: Recipe
    earlier_recipes: tuple[EarlierRecipe, ...] = ()
    model_files: tuple[ModelFile, ...] = ()

    @property
    def all_recipes(self) -> tuple[Recipe, ...]:
        """The recipe of the run, followed by its earlier recipes."""
        return self.recipe, *(earlier.recipe for earlier in self.earlier_recipes)

    @property
    def last_extended_at_step(self) -> int:
        """The number of steps that were done when the run was last extended; 0 if it never was."""
        return max((earlier.replaced_at_step for earlier in self.earlier_recipes), default=0)

    def recipe_of_step(self, step_index: int) -> Recipe:
        """Return the recipe of a step.

        A step from before an extension has an earlier recipe. If a checkpoint is damaged, a resumed
        run can therefore repeat the step with the same result, bit for bit.

        Args:
            step_index: Index of the step, from 0.
        """
        recipes = (
            earlier.recipe
            for earlier in self.earlier_recipes
            if step_index < earlier.replaced_at_step
        )
        return next(recipes, self.recipe)

    def extended(self, recipe: Recipe, step: int, *, run_had_ended: bool) -> "StoredRecipe":
        """The contents after an extension: `recipe` is current, `self.recipe` the last earlier one.

        Args:
            recipe: The recipe of the steps that follow.
            step: Number of steps done. After a damaged checkpoint it may be lower than at an
                earlier extension, whose `replaced_at_step` is then lowered to it.
            run_had_ended: Whether the run had ended at this step.
        """
        earlier_recipes = (
            replace(
                earlier,
                replaced_at_step=min(earlier.replaced_at_step, step),
                run_had_ended=earlier.run_had_ended and earlier.replaced_at_step <= step,
            )
            for earlier in self.earlier_recipes
        )
        last = EarlierRecipe(self.fingerprint, self.recipe, step, run_had_ended)
        return StoredRecipe(recipe, (*earlier_recipes, last), self.model_files)

    def check_model_files(self) -> None:
        """Raise `ConfigError` if a GGUF file of the run is gone or has changed."""
        for model_file in self.model_files:
            model_file.check()

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the contents.

        Objects that JSON cannot hold, such as lambdas, count by their description.
        """
        return self._data["fingerprint"]

    def to_text(self) -> str:
        """The text of the file. A file with any other text counts as edited."""
        return json.dumps(self._data, indent=1)

    @cached_property
    def _data(self) -> dict[str, Any]:
        recipes = self.all_recipes
        recipe, *others = (to_data(recipe, on_non_json=describe_non_json) for recipe in recipes)
        pairs = zip(self.earlier_recipes, others, strict=True)
        earlier_recipes = [{**vars(earlier), "recipe": data} for earlier, data in pairs]
        model_files = {file.path: file.sha256 for file in self.model_files}
        return _with_fingerprint(recipe, earlier_recipes, model_files)


def read_stored_recipe(path: Path) -> StoredRecipe:
    """Read `recipe.json`.

    Raises:
        ConfigError: The file was edited or damaged, or it names objects that no longer exist.
    """
    data = _read_data(path)
    try:
        earlier_recipes = map(_earlier_recipe, data.get("earlier_recipes", ()))
        model_files = (ModelFile(*item) for item in data.get("model_files", {}).items())
        return StoredRecipe(_recipe(data["recipe"]), tuple(earlier_recipes), tuple(model_files))
    except ConfigError as error:
        hint = (
            "Either an object that the recipe names was moved or renamed, or another version of"
            " grupo wrote the recipe."
        )
        raise ConfigError(f"run: {path}: {error} {hint}") from error


def _earlier_recipe(data: Mapping[str, Any]) -> EarlierRecipe:
    values: dict[str, Any] = {**data, "recipe": _recipe(data["recipe"])}
    return EarlierRecipe(**values)


def _recipe(data: Any) -> Recipe:
    recipe = from_data(data)
    if not isinstance(recipe, Recipe):
        raise ConfigError(f"it holds {to_code(recipe)}. Allowed: a Recipe.")
    return recipe


def _read_data(path: Path) -> dict[str, Any]:
    """The data of the file.

    Raises:
        FileNotFoundError: There is no file.
        ConfigError: The file cannot be read, was edited or damaged.
    """
    try:
        text = read_limited(path)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ConfigError(f"run: {path} cannot be read: {error.strerror}.") from error
    except ValueError:  # no regular file, too large, or no text
        text = ""
    with suppress(ValueError, TypeError, KeyError):
        data = parse_json(text)
        recipe = data["recipe"]  # a TypeError if the file holds no object
        optional = data.get("earlier_recipes", []), data.get("model_files", {})
        expected = _with_fingerprint(recipe, *optional)
        if text == json.dumps(expected, indent=1):
            return data
    raise ConfigError(
        f"run: {path} was edited or damaged since the run began. Restore the original."
    )


def _with_fingerprint(
    recipe: Any, earlier_recipes: list[Any], model_files: dict[str, str]
) -> dict[str, Any]:
    optional = {"earlier_recipes": earlier_recipes, "model_files": model_files}
    content = {"recipe": recipe, **{name: value for name, value in optional.items() if value}}
    # A recipe alone is hashed without its key: files that were written before there were optional
    # parts have this fingerprint, and stay valid.
    hashed = content if len(content) > 1 else recipe
    return {"fingerprint": _hash(hashed), **content}


def _hash(data: Any) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()
