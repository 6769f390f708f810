"""The tasks of each step: sizes of groups, order of unfinished ones, probabilities of draws."""

from collections.abc import Callable, Sequence
from math import nan

from grupo.core.schedules import resolve_schedules
from grupo.core.types import Group, Response, Rollout, Task
from grupo.method import Method
from grupo.methods.knapsack_rl import knapsack_rl
from grupo.methods.remix import remix
from grupo.methods.spo_single_stream import spo_single_stream
from grupo.methods.t_ppo import t_ppo
from grupo.methods.vade import vade
from grupo.methods.xrpo import xrpo
from grupo.rollouts.curricula import CurriculumRequest
from grupo.rollouts.history import History
from tests.reference.steps.collecting import (
    SEED,
    assert_frequencies,
    collect_steps,
    frequencies,
    make_history,
    make_tasks,
    rollout,
    stream,
)
from tests.reference.steps_plain.replay import sequence_probabilities
from tests.reference.steps_plain.task_choice import (
    continued_tasks,
    knapsack_sizes,
    remix_tasks,
    spo_probabilities,
    vade_counts,
    vade_probabilities,
    xrpo_sizes,
)
from tests.reference.steps_plain.task_statistics import spo_values


def group(task: Task, right: int, of: int) -> Group:
    """A group with `right` correct rollouts."""
    return Group(task, tuple(rollout(float(i < right)) for i in range(of)))


KNAPSACK_RATES = (  # success rates in tenths of the tasks of each step; None: never drawn
    (None, None, None),
    (1, 5, 9),
    (3, 10, 0),
    (5, 10, 10),
    (0, 0, 10),
    (2, 7, None),
    (5, 5, 0),
    (1, 2, 3),
    (10, 10, 10),
    (6, 0, 4),
)
KNAPSACK_AS_RELEASED = (
    (0, None, 5),  # rollouts are left, and a task was never drawn
    (10, 10, None),
    (9, 4, 4),  # the easy task is worth little, and more than nothing
    (9, 9, 3, 3),
)


def check_knapsack(rates: Sequence[Sequence[int | None]], as_released: bool) -> None:
    """Compare the sizes of the groups of each step."""
    method = knapsack_rl(group_size=6, min_group_size=2, max_group_size=16)
    for step in rates:
        tasks, history = make_tasks(len(step)), make_history(method)
        known = [(t, p) for t, p in zip(tasks, step, strict=True) if p is not None]
        history.append_groups(0, [group(t, 10 - p, 10) for t, p in known])  # an older group
        history.append_groups(1, [group(t, p, 10) for t, p in known])
        request = CurriculumRequest(tasks, history, len(tasks), SEED)
        drawn = method.curriculum(request)
        rate = {t.key: nan if p is None else p / 10 for t, p in zip(tasks, step, strict=True)}
        expected = knapsack_sizes(
            [rate[task.key] for task in drawn], 6, 2, 16, 0.9, as_released=as_released
        )
        assert [task.group_size for task in drawn] == expected, step


SPO_REWARDS = {"0": (1.0, 0.0, 1.0), "1": (0.0,) * 40, "2": (1.0,), "3": ()}


def check_single_stream() -> None:
    """Compare the probability of each pair of tasks, in the order in which they are drawn."""
    method = spo_single_stream()
    tasks, history = make_tasks(4), make_history(method)
    for step in range(40):
        groups = [
            Group(t, (rollout(SPO_REWARDS[t.key][step]),))
            for t in tasks
            if step < len(SPO_REWARDS[t.key])
        ]
        history.append_groups(step, groups)
    values = [spo_values(SPO_REWARDS[t.key], 0.875)[-1] for t in tasks]
    law = sequence_probabilities(spo_probabilities(values), 2)
    expected = {tuple(str(i) for i in order): p for order, p in law.items()}

    def draw(seed: int) -> list[str]:
        return [t.key for t in method.curriculum(CurriculumRequest(tasks, history, 2, seed))]

    assert_frequencies(frequencies(draw, 3000), expected, 3000)


VADE_GROUPS = {"0": ((0, 6), (3, 2)), "1": ((1, 8), (2, 8), (4, 7)), "2": ((2, 0), (3, 1))}


def check_thompson() -> None:
    """Compare the decayed counts in each step, and the probability that a task is drawn."""
    method = vade(decay_per_group=0.5, decay_per_step=0.9)
    tasks, history = make_tasks(3), make_history(method)
    for step in range(7):
        for task in tasks:
            made = [(s, right, 8 - right) for s, right in VADE_GROUPS[task.key] if s < step]
            found = method.curriculum.decayed_counts(history.statistics_of_task(task), step)
            expected = vade_counts(made, step, 0.5, 0.9)
            assert max(abs(a - b) for a, b in zip(found, expected, strict=True)) < 1e-9
        groups = [group(t, right, 8) for t in tasks for s, right in VADE_GROUPS[t.key] if s == step]
        history.append_groups(step, groups)
    counts = [
        vade_counts([(s, n, 8 - n) for s, n in VADE_GROUPS[t.key]], 7, 0.5, 0.9) for t in tasks
    ]
    law = {(t.key,): p for t, p in zip(tasks, vade_probabilities(counts), strict=True)}

    def draw(seed: int) -> list[str]:
        return [t.key for t in method.curriculum(CurriculumRequest(tasks, history, 1, seed))]

    assert_frequencies(frequencies(draw, 2000), law, 2000)


