"""Worked solutions of sums, and the tasks of the quickstart."""

from grupo.core.types import Response, Rollout, Task
from grupo.rewards import AfterMarker, ReasoningGymVerifier
from grupo.tasks import split_tasks
from grupo.toy.quickstart import RECIPE, TOY_MODEL
from grupo.toy.worked_solutions import chain_sum_solutions, running_total_solution


def rollout(text):
    return Rollout().append_turn("", Response((), (), text=text))


def test_the_running_total_is_computed_from_left_to_right():
    # 4 + 7 = 11, 11 - 12 = -1, -1 - 3 = -4
    assert running_total_solution("4 + 7 - 12 - 3") == "4 +7=11 -12=-1 -3=-4\n#### -4"


def test_all_short_sums_and_two_in_five_long_ones_are_worked_out():
    short = [Task(str(i), "what is 1 + 2 + 3 + 4 =\n", "10") for i in range(50)]
    long = [Task(str(i), "what is 1 + 2 + 3 + 4 + 5 =\n", "15") for i in range(1000)]
    assert all("=" in chain_sum_solutions(task)[0] for task in short)
    # 400 expected of 1000, standard deviation sqrt(1000 x 0.4 x 0.6) = 15.5: five of them is 78
    assert abs(sum("=" in chain_sum_solutions(task)[0] for task in long) - 400) < 78


def test_every_worked_solution_satisfies_the_verifier():
    reward = ReasoningGymVerifier(AfterMarker("####"))
    tasks = TOY_MODEL.tasks.load()
    for i in range(200):
        solution = chain_sum_solutions(tasks[i])[0]
        assert reward.score(tasks[i], rollout(solution)) == 1.0


def test_the_evaluation_tasks_of_the_quickstart_are_not_trained_on():
    eval_keys = {task.key for task in TOY_MODEL.eval_tasks.load()}
    for source in (RECIPE.tasks, TOY_MODEL.tasks):
        train, evaluation = split_tasks(source, TOY_MODEL.eval_tasks)
        assert {task.key for task in evaluation} == eval_keys
        assert not eval_keys & {train[i].key for i in range(0, len(train), 50)}
