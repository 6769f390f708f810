from grupo.core.types import Action, Rollout, Task
from grupo.rewards import AfterMarker, ReasoningGymVerifier
from grupo.toy.quickstart import RECIPE, TOY_MODEL
from grupo.toy.worked_solutions import chain_sum_solutions, running_total_solution


def said(text):
    return Rollout().append_turn("", Action((), (), text=text))


def test_a_sum_is_worked_out_from_left_to_right():
    # 4 + 7 = 11, 11 - 12 = -1, -1 - 3 = -4
    assert running_total_solution("4 + 7 - 12 - 3") == "4 +7=11 -12=-1 -3=-4\n#### -4"


def test_short_sums_are_always_worked_out_and_about_two_in_five_of_the_long():
    short = [Task(str(i), "what is 1 + 2 + 3 + 4 =\n", "10") for i in range(50)]
    long = [Task(str(i), "what is 1 + 2 + 3 + 4 + 5 =\n", "15") for i in range(1000)]
    assert all("=" in chain_sum_solutions(task)[0] for task in short)
    # 400 expected of 1000, standard deviation sqrt(1000 x 0.4 x 0.6) = 15.5: five of them is 78
    assert abs(sum("=" in chain_sum_solutions(task)[0] for task in long) - 400) < 78


def test_every_worked_solution_is_what_the_verifier_pays_for():
    judge = ReasoningGymVerifier(AfterMarker("####"))
    tasks = TOY_MODEL.tasks.load()
    for i in range(200):
        assert judge.score(tasks[i], said(chain_sum_solutions(tasks[i])[0])) == 1.0


def test_what_the_quickstart_measures_on_is_never_trained_on():
    held_out = {task.key for task in TOY_MODEL.eval_tasks.load()}
    from grupo.tasks import split_tasks

    for source in (RECIPE.tasks, TOY_MODEL.tasks):
        train, kept = split_tasks(source, TOY_MODEL.eval_tasks)
        assert {task.key for task in kept} == held_out
        assert not held_out & {train[i].key for i in range(0, len(train), 50)}
