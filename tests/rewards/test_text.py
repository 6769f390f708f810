import pytest

from grupo.core.errors import ConfigError
from grupo.core.types import Action, Rollout, Task
from grupo.rewards import (
    AfterMarker,
    ExactMatch,
    FunctionReward,
    InsideTag,
    LengthPenalty,
    RegexAnswer,
    RegexMatch,
    TagFormat,
    last_boxed,
    whole_text,
)


def said(text, length=1):
    return Rollout((("?", Action(tuple(range(length)), (0.0,) * length, text=text)),))


def task(answer):
    return Task("k", "?", answer)


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
        (last_boxed, r"\boxed{1} \boxed{\frac{1}{\sqrt{2}}} ", r"\frac{1}{\sqrt{2}}"),
        (last_boxed, r"\boxed{\frac{1}{2}", None),
        (last_boxed, "4", None),
    ],
)
def test_extractors_take_the_last_that_is_there(extract, text, answer):
    assert extract(text) == answer


def test_exact_compares_the_extracted_answer_letter_for_letter():
    reward = ExactMatch(AfterMarker("####"))
    texts = ["so #### 42 ", "42", "#### 42.0", "#### ４２", "####"]  # noqa: RUF001 wide digits
    assert reward(task(42), [said(t) for t in texts]) == [1.0, 0.0, 0.0, 0.0, 0.0]


def test_nothing_extracted_is_not_an_empty_answer():
    assert ExactMatch(AfterMarker("####")).score(task(""), said("no marker")) == 0.0


def test_a_task_without_an_answer_cannot_be_judged_by_it():
    with pytest.raises(ConfigError, match=r"Task k has no answer"):
        ExactMatch().score(task(None), said("None"))


def test_a_pattern_matches_and_another_captures():
    assert RegexMatch(r"\d+").score(task("9"), said("it is 4")) == 1.0
    assert RegexMatch(r"\d+").score(task("9"), said("it is four")) == 0.0
    reward = RegexAnswer(r"answer: (\d+)")
    texts = ["answer: 3, answer: 4", "answer: 4, answer: 3", "4"]
    assert reward(task("4"), [said(t) for t in texts]) == [1.0, 0.0, 0.0]


def test_patterns_that_are_none_are_refused():
    with pytest.raises(ConfigError, match=r"not a regular expression"):
        RegexMatch("(")
    with pytest.raises(ConfigError, match=r"captures nothing"):
        RegexAnswer("4")


@pytest.mark.parametrize(
    ("text", "worth"),
    [
        ("<think>a\nb</think>\n<answer>4</answer>\n", 1.0),
        ("<think></think><answer></answer>", 1.0),
        ("<think>a</think><answer>4</answer> done", 0.0),
        ("<answer>4</answer><think>a</think>", 0.0),
        ("<think>a</think><answer>4</answer><answer>5</answer>", 0.0),
        ("<think><answer>3</answer></think><answer>4</answer>", 0.0),
        ("<think>a<answer>4</answer>", 0.0),
    ],
)
def test_formatted_wants_each_tag_once_and_nothing_else(text, worth):
    assert TagFormat().score(task("4"), said(text)) == worth


def test_every_action_beyond_the_budget_costs_the_rate():
    reward = LengthPenalty(max_length=10, penalty_coef=0.5)
    worth = reward(task("4"), [said("", 9), said("", 10), said("", 13)])
    assert worth == [0.0, 0.0, -0.5 * 3]


def test_a_function_of_one_rollout_is_lifted_to_the_group():
    reward = FunctionReward(lambda task, rollout: len(rollout.text) - len(task.reference_answer))
    assert reward(task("4"), [said("a"), said("abc")]) == [0, 2]
