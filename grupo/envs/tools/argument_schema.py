"""JSON Schemas that a server sends: nothing outside of them is read, and no pattern can hang."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator


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
        SchemaError: The schema is invalid, refers to something outside itself, or has a pattern
            that needs more than a linear-time engine (a backreference, or looking around).
    """
    error = next(_validator(json.dumps(schema)).iter_errors(call_arguments), None)
    return error.message if error else ""


def check_schema(schema: Mapping[str, Any]) -> None:
    """Raise `SchemaError` for a schema that `argument_error` cannot use."""
    _validator(json.dumps(schema))


@lru_cache(256)
def _validator(schema: str) -> "Draft202012Validator":
    from jsonschema_rs import Draft202012Validator, RegexOptions, ValidationError

    try:
        return Draft202012Validator(
            json.loads(schema), retriever=_refuse, pattern_options=RegexOptions()
        )
    except (ValidationError, ValueError) as error:
        raise SchemaError(str(error).split("\n", 1)[0]) from error


def _refuse(address: str) -> Any:
    raise LookupError(f"{address!r} is outside the schema")
