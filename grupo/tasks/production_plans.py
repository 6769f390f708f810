"""Word problems of linear and integer programming: production plans with the largest profit."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from grupo.core.component import check_field, component
from grupo.core.ranges import PositiveInt, Probability
from grupo.core.types import Task
from grupo.tasks.base import LazyTasks, task_key
from grupo.util.rng import make_rng

PRODUCTS = ("chairs", "tables", "shelves", "lamps", "doors", "boats")
RESOURCES = (("hours of work", "hours"), ("boards of oak", "boards"), ("litres of paint", "litres"))
Table = Sequence[Sequence[int]]


@component
class ProductionPlans:
    """How much of each product to make for the largest profit, within the stock of resources.

    The reference answer is the largest profit, by HiGHS. An integer program has `whole` products,
    a linear one may make parts of them. Columns: `profit` per product, `use` of each resource by
    each product, `stock` of each resource, `whole`.

    Args:
        size: Number of tasks.
        seed: Seed of the tasks.
        num_products: Number of products, at most 6.
        whole_share: Share of tasks with whole products only: integer programs.

    >>> task = ProductionPlans(1, num_products=2, whole_share=1.0).load()[0]
    >>> len(task.columns["profit"]), len(task.columns["use"])
    (2, 3)
    """

    size: PositiveInt = 1000
    seed: int = 0
    num_products: PositiveInt = 3
    whole_share: Probability = 0.5

    def __post_init__(self) -> None:
        allowed = f"1 to {len(PRODUCTS)}"
        check_field(self, "num_products", self.num_products <= len(PRODUCTS), allowed)

    def load(self) -> Sequence[Task]:
        return LazyTasks(self.size, self._task)

    def _task(self, index: int) -> Task:
        rng = make_rng(self.seed, "production plan", index)
        count = self.num_products
        profit = [rng.randint(5, 40) for _ in range(count)]
        use = [[rng.randint(1, 9) for _ in range(count)] for _ in RESOURCES]
        stock = [rng.randint(30, 120) for _ in RESOURCES]
        whole = rng.random() < self.whole_share
        names = rng.sample(PRODUCTS, count)
        prompt = plan_prompt(names, profit, use, stock, whole)
        columns = {"profit": profit, "use": use, "stock": stock, "whole": whole}
        optimum = largest_profit(profit, use, stock, whole)
        return Task(task_key(prompt), prompt, repr(optimum), "production_plans", columns)


def largest_profit(profit: Sequence[int], use: Table, stock: Sequence[int], whole: bool) -> float:
    """max profit x subject to use x <= stock and x >= 0, x whole or not, by HiGHS.

    NaN if there is no optimum: no x meets the constraints, or the profit has no limit.

    >>> largest_profit([3, 2], [[2, 1]], [5], True), largest_profit([3, 1], [[2, 1]], [5], False)
    (10.0, 7.5)
    >>> largest_profit([3], [[-2]], [-5], False)
    nan
    """
    from scipy.optimize import Bounds, LinearConstraint, milp  # takes half a second

    limits: Any = np.array(stock, dtype=float)
    result = milp(
        -np.array(profit, dtype=float),
        constraints=LinearConstraint(np.array(use, dtype=float), ub=limits),
        integrality=np.full(len(profit), int(whole)),
        bounds=Bounds(lb=0.0),
        options={"mip_rel_gap": 0.0},
    )
    if result.fun is None:
        return math.nan
    optimum = -float(result.fun)
    return float(round(optimum)) if whole else optimum


def plan_prompt(
    names: Sequence[str], profit: Sequence[int], use: Table, stock: Sequence[int], whole: bool
) -> str:
    """The problem in words."""
    lines = ["A workshop makes " + " and ".join((", ".join(names[:-1]), names[-1])) + "."]
    if len(names) == 1:
        lines = [f"A workshop makes {names[0]}."]
    for j, name in enumerate(names):
        needs = ", ".join(f"{use[i][j]} {unit}" for i, (_, unit) in enumerate(RESOURCES))
        lines.append(f"One of its {name} needs {needs} and earns {profit[j]} euros.")
    stocks = ", ".join(f"{n} {text}" for n, (text, _) in zip(stock, RESOURCES, strict=True))
    lines.append(f"It has {stocks}.")
    lines.append("It sells whole products only." if whole else "It may make parts of products.")
    lines.append("Write a Python program that prints the largest profit in euros.")
    return "\n".join(lines)
