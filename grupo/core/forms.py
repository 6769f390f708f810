"""Forms: prompts in words with placeholders such as {task} and {answer}; other braces are text."""

import re
from collections.abc import Collection, Mapping

from grupo.util.errors import ConfigError, suggest

PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


def placeholders(*forms: str) -> list[str]:
    """The names of the placeholders, each once; other braces are plain text.

    >>> placeholders('{prompt} {completion} Reply with {"score": 1}. {prompt}')
    ['prompt', 'completion']
    """
    return list(dict.fromkeys(name for text in forms for name in PLACEHOLDER.findall(text)))


def fill(form: str, values: Mapping[str, str]) -> str:
    """The form with its placeholders replaced; placeholders in the values stay as they are.

    >>> fill("{prompt}: {completion}", {"prompt": "2 + 2", "completion": "{prompt}"})
    '2 + 2: {prompt}'
    """
    return PLACEHOLDER.sub(lambda match: values[match[1]], form)


def check_form(field: str, form: str, needed: Collection[str]) -> None:
    """Raise `ConfigError` for a form that lacks a placeholder, or has one without a value.

    Args:
        field: The field of the form, for the message.
        form: The form.
        needed: The placeholders, each of which it must have.

    >>> check_form("ask", "Again!", ("task",))
    Traceback (most recent call last):
    grupo.util.errors.ConfigError: ask: 'Again!' lacks {task}. Allowed: a text with {task}.
    """
    found = placeholders(form)
    allowed = " and ".join(f"{{{name}}}" for name in needed)
    for name in needed:
        if name not in found:
            raise ConfigError(
                f"{field}: {form[:60]!r} lacks {{{name}}}. Allowed: a text with {allowed}."
            )
    for name in found:
        if name not in needed:
            raise ConfigError(f"{field}: {{{name}}} has no value here. {suggest(name, needed)}")
