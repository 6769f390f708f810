"""The environments of the table of biases, and the settings in which methods are measured."""

from dataclasses import dataclass

from grupo.evidence.exact.environment import FiniteEnv, FiniteTask


def two_answers(success_probability: float) -> FiniteTask:
    """A task with a correct and a wrong answer of one token.

    >>> two_answers(0.25).rewards
    (1.0, 0.0)
    """
    return FiniteTask((1.0, 0.0), (success_probability, 1 - success_probability))


# a hard, a medium and an easy task
DIFFICULTIES = FiniteEnv(tuple(map(two_answers, (0.05, 0.4, 0.9))))
# one task, three answers of one token
GRADED = FiniteEnv((FiniteTask(rewards=(0.0, 0.3, 1.0), probabilities=(0.3, 0.5, 0.2)),))
# one task: correct answers of 1 and 3 tokens, wrong ones of 2 and 3
LENGTHS = FiniteEnv(
    (
        FiniteTask(
            rewards=(1.0, 0.0, 1.0, 0.0),
            probabilities=(0.2, 0.3, 0.25, 0.25),
            answers=((0,), (1, 0), (1, 1, 0), (1, 1, 1)),
        ),
    )
)


GROUP_SIZE = 8


@dataclass(frozen=True)
class BiasSetting:
    """Environment, group size and policy that a gradient is measured for.

    Args:
        env: The environment.
        group_size: Rollouts in a group.
        moved: Largest change of a logit since the groups were sampled, in nats.
    """

    env: FiniteEnv
    group_size: int = GROUP_SIZE
    moved: float = 0.0


# ratios leave 0.8 to 1.2 for the hard task's correct answer and the easy task's wrong one only
MOVED = 0.15
SETTINGS = {
    "pairs": BiasSetting(DIFFICULTIES, group_size=2),
    "fours": BiasSetting(DIFFICULTIES, group_size=4),
    "tasks": BiasSetting(DIFFICULTIES),
    "graded": BiasSetting(GRADED),
    "lengths": BiasSetting(LENGTHS),
    "moved": BiasSetting(DIFFICULTIES, moved=MOVED),
}
FIRST_UPDATE = ("tasks", "graded", "lengths")  # settings of the first update, with that group size
