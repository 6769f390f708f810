"""A curriculum whose prompts state a budget that shrinks."""

import pytest

from grupo.core.schedules import GeometricSteps, LinearSteps, resolve_schedules
from grupo.core.types import Task
from grupo.methods.grpo import grpo
from grupo.rollouts.curricula import CurriculumRequest, ShuffledTasks, StatedBudget
from grupo.rollouts.history import History
from grupo.tasks import BudgetedTasks, InMemoryTasks
from grupo.util.errors import ConfigError

TASKS = [Task(str(i), f"{i} + 1 =") for i in range(3)]


def drawn_at(progress):
    method = grpo().replace(curriculum=StatedBudget(ShuffledTasks(), GeometricSteps(256, 87)))
    curriculum = resolve_schedules(method, progress).curriculum
    return curriculum(CurriculumRequest(TASKS, History(), num_tasks=2, seed=0))


def test_the_prompt_and_the_column_have_the_budget_of_the_step():
    budgets = [drawn_at(p)[0].columns["budget"] for p in (0.0, 0.24, 0.25, 0.5, 0.75, 1.0)]
    assert budgets == [256, 256, 179, 125, 87, 87]
    first, second = drawn_at(0.5)
    assert first.prompt == f"{first.key} + 1 =\n\nUse exactly 125 tokens."
    assert {first.key, second.key} < {task.key for task in TASKS}  # keys stay those of the tasks


def test_steps_of_the_paper_and_its_ablations():
    def values(schedule):
        drops = schedule.drops
        return [round(schedule.value(k / (drops + 1)), 1) for k in range(drops + 1)]

    assert values(GeometricSteps(256, 87, drops=3)) == [256, 178.6, 124.7, 87]  # d = 0.698
    assert values(GeometricSteps(256, 87, drops=1)) == [256, 87]  # d = 0.34
    assert values(GeometricSteps(256, 87, drops=7))[1] == round(256 * (87 / 256) ** (1 / 7), 1)
    assert values(LinearSteps(256, 87, drops=3)) == [256, 199.7, 143.3, 87]  # 169 / 3 each


def test_a_budget_is_at_least_one_token():
    request = CurriculumRequest(TASKS, History(), num_tasks=1, seed=0)
    assert StatedBudget(ShuffledTasks(), 0.2)(request)[0].columns["budget"] == 1


def test_tasks_of_evaluation_have_one_budget():
    rows = [{"prompt": "1 + 1 =", "answer": "2"}]
    (task,) = BudgetedTasks(InMemoryTasks(rows), 87, " ({budget} tokens)").load()
    assert (task.prompt, task.columns["budget"]) == ("1 + 1 = (87 tokens)", 87)


def test_a_chat_has_the_budget_in_the_users_message():
    chat = ({"role": "user", "content": "1 + 1 ="},)
    (task,) = BudgetedTasks(InMemoryTasks([Task("k", chat)]), 9, " {budget}").load()
    assert task.prompt == ({"role": "user", "content": "1 + 1 = 9"},)


@pytest.mark.parametrize("make", [lambda s: StatedBudget(ShuffledTasks(), 9, s)])
def test_a_sentence_without_the_budget_is_refused(make):
    with pytest.raises(ConfigError, match=r"sentence: 'Be brief.'. Allowed: .*\{budget\}"):
        make("Be brief.")
    with pytest.raises(ConfigError, match="sentence"):
        BudgetedTasks(InMemoryTasks([{"prompt": "1"}]), 9, "Be brief.")
