"""The chat templates that a recipe names by file: a run keeps their texts."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from grupo.core.component import map_components, walk
from grupo.models.causal_spec import CausalSpec
from grupo.models.masked_diffusion import MaskedDiffusion
from grupo.models.template_file import TemplateFile, read_template

T = TypeVar("T")  # a recipe, or a pipeline of recipes


def with_template_texts(recipe: T, stored: Mapping[str, TemplateFile] = {}) -> T:
    """A recipe, or a pipeline, with the text of each file that a `chat_template` in it names.

    Args:
        recipe: The recipe or pipeline.
        stored: Texts that a run has stored, by path. Other files are read.

    Raises:
        ConfigError: A file is missing, too large or empty.
    """

    def with_text(part: Any) -> Any:
        if not isinstance(part, CausalSpec | MaskedDiffusion):
            return part
        path = part.chat_template
        if not path or isinstance(path, TemplateFile):
            return part
        file = stored.get(path) or TemplateFile(path, read_template(path))
        return replace(part, chat_template=file)

    return map_components(recipe, with_text)


def stored_templates(recipe: object) -> Mapping[str, TemplateFile]:
    """The chat templates whose texts a recipe or a pipeline holds, by path."""
    return {part.path: part for part in walk(recipe) if isinstance(part, TemplateFile)}
