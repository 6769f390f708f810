"""Patterns of recipes run in linear time, and mean what they mean in Python."""

import re
import time

import pytest

from grupo.util.errors import ConfigError
from grupo.util.linear_patterns import MAX_MATCHES, LinearPattern


@pytest.mark.parametrize(
    "pattern",
    [
        r"\d+", r"\D", r"\w+", r"\W", r"\s", r"\S", r"[\w-]+", r"[\s\S]", r"[^\d]", r"a.c", r"\\d",
        r"[]a]", r"[^]a]", r"[\]\d]", r"(?i)ä", r"^<a>[^<>]+</a>$", r"(?m)^b$", r"x{2,3}?", r"\Z",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "text", ["", "a", "4", "٤", "ä_", "\u00a0", "\x1c", "a\nc", "]", "-", r"\d", "<a>b</a>", "a\nb"]
)
def test_a_pattern_occurs_where_it_occurs_in_python(pattern, text):
    expected = re.search(pattern, text, re.DOTALL) is not None
    assert LinearPattern(pattern).occurs_in(text) == expected


def test_the_first_group_of_each_match_is_found():
    assert LinearPattern(r"answer: (\w+)").matches("answer: ä, answer: né") == ["ä", "né"]
    assert LinearPattern("(a)(x)?|b").matches("ab") == ["a", ""]
    assert LinearPattern("a|b").matches("ab") == ["a", "b"]
    assert LinearPattern("(a)").matches("b") == []


def test_too_many_matches_are_none():
    assert len(LinearPattern("(a)").matches("a" * MAX_MATCHES)) == MAX_MATCHES
    assert LinearPattern("(a)").matches("a" * (MAX_MATCHES + 1)) == []


def test_half_a_surrogate_pair_is_no_error():
    assert LinearPattern("a").occurs_in("\ud800a")


@pytest.mark.parametrize("pattern", ["(", "(?=a)", r"(a)\1", "(?<!a)b", "a{2000}", "\ud800"])
def test_what_needs_another_engine_is_a_config_error_that_names_the_field(pattern):
    with pytest.raises(ConfigError, match=r"^targets: .* is not a regular expression: .*RE2"):
        LinearPattern(pattern, "targets")


@pytest.mark.parametrize("pattern", [r"^(a+)+$", r"(a|a)*b", r"(.*a){20}b", r"(\w+\s?)*!$"])
def test_patterns_that_backtrack_without_end_take_linear_time(pattern):
    start = time.perf_counter()
    assert not LinearPattern(pattern).occurs_in("a" * 100_000 + "?")
    assert time.perf_counter() - start < 10.0
