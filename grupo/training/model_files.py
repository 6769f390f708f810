"""The GGUF files that a run began with: it goes on with these, and with no others."""

from pathlib import Path

from grupo.core.component import component, component_fields, is_component, walk
from grupo.models.gguf.cache import gguf_digest, is_gguf
from grupo.recipe import Recipe
from grupo.util.errors import ConfigError


@component
class ModelFile:
    """A GGUF file that a recipe names.

    Args:
        path: Its name in the recipe.
        sha256: Its checksum when the run began.
    """

    path: str
    sha256: str

    def check(self) -> None:
        """Raise `ConfigError` if the file is gone, or is another one."""
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


def model_files(recipe: Recipe) -> tuple[ModelFile, ...]:
    """The GGUF files of all models that a recipe names: of its policy, its teachers, its judges."""
    parts = (part for part in walk(recipe) if is_component(part))
    models = [component_fields(part).get("model") for part in parts]
    names = [model for model in models if isinstance(model, str) and is_gguf(model)]
    return tuple(ModelFile(name, gguf_digest(Path(name))) for name in dict.fromkeys(names))
