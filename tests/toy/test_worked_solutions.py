from grupo.core.types import Action, Rollout, Task
from grupo.rewards import After, GymVerifier
from grupo.toy.quickstart import RECIPE, SEEDLING
from grupo.toy.worked_solutions import chain_sum, worked_sum


def said(text):
    return Rollout().then("", Action((), (), text=text))


def test_a_sum_is_worked_out_from_left_to_right():
    # 4 + 7 = 11, 11 - 12 = -1, -1 - 3 = -4
    assert worked_sum("4 + 7 - 12 - 3") == "4 +7=11 -12=-1 -3=-4\n#### -4"


def test_short_sums_are_always_worked_out_and_about_two_in_five_of_the_long():
    short = [Task(str(i), "what is 1 + 2 + 3 + 4 =\n", "10") for i in range(50)]
    long = [Task(str(i), "what is 1 + 2 + 3 + 4 + 5 =\n", "15") for i in range(1000)]
    assert all("=" in chain_sum(task)[0] for task in short)
    # 400 expected of 1000, standard deviation sqrt(1000 x 0.4 x 0.6) = 15.5: five of them is 78
    assert abs(sum("=" in chain_sum(task)[0] for task in long) - 400) < 78


def test_every_worked_solution_is_what_the_verifier_pays_for():
    judge = GymVerifier(After("####"))
    tasks = SEEDLING.tasks.load()
    for i in range(200):
        assert judge.judge(tasks[i], said(chain_sum(tasks[i])[0])) == 1.0


def test_what_the_quickstart_measures_on_is_never_trained_on():
    held_out = {task.key for task in SEEDLING.held_out.load()}
    from grupo.tasks import split

    for source in (RECIPE.tasks, SEEDLING.tasks):
        train, kept = split(source, SEEDLING.held_out)
        assert {task.key for task in kept} == held_out
        assert not held_out & {train[i].key for i in range(0, len(train), 50)}
