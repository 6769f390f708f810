import json
import math
import struct

import pytest

from grupo.core.errors import ConfigError
from grupo.storage import strict_json


def bits(x: float) -> bytes:
    return struct.pack("<d", x)


@pytest.mark.parametrize("x", [0.1, -0.0, 5e-324, 1.7976931348623157e308, 1 / 3, 1e22, -1e-7])
def test_floats_come_back_bit_for_bit(x):
    assert bits(strict_json.from_json(strict_json.to_json([x]))[0]) == bits(x)
    assert bits(strict_json.from_exact_json(strict_json.to_exact_json([x]))[0]) == bits(x)


def test_a_log_shows_what_json_lacks_as_words_that_float_understands():
    line = strict_json.to_json({"loss": math.nan, "kl": [math.inf, -math.inf]})
    assert line == '{"loss": "NaN", "kl": ["Infinity", "-Infinity"]}'
    assert float(json.loads(line)["kl"][1]) == -math.inf


def test_a_checkpoint_gets_its_floats_back_and_keeps_its_words():
    value = strict_json.from_exact_json(
        strict_json.to_exact_json({"reward": (math.nan, -math.inf), "said": "NaN"})
    )
    assert math.isnan(value["reward"][0])
    assert value["reward"][1] == -math.inf
    assert value["said"] == "NaN"


@pytest.mark.parametrize("value", ["\ud800", "\x00\u2028\n", "😀", 2**70, True, None, {}, [[]]])
def test_plain_values_come_back_as_they_were(value):
    back = strict_json.from_exact_json(strict_json.to_exact_json({"x": value}))["x"]
    assert back == value
    assert type(back) is type(value)


def test_a_record_is_one_line_of_ascii():
    line = strict_json.to_json({"text": "a\nb\r\u2028é"})
    assert line.isascii()
    assert len(line.splitlines()) == 1


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"a": [0, {1}]}, "/a/1 is a set"),
        ({"a": {1: 2}}, "/a has the key 1"),
        ({"$float": "NaN"}, "has the key '\\$float'"),
        ({"x": b"raw"}, "/x is a bytes"),
    ],
)
def test_what_json_cannot_hold_is_refused_by_its_place(value, says):
    with pytest.raises(ConfigError, match=says):
        strict_json.to_json(value)


def nested(depth: int) -> list:
    return [] if depth == 0 else [nested(depth - 1)]


def test_nesting_has_a_limit_in_writing_and_a_clean_error_in_reading():
    assert strict_json.from_json(strict_json.to_json(nested(100))) == nested(100)
    with pytest.raises(ConfigError, match="deeper than 100"):
        strict_json.to_json(nested(101))
    with pytest.raises(ValueError, match="too deep"):
        strict_json.from_json("[" * 100_000 + "]" * 100_000)


@pytest.mark.parametrize("line", ["NaN", "[Infinity]", "{", "", "1 2", '{"$float": [1]}x'])
def test_what_is_not_strict_json_raises_value_error(line):
    with pytest.raises(ValueError):  # noqa: PT011 the kind is the promise
        strict_json.from_exact_json(line)
