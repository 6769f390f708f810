import json
import math
import struct

import pytest

from grupo.storage import strict_json
from grupo.util.errors import ConfigError


def bits(x: float) -> bytes:
    return struct.pack("<d", x)


@pytest.mark.parametrize("x", [0.1, -0.0, 5e-324, 1.7976931348623157e308, 1 / 3, 1e22, -1e-7])
def test_floats_are_exact(x):
    assert bits(strict_json.from_json(strict_json.to_json([x]))[0]) == bits(x)
    assert bits(strict_json.from_exact_json(strict_json.to_exact_json([x]))[0]) == bits(x)


def test_logs_have_non_finite_floats_as_strings_that_float_parses():
    line = strict_json.to_json({"loss": math.nan, "kl": [math.inf, -math.inf]})
    assert line == '{"loss": "NaN", "kl": ["Infinity", "-Infinity"]}'
    assert float(json.loads(line)["kl"][1]) == -math.inf


def test_exact_json_restores_non_finite_floats_and_keeps_strings():
    value = strict_json.from_exact_json(
        strict_json.to_exact_json({"reward": (math.nan, -math.inf), "text": "NaN"})
    )
    assert math.isnan(value["reward"][0])
    assert value["reward"][1] == -math.inf
    assert value["text"] == "NaN"


@pytest.mark.parametrize("value", ["\ud800", "\x00\u2028\n", "😀", 2**70, True, None, {}, [[]]])
def test_plain_values_survive_a_round_trip(value):
    back = strict_json.from_exact_json(strict_json.to_exact_json({"x": value}))["x"]
    assert back == value
    assert type(back) is type(value)


def test_record_is_one_line_of_ascii():
    line = strict_json.to_json({"text": "a\nb\r\u2028é"})
    assert line.isascii()
    assert len(line.splitlines()) == 1


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": [0, {1}]}, "/a/1 is a set"),
        ({"a": {1: 2}}, "/a has the key 1"),
        ({"$float": "NaN"}, "has the key '\\$float'"),
        ({"x": b"raw"}, "/x is a bytes"),
    ],
)
def test_unsupported_values_are_rejected_with_their_place(value, message):
    with pytest.raises(ConfigError, match=message):
        strict_json.to_json(value)


def nested(depth: int) -> list:
    return [] if depth == 0 else [nested(depth - 1)]


def test_nesting_is_limited_in_writing_and_reading():
    assert strict_json.from_json(strict_json.to_json(nested(100))) == nested(100)
    with pytest.raises(ConfigError, match=r"nested too deep.*at most 100 levels"):
        strict_json.to_json(nested(101))
    with pytest.raises(ValueError, match="too deep"):
        strict_json.from_json("[" * 100_000 + "]" * 100_000)


@pytest.mark.parametrize("line", ["NaN", "[Infinity]", "{", "", "1 2", '{"$float": [1]}x'])
def test_lines_that_are_not_strict_json_raise_value_error(line):
    with pytest.raises(ValueError):  # noqa: PT011 the kind is the promise
        strict_json.from_exact_json(line)
