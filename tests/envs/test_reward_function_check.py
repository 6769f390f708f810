"""One call of each reward function before anything is generated."""

import pytest

from grupo.core.types import Task
from grupo.envs import MultiTurn, RewardTerm, SingleTurn
from grupo.envs.reward_function_check import check_reward_functions
from grupo.rewards import ExactMatch
from grupo.util.errors import ConfigError

TASK = Task("k", "2 + 2 =", "4", columns={"level": 3})
CHAT = Task("k", ({"role": "user", "content": "2 + 2 ="},), "4")


def notes(function, task=TASK):
    return list(check_reward_functions(SingleTurn((RewardTerm("mine", function),)), task))


def length(task, rollout):
    return len(rollout.text)


def test_a_function_that_works_is_called_once_with_the_reference_answer():
    texts = []

    def record(task, rollout):
        texts.append(rollout.text)
        return 1.0

    assert notes(record) == []
    assert texts == ["4"]
    no_answer = Task("k", "Write a number.")
    assert notes(record, no_answer) == []
    assert texts == ["4", "1"]


def misspelt(task, rollout):
    return len(rolout.text)


def text_of_a_list(completions, **columns):
    return [float(c.strip() == "4") for c in completions]


def wrong_column(task, rollout):
    return task.columns["levle"]


def nothing(task, rollout):
    len(rollout.text)


def one_for_all(completions, **columns):
    return 1.0


def too_many(task, rollouts):
    return [1.0] * (len(rollouts) + 1)


def huge(task, rollout):
    return 1e30


@pytest.mark.parametrize(
    ("function", "task", "message"),
    [
        (misspelt, TASK, "raised NameError: name 'rolout' is not defined"),
        (text_of_a_list, CHAT, r"its text is completion\[-1\]\['content'\]"),
        (wrong_column, TASK, "raised KeyError: 'levle'"),
        (nothing, TASK, "returned None, not a number"),
        (one_for_all, TASK, "returned a float, not one number for each of 2 rollouts"),
        (huge, TASK, r"returned 1e\+30, which is 1e\+30 with its weight: at most 10\^15"),
        (too_many, TASK, "returned 3 numbers, not one number for each of 2 rollouts"),
    ],
)
def test_a_wrong_function_is_refused(function, task, message):
    with pytest.raises(ConfigError, match=rf"(?s)^reward: 'mine' .*{message}"):
        notes(function, task)


def search(task, rollout):
    import re

    return float(re.search("answer: (.*)", rollout.text).group(1) == "4")


def parse(task, rollout):
    raise ValueError("the answer is no JSON")


def not_a_number(task, rollout):
    return float("nan")


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (search, "raised AttributeError: 'NoneType' object"),
        (parse, "raised ValueError: the answer is no JSON"),
        (not_a_number, "returned nan"),
    ],
)
def test_an_error_that_may_come_from_the_answer_is_a_note(function, reason):
    (note,) = notes(function)
    assert note.startswith(f"reward: 'mine' fails on a made-up answer: it {reason}")


def test_components_are_not_called_and_terms_are_found_at_any_depth(monkeypatch):
    monkeypatch.setattr(ExactMatch, "score", lambda *args: 1 / 0)
    env = SingleTurn((RewardTerm("correct", ExactMatch()), RewardTerm("mine", length)))
    assert list(check_reward_functions(env, TASK)) == []
    deep = MultiTurn(SingleTurn((RewardTerm("mine", nothing),)))
    with pytest.raises(ConfigError, match="'mine' returned None"):
        list(check_reward_functions(deep, TASK))


def test_none_of_a_group_function_means_that_the_term_does_not_apply():
    assert notes(lambda task, rollouts: [None] * len(rollouts)) == []
