import pytest

from grupo.core.errors import ConfigError
from grupo.core.types import Task
from grupo.tasks import FromFunction, LazyTasks, ReasoningGym, check_disjoint, split_tasks, task_key

# one question comes up three times: at 0, 4 and 5
PROMPTS = ("a", "b", "c", "d", "a", " a ")


def task(text):
    return Task(task_key(text), text)


TASKS = [task(text) for text in PROMPTS]
LAZY = LazyTasks(len(TASKS), TASKS.__getitem__)


def keys(tasks):
    return {t.key for t in tasks}


@pytest.mark.parametrize("tasks", [TASKS, LAZY])
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("wanted", [0, 1, 2, 3])
def test_no_question_is_on_both_sides(tasks, seed, wanted):
    train, held_out = split_tasks(tasks, wanted, seed)
    assert len(keys(held_out)) == len(held_out) == wanted
    assert keys(train) == keys(TASKS) - keys(held_out)
    check_disjoint(train, held_out)


def test_duplicates_of_a_held_out_task_leave_training_with_it():
    train, _ = split_tasks(TASKS, [task("a")])
    assert [t.prompt for t in train] == ["b", "c", "d"]
    assert train.num_excluded == 3


def test_a_lazy_source_lets_the_next_task_stand_in():
    train, _ = split_tasks(LAZY, [task("a")])
    assert [t.prompt for t in train] == ["b", "b", "c", "d", "b", "b"]
    assert train.num_excluded == 3
    assert train[-1].prompt == "b"
    assert [t.prompt for t in train[1:3]] == ["b", "c"]


def test_a_seed_holds_out_the_same_tasks_again():
    source = ReasoningGym("chain_sum", size=200)
    assert split_tasks(source, 20, seed=1)[1] == split_tasks(source, 20, seed=1)[1]
    assert split_tasks(source, 20, seed=1)[1] != split_tasks(source, 20, seed=2)[1]


def test_neighbouring_seeds_overlap_and_are_still_kept_apart():
    train, held_out = split_tasks(
        ReasoningGym("gcd", size=60), ReasoningGym("gcd", size=20, seed=1)
    )
    assert train.num_excluded >= 20  # index i of seed 1 is index i + 1 of seed 0
    assert not keys(train) & keys(held_out)


def test_splits_that_cannot_be_made_are_refused():
    with pytest.raises(
        ConfigError, match=r"5 different tasks were asked for, the source has 4 among 6"
    ):
        split_tasks(TASKS, 5)
    for tasks in (TASKS, LAZY):
        with pytest.raises(ConfigError, match=r"Nothing is left to train on"):
            split_tasks(tasks, 4)
    with pytest.raises(ConfigError, match=r"Nothing is left to train on"):
        split_tasks(LAZY, FromFunction(lambda: TASKS))
    with pytest.raises(ConfigError, match=r"-1"):
        split_tasks(TASKS, -1)


def test_an_overlap_is_found_and_named():
    with pytest.raises(ConfigError, match=r"is trained on and held out: 'a'"):
        check_disjoint(TASKS, [task("a")])


def test_keys_go_by_content():
    assert task_key("a") == task_key(" a\n") != task_key("b")
    assert task_key(({"role": "system", "content": "a"},)) != task_key("a")
    assert task_key("\ud800") != task_key("\ud801")
    image = {"role": "user", "content": [{"type": "image", "image": b"1"}]}
    other = {"role": "user", "content": [{"type": "image", "image": b"2"}]}
    assert task_key((image,)) != task_key((other,))
    with pytest.raises(ConfigError, match=r"holds a object"):
        task_key(({"role": "user", "content": [object()]},))
