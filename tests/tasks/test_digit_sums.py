"""Digit sums: prompts, hints, and worked solutions in four styles."""

import pytest

from grupo.rollouts.samplers.hints import leaks_answer
from grupo.tasks import DigitSums
from grupo.tasks.digit_sums import STYLES, first_additions, worked_solution
from grupo.util.errors import ConfigError


def test_every_style_adds_all_terms_and_has_the_right_answer():
    tasks = DigitSums(size=50).load()
    for task in tasks:
        terms = task.columns["terms"]
        assert task.reference_answer == str(sum(terms.values()) % 10)
        for order in STYLES.values():
            words = worked_solution(terms, order(terms)).split()
            assert sorted(word[:2] for word in words[1:-2]) == [f"{k}{v}" for k, v in terms.items()]
            assert words[-1] == task.reference_answer


def test_the_number_of_terms_is_between_its_bounds():
    counts = {len(task.columns["terms"]) for task in DigitSums(3, 5, size=100).load()}
    assert counts == {3, 4, 5}


def test_a_hint_lacks_the_last_addition_and_does_not_contain_the_answer():
    for task in DigitSums(size=100).load():
        terms, hint = task.columns["terms"], task.columns["hint"]
        assert task.columns["solution"].startswith(hint)
        assert len(hint.split()) == len(terms)  # the start, the first term, all but one addition
        assert not leaks_answer(task, hint)


def test_a_share_of_prompts_has_a_part_of_the_solution():
    tasks = DigitSums(size=200, hint_share=0.5).load()
    hinted = [task for task in tasks if task.columns["given"]]
    assert 70 < len(hinted) < 130
    for task in hinted:
        given = first_additions(task.columns["solution"], task.columns["given"])
        assert str(task.prompt).endswith(f" ? {given}")


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ((1, 5), "min_terms"),
        ((2, 5, 100, 0, 0.5), "min_terms: 2. Allowed: 3 or more"),
        ((5, 4), "max_terms"),
        ((3, 20), "max_terms"),
    ],
)
def test_numbers_of_terms_that_are_not_allowed(arguments, field):
    with pytest.raises(ConfigError, match=field):
        DigitSums(*arguments)
