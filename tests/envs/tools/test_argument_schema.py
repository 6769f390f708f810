"""Schemas of a server: no reference leaves them, and every pattern ends."""

import json
import socket
import time
from pathlib import Path

import pytest

pytest.importorskip("jsonschema_rs", reason="JSON Schemas are not installed: grupo[mcp]")

from grupo.envs.tools.argument_schema import SchemaError, argument_error, check_schema


def test_arguments_are_compared_with_the_schema():
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/number"}, "b": {"pattern": "^x+$"}},
        "required": ["a"],
        "$defs": {"number": {"type": "integer"}},
    }
    assert argument_error(schema, {"a": 1, "b": "xx"}) == ""
    assert argument_error(schema, {}) == '"a" is a required property'
    assert argument_error(schema, {"a": "1"}) == '"1" is not of type "integer"'
    assert argument_error(schema, {"a": 1, "b": "y"}) == '"y" does not match "^x+$"'
    assert argument_error(schema, [1]) == '[1] is not of type "object"'


@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef"])
def test_a_reference_to_a_file_is_not_followed(tmp_path, keyword):
    secret = tmp_path / "secret.json"
    secret.write_text(json.dumps({"const": "the secret"}))
    with pytest.raises(SchemaError, match=r"secret\.json") as caught:
        check_schema({"properties": {"a": {keyword: secret.as_uri()}}})
    assert "the secret" not in str(caught.value)


def test_a_reference_to_a_server_is_not_fetched():
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        with pytest.raises(SchemaError, match="is outside the schema"):
            check_schema({"$ref": f"http://127.0.0.1:{server.getsockname()[1]}/schema"})
        with pytest.raises(TimeoutError):
            server.accept()


def test_a_base_address_does_not_make_a_reference_leave_the_schema(tmp_path):
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(SchemaError, match="is outside the schema"):
        check_schema({"$id": f"{Path(tmp_path).as_uri()}/", "$ref": "other.json"})


@pytest.mark.parametrize("keyword", ["pattern", "patternProperties", "propertyNames"])
def test_a_pattern_that_backtracks_ends_at_once(keyword):
    pattern, text = "^(a+)+$", "a" * 5000 + "!"
    schema = {
        "pattern": {"properties": {"a": {"pattern": pattern}}},
        "patternProperties": {
            "patternProperties": {pattern: {}},
            "additionalProperties": False,
            "unevaluatedProperties": False,
        },
        "propertyNames": {"propertyNames": {"pattern": pattern}},
    }[keyword]
    begun_at = time.monotonic()
    assert argument_error(schema, {"a": text} if keyword == "pattern" else {text: 1})
    assert time.monotonic() - begun_at < 5


@pytest.mark.parametrize("pattern", ["(", "(?=x)y", r"(a)\1", "(a{1000}){1000}"])
def test_a_pattern_without_linear_time_is_refused(pattern):
    with pytest.raises(SchemaError, match="regex"):
        check_schema({"properties": {"a": {"pattern": pattern}}})


def test_schemas_that_refer_to_themselves_end():
    check_schema({"$ref": "#"})
    assert argument_error({"allOf": [{"$ref": "#"}]}, {}) == ""
    nested = {}
    for _ in range(500):
        nested = {"not": nested}
    with pytest.raises(SchemaError):
        check_schema(nested)


def test_an_invalid_schema_is_refused():
    with pytest.raises(SchemaError, match="5 is not valid"):
        check_schema({"type": 5})


def doubled(count, last):
    """Definitions of which each refers twice to the next."""
    twice = {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(count)}
    return {"$defs": {**twice, f"d{count}": last}, "$ref": "#/$defs/d0"}


def test_a_schema_that_doubles_with_each_reference_is_refused_at_once():
    assert argument_error(doubled(5, {"type": "string"}), 1) == '1 is not of type "string"'
    begun_at = time.monotonic()
    with pytest.raises(SchemaError, match="more than 10,000 parts"):
        check_schema(doubled(30, {"type": "string"}))
    anchored = {**doubled(0, {}), "$ref": "#a0"}
    for i in range(30):
        part = {
            "$anchor": f"a{i}",
            "anyOf": [{"$ref": f"#a{i + 1}"}, {"$dynamicRef": f"#a{i + 1}"}],
        }
        anchored["$defs"][f"a{i}"] = part
    with pytest.raises(SchemaError, match="more than 10,000 parts"):
        check_schema(anchored)
    assert time.monotonic() - begun_at < 2


