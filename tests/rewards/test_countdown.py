"""Expressions of countdown, by hand."""

import pytest

from grupo.core.serialization import from_data, to_data
from grupo.core.types import Response, Rollout, Task
from grupo.rewards import AfterMarker, CountdownExpression
from grupo.util.errors import ConfigError

TASK = Task("k", "?", 24, columns={"numbers": [3, 8, 5, 5]}, location="t, line 1")


def score(text, task=TASK):
    return CountdownExpression().score(task, Rollout((("?", Response((1,), (0.0,), text=text)),)))


@pytest.mark.parametrize(
    "text", ["(3*8)+(5-5)", "8*3+5-5", "8 * (5 / 5) * 3", r"so \boxed{3*8*5/5}", "(5-5)+3*8"]
)
def test_right_expressions_score_1(text):
    assert score(text) == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "3*8",  # two numbers unused
        "3*8+5-5+3-3",  # a number twice
        "3*8*5-5*19",  # a number that is not given
        "38-5-5-4",  # digits joined
        "(3*8)+(5+5)",  # 34
        "24",
        "24+0*(3*8+5-5)",
        "(3*8)+(5-5)=24",
        "3*8/(5-5)",
        "-(3*8)*(5-5-1)",
        "3*8+5-5 if 1 else 0",
        "3*8+(5-5)**1",
        "__import__('os').getpid()",
        "3*8+5-5;",
        "3*8+5.0-5",
        "3*8+True*(5-5)",
        "(" * 150 + "3*8+5-5" + ")" * 40,
        "3*8+5-5+0" + "+0" * 100,
        "",
    ],
)
def test_other_texts_score_0(text):
    assert score(text) == 0.0


def test_fractions_are_exact():
    # in floats, 8 / (3 - 8 / 3) is not 24
    assert score("8/(3-8/3)", Task("k", "?", 24, columns={"numbers": [3, 3, 8, 8]})) == 1.0


@pytest.mark.parametrize(
    ("numbers", "target", "message"),
    [
        (None, 24, r"t, line 1, column 'numbers': 'None'\. Allowed: a list of integers"),
        ([], 24, r"column 'numbers': '\[\]'"),
        ([1, True], 24, r"column 'numbers': '\[1, True\]'"),
        ([1, 2], "x", r"the reference answer 'x'\. Allowed: an integer"),
    ],
)
def test_tasks_of_another_form_are_config_errors(numbers, target, message):
    task = Task("k", "?", target, columns={"numbers": numbers}, location="t, line 1")
    with pytest.raises(ConfigError, match=message):
        CountdownExpression().validate_tasks([task])


def test_it_returns_from_its_record():
    reward = CountdownExpression(AfterMarker("answer"))
    assert from_data(to_data(reward)) == reward
    assert reward.reward_range == (0.0, 1.0)
