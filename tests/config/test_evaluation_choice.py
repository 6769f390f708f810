"""Evaluations take at most a fifth of a run, and their intervals stay useful."""

from dataclasses import replace

import pytest

from grupo.config.evaluation_choice import MAX_FRAC, choose_evaluation, half_width
from grupo.recipe import Evaluation
from tests.config.test_run_work import LENGTHS, work


def chosen(steps, fields_set=(), held_out=200, attempts=8):
    """The chosen tasks and attempts, and the fraction of the run that they take."""
    lengths = replace(LENGTHS, held_out=held_out)
    evaluation = Evaluation(attempts=attempts)
    run = work(lengths=lengths, evaluation=evaluation)
    run = replace(run, recipe=run.recipe.replace(max_steps=steps))
    choices = {choice.field: choice for choice in choose_evaluation(run, fields_set)}
    values = {field: choice.value for field, choice in choices.items()}
    size = values.get("eval_tasks", held_out), values.get("evaluation.attempts", attempts)
    return choices, size, run.evaluation_frac(*size)


def test_a_long_run_is_evaluated_as_by_default():
    choices, size, frac = chosen(steps=5_000)
    assert (size, list(choices)) == ((200, 8), ["eval_tasks"])
    reason = f"all evaluations take about {frac:.0%} of the run's time"
    assert choices["eval_tasks"].reason == f"{reason}; 95% intervals of up to ±7 points"


def test_attempts_are_reduced_before_tasks():
    # 200 tasks with 9 answers of 15 tokens are 27,000 tokens, and 1,000 of prompts: 28,000;
    # with 5 answers 16,000. A step of 70 tokens has four passes.
    steps = 600
    choices, size, frac = chosen(steps)
    assert size == (200, 4)
    assert frac == pytest.approx(2 * 16_000 / (2 * 16_000 + 4 * 70 * steps), rel=1e-3)
    before = 2 * 28_000 / (2 * 28_000 + 4 * 70 * steps)
    assert f"and {before:.0%} with 200 tasks and 8 attempts" in str(choices["eval_tasks"])
    assert f"and {before:.0%} with" in str(choices["evaluation.attempts"])


def test_tasks_are_reduced_to_a_fifth_of_the_run():
    _, (tasks, attempts), frac = chosen(steps=300)
    assert attempts == 4
    assert frac <= MAX_FRAC < chosen(steps=300, held_out=tasks + 1, fields_set=["eval_tasks"])[2]


def test_fifty_tasks_stay_so_that_intervals_are_useful():
    choices, size, frac = chosen(steps=3)
    assert size == (50, 4)
    assert frac > MAX_FRAC
    assert "±14 points" in str(choices["eval_tasks"])
    assert half_width(50) == pytest.approx(1.96 * (0.5 * 0.5 / 50) ** 0.5)


def test_fewer_held_out_tasks_than_that_all_stay():
    assert chosen(steps=3, held_out=12)[1] == (12, 4)


@pytest.mark.parametrize(
    ("fields_set", "expected"),
    [
        (["eval_tasks"], (200, 4)),
        (["evaluation.attempts"], (50, 8)),
        (["evaluation"], (50, 8)),
        (["eval_tasks", "evaluation.attempts"], (200, 8)),
    ],
)
def test_what_the_user_set_stays(fields_set, expected):
    assert chosen(3, fields_set)[1] == expected


@pytest.mark.parametrize("options", [{"held_out": 0}, {"attempts": 0}])
def test_nothing_is_chosen_where_nothing_is_generated(options):
    assert chosen(3, **options)[0] == {}
