"""Dynamic sampling: the tasks of each round of a step, and the groups that it trains on, in order.

The scripts have groups that are just kept and groups that are just dropped.
"""

from collections.abc import Callable, Sequence
from functools import partial

from grupo.core.types import Group as SampledGroup
from grupo.core.types import Rollout, Task
from grupo.method import Method
from grupo.methods.confucius3_math import confucius3_math
from grupo.methods.dapo import dapo
from grupo.methods.dler import dler
from grupo.methods.forking_tokens import forking_tokens
from grupo.methods.online_difficulty_filtering import online_difficulty_filtering
from grupo.methods.ppl_position import ppl_position
from grupo.methods.prime import prime
from grupo.methods.prorl import prorl
from grupo.methods.prs_vspo import prs_vspo
from grupo.methods.qae import qae
from grupo.methods.thinkdial import thinkdial
from grupo.methods.treepo import treepo
from grupo.rollouts.curricula import CurriculumRequest
from tests.reference.steps.collecting import (
    assert_frequencies,
    collect_steps,
    frequencies,
    make_history,
    make_tasks,
    rollout,
    stream,
)
from tests.reference.steps_plain.dynamic_sampling import (
    Group,
    Keeps,
    accuracy_within,
    completed,
    differs,
    differs_within,
    dynamic_sampling,
    value_sampling,
)


def outcomes(right: int, of: int) -> Group:
    """A group with `right` correct rollouts."""
    return [1.0] * right + [0.0] * (of - right), [1] * of


Pools = tuple[Sequence[Group], Sequence[Group]]  # groups that are kept, and that are dropped
MIXED = ([outcomes(1, 4), outcomes(3, 4), outcomes(2, 4)], [outcomes(0, 4), outcomes(4, 4)])
TENTHS = ([outcomes(2, 10), outcomes(8, 10)], [outcomes(1, 10), outcomes(9, 10)])
EIGHTHS = ([outcomes(2, 8), outcomes(6, 8)], [outcomes(1, 8), outcomes(8, 8), outcomes(0, 8)])
WITHIN_10 = (
    [([1.0, 1.0, 1.0], [10, 11, 3]), ([1.0, 0.0], [10, 10]), ([1.0, 1.0, 0.0], [4, 12, 4])],
    [([1.0, 0.0], [11, 4]), ([1.0, 1.0], [10, 4]), ([1.0, 1.0], [12, 11]), ([0.0, 0.0], [4, 12])],
)

# K is a group that is kept, D one that is dropped, in the order in which they are drawn; a row is a
# step. Its first round fills it, or later ones do, or its rounds end with one group or with none.
NUM_GROUPS = 3
MAX_ROUNDS = 10
SCRIPT = (
    "KKK",
    "KDD" + "DK" + "K",
    "DDD" + "KDD" + "DK" + "D" + "K",
    "KDD" + "DD" * 9,
    "DDD" * 10,
    "KDK" + "D" * 8 + "K",
    "DKK" + "K",
)


def scripted_groups(pools: Pools) -> list[Group]:
    """The groups of the script in the order in which they are drawn, from the pools in turn."""
    seen = {"K": 0, "D": 0}
    groups = []
    for letter in "".join(SCRIPT):
        pool = pools["KD".index(letter)]
        groups.append(pool[seen[letter] % len(pool)])
        seen[letter] += 1
    return groups


def check_refilling(method: Method, keeps: Keeps, pools: Pools) -> None:
    """Compare the rounds and the groups of each step of the script."""
    groups = scripted_groups(pools)
    expected = dynamic_sampling(
        groups, keeps, num_groups=NUM_GROUPS, max_rounds=MAX_ROUNDS, num_steps=len(SCRIPT)
    )
    if pools is EIGHTHS:
        expected = completed(expected, groups, 0.25, 0.75, NUM_GROUPS)
    assert sum(len(r) for step in expected for r in step.rounds) == len(groups)
    tasks = make_tasks(len(groups))
    place = {task.key: i for i, task in enumerate(stream(tasks, len(groups)))}

    def answer(task: Task) -> list[Rollout]:
        rewards, lengths = groups[place[task.key]]
        return [rollout(r, n) for r, n in zip(rewards, lengths, strict=True)]

    steps = collect_steps(method, answer, tasks, num_groups=NUM_GROUPS, num_steps=len(SCRIPT))
    for step, found in zip(expected, steps, strict=True):
        assert [[place[key] for key in keys] for keys in found.rounds] == step.rounds
        assert _places(found.collected.kept_groups, place) == step.trained


def check_stream() -> None:
    """Every task comes once in an epoch, whatever the number of tasks that a step draws."""
    tasks = make_tasks(7)
    keys = [task.key for task in stream(tasks, 28)]
    for epoch in range(4):
        assert sorted(keys[7 * epoch : 7 * epoch + 7]) == [task.key for task in tasks]


