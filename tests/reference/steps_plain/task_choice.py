"""The tasks of a step, the sizes of their groups, and the order of unfinished ones.

Compared: group sizes exactly; of random draws the probability of each; the order of the tasks.

Written from
    a public function `sampling_budget_by_knapsack` with its `solve_by_dp` (found by that name;
        its author is not known) for Knapsack RL, arXiv:2509.25849. The largest size holds for all
        tasks, as the record states;
    verl-project/verl-recipe, spo/spo_ray_trainer.py, lines 380 to 420, for the weights of SPO;
    abstract of arXiv:2511.18902 and the record of vade: p ~ Beta(a + 1, b + 1), the largest gains
        p (1 - p)^2 of a random pool; the two decays are our reading;
    themoonlight.io's review of arXiv:2510.06672 and Wodlfvllf/grpo-composer, the planner of XRPO:
        h(n) = t s / sqrt(n), priority h(n) - h(n + 1) + c sqrt(log(1 + T) / n). That T counts the
        rollouts of all tasks, and that s is fixed within a phase, is our reading;
    abstract of arXiv:2506.15050 and the record of t_ppo: answers that a step cuts are continued in
        the next one, and new tasks take the other places. The order is our reading;
    a public note on ReMix, arXiv:2507.06892: with a share p of old rollouts a step generates 1 - p
        as much.
"""

from collections.abc import Sequence
from functools import cache
from itertools import product
from math import isnan, log, sqrt

import numpy as np

NODES, WEIGHTS = np.polynomial.legendre.leggauss(60)


def knapsack_sizes(
    rates: Sequence[float],
    mean: int,
    smallest: int,
    largest: int,
    confidence: float,
    *,
    as_released: bool,
) -> list[int]:
    """Sizes of the groups of a step; the success rate of a task that was never drawn is NaN.

    Args:
        rates: Success rate of each task.
        mean: Mean size.
        smallest: Smallest size.
        largest: Largest size.
        confidence: Probability of a mixed group that is enough.
        as_released: With two properties of the function: tasks that were never drawn count as
            unsolved ones when rollouts are left, and a task that gets no rollout beyond the
            smallest size counts as worth nothing. Without: as the paper's objective has it.
    """
    n = len(rates)
    mixed = [i for i, p in enumerate(rates) if 0 < p < 1]
    sizes = [mean if isnan(p) else smallest for p in rates]
    left = n * mean - sum(sizes)
    unsolved = [i for i, p in enumerate(rates) if p == 0 or (as_released and isnan(p))]
    needed = sum(
        int(min(largest, log(1 - confidence) / log(max(p, 1 - p))))
        for p in (rates[i] for i in mixed)
    )
    spare = left if not mixed else max(left - needed, 0)
    if not mixed and not unsolved:
        return [mean] * n
    others = unsolved or [i for i in range(n) if i not in mixed and not isnan(rates[i])]
    if spare and others:
        left -= spare
        for place, i in enumerate(others):
            sizes[i] += spare // len(others) + (place < spare % len(others))
    best, chosen = -np.inf, ()
    room = range(largest - smallest + 1)
    for extra in product(room, repeat=len(mixed)):
        if sum(extra) == left:
            worth = sum(
                0.0 if as_released and k == 0 else knapsack_value(rates[i], smallest + k)
                for i, k in zip(mixed, extra, strict=True)
            )
            if worth > best + 1e-15:
                best, chosen = worth, extra
    for i, k in zip(mixed, chosen, strict=True):
        sizes[i] += k
    return sizes


def knapsack_value(p: float, n: int) -> float:
    """Worth of n rollouts of a task of success rate p."""
    return (1 - p**n - (1 - p) ** n) * p * (1 - p) ** 2


def spo_probabilities(values: Sequence[float]) -> list[float]:
    """Probability that the first draw takes each task."""
    weight = np.sqrt(np.multiply(values, np.subtract(1, values))) + 0.05
    return (weight / weight.sum()).tolist()


def vade_counts(
    groups: Sequence[tuple[int, int, int]], now: int, per_group: float, per_step: float
) -> tuple[float, float]:
    """Counts a and b of a task in the step `now`.

    Args:
        groups: Step, number correct and number wrong of each group of the task, steps from 0.
        now: The step, from 0.
        per_group: Factor at each group of the task.
        per_step: Factor at each step.
    """
    a = b = 0.0
    at = {step: (right, wrong) for step, right, wrong in groups}
    for step in range(now):
        if step in at:
            a, b = per_group * a + at[step][0], per_group * b + at[step][1]
        a, b = per_step * a, per_step * b
    return a, b


