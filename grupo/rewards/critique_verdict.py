"""Rewards of critiques: is the verdict right, and does the critique help?

Critique-RL, Xi et al., 2025, arXiv:2510.24320.
"""

from collections.abc import Mapping, Sequence

from grupo.core.component import check_field, component
from grupo.core.paper import Paper, Source
from grupo.core.ranges import NonEmptyString, NonNegativeFloat
from grupo.core.types import Rollout, Task
from grupo.rewards.base import PerRolloutReward, Reward, RewardValue, SelfTimedReward, scored_values
from grupo.util.errors import ConfigError

RIGHT = "Correctness of the final answer: Correct"
WRONG = "Correctness of the final answer: Wrong"


@component
class VerdictMatch(PerRolloutReward):
    """1 if a critique's verdict on an earlier answer is true, -1 if it is false or missing.

    A critique with both verdicts has none.

    Args:
        column: Column of the tasks that holds whether the criticised answer is correct: true,
            false, 1 or 0.
        right: Verdict on a correct answer.
        wrong: Verdict on an incorrect answer.

    Raises:
        ConfigError: One verdict contains the other.

    >>> from grupo.rewards.base import answer_rollout
    >>> task = Task("k", "1 + 1 = 3", columns={"first_correct": False})
    >>> VerdictMatch().score(task, answer_rollout(task, f"1 + 1 is 2. {WRONG}"))
    1.0
    """

    column: NonEmptyString = "first_correct"
    right: NonEmptyString = RIGHT
    wrong: NonEmptyString = WRONG

    def __post_init__(self) -> None:
        is_apart = self.right not in self.wrong and self.wrong not in self.right
        check_field(self, "right", is_apart, f"a text that does not contain {self.wrong!r}")

    @property
    def reward_range(self) -> tuple[float, float]:
        return (-1.0, 1.0)

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a task whose column is neither true nor false."""
        for task in tasks:
            value = task.columns.get(self.column)
            if value not in (True, False):  # 1 and 0 are equal to them
                raise ConfigError(
                    f"tasks: {task.location or task.key}, column {self.column!r}: {value!r}."
                    " Allowed: true, false, 1 or 0."
                )

    def score(self, task: Task, rollout: Rollout) -> float:
        verdicts = (self.right in rollout.text, self.wrong in rollout.text)
        is_correct = bool(task.columns[self.column])
        return 1.0 if verdicts == (is_correct, not is_correct) else -1.0


@component
class HelpfulCritique(SelfTimedReward):
    """r_help + bonus if the verdict is true, otherwise -1.

    r_help is the inner reward, such as that of the answer which `Downstream` obtains with the
    critique. It is computed for critiques with a true verdict alone. The further number `verdict`
    is 1 for them, and 0 for the others.

    Args:
        inner: r_help.
        verdict: Decides whether the verdict is true.
        bonus: Added to r_help (authors' code: 0.2).
    """

    inner: Reward
    verdict: VerdictMatch = VerdictMatch()
    bonus: NonNegativeFloat = 0.2

    async def __call__(
        self, task: Task, rollouts: Sequence[Rollout]
    ) -> Sequence[RewardValue | Exception]:
        is_true = [self.verdict.score(task, rollout) > 0 for rollout in rollouts]
        kept = [rollout for rollout, is_kept in zip(rollouts, is_true, strict=True) if is_kept]
        values = iter(await scored_values(self.inner, task, kept) if kept else ())
        return [
            self._with_bonus(next(values)) if is_kept else {"score": -1.0, "verdict": 0.0}
            for is_kept in is_true
        ]

    def _with_bonus(self, value: RewardValue | Exception) -> RewardValue | Exception:
        """The reward of a critique with a true verdict; an exception, or no value, as it is."""
        if value is None or isinstance(value, Exception):
            return value
        further = dict(value) if isinstance(value, Mapping) else {"score": value}
        return {**further, "score": further["score"] + self.bonus, "verdict": 1.0}


PAPER = Paper(
    title="Critique-RL: Training Language Models for Critiquing through Two-Stage Reinforcement "
    "Learning",
    use="A second model shall find and mend the errors of a policy that stays as it is.",
    tags=("reward", "hints"),
    kind="pipeline",
    catalogue=("critique-rl",),
    checked=("golden",),
    source=Source("code", "WooooDyy/Critique-RL: RL/Critique-RL/reward/reward_func.py"),
    missing=(
        "A run: neither stage was trained, on a real model or any other; verdict accuracy of both"
        " stages against the second alone, and refined against first answers, are not shown.",
        "A pipeline that collects first answers and their correctness for the column.",
        "The variants r_delta and r_correct of r_help.",
    ),
    deviations=(
        "A critique with both verdicts counts as one without; in the release the true one of them"
        " is enough.",
        "The inner reward is not computed for critiques with a false verdict, whose reward is -1"
        " whatever it is; the release refines all answers.",
        "With `Downstream`, refined answers are greedy if the model is; the release samples them"
        " in training at a temperature of 0.5.",
    ),
    shown=(
        "tests/rewards/test_critique_verdict.py::test_the_first_stage_rewards_true_verdicts",
        "tests/rewards/test_critique_verdict.py"
        "::test_the_second_stage_rewards_help_behind_a_true_verdict",
    ),
)