def _places(groups: Sequence[SampledGroup], place: dict[str, int]) -> list[int]:
    return [place[group.task.key] for group in groups]


VSPO_REWARDS = {  # the rewards of each task in the steps, the last entry for all later groups
    "0": ([1.0, 1.0], [1.0, 0.0]),
    "1": ([0.5, 0.0], [0.5, 0.5], [0.25, 0.0]),
    "2": ([0.0, 0.0],),
    "3": ([1.0, 0.5], [0.0, 0.0]),
    "4": ([0.0, 0.0], [0.75, 0.0]),
}


def check_value_sampling() -> None:
    """Compare V, the number of tasks of each round, the trained groups and their copies."""
    method = prs_vspo()
    tasks = make_tasks(5)
    history = make_history(method)
    seen = dict.fromkeys(VSPO_REWARDS, 0)
    latest: dict[int, Sequence[float]] = {}

    def answer(task: Task) -> list[Rollout]:
        script = VSPO_REWARDS[task.key]
        rewards = script[min(seen[task.key], len(script) - 1)]
        seen[task.key] += 1
        return [rollout(r) for r in rewards]

    refilled = copied = 0
    for _ in range(12):
        (found,) = collect_steps(method, answer, tasks, num_groups=4, num_steps=1, history=history)
        sampled = iter(found.collected.sampled_groups)
        rounds = [[next(sampled) for _ in keys] for keys in found.rounds]
        generated = [[(int(g.task.key), g.rewards) for g in groups] for groups in rounds]
        expected = value_sampling(
            generated, latest, num_tasks=5, num_groups=4, max_rounds=10, reward_max=1.0
        )
        assert [len(keys) for keys in found.rounds] == expected.counts
        for values, drawn in zip(expected.values, generated[1:], strict=True):
            assert all(values[task] > 0 for task, _ in drawn)
        kept = found.collected.kept_groups
        order = [r.index for g in found.collected.sampled_groups for r in g.rollouts[:1]]
        trained = [order.index(g.rollouts[0].index) for g in kept]
        assert trained == expected.trained
        assert [g.rollouts[0].reward_terms["copies"] for g in kept] == expected.copies
        refilled += len(found.rounds) > 1
        copied += max(expected.copies) > 1
    assert refilled
    assert copied


def check_value_probabilities() -> None:
    """Compare the probability of each draw with V / sum V."""
    method = prs_vspo()
    tasks = make_tasks(4)
    history = make_history(method)
    earlier = {0: (0.5, 0.0), 1: (1.0, 0.0), 2: (1.0, 1.0), 3: (0.25, 0.0)}
    history.append_groups(0, [_group(tasks[i], r) for i, r in earlier.items()])
    now = {3: (0.0, 0.0, 1.0)}  # the latest group of the task is one of this step
    groups = tuple(_group(tasks[i], r) for i, r in now.items())
    expected = value_sampling(
        [list(now.items()), [(0, (0.5, 0.0))]],
        dict(earlier),
        num_tasks=4,
        num_groups=2,
        max_rounds=10,
        reward_max=1.0,
    ).values[0]

    def draw(seed: int) -> list[str]:
        asked = CurriculumRequest(tasks, history, 2, seed, round_index=1, groups=groups)
        return [task.key for task in method.curriculum(asked)]

    share = [v / sum(expected) for v in expected]
    law = {
        (str(i), str(j)): share[i] * share[j]
        for i in range(4)
        for j in range(4)
        if share[i] * share[j]
    }
    assert_frequencies(frequencies(draw, 4000), law, 4000)


def _group(task: Task, rewards: Sequence[float]) -> SampledGroup:
    return SampledGroup(task, tuple(rollout(r) for r in rewards))


CHECKS: dict[str, Callable[[], None]] = {
    "confucius3_math": partial(check_refilling, confucius3_math(), differs, MIXED),
    "dapo": partial(check_refilling, dapo(64, 16), differs, MIXED),
    "dapo: epochs": check_stream,
    "dler": partial(check_refilling, dler(max_length=10), differs_within(10), WITHIN_10),
    "forking_tokens": partial(check_refilling, forking_tokens(64, 16), differs, MIXED),
    "online_difficulty_filtering": partial(
        check_refilling, online_difficulty_filtering(), accuracy_within(0.25, 0.75), EIGHTHS
    ),
    "ppl_position": partial(check_refilling, ppl_position(), differs, MIXED),
    "prime": partial(check_refilling, prime(), accuracy_within(0.2, 0.8), TENTHS),
    "prorl": partial(check_refilling, prorl(), differs, MIXED),
    "prs_vspo": check_value_sampling,
    "prs_vspo: probabilities": check_value_probabilities,
    "qae": partial(check_refilling, qae(), differs, MIXED),
    "thinkdial": partial(check_refilling, thinkdial(), differs, MIXED),
    "treepo": partial(check_refilling, treepo(), differs, MIXED),
}
