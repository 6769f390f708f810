"""Questions with several right options."""

import pytest

from grupo.core.types import Response, Rollout, Task
from grupo.rewards.option_sets import OptionSubset
from grupo.util.errors import ConfigError


def score(text, reference="A,C"):
    return OptionSubset().score(
        Task("k", "?", reference), Rollout((("?", Response((), (), text=text)),))
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("<answer>A</answer>", 0.5),
        ("<think>B?</think><answer>C, A</answer>", 1.0),
        ("<answer>A, B</answer>", 0.0),
        ("A,A", 0.5),
        ("A and C", 0.0),
        ("", 0.0),
        ("<answer> , </answer>", 0.0),
    ],
)
def test_the_fraction_of_right_options_counts_unless_one_is_wrong(text, value):
    assert score(text) == value


def test_a_single_right_option_is_right_or_wrong():
    assert (score("B", ["B"]), score("B,C", ["B"]), score("", ["B"])) == (1.0, 0.0, 0.0)


def test_a_task_without_a_right_option_is_refused():
    for reference in (None, "", [], " , "):
        with pytest.raises(ConfigError, match="Allowed: options"):
            OptionSubset().validate_tasks([Task("k", "?", reference)])