def vade_probabilities(counts: Sequence[tuple[float, float]], cells: int = 600) -> list[float]:
    """Probability that each task has the largest gain p (1 - p)^2, p ~ Beta(a + 1, b + 1)."""
    p = (np.arange(20 * cells) + 0.5) / (20 * cells)
    gain = p * (1 - p) ** 2
    edges = np.linspace(0, 4 / 27, cells + 1)
    place = np.clip(np.searchsorted(edges, gain) - 1, 0, cells - 1)
    masses = []
    for a, b in counts:
        density = p**a * (1 - p) ** b
        masses.append(np.bincount(place, density / density.sum(), cells))
    below = [np.cumsum(m) - m / 2 for m in masses]  # half of its own cell: ties
    return [
        float(sum(m * np.prod([c for j, c in enumerate(below) if j != i], axis=0)))
        for i, m in enumerate(masses)
    ]


@cache
def student_quantile(probability: float, freedom: int) -> float:
    """Quantile of Student's distribution above 1/2, by integration and bisection.

    With t = sqrt(freedom) tan u, the density in u is proportional to cos^(freedom - 1) u.
    """

    def mass(upper: float) -> float:
        u = (NODES + 1) / 2 * upper
        return float((np.cos(u) ** (freedom - 1) * WEIGHTS).sum() * upper / 2)

    total = mass(np.pi / 2)
    low, high = 0.0, np.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if mass(middle) / total < 2 * probability - 1 else (low, middle)
    return sqrt(freedom) * float(np.tan((low + high) / 2))


def xrpo_half_width(deviation: float, n: int, confidence: float) -> float:
    """Half the width of the confidence interval of a task's mean reward."""
    return student_quantile((1 + confidence) / 2, n - 1) * deviation / sqrt(n)


def xrpo_sizes(
    rewards: Sequence[Sequence[float]], budget: int, confidence: float, bonus: float
) -> list[int]:
    """Further rollouts of each task in a phase, one at a time to the largest priority."""
    deviation = [float(np.std(r, ddof=1)) for r in rewards]
    size = [len(r) for r in rewards]
    for _ in range(budget):
        total = sum(size)
        priority = [
            xrpo_half_width(s, n, confidence)
            - xrpo_half_width(s, n + 1, confidence)
            + bonus * sqrt(log(1 + total) / n)
            for s, n in zip(deviation, size, strict=True)
        ]
        size[int(np.argmax(priority))] += 1
    return [n - len(r) for n, r in zip(size, rewards, strict=True)]


def continued_tasks(
    answers: Sequence[Sequence[int]], window: int, largest: int, num_tasks: int, num_steps: int
) -> list[list[tuple[int, list[int]]]]:
    """The tasks of each step with the tokens that each of their rollouts has when the step begins.

    Args:
        answers: Tokens of each rollout of each new task, in the order in which tasks are drawn.
        window: Tokens that a rollout may get in a step.
        largest: Tokens of a rollout in all steps.
        num_tasks: Tasks of a step.
        num_steps: Number of steps.
    """
    new = iter(enumerate(answers))
    waiting: list[tuple[int, list[int], list[int]]] = []  # task, full lengths, lengths so far
    steps = []
    for _ in range(num_steps):
        begun = waiting[:num_tasks]
        while len(begun) < num_tasks:
            task, full = next(new)
            begun.append((task, [min(n, largest) for n in full], [0] * len(full)))
        steps.append([(task, list(so_far)) for task, _, so_far in begun])
        waiting = waiting[num_tasks:]
        for task, full, so_far in begun:
            left = [(n, min(n, s + window)) for n, s in zip(full, so_far, strict=True)]
            cut = [(n, s) for n, s in left if s < n]
            if cut:
                waiting.append((task, [n for n, _ in cut], [s for _, s in cut]))
    return steps


def remix_tasks(num_prompts: int, old_share: float) -> int:
    """Tasks that a step with a share of old rollouts generates for."""
    return round(num_prompts * (1 - old_share))
