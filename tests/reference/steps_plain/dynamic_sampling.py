"""Dynamic sampling: groups that a filter drops are replaced by groups of further tasks.

Compared: the tasks that each round of a step draws, and the groups that the step trains on, in
order. A group is (rewards, lengths); it has a position in the stream of drawn tasks, from 0.

Written from
    verl-project/verl-recipe, dapo/dapo_ray_trainer.py (`filter_groups`), lines 218 to 277, for
        DAPO and the methods that take its recipe: a group stays if the standard deviation of its
        metric is above 0; kept groups are appended in the order in which they were generated; a
        full step is cut to the batch size; the number of rounds is limited;
    multimodal-art-projection/TreePO, recipe/treepo/run_treepo_train.sh (accuracy, 10 rounds);
    PRIME-RL/PRIME, training/verl/trainer/ppo/ray_trainer.py, `filter`, and run_prime_main.sh
        (accuracy from 0.2 to 0.8, both ends included);
    NVlabs/DLER, dler_slurm.sh (`seq_reward`), and the record of dler for answers beyond the limit;
    the records of online_difficulty_filtering (low <= p <= high), and of confucius3_math,
        forking_tokens, prorl, qae and thinkdial, which take DAPO's; their papers were not opened;
    abstract of arXiv:2512.07478 and the record of prs_vspo, for VSPO.

Our reading, as the methods' records state it: a round draws as many tasks as groups are missing,
and after the last round a step trains on the groups that it has.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

Group = tuple[Sequence[float], Sequence[int]]  # rewards and lengths of the rollouts
Keeps = Callable[[Group], bool]


@dataclass(frozen=True)
class Step:
    """A step of dynamic sampling; groups are named by their positions in the stream.

    Args:
        rounds: The groups that each round generates.
        trained: The groups that the step trains on, in order.
    """

    rounds: list[list[int]]
    trained: list[int]


def differs(group: Group) -> bool:
    """The rewards have a standard deviation above 0."""
    return bool(np.std(group[0]) > 0)


def differs_within(max_length: int) -> Keeps:
    """The rewards differ once those of answers beyond `max_length` tokens are 0."""

    def keeps(group: Group) -> bool:
        rewards, lengths = map(np.asarray, group)
        return bool(np.std(np.where(lengths > max_length, 0.0, rewards)) > 0)

    return keeps


def accuracy_within(low: float, high: float) -> Keeps:
    """The fraction of correct rollouts lies in the closed interval."""

    def keeps(group: Group) -> bool:
        return low - 1e-12 <= np.mean(group[0]) <= high + 1e-12

    return keeps


def dynamic_sampling(
    stream: Sequence[Group], keeps: Keeps, *, num_groups: int, max_rounds: int, num_steps: int
) -> list[Step]:
    """The steps of a run whose tasks come from a stream."""
    drawn = 0
    steps = []
    for _ in range(num_steps):
        rounds: list[list[int]] = []
        kept: list[int] = []
        while len(kept) < num_groups and len(rounds) < max_rounds:
            missing = num_groups - len(kept)
            rounds.append(list(range(drawn, drawn + missing)))
            drawn += missing
            kept += [i for i in rounds[-1] if keeps(stream[i])]
        steps.append(Step(rounds, kept))
    return steps


def completed(
    steps: Sequence[Step], stream: Sequence[Group], low: float, high: float, num_groups: int
) -> list[Step]:
    """The steps, each completed with the dropped groups closest to the interval of accuracies.

    Of two equally close groups the earlier one is taken. Our reading: the record states this for
    Online Difficulty Filtering, whose paper stacks groups instead.
    """
    result = []
    for step in steps:
        others = [i for drawn in step.rounds for i in drawn if i not in step.trained]
        accuracy = {i: np.mean(stream[i][0]) for i in others}
        distance = {i: max(low - accuracy[i], accuracy[i] - high) for i in others}
        closest = sorted(others, key=lambda i: (round(distance[i], 9), i))
        missing = num_groups - len(step.trained)
        result.append(Step(step.rounds, step.trained + closest[:missing]))
    return result


def task_value(rewards: Sequence[float], reward_max: float) -> float:
    """V = (reward_max - mean) x standard deviation: difficulty times uncertainty."""
    return float((reward_max - np.mean(rewards)) * np.std(rewards))


@dataclass(frozen=True)
class ValueStep:
    """A step of VSPO.

    Args:
        counts: Number of tasks that each round draws.
        values: V of each task before each round but the first.
        trained: Positions, in the order of generation, of the groups that are trained on.
        copies: Number of groups of the same task among those, for each of them.
    """

    counts: list[int]
    values: list[list[float]]
    trained: list[int]
    copies: list[int]


def value_sampling(
    generated: Sequence[Sequence[tuple[int, Sequence[float]]]],
    latest: dict[int, Sequence[float]],
    *,
    num_tasks: int,
    num_groups: int,
    max_rounds: int,
    reward_max: float,
) -> ValueStep:
    """A step of VSPO, from the groups (task, rewards) that its rounds have generated.

    The first round draws from all tasks. A later round draws as many tasks as informative groups
    are missing, each with probability V / sum V, the same one perhaps several times. The step ends
    when it has all groups, when no task has a value, or after the last round. The law of the draw
    and the division by the copies are our reading, as the record states.

    Args:
        generated: The groups of each round.
        latest: The rewards of the latest group of each task; brought up to date.
        num_tasks: Number of tasks, named from 0.
        num_groups: Groups of a step.
        max_rounds: Largest number of rounds.
        reward_max: Largest reward of a rollout.
    """
    counts, values = [], []
    groups: list[tuple[int, Sequence[float]]] = []
    for number, drawn in enumerate(generated):
        missing = num_groups - sum(differs((r, ())) for _, r in groups)
        if number > 0:
            values.append([task_value(latest.get(t, (0.0,)), reward_max) for t in range(num_tasks)])
        counts.append(missing)
        groups += drawn
        latest |= dict(drawn)
    missing = num_groups - sum(differs((r, ())) for _, r in groups)
    last = [task_value(latest.get(t, (0.0,)), reward_max) for t in range(num_tasks)]
    if missing and len(generated) < max_rounds and sum(last):
        counts.append(missing)  # one more round is due
    trained = [i for i, (_, r) in enumerate(groups) if differs((r, ()))][:num_groups]
    tasks = [groups[i][0] for i in trained]
    return ValueStep(counts, values, trained, [tasks.count(t) for t in tasks])
