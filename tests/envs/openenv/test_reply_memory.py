"""Memory that the largest replies of a server of OpenEnv take."""

import json
from types import SimpleNamespace

import pytest

from grupo.envs.bearer_token import without_token
from grupo.envs.openenv.text import render_fields
from grupo.envs.openenv.validate import check_reply, checked_result
from grupo.util.limits import OBSERVATION_SIZE
from tests.helpers.resource_use import limited_peak

EMOJI = "\U0001f600"  # a text with it takes four bytes a character
SHAPES = {  # first part, repeated part and last part of a value
    "letters": ('"', "x", '"'),
    "wide letters": (f'"{EMOJI}', "x", '"'),
    "long numbers": ("[", "0.123456789,", "0]"),
    "texts": ("[", '"' + "a" * 50 + '",', "0]"),
}
TOO_MANY = {
    "lists": ("[", "[],", "0]"),
    "fields": ("[", '{"":0},', "0]"),
}


def largest_reply(begin, part, end):
    """A reply of the largest size that holds a part again and again."""
    head, tail = '{"type": "observation", "data": {"observation": {"a": ', '}, "reward": 1}}'
    room = OBSERVATION_SIZE.maximum - len((head + begin + end + tail).encode())
    return head + begin + part * (room // len(part)) + end + tail


@pytest.mark.parametrize("shape", SHAPES)
def test_the_largest_reply_of_each_shape_takes_less_than_128_mb(shape, monkeypatch):
    monkeypatch.setenv("ECHO_TOKEN", "q7TzLw3kVb9XyRm2Hd")
    text = largest_reply(*SHAPES[shape])
    with limited_peak(2**27):
        check_reply(text)
        data = json.loads(text)["data"]  # as the client of OpenEnv does
        fields, reward, _ = checked_result(SimpleNamespace(**data, done=False))
        rendered = render_fields(without_token(fields, "ECHO_TOKEN"))
    assert reward == 1.0
    assert len(rendered) > OBSERVATION_SIZE.maximum * 0.9


@pytest.mark.parametrize("shape", TOO_MANY)
def test_a_reply_of_too_many_small_values_is_refused_within_128_mb(shape):
    text = largest_reply(*TOO_MANY[shape])
    with limited_peak(2**27), pytest.raises(RuntimeError, match="too many values: at most 300,000"):
        check_reply(text)
