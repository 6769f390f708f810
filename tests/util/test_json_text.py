"""Strict JSON."""

import json
import time
from pathlib import Path

import pytest

from grupo.util.json_text import check_depth, check_unicode, parse_json, read_limited
from grupo.util.limits import JSON_DEPTH, JSON_FILE_SIZE, Limit


def nested(levels):
    return "[" * levels + "]" * levels


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("NaN", "NaN is not JSON"),
        ("[-Infinity]", "-Infinity is not JSON"),
        ('{"a": 1e999}', "1e999 is larger than any float"),
        ('{"a": 1, "b": 2, "a": 1}', "the key 'a' occurs twice"),
        ('[{"b": {"c": 1, "c": 1}}]', "the key 'c' occurs twice"),
        (nested(JSON_DEPTH.maximum + 2), "nested too deep to read. Allowed: at most 100 levels"),
        (nested(900), "nested too deep"),
        (nested(100_000), "nested too deep"),
        ("9" * 5000, "4300 digits"),
        ("", "Expecting value"),
    ],
)
def test_what_is_not_strict_json_is_rejected(text, message):
    with pytest.raises(ValueError, match=message):
        parse_json(text)


def test_a_key_that_occurs_twice_is_found_at_once_among_many():
    text = json.dumps({str(i): 0 for i in range(40_000)})
    begun_at = time.monotonic()
    with pytest.raises(ValueError, match="the key '39999' occurs twice"):
        parse_json(f'{text[:-1]}, "39999": 0}}')
    assert time.monotonic() - begun_at < 5


@pytest.mark.parametrize(
    "value", [None, {"a": [1, 0.5, "b", True]}, [1e300, -1e-300], {"a": {"a": 1}}, [[]] * 200]
)
def test_strict_json_is_read_as_by_python(value):
    assert parse_json(json.dumps(value)) == value


def test_deepest_allowed_nesting_is_read():
    assert parse_json(nested(JSON_DEPTH.maximum)) == json.loads(nested(JSON_DEPTH.maximum))


def test_depth_of_a_value_that_holds_itself_twice_is_found_at_once():
    values = []
    values += [values, values]
    with pytest.raises(ValueError, match="nested too deep"):
        check_depth(values)


def test_lone_surrogates_are_rejected_and_pairs_are_not():
    with pytest.raises(ValueError, match="half of a surrogate pair"):
        check_unicode({"a": ["b\ud800"]})
    check_unicode(json.loads('{"a": "\\ud83d\\ude00"}'))


def test_a_file_of_the_kernel_is_refused():
    with pytest.raises(ValueError, match=r"environ' is a file of the kernel\. Allowed: a regular"):
        read_limited(Path("/proc/self/environ"), Limit("a file", 10, "bytes", ""))


def test_file_above_the_limit_is_not_read(tmp_path, monkeypatch):
    path = tmp_path / "recipe.json"
    path.write_text("{}")
    assert read_limited(path) == "{}"
    with path.open("r+b") as file:
        file.truncate(JSON_FILE_SIZE.maximum + 1)  # sparse
    monkeypatch.setattr(type(path), "read_text", lambda self, **options: pytest.fail("read"))
    with pytest.raises(ValueError, match=r"has 67,108,865 bytes\. Allowed: at most 67,108,864 b"):
        read_limited(path)
