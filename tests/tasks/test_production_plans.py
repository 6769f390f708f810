"""Production plans: the optimum by HiGHS against a search, the prompt, and repeatable tasks."""

from itertools import product

import pytest

from grupo.tasks import ProductionPlans
from grupo.tasks.production_plans import largest_profit, plan_prompt
from grupo.util.errors import ConfigError


def best_by_search(profit, use, stock):
    """The largest profit over all whole plans."""
    limits = [
        min(s // row[j] for row, s in zip(use, stock, strict=True)) for j in range(len(profit))
    ]
    plans = product(*(range(limit + 1) for limit in limits))
    return max(
        sum(p * x for p, x in zip(profit, plan, strict=True))
        for plan in plans
        if all(
            sum(u * x for u, x in zip(row, plan, strict=True)) <= s
            for row, s in zip(use, stock, strict=True)
        )
    )


def test_optimum_of_whole_plans_is_that_of_a_search_and_parts_are_no_worse():
    for task in ProductionPlans(20, whole_share=1.0).load():
        columns = task.columns
        numbers = (columns["profit"], columns["use"], columns["stock"])
        assert float(task.reference_answer) == best_by_search(*numbers)
        assert largest_profit(*numbers, whole=False) >= float(task.reference_answer) - 1e-9


def test_optimum_of_a_linear_program_by_hand():
    # x + y <= 4 and x + 3y <= 6: the corner (3, 1) earns 9 + 5 = 14
    assert largest_profit([3, 5], [[1, 1], [1, 3]], [4, 6], False) == pytest.approx(14.0, rel=1e-12)


def test_prompt_has_all_numbers_and_tells_whole_plans_from_parts():
    arguments = (["chairs", "tables"], [7, 11], [[1, 2], [3, 4], [5, 6]], [30, 40, 50])
    whole, parts = (plan_prompt(*arguments, whole) for whole in (True, False))
    assert "One of its tables needs 2 hours, 4 boards, 6 litres and earns 11 euros." in whole
    assert "30 hours of work, 40 boards of oak, 50 litres of paint" in whole
    assert "whole products only" in whole
    assert "whole products only" not in parts


def test_tasks_follow_from_seed_and_index():
    first, again = ProductionPlans(3).load(), ProductionPlans(5).load()
    assert [task.key for task in first] == [task.key for task in again][:3]
    assert ProductionPlans(3, seed=1).load()[0].key != first[0].key
    assert {task.columns["whole"] for task in ProductionPlans(40).load()} == {True, False}


def test_too_many_products_are_refused():
    with pytest.raises(ConfigError, match="num_products: 7"):
        ProductionPlans(num_products=7)
