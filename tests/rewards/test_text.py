"""Rewards that match the text of a rollout, and extractors of the answer."""

import pytest

from grupo.core.types import Response, Rollout, Task
from grupo.rewards import (
    AfterMarker,
    AfterThinking,
    ExactMatch,
    FunctionReward,
    InsideTag,
    LengthPenalty,
    RegexAnswer,
    RegexMatch,
    TagFormat,
    final_answer,
    last_boxed,
    whole_text,
)
from grupo.util.errors import ConfigError


def rollout(text, length=1):
    return Rollout((("?", Response(tuple(range(length)), (0.0,) * length, text=text)),))


def task(reference_answer):
    return Task("k", "?", reference_answer)


@pytest.mark.parametrize(
    ("extract", "text", "answer"),
    [
        (whole_text, " 4\n", "4"),
        (AfterMarker("####"), "#### 3 #### 4 ", "4"),
        (AfterMarker("####"), "4", None),
        (InsideTag("answer"), "<answer>3</answer> <answer> 4 </answer>", "4"),
        (InsideTag("answer"), "<answer>4", None),
        (InsideTag("answer"), "4</answer>", None),
        (InsideTag("answer"), "</answer>4<answer>", None),
        (AfterThinking(last_boxed), r"<think>\boxed{3}</think> \boxed{4}", "4"),
        (AfterThinking(last_boxed), r"<think>\boxed{4}</think> done", None),
        (AfterThinking(last_boxed), r"<think>\boxed{4}", None),
        (AfterThinking(last_boxed), r"\boxed{4}", "4"),
        (final_answer, r"<think>\boxed{3}</think> 4", "4"),
        (final_answer, r"5 or \boxed{4}.", "4"),
        (final_answer, r"\boxed{4} \boxed{", None),
        (last_boxed, r"\boxed{1} \boxed{\frac{1}{\sqrt{2}}} ", r"\frac{1}{\sqrt{2}}"),
        (last_boxed, r"\boxed{\frac{1}{2}", None),
        (last_boxed, "4", None),
    ],
)
def test_extractors_find_the_last_answer(extract, text, answer):
    assert extract(text) == answer


def test_exact_match_compares_the_extracted_answer_as_text():
    reward = ExactMatch(AfterMarker("####"))
    texts = ["so #### 42 ", "42", "#### 42.0", "#### ４２", "####"]  # noqa: RUF001 wide digits
    assert reward(task(42), [rollout(t) for t in texts]) == [1.0, 0.0, 0.0, 0.0, 0.0]


def test_a_missing_answer_does_not_match_an_empty_one():
    assert ExactMatch(AfterMarker("####")).score(task(""), rollout("no marker")) == 0.0


def test_a_task_without_a_reference_answer_is_a_config_error():
    with pytest.raises(ConfigError, match=r"Task k has no reference answer"):
        ExactMatch().score(task(None), rollout("None"))


def test_patterns_match_anywhere_or_capture_the_last_answer():
    assert RegexMatch(r"\d+").score(task("9"), rollout("it is 4")) == 1.0
    assert RegexMatch(r"\d+").score(task("9"), rollout("it is four")) == 0.0
    reward = RegexAnswer(r"answer: (\d+)")
    texts = ["answer: 3, answer: 4", "answer: 4, answer: 3", "4"]
    assert reward(task("4"), [rollout(t) for t in texts]) == [1.0, 0.0, 0.0]


def test_invalid_patterns_are_config_errors():
    with pytest.raises(ConfigError, match=r"not a regular expression"):
        RegexMatch("(")
    with pytest.raises(ConfigError, match=r"has no group"):
        RegexAnswer("4")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("<think>a\nb</think>\n<answer>4</answer>\n", 1.0),
        ("<think>a</think><answer> 4 </answer>", 1.0),
        ("<think></think><answer>4</answer>", 0.0),
        ("<think>a</think><answer> \n</answer>", 0.0),
        ("<think>a</think><answer>4</answer> done", 0.0),
        ("<answer>4</answer><think>a</think>", 0.0),
        ("<think>a</think><answer>4</answer><answer>5</answer>", 0.0),
        ("<think><answer>3</answer></think><answer>4</answer>", 0.0),
        ("<think>a<answer>4</answer>", 0.0),
    ],
)
def test_the_tag_format_requires_each_tag_once_and_nothing_else(text, value):
    assert TagFormat().score(task("4"), rollout(text)) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("<think>\n\n</think><answer>3</answer>", 1.0),
        ("<think></think>\n<answer>3</answer>", 1.0),
        ("<think>a</think><answer>3</answer>", 1.0),
        ("<think></think><answer></answer>", 0.0),
        ("<think><think></think><answer>3</answer>", 0.0),
        ("<answer>3</answer>", 0.0),
    ],
)
def test_a_tag_that_may_be_empty_must_still_be_there(text, value):
    assert TagFormat(may_be_empty=("think",)).score(task("3"), rollout(text)) == value


def test_the_length_penalty_is_proportional_to_the_tokens_beyond_max_length():
    reward = LengthPenalty(max_length=10, penalty_coef=0.5)
    values = reward(task("4"), [rollout("", 9), rollout("", 10), rollout("", 13)])
    assert values == [0.0, 0.0, -0.5 * 3]


def test_a_function_reward_scores_every_rollout_of_a_group():
    reward = FunctionReward(lambda task, rollout: len(rollout.text) - len(task.reference_answer))
    assert reward(task("4"), [rollout("a"), rollout("abc")]) == [0, 2]
