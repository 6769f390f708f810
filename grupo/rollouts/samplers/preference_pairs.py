"""Given pairs of a chosen and a rejected answer, and given answers with a label."""

from collections.abc import Sequence
from dataclasses import replace

from grupo.core.component import component
from grupo.core.errors import ConfigError
from grupo.core.interfaces import Actor, Env, initial_observation, score_group
from grupo.core.requires import Provides, Requires
from grupo.core.types import Group, Rollout, Task
from grupo.core.validation import describe_task
from grupo.tasks.preference_rows import Answer, answers_in, label_of


@component
class PreferencePairs:
    """A group of given answers: the chosen ones with reward 1, the rejected ones with reward 0.

    The policy generates nothing. A column holds one answer or a list of answers, each a text or the
    messages after the prompt (docs/preferences.md).

    Args:
        chosen: Column of the chosen answers.
        rejected: Column of the rejected answers.
        reward_terms: Reward terms that are kept; the environment scores the answers if there are
            any, and its total reward is ignored.
    """

    chosen: str = "chosen"
    rejected: str = "rejected"
    reward_terms: tuple[str, ...] = ()

    provides = Provides(given=True)

    @property
    def requires(self) -> Requires:
        return Requires(reward_terms=self.reward_terms)

    def validate_every_task(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for the first task without two different answers."""
        for task in tasks:
            self.given_answers(task)

    def given_answers(self, task: Task) -> Sequence[tuple[Answer, float]]:
        """The answers of a task with their rewards, the chosen ones first."""
        chosen, rejected = answers_in(task, self.chosen), answers_in(task, self.rejected)
        if equal := [answer for answer in chosen if answer in rejected]:
            text = equal[0][-1][1][:60]
            raise ConfigError(
                f"tasks: {describe_task(task)} has {text!r} both as its {self.chosen!r} and as its"
                f" {self.rejected!r}. Allowed: different answers. Mend the row, or remove it."
            )
        return [*((answer, 1.0) for answer in chosen), *((answer, 0.0) for answer in rejected)]

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        answers = self.given_answers(task)
        rollouts = [await given_rollout(task, env, actor, answer) for answer, _ in answers]
        if self.reward_terms:
            rollouts = (await score_group(task, env, rollouts)).rollouts
        rewards = (reward for _, reward in answers)
        pairs = zip(rollouts, rewards, strict=True)
        return Group(task, tuple(replace(rollout, reward=reward) for rollout, reward in pairs))


@component
class LabelledAnswers:
    """A group of one given answer, whose reward is its label: 1 if it is good, else 0.

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
            self.given_answers(task)

    def given_answers(self, task: Task) -> Sequence[tuple[Answer, float]]:
        """The answer of a task with its reward."""
        label = float(label_of(task, self.label))
        return [(answer, label) for answer in answers_in(task, self.completion)]

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        rollouts = [
            replace(await given_rollout(task, env, actor, answer), reward=reward)
            for answer, reward in self.given_answers(task)
        ]
        return Group(task, tuple(rollouts))


async def given_rollout(
    task: Task, env: Env, actor: Actor, answer: Answer, source: str = "preference"
) -> Rollout:
    """A rollout with the given answer, each of whose turns ends with an end token."""
    rollout = Rollout(source=source)
    for messages, text in answer:
        observation = messages or await initial_observation(task, env)
        action = await actor.append_unsampled(rollout, observation, text)
        rollout = rollout.append_turn(observation, action)
    return rollout
