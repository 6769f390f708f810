"""JSON Schemas that a server sends: nothing outside of them is read, and no pattern can hang."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from grupo.envs.tools.schema_size import has_address, largest_depth
from grupo.util.json_text import check_depth

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator

MAX_CHARS = 1 << 20  # of a schema as JSON, which each prompt holds


class SchemaError(Exception):
    """A schema cannot be used; the message says why."""


def argument_error(schema: Mapping[str, Any], call_arguments: object) -> str:
    """Why the arguments of a call do not fit a schema, or "" if they do.

    References are followed within the schema alone: an address or a file that a reference names is
    neither opened nor fetched. Patterns run in an engine whose time is linear in the text.

    Args:
        schema: A JSON Schema of draft 2020-12.
        call_arguments: What was parsed from the call.

    Raises:
        SchemaError: The schema is invalid, refers to something outside itself, has a pattern that
            needs more than a linear-time engine (a backreference, or looking around), is too
            long, or is too large or nested too deep with its references.
    """
    validator, depth = _validator(_text(schema))
    if not _fits_depth(call_arguments, depth):
        return f"the arguments are nested deeper than {depth} levels"
    try:
        error = next(validator.iter_errors(call_arguments), None)
    except ValueError as problem:  # half a character, which is no text
        return str(problem)
    return error.message if error else ""


def check_schema(schema: Mapping[str, Any]) -> None:
    """Raise `SchemaError` for a schema that `argument_error` cannot use."""
    _validator(_text(schema))


def _text(schema: Mapping[str, Any]) -> str:
    """A schema as JSON; raises `SchemaError` if it is nested too deep, or too long."""
    try:
        check_depth(schema)
        text = json.dumps(schema)
    except ValueError as error:
        raise SchemaError(str(error)) from error
    if len(text) > MAX_CHARS:
        raise SchemaError(f"it is longer than {MAX_CHARS:,} characters")
    return text


def _fits_depth(value: object, depth: int) -> bool:
    """Whether objects and lists are nested at most `depth` levels deep."""
    level = [value]
    for _ in range(depth + 1):
        containers = [x for x in level if isinstance(x, dict | list)]
        level = [y for x in containers for y in (x.values() if isinstance(x, dict) else x)]
        if not containers:
            return True
    return False


@lru_cache(256)
def _validator(schema: str) -> "tuple[Draft202012Validator, int]":
    """The validator of a schema, and the largest depth of arguments for it."""
    from jsonschema_rs import Draft202012Validator, RegexOptions, ValidationError

    try:
        data = json.loads(schema)
        if has_address(data):
            raise SchemaError("a part of it has an address of its own, in $id")
        depth = largest_depth(data)
        validator = Draft202012Validator(data, retriever=_refuse, pattern_options=RegexOptions())
        return validator, depth
    except (ValidationError, ValueError) as error:
        raise SchemaError(str(error).split("\n", 1)[0]) from error


def _refuse(address: str) -> Any:
    raise LookupError(f"{address!r} is outside the schema")
