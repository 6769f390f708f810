"""The file of a chat template, whose text a run keeps."""

from contextlib import suppress
from pathlib import Path

from grupo.core.component import component
from grupo.util.errors import ConfigError, suggest
from grupo.util.json_text import read_limited
from grupo.util.limits import PROMPT_FILE_SIZE
from grupo.util.loader_errors import loader_errors
from grupo.util.user_paths import parse_path


@component
class TemplateFile:
    """A file of Jinja text, with the text that it had when a run began.

    Args:
        path: Path of the file, as the recipe names it.
        text: The text.
    """

    path: str
    text: str

    def __repr__(self) -> str:
        return repr(self.path)


def template_warnings(file: str | TemplateFile) -> list[str]:
    """A line if a file has another text than a run has kept; none if it is gone."""
    if not isinstance(file, TemplateFile) or not parse_path(file.path).exists():
        return []
    with suppress(ConfigError):
        if read_template(file.path) == file.text:
            return []
    return [
        f"chat_template: {file.path!r} has changed since the run began. The run goes on with the"
        " text that it began with; a new run reads the file."
    ]


def read_template(path: str) -> str:
    """The Jinja text of a file; raises `ConfigError` if it is missing, too large or empty."""
    file = parse_path(path)
    with loader_errors(f"chat_template: {path!r}"):
        if not file.exists():
            raise ConfigError(f"chat_template: there is no file {path!r}. {_suggestion(file)}")
        try:
            text = read_limited(file, PROMPT_FILE_SIZE)
        except ConfigError as error:
            raise ConfigError(f"chat_template: {error}") from error
    if not text.strip():
        raise ConfigError(f"chat_template: {path!r} is empty. Allowed: a file of Jinja text.")
    return text


def _suggestion(missing: Path) -> str:
    """The nearest template beside a file that is missing, or what is allowed."""
    templates = [file.name for file in missing.parent.glob("*.jinja*")]
    return suggest(missing.name, templates) if templates else "Allowed: a file of Jinja text."