def check_pool() -> None:
    """A pool smaller than all tasks is drawn uniformly: tasks alike come alike."""
    method = vade(pool_factor=2)
    tasks = make_tasks(6)
    history = make_history(method)

    def draw(seed: int) -> list[str]:
        return [t.key for t in method.curriculum(CurriculumRequest(tasks, history, 1, seed))]

    assert_frequencies(frequencies(draw, 3000), {(task.key,): 1 / 6 for task in tasks}, 3000)


XRPO_SCRIPT = (  # rewards of each task in the order in which its rollouts are generated
    ((1, 0, 1, 0, 1, 1, 0, 0, 1), (0,) * 9, (1,) * 9),
    ((0, 0, 0, 1, 0, 0, 1, 0, 0), (1, 1, 0, 0, 1, 0, 1, 0, 0), (0, 1, 1, 1, 1, 1, 1, 1, 1)),
    ((0.5, 0.25, 0.5, 0.75, 0.5, 0.5, 0.5, 0, 0), (0, 1, 0, 1, 0, 1, 0, 1, 0), (0,) * 9),
)


def check_growing_groups() -> None:
    """Compare the further rollouts of each task in each phase."""
    method = xrpo(group_size=6, phases=2)
    for rows in XRPO_SCRIPT:
        script = [row * 2 for row in rows]
        tasks = make_tasks(3)
        given = dict.fromkeys((t.key for t in tasks), 0)

        def answer(task: Task, script=script, given=given) -> list[Rollout]:
            first = given[task.key]
            given[task.key] += task.group_size
            return [
                rollout(float(r)) for r in script[int(task.key)][first : first + task.group_size]
            ]

        (found,) = collect_steps(method, answer, tasks, num_groups=3, num_steps=1)
        sizes = dict.fromkeys(given, method.curriculum.first_group_size)
        budget = (6 - method.curriculum.first_group_size) * 3
        assert [group.task.key for group in found.collected.kept_groups] == found.rounds[0]
        for phase in (1, 2):
            order = found.rounds[0]
            extra = xrpo_sizes(
                [script[int(key)][: sizes[key]] for key in order],
                budget * phase // 2 - budget * (phase - 1) // 2,
                0.95,
                0.1,
            )
            assert found.rounds[phase] == [k for k, n in zip(order, extra, strict=True) if n]
            for key, n in zip(order, extra, strict=True):
                sizes[key] += n
        assert {g.task.key: len(g.rollouts) for g in found.collected.kept_groups} == sizes


T_PPO_ANSWERS = (
    (3, 9, 2),
    (4, 4, 1),
    (25, 5, 4),  # longer than the limit
    (1, 2, 3),
    (9, 9, 9),
    (4, 5, 8),
    (2, 2, 2),
    (13, 1, 5),
    (3, 3, 3),
    (6, 4, 4),
    (1, 1, 1),
    (8, 4, 7),
    (2, 3, 4),
    (2, 9, 4),
    (2, 3, 1),
)


def check_unfinished_first() -> None:
    """Compare the tasks of each step, and the tokens that their rollouts bring along."""
    method = t_ppo(group_size=3, window=4, max_length=16)
    tasks = make_tasks(len(T_PPO_ANSWERS))
    place = {task.key: i for i, task in enumerate(stream(tasks, len(tasks)))}
    brought: list[tuple[int, list[int]]] = []

    def answer(task: Task) -> list[Rollout]:
        number = place[task.key]
        before = list(task.unfinished_rollouts) or [Rollout(index=-1)] * 3
        brought.append((number, [r.length for r in before]))
        return [continued(r, i, number) for i, r in enumerate(before)]

    def continued(before: Rollout, i: int, number: int) -> Rollout:
        full = before.reward_terms.get("full") or float(min(T_PPO_ANSWERS[number][i], 16))
        length = min(int(full), before.length + 4)
        turns = (("?", Response((0,) * length, (-1.0,) * length)),)
        terms = {"full": full}
        if length < full:
            return Rollout(turns, reward=0.0, reward_terms=terms, unfinished=True)
        return Rollout(turns, reward=1.0, reward_terms=terms)

    expected = continued_tasks(T_PPO_ANSWERS, 4, 16, num_tasks=3, num_steps=7)
    steps = collect_steps(method, answer, tasks, num_groups=3, num_steps=7)
    assert [len(step.rounds) for step in steps] == [1] * 7
    assert [brought[3 * i : 3 * i + 3] for i in range(7)] == expected


def check_part_of_tasks() -> None:
    """Compare the number of tasks of each step, for several sizes of a step."""
    method, tasks = remix(), make_tasks(40)
    for step in (1, 2, 30, 49, 50, 51, 52, 200):
        in_step = _in_step(method, step)
        share = 0.4 if step <= 50 else 0.0
        for num_groups in (5, 8, 10, 32):
            drawn = in_step.curriculum(CurriculumRequest(tasks, History(), num_groups, SEED))
            assert len(drawn) == remix_tasks(num_groups, share)


def _in_step(method: Method, step: int) -> Method:
    """The method in a step, from 1."""
    return resolve_schedules(method, 0.0, {"tokens/generated": [1.0] * (step - 1)})


CHECKS: dict[str, Callable[[], None]] = {
    "knapsack_rl": lambda: check_knapsack(KNAPSACK_RATES, as_released=False),
    "knapsack_rl: as released": lambda: check_knapsack(KNAPSACK_AS_RELEASED, as_released=True),
    "remix: tasks": check_part_of_tasks,
    "spo_single_stream": check_single_stream,
    "t_ppo": check_unfinished_first,
    "vade": check_thompson,
    "vade: pool": check_pool,
    "xrpo": check_growing_groups,
}
