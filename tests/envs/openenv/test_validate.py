"""Malformed schemas and results of a server of OpenEnv; no server is needed."""

from types import SimpleNamespace

import pytest

from grupo.envs.openenv.validate import checked_result, checked_schema
from grupo.util.errors import ConfigError

DEEP = {"properties": {}}
for _ in range(200):
    DEEP = {"properties": {"a": DEEP}}


def result(observation, reward=1, done=False):
    return SimpleNamespace(observation=observation, reward=reward, done=done)


@pytest.mark.parametrize(
    "schema",
    [
        *(None, [], "a", {"properties": []}, {"properties": {"a": 3}}, {"required": "a"}),
        *({"required": [3]}, DEEP, {"properties": {"\ud800": {}}}),
    ],
)
def test_a_malformed_schema_is_one_error(schema):
    with pytest.raises(ConfigError, match="address: the schema of actions is"):
        checked_schema(schema)


@pytest.mark.parametrize(
    ("malformed", "problem"),
    [
        (result(None), "observation is None, no object"),
        (result(["a"]), r"observation is \['a'\], no object"),
        (result(DEEP), "malformed: .*nested"),
        (result({}, "1"), "reward is '1', no finite number"),
        (result({}, float("nan")), "reward is nan"),
        (result({}, 10**400), "malformed: int too large"),
        (result({}, ""), "reward is '', no finite number"),
        (result({}, []), r"reward is \[\], no finite number"),
        (result({}, {}), r"reward is \{\}, no finite number"),
        (result({}, 1, "no"), "`done` is 'no'"),
    ],
)
def test_a_malformed_result_is_an_error_of_the_environment(malformed, problem):
    with pytest.raises(RuntimeError, match=problem):
        checked_result(malformed)


def test_valid_ones_are_returned():
    assert checked_schema({"properties": {"a": {"type": "string"}}})["properties"]
    assert checked_result(result({"a": 1}, None, None)) == ({"a": 1}, 0.0, False)
