"""Disjoint training and evaluation tasks."""

import pytest

from grupo.core.types import Task
from grupo.tasks import (
    EvalShare,
    FromFunction,
    LazyTasks,
    ReasoningGym,
    check_disjoint,
    split_tasks,
    task_key,
)
from grupo.util.errors import ConfigError

# the same prompt occurs three times: at 0, 4 and 5
PROMPTS = ("a", "b", "c", "d", "a", " a ")


def task(text):
    return Task(task_key(text), text)


TASKS = [task(text) for text in PROMPTS]
LAZY = LazyTasks(len(TASKS), TASKS.__getitem__)


def keys(tasks):
    return {t.key for t in tasks}


@pytest.mark.parametrize("tasks", [TASKS, LAZY])
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_training_and_evaluation_tasks_are_disjoint(tasks, seed, count):
    train, evaluation = split_tasks(tasks, count, seed)
    assert len(keys(evaluation)) == len(evaluation) == count
    assert keys(train) == keys(TASKS) - keys(evaluation)
    check_disjoint(train, evaluation)


def test_duplicates_of_an_evaluation_task_are_excluded_from_training():
    train, _ = split_tasks(TASKS, [task("a")])
    assert [t.prompt for t in train] == ["b", "c", "d"]
    assert train.num_excluded == 3


def test_a_lazy_source_replaces_an_evaluation_task_by_the_next_task():
    train, _ = split_tasks(LAZY, [task("a")])
    assert [t.prompt for t in train] == ["b", "b", "c", "d", "b", "b"]
    assert train.num_excluded == 3
    assert train[-1].prompt == "b"
    assert [t.prompt for t in train[1:3]] == ["b", "c"]


def test_a_seed_reproduces_the_split():
    source = ReasoningGym("chain_sum", size=200)
    assert split_tasks(source, 20, seed=1)[1] == split_tasks(source, 20, seed=1)[1]
    assert split_tasks(source, 20, seed=1)[1] != split_tasks(source, 20, seed=2)[1]


def test_overlapping_sources_are_split_by_content():
    source, eval_source = ReasoningGym("gcd", size=60), ReasoningGym("gcd", size=20, seed=1)
    train, evaluation = split_tasks(source, eval_source)
    assert train.num_excluded >= 20  # index i of seed 1 is index i + 1 of seed 0
    assert not keys(train) & keys(evaluation)


def test_impossible_splits_are_config_errors():
    for tasks in (TASKS, LAZY):  # of 4 different tasks
        for count in (4, 5):
            message = f"eval_tasks: {count}. Allowed: at most 3, one less than the different tasks"
            with pytest.raises(ConfigError, match=message):
                split_tasks(tasks, count)
        split_tasks(tasks, 3)
    with pytest.raises(ConfigError, match=r"No training tasks are left"):
        split_tasks(LAZY, FromFunction(lambda: TASKS))
    with pytest.raises(ConfigError, match=r"-1"):
        split_tasks(TASKS, -1)


def test_check_disjoint_names_a_shared_task():
    with pytest.raises(ConfigError, match=r"is a training task and an evaluation task: 'a'"):
        check_disjoint(TASKS, [task("a")])


def test_keys_depend_on_the_content_of_prompts():
    assert task_key("a") == task_key(" a\n") != task_key("b")
    assert task_key(({"role": "system", "content": "a"},)) != task_key("a")
    assert task_key("\ud800") != task_key("\ud801")
    image = {"role": "user", "content": [{"type": "image", "image": b"1"}]}
    other = {"role": "user", "content": [{"type": "image", "image": b"2"}]}
    assert task_key((image,)) != task_key((other,))
    with pytest.raises(ConfigError, match=r"holds a object"):
        task_key(({"role": "user", "content": [object()]},))


def test_a_share_of_a_small_source_is_held_out_by_default():
    tasks = [Task(str(i), str(i)) for i in range(42)]
    training, evaluation = split_tasks(tasks, EvalShare())
    assert (len(training), len(evaluation)) == (38, 4)


def test_no_share_of_a_single_task_is_held_out():
    training, evaluation = split_tasks([Task("a", "a")] * 3, EvalShare())
    assert (len(training), len(evaluation)) == (3, 0)
