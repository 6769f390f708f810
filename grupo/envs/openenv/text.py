"""Functions between the observations and actions of OpenEnv and the policy's texts."""

import json
from collections.abc import Mapping
from typing import Any

Fields = Mapping[str, Any]  # an observation, or a JSON schema
METADATA = "metadata"  # a field of every observation and action, which is for programs
EMPTY = "(nothing)"


def render_fields(observation: Fields) -> str:
    """The default rendering: the only field that is not empty, or one line per field.

    Texts are written as they are, everything else as JSON. The field `metadata` is left out.

    >>> render_fields({"echoed_message": "hello", "metadata": {"id": 3}})
    'hello'
    >>> print(render_fields({"board": "_X_", "legal": [0, 2], "hint": None, "last": False}))
    board: _X_
    legal: [0, 2]
    last: false
    """
    texts = {
        name: _text(value)
        for name, value in observation.items()
        if name != METADATA and value not in (None, "", [], {})
    }
    if len(texts) == 1:
        return next(iter(texts.values()))
    return "\n".join(f"{name}: {text}" for name, text in texts.items()) or EMPTY


def action_by_schema(text: str, schema: Fields) -> Fields:
    """The default parser: the text as the action's only text field, or a JSON object.

    Args:
        text: The policy's answer.
        schema: The JSON schema of actions.

    Raises:
        ValueError: The text is no JSON object, and the action has not just one text field.

    >>> action_by_schema("hello", {"properties": {"message": {"type": "string"}, "metadata": {}}})
    {'message': 'hello'}
    >>> action_by_schema('{"column": 3}', {"properties": {"column": {"type": "integer"}}})
    {'column': 3}
    """
    if name := single_text_field(schema):
        return {name: text}
    try:
        action = json.loads(text)
    except RecursionError as error:
        raise ValueError("too deep") from error
    if not isinstance(action, dict):
        raise ValueError(f"{text!r} is no JSON object")
    return action


def single_text_field(schema: Fields) -> str:
    """The text field that alone makes an action: the only one, or the only required one; or "".

    >>> text, number = {"type": "string"}, {"type": "integer"}
    >>> single_text_field({"properties": {"code": text, "seconds": number}, "required": ["code"]})
    'code'
    >>> single_text_field({"properties": {"code": text, "seconds": number}})
    ''
    """
    properties = {n: p for n, p in schema.get("properties", {}).items() if n != METADATA}
    required = [name for name in schema.get("required", ()) if name != METADATA]
    names = required or list(properties)
    is_single = len(names) == 1 and properties.get(names[0], {}).get("type") == "string"
    return names[0] if is_single else ""


def describe_actions(schema: Fields) -> str:
    """Tells the policy the format of `action_by_schema`; "" if any text is an action."""
    if single_text_field(schema):
        return ""
    properties = {n: p for n, p in schema.get("properties", {}).items() if n != METADATA}
    shown = {"properties": properties, "required": schema.get("required", [])}
    if definitions := schema.get("$defs"):
        shown["$defs"] = definitions
    return f"Answer with a JSON object of this schema: {json.dumps(shown)}\n"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
