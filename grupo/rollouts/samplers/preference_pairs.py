"""Groups of given answers: pairs of a chosen and a rejected answer, and answers with a label."""

from collections.abc import Sequence
from dataclasses import replace

from grupo.core.component import component
from grupo.core.demonstration import Demonstration
from grupo.core.interfaces import Actor, Env, score_group
from grupo.core.requires import Provides, Requires
from grupo.core.types import Group, Rollout, Task
from grupo.core.validation import describe_task
from grupo.tasks.preference_rows import answers_in, label_of
from grupo.util.errors import ConfigError

SOURCE = "preference"  # `Rollout.source` of given answers


@component
class PreferencePairs:
    """A group of given answers: the chosen ones with reward 1, the rejected ones with reward 0.

    The policy generates nothing. A column has one answer or a list of answers. An answer is a text,
    or the messages after the prompt (docs/preferences.md).

    Args:
        chosen: Column of the chosen answers.
        rejected: Column of the rejected answers.
        reward_terms: Reward terms to take from the environment. The environment's total reward is
            ignored: the reward is 1 or 0. With (), the environment scores nothing.
    """

    chosen: str = "chosen"
    rejected: str = "rejected"
    reward_terms: tuple[str, ...] = ()

    provides = Provides(given=True)

    @property
    def requires(self) -> Requires:
        return Requires(reward_terms=self.reward_terms)

    def validate_every_task(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for the first task with wrong answers.

        Its answers are missing, or it has one answer both as chosen and as rejected.
        """
        for task in tasks:
            self.chosen_and_rejected(task)

    def chosen_and_rejected(
        self, task: Task
    ) -> tuple[Sequence[Demonstration], Sequence[Demonstration]]:
        """The chosen and the rejected answers of a task."""
        chosen, rejected = answers_in(task, self.chosen), answers_in(task, self.rejected)
        if any(answer in rejected for answer in chosen):
            value = str(task.columns[self.chosen])[:60]
            raise ConfigError(
                f"tasks: {describe_task(task)} has {value!r} as its {self.chosen!r}, and the same"
                f" answer as its {self.rejected!r}. Allowed: different answers. Mend the row, or"
                " remove it."
            )
        return chosen, rejected

    def solve(self, task: Task) -> Sequence[Demonstration]:
        """All answers of a task, the chosen ones first; a held-out task may have none.

        The method belongs to the protocol `GivenAnswerSampler`.
        """
        if not self._has_column(task):
            return []
        chosen, rejected = self.chosen_and_rejected(task)
        return [*chosen, *rejected]

    def _has_column(self, task: Task) -> bool:
        return self.chosen in task.columns or self.rejected in task.columns

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        if not self._has_column(task):
            return Group(task, ())
        chosen, rejected = self.chosen_and_rejected(task)
        rollouts = given_rollouts(actor, [*chosen, *rejected])
        if self.reward_terms:
            rollouts = (await score_group(task, env, rollouts)).rollouts
        rewards = [1.0] * len(chosen) + [0.0] * len(rejected)
        return Group(task, _with_rewards(rollouts, rewards))


@component
class LabelledAnswers:
    """A group of one given answer. Its reward is its label: 1 for a good answer, else 0.

    The policy generates nothing.

    Args:
        completion: Column of the answer.
        label: Column of the label, true or false.
    """

    completion: str = "completion"
    label: str = "label"

    provides = Provides(given=True)

    def validate_every_task(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for the first task without an answer or a label."""
        for task in tasks:
            label_of(task, self.label)
            self.solve(task)

    def solve(self, task: Task) -> Sequence[Demonstration]:
        """The answer of a task, for the protocol `GivenAnswerSampler`."""
        return answers_in(task, self.completion)

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        answers = self.solve(task)
        labels = [float(label_of(task, self.label))] * len(answers)
        return Group(task, _with_rewards(given_rollouts(actor, answers), labels))


def given_rollouts(actor: Actor, answers: Sequence[Demonstration]) -> Sequence[Rollout]:
    """A rollout for each given answer; every turn of it ends with an end token."""
    return [replace(actor.demonstrate(answer), source=SOURCE) for answer in answers]


def _with_rewards(rollouts: Sequence[Rollout], rewards: Sequence[float]) -> tuple[Rollout, ...]:
    pairs = zip(rollouts, rewards, strict=True)
    return tuple(replace(rollout, reward=reward) for rollout, reward in pairs)
