"""The table of guidance on sums of ten digits: what each arm shows to the policy."""

import pytest

from grupo.rollouts.samplers import GroupSampler, Rescue
from grupo.rollouts.samplers.hints import leaks_answer
from grupo.rollouts.samplers.trained_prompts import keep_generation_prompt, plain_prompt
from grupo.tasks import DigitSums
from grupo.tasks.digit_sums import STYLES
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT

SUMS = load_module_file(ROOT / "recipes" / "guidance" / "hard_sums.py")
TASKS = DigitSums(10, 10, size=20).load()


def test_the_solutions_of_ampo_are_those_of_the_four_styles():
    for task in TASKS:
        solutions = [task.columns[style] for style in STYLES]
        assert len(set(solutions)) == 4
        assert {solution.split()[-1] for solution in solutions} == {task.reference_answer}


def test_the_stages_of_ghpo_never_show_the_answer():
    for task in TASKS:
        for attempt in SUMS.METHODS["GHPO"].sampler.attempts:
            fraction = attempt.build_prompts.fraction
            assert attempt.training_prompt is keep_generation_prompt
            shown = task.columns["solution"][: round(fraction * len(task.columns["solution"]))]
            assert "is" not in shown
            assert not leaks_answer(task, shown)


def test_the_oracle_is_trained_without_its_hint():
    sampler = SUMS.METHODS["oracle hint"].sampler
    assert isinstance(sampler, Rescue)
    assert sampler.attempts[0].training_prompt is plain_prompt
    assert SUMS.METHODS["oracle hint"].replace(sampler=GroupSampler(8)) == SUMS.METHODS["GRPO"]


@pytest.mark.slow
def test_the_oracle_solves_what_the_beginner_cannot():
    oracle = SUMS.METHODS["oracle hint"]
    assert SUMS.run(oracle, seed=100, max_tokens=0)["long"] < 0.05
    assert SUMS.run(oracle, seed=100)["long"] > 0.8
