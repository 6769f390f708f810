"""Training on one example: the choice of the task, and its copies."""

import pytest
from pyarrow import parquet

from grupo.evidence.survey import TaskVisits, visits_of, write_history_survey
from grupo.methods.grpo import grpo
from grupo.rollouts.evaluate import SuccessCriterion
from grupo.tasks import Highest, InMemoryTasks, Repeated, Selected
from grupo.testing.smoke.run import echo_recipe
from grupo.training.start import create_trainer
from grupo.util.errors import ConfigError

HISTORIES = {"A": (0.0, 0.5, 1.0), "B": (0.5, 0.5, 0.5), "C": (0.0, 0.0, 0.0)}


def record(step, task, reward, error=""):
    terms = {"correct": reward}
    return {"step": step, "task": task, "reward": reward, "reward_terms": terms, "error": error}


def records():
    """Two rollouts of each task in each of three steps."""
    for step in range(3):
        for task, accuracies in HISTORIES.items():
            solved = {0.0: (0, 0), 0.5: (1, 0), 1.0: (1, 1)}[accuracies[step]]
            yield from (record(step, task, float(reward)) for reward in solved)


def test_the_task_with_the_highest_variance_of_accuracies_is_a():
    rows = visits_of(records(), SuccessCriterion("correct"))
    assert [(row.key, row.visits, row.history_mean) for row in rows] == [
        ("A", 3, 0.5),
        ("B", 3, 0.5),
        ("C", 3, 0.0),
    ]
    stds = [row.history_std for row in rows]
    assert stds == pytest.approx([(1 / 6) ** 0.5, 0.0, 0.0])  # 0.408: mean of 1/4, 0 and 1/4
    assert Highest("history_std", 1)(stds) == [0]


def test_a_rollout_without_a_score_is_left_out():
    lines = [record(1, "A", 1.0), record(1, "A", float("nan"), error="broken")]
    assert visits_of(lines, SuccessCriterion("correct")) == [TaskVisits("A", 1, 1.0, 0.0)]


def test_128_copies_are_the_same_prompt_and_key():
    tasks = Repeated(InMemoryTasks([{"prompt": "1 + 1 =", "answer": "2"}])).load()
    assert len(tasks) == 128
    assert {(task.prompt, task.key) for task in tasks} == {(tasks[0].prompt, tasks[0].key)}
    assert len(tasks) * 8 == 1024  # rollouts of a step with groups of 8


def test_several_tasks_take_turns():
    rows = [{"prompt": f"{i} + 1 ="} for i in range(2)]
    prompts = [task.prompt for task in Repeated(rows, 2).load()]
    assert prompts == ["0 + 1 =", "1 + 1 ="] * 2


def test_a_run_on_copies_samples_each_group_by_itself_and_its_history_selects_the_task(tmp_path):
    recipe = echo_recipe(grpo())
    recipe = recipe.replace(tasks=Repeated(recipe.tasks.load()[:1], 4), max_steps=2)
    folder = tmp_path / "run"
    create_trainer(recipe, folder)()
    file = tmp_path / "history.parquet"
    (row,) = write_history_survey(folder, file)
    assert row.visits == 2
    assert parquet.read_table(file).to_pylist()[0]["history_std"] == row.history_std
    (task,) = Selected(recipe.tasks.load()[:1], str(file), Highest("history_std", 1)).load()
    assert task.key == row.key
    with pytest.raises(ConfigError, match="exists"):
        write_history_survey(folder, file)
