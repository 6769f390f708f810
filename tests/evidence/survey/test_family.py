"""Families of tasks, and their survey with a policy whose answers are known."""

import pytest

from grupo.core.types import Group, Response, Rollout, Task
from grupo.evidence.survey import FamilyTasks, TaskFamily, survey_family
from grupo.evidence.survey.family_survey import append_survey, read_surveys, shown_answers
from grupo.models.causal_lm import CausalLM
from grupo.rewards import ExactMatch, FunctionReward
from grupo.util.errors import ConfigError
from tests.helpers.tiny_lm import TEMPLATE, save_model


def numbers(rng):
    while True:
        yield {"number": rng.randint(1, 9), "answer": "x"}


NINE = TaskFamily("nine", numbers, ("Is it {number}?", "{number}!"), ExactMatch())


def test_tasks_have_distinct_prompts_and_end_when_they_repeat():
    tasks = list(NINE.tasks())
    assert {task.prompt[0]["content"] for task in tasks} == {f"Is it {i}?" for i in range(1, 10)}
    assert [task.source for task in tasks] == ["nine"] * 9
    assert tasks[0].reference_answer == "x"


def test_a_wording_changes_the_prompts_and_no_rows():
    first, second = (list(NINE.tasks(wording)) for wording in (0, 1))
    numbers_of = [[task.columns["number"] for task in tasks] for tasks in (first, second)]
    assert numbers_of[0] == numbers_of[1]
    assert second[0].prompt[0]["content"] == f"{numbers_of[0][0]}!"


def test_parts_of_a_family_are_consecutive():
    whole = [task.key for task in NINE.tasks()]
    assert [t.key for t in FamilyTasks(NINE, 2, 3).load()] == whole[2:5]
    assert [t.key for t in FamilyTasks(NINE, 7, 50).load()] == whole[7:]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FamilyTasks(NINE, 9).load(), "first: 9, and 'nine' has fewer tasks"),
        (lambda: FamilyTasks(NINE, wording=2), "wording: 2. Allowed: 0 to 1"),
        (lambda: TaskFamily("none", numbers, (), ExactMatch()), "wordings: none for 'none'"),
    ],
)
def test_families_that_cannot_be_used_are_refused(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


def is_even(task: Task, rollout: Rollout) -> float:
    return float(len(rollout.text) % 2 == 0)


@pytest.fixture
def policy(tmp_path):
    chat = {"chat_template": TEMPLATE}
    model = save_model(tmp_path / "model", "qwen3", tokenizer_options=chat)
    return CausalLM(str(model), max_new_tokens=20).build()


@pytest.mark.slow
def test_a_family_is_surveyed_with_its_own_limit_of_an_answer(policy, tmp_path):
    family = TaskFamily("even", numbers, NINE.wordings, FunctionReward(is_even), max_new_tokens=5)
    survey = survey_family(policy, FamilyTasks(family, count=6), attempts=8)
    assert (survey.tasks, survey.attempts, survey.failed) == (6, 8, 0)
    assert list(survey.pass_at_k) == ["1", "2", "4", "8"]
    rates = [bounds[0] for bounds in survey.pass_at_k.values()]
    assert 0 < rates[0] < rates[1] < rates[3] <= 1
    assert survey.mixed > 0
    assert survey.right is not None
    assert survey.wrong is not None
    assert (len(survey.right.answer) % 2, len(survey.wrong.answer) % 2) == (0, 1)
    sampled = round(survey.length_mean * 6 * 8)
    assert sampled + 6 <= survey.tokens <= sampled + 6 * 5  # greedy answers have 1 to 5 tokens
    assert survey.length_mean <= 5
    file = tmp_path / "results.jsonl"
    append_survey(file, {"family": "even"}, survey)
    append_survey(file, {"family": "again"}, survey)
    assert list(read_surveys(file)) == [({"family": x}, survey) for x in ("even", "again")]
    again = survey_family(policy, FamilyTasks(family, count=6), attempts=8)
    assert again.pass_at_k == survey.pass_at_k


def rollouts_of(*texts: str) -> tuple[Rollout, ...]:
    return tuple(
        Rollout((("?", Response((1,), (0.0,), text=text)),), reward=float(text == "x"))
        for text in texts
    )


def test_shown_answers_are_of_the_first_task_with_both_outcomes():
    groups = [
        Group(Task("a", "first"), rollouts_of("1", "2")),
        Group(Task("b", "second", "x"), rollouts_of("3", "x")),
    ]
    right, wrong = shown_answers(groups, lambda rollout: rollout.reward == 1)
    assert right is not None
    assert wrong is not None
    assert (right.prompt, right.answer, right.reference_answer) == ("second", "x", "x")
    assert (wrong.prompt, wrong.answer) == ("second", "3")


def test_without_a_mixed_task_each_outcome_is_shown_or_missing():
    groups = [Group(Task("a", "first"), rollouts_of("1", "2"))]
    right, wrong = shown_answers(groups, lambda rollout: rollout.reward == 1)
    assert right is None
    assert wrong is not None
    assert wrong.answer == "1"
