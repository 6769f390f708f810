"""Programs scored by the number that they print: tolerances, failures, and production plans."""

import asyncio

import pytest

from grupo.core.types import Response, Rollout, Task
from grupo.envs import PrintedNumber, RewardTerm, SingleTurn
from grupo.envs.printed_number import is_close
from grupo.envs.tools import Sandbox
from grupo.tasks import ProductionPlans
from grupo.util.errors import ConfigError
from tests.helpers.plain_process import sandbox_or_plain_process

SANDBOX = Sandbox(time_limit=5.0)
WITH_SOLVER = Sandbox(time_limit=20.0, memory_mib=1024, packages=("numpy", "scipy"))
SEARCH = """\
from itertools import product
profit, use, stock = {profit}, {use}, {stock}
limits = [min(s // row[j] for row, s in zip(use, stock)) for j in range(len(profit))]
best = 0
for plan in product(*(range(limit + 1) for limit in limits)):
    if all(sum(u * x for u, x in zip(row, plan)) <= s for row, s in zip(use, stock)):
        best = max(best, sum(p * x for p, x in zip(profit, plan)))
print("found a plan")
print(best)
"""

LINPROG = """\
from scipy.optimize import linprog
result = linprog([-p for p in {profit}], A_ub={use}, b_ub={stock})
print(-result.fun)
"""
MILP = """\
import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
result = milp(
    -np.array({profit}),
    constraints=LinearConstraint(np.array({use}), ub=np.array({stock})),
    integrality=np.ones(len({profit})),
    bounds=Bounds(lb=0),
    options={{"mip_rel_gap": 0}},
)
print(-result.fun)
"""


@pytest.fixture(scope="module")
def sandbox():
    return sandbox_or_plain_process(SANDBOX)


def scores(sandbox, task, *programs):
    rollouts = [
        Rollout((("?", Response((), (), text=f"```python\n{program}\n```")),))
        for program in programs
    ]
    env = SingleTurn((RewardTerm("optimum", PrintedNumber(sandbox)),))
    return [result.reward for result in asyncio.run(env.score(task, rollouts))]


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("10\n", True),
        ("10.000001\n", True),  # relative difference 1e-7
        ("10.00002\n", False),  # 2e-6
        ("10.1\n", False),
        ("10\nZeroDivisionError: division by zero\n", False),
        ("profit: 10\n", False),
        ("nan\n", False),
        ("inf\n", False),
        ("", False),
    ],
)
def test_the_last_line_is_compared_within_a_relative_difference_of_1e_6(output, expected):
    assert is_close(output, 10.0, 1e-6) is expected


def test_programs_that_fail_or_print_another_number_have_no_reward(sandbox):
    task = Task("k", "?", "10")
    programs = ("print(10.000001)", "print(10.1)", "print(10)\n1 / 0", "")
    assert scores(sandbox, task, *programs) == [1.0, 0.0, 0.0, 0.0]


def test_an_answer_without_a_program_has_no_reward():
    assert PrintedNumber(SANDBOX).score_text(Task("k", "?", "10"), "```text\n10\n```") == 0.0


def test_a_correct_program_for_a_production_plan_is_rewarded(sandbox):
    task = ProductionPlans(1, whole_share=1.0).load()[0]
    correct = SEARCH.format(**task.columns)
    assert scores(sandbox, task, correct, correct.replace("<= s", "< s - 3")) == [1.0, 0.0]


@pytest.fixture(scope="module")
def with_solver():
    """Skips the test on machines without a backend that has packages."""
    try:
        WITH_SOLVER.check()
    except ConfigError as error:
        pytest.skip(str(error))
    return WITH_SOLVER


@pytest.mark.parametrize(("program", "whole"), [(LINPROG, False), (MILP, True)])
def test_a_program_that_calls_a_solver_finds_the_optimum(program, whole, with_solver):
    task = ProductionPlans(1, whole_share=float(whole)).load()[0]
    correct = program.format(**task.columns)
    larger = program.format(**{**task.columns, "stock": [s + 9 for s in task.columns["stock"]]})
    assert scores(with_solver, task, correct, larger) == [1.0, 0.0]


def test_a_reference_answer_that_is_no_number_is_refused():
    with pytest.raises(ConfigError, match=r"'ten'\. Allowed: a finite number"):
        PrintedNumber(SANDBOX).validate_tasks([Task("k", "?", "ten")])