def test_arguments_of_a_schema_that_refers_to_itself_twice_have_few_levels():
    member = {"properties": {"a": {"$ref": "#"}}}
    schema = {"allOf": [member, {**member, "title": "again"}]}
    arguments = 1
    for _ in range(16):
        arguments = {"a": arguments}
    assert argument_error(schema, arguments) == ""
    message = "the arguments are nested deeper than 16 levels"
    assert argument_error(schema, {"a": arguments}) == message


def test_a_part_with_an_address_of_its_own_is_refused():
    with pytest.raises(SchemaError, match="an address of its own"):
        check_schema({"$defs": {"a": {"$id": "http://a.b/c", "type": "string"}}})
    check_schema({"$id": "http://a.b/c", "properties": {"$id": {"type": "string"}}})


def test_a_schema_that_is_nested_too_deep_is_refused():
    schema = {}
    for _ in range(900):
        schema = {"properties": {"a": schema}}
    with pytest.raises(SchemaError, match="nested"):
        check_schema(schema)


def test_half_a_character_in_the_arguments_is_an_error_of_the_call():
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    for arguments in ("\ud800", {"a": "\ud800"}):
        assert "surrogates not allowed" in argument_error(schema, arguments)


def chained(count, wrap):
    """Definitions of which each refers once to the next."""
    links = {f"d{i}": wrap({"$ref": f"#/$defs/d{i + 1}"}) for i in range(count)}
    return {"$defs": {**links, f"d{count}": {"type": "string"}}, "$ref": "#/$defs/d0"}


@pytest.mark.parametrize("count", [300, 2_000])
@pytest.mark.parametrize("wrap", [lambda link: link, lambda link: {"anyOf": [link]}])
def test_a_long_chain_of_references_is_refused_at_once(count, wrap):
    begun_at = time.monotonic()
    with pytest.raises(SchemaError, match="lead more than 200 levels deep"):
        check_schema(chained(count, wrap))
    assert time.monotonic() - begun_at < 5


def test_a_chain_of_references_below_the_limit_is_followed():
    assert argument_error(chained(150, lambda link: link), 1) == '1 is not of type "string"'


def nested(count, keyword, inner):
    for _ in range(count):
        inner = {"allOf": [inner], keyword: False}
    return inner


@pytest.mark.parametrize(
    ("keyword", "inner", "arguments"),
    [
        ("unevaluatedProperties", {"properties": {"a": {"type": "integer"}}}, {"a": 1}),
        ("unevaluatedItems", {"prefixItems": [{"type": "integer"}]}, [1]),
    ],
)
def test_keywords_that_evaluate_parts_again_are_refused_ten_levels_deep(keyword, inner, arguments):
    assert argument_error(nested(4, keyword, inner), arguments) == ""
    begun_at = time.monotonic()
    for count in (10, 40):
        with pytest.raises(SchemaError, match="below `unevaluatedProperties` or"):
            argument_error(nested(count, keyword, inner), arguments)
    assert time.monotonic() - begun_at < 5


def test_references_between_keywords_that_evaluate_parts_again_are_refused():
    definitions = {
        f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}], "unevaluatedProperties": False}
        for i in range(40)
    }
    schema = {"$defs": {**definitions, "d40": {"type": "object"}}, "$ref": "#/$defs/d0"}
    with pytest.raises(SchemaError, match="unevaluatedItems"):
        check_schema(schema)


def test_arguments_of_a_schema_that_evaluates_itself_again_have_few_levels():
    schema = {"contains": {"$ref": "#"}, "unevaluatedItems": False}
    arguments = [[]]
    for _ in range(40):
        arguments = [arguments]
    assert argument_error(schema, arguments) == "the arguments are nested deeper than 10 levels"


def test_arguments_of_a_schema_with_many_levels_that_refers_to_itself_have_few_levels():
    schema = {"type": "object", "properties": {"a": {"$ref": "#"}}}
    for _ in range(45):
        schema = {"anyOf": [schema]}
    arguments = 3
    for _ in range(100):
        arguments = {"a": arguments}
    begun_at = time.monotonic()
    assert argument_error(schema, arguments) == "the arguments are nested deeper than 21 levels"
    assert time.monotonic() - begun_at < 5


def test_a_schema_beyond_the_limit_of_size_is_refused_before_its_parts_are_visited():
    with pytest.raises(SchemaError, match="longer than 1,048,576 characters"):
        check_schema({"title": "x" * (1 << 20)})
