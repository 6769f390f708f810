"""Arguments that are given as text, in the types of the tool's schema."""

import pytest

from grupo.envs.tools import Toolbox
from grupo.envs.tools.formats.text_calls import typed_arguments
from tests.helpers.tool_call_texts import write_call


def typed(text, schema):
    parameters = {"type": "object", "properties": {"a": schema}}
    return typed_arguments({"a": text}, {"function": {"parameters": parameters}})["a"]


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("2", "integer", 2),
        (" 2\n", "integer", 2),
        ("2.0", "integer", 2.0),  # which JSON Schema counts as a whole number
        ("2.5", "integer", "2.5"),
        ("two", "integer", "two"),
        ("007", "integer", "007"),
        ("2", "number", 2),
        ("-2.5e3", "number", -2500.0),
        ("true", "number", "true"),
        ("true", "boolean", True),
        ("True", "boolean", True),
        ("False", "boolean", False),
        ("1", "boolean", "1"),
        ("null", "null", None),
        ("None", "null", None),
        ("[1, 2]", "array", [1, 2]),
        ('{"b": [true]}', "object", {"b": [True]}),
        ("[1, 2", "array", "[1, 2"),
        ("[" * 100_000, "array", "[" * 100_000),
        ("9" * 5000, "integer", "9" * 5000),
        ("2", "string", "2"),
        (" 2\n", "string", " 2\n"),
        ('"2"', "string", '"2"'),
        ("null", "string", "null"),
    ],
)
def test_a_text_has_the_type_that_the_schema_names(text, kind, value):
    result = typed(text, {"type": kind})
    assert (type(result), result) == (type(value), value)


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        ("2", {"type": ["integer", "null"]}, 2),
        ("null", {"type": ["string", "null"]}, None),
        ("so", {"type": ["string", "null"]}, "so"),
        ("2", {"anyOf": [{"type": "string"}, {"type": "integer"}]}, 2),
        ('"2"', {"anyOf": [{"type": "string"}, {"type": "integer"}]}, '"2"'),
        ("2", {"oneOf": [{"enum": ["1", "2"]}]}, "2"),
        ("2", {"enum": ["1", "2"]}, "2"),
        ("2", {"enum": [1, 2]}, 2),
        ("false", {"const": False}, False),
        (
            "2",
            {"anyOf": [{"type": "string"}, {"$ref": "#/x"}]},
            2,
        ),  # a reference may be of any type
        ("2", {}, 2),
        ("so", {}, "so"),
        ("2", True, 2),
    ],
)
def test_a_schema_without_one_type_allows_several(text, schema, value):
    result = typed(text, schema)
    assert (type(result), result) == (type(value), value)


@pytest.mark.parametrize("schema", [{}, {"function": {}}, {"function": {"parameters": None}}])
def test_a_tool_without_a_schema_takes_any_value(schema):
    assert typed_arguments({"a": "2", "b": "so"}, schema) == {"a": 2, "b": "so"}


def take(whole: int, real: float, flag: bool, text: str) -> str:
    """All types that a tool may have."""
    return repr((whole, real, flag, text))


@pytest.mark.parametrize("name", ["qwen3_coder", "glm"])
def test_a_tool_gets_values_of_its_types(name):
    session = Toolbox((take,), format=name)()
    call = write_call(name, "take", whole=2, real=2, flag=True, text="2")
    assert session.step(call).observation == "(2, 2.0, True, '2')"
    unfit = write_call(name, "take", whole="2.5", real="x", flag=True, text="2")
    assert session.step(unfit).observation == (
        "error: arguments: 'whole' of take is \"2.5\". Allowed: integer."
    )
