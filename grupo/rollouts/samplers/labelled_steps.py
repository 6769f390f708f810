"""Groups of given answers whose steps have labels, for process reward models."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from grupo.core.component import component
from grupo.core.demonstration import Demonstration
from grupo.core.interfaces import Actor, Env
from grupo.core.ranges import NonEmptyString
from grupo.core.requires import Provides
from grupo.core.types import Group, Rollout, Task
from grupo.core.validation import describe_task
from grupo.rollouts.samplers.preference_pairs import given_rollouts
from grupo.rollouts.samplers.prefix_value import with_values
from grupo.tasks.preference_rows import answers_in, label_of
from grupo.util.errors import ConfigError


@component
class LabelledSteps:
    """A group of one given answer with a label for each of its steps, as in TRL's PRMTrainer.

    The policy generates nothing. Two step values are set at the item behind each step, and for the
    last step at the last item: `prefix_cut` is 1, and `prefix_value` is the label. The loss
    `StepCrossEntropy` trains a head on them. The reward is 1 if the answer is good, otherwise 0. A
    task whose labels and whose judge disagree has an empty group.

    Args:
        completions: Column of the steps, a list of texts.
        labels: Column of their labels: true or false, or numbers from 0 to 1, such as the shares of
            completions of the step that solve the task.
        separator: Text between two steps.
        up_to_first_error: Whether steps behind the first one with a label below 1/2 have no step
            values.
        judged: Column with the number of the first wrong step that a judge named, from 1, or 0 if
            it named none; "" for labels without a judge.
        outcome: Column with the label of the final answer; "" if an answer is good whose steps all
            have labels of 1/2 or more.
    """

    completions: NonEmptyString = "completions"
    labels: NonEmptyString = "labels"
    separator: NonEmptyString = "\n"
    up_to_first_error: bool = True
    judged: str = ""
    outcome: str = ""

    provides = Provides(given=True)

    def validate_every_task(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for the first task with wrong steps, labels or judgements."""
        for task in tasks:
            self.solve(task)
            self._reward(task)
            self._is_agreed(task)

    def solve(self, task: Task) -> Sequence[Demonstration]:
        """The answer of a task, for the protocol `GivenAnswerSampler`."""
        text = self.separator.join(self._steps(task))
        return answers_in(
            replace(task, columns={**task.columns, self.completions: text}), self.completions
        )

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        if not self._is_agreed(task):
            return Group(task, ())
        (rollout,) = given_rollouts(actor, self.solve(task))
        values = dict(
            zip(self._cuts(task, rollout, actor), self._trained_labels(task), strict=False)
        )
        return Group(task, (replace(with_values(rollout, values), reward=self._reward(task)),))

    def _steps(self, task: Task) -> Sequence[str]:
        steps = task.columns.get(self.completions)
        is_list = isinstance(steps, list | tuple) and bool(steps)
        if not is_list or not all(isinstance(step, str) and step.strip() for step in steps or ()):
            self._refuse(task, self.completions, "a list of texts, one for each step")
        return steps or ()

    def _labels(self, task: Task) -> Sequence[float]:
        labels, count = task.columns.get(self.labels), len(self._steps(task))
        is_list = isinstance(labels, list | tuple) and len(labels) == count
        if not is_list or not all(
            isinstance(label, bool | int | float) and 0 <= label <= 1 for label in labels or ()
        ):
            self._refuse(task, self.labels, f"{count} labels, one for each step, from 0 to 1")
        return [float(label) for label in labels or ()]

    def _first_error(self, task: Task) -> int:
        """Number of the first step with a label below 1/2, from 1; 0 if there is none."""
        return next((i for i, label in enumerate(self._labels(task), 1) if label < 0.5), 0)

    def _trained_labels(self, task: Task) -> Sequence[float]:
        labels, first = self._labels(task), self._first_error(task)
        return labels[:first] if self.up_to_first_error and first else labels

    def _is_agreed(self, task: Task) -> bool:
        """Whether the judge names the same first wrong step as the labels."""
        if not self.judged:
            return True
        place, count = task.columns.get(self.judged), len(self._steps(task))
        if not isinstance(place, int) or not 0 <= place <= count:
            self._refuse(task, self.judged, f"a step from 1 to {count}, or 0 for none")
        return place == self._first_error(task)

    def _reward(self, task: Task) -> float:
        if self.outcome:
            return float(label_of(task, self.outcome))
        return float(not self._first_error(task))

    def _cuts(self, task: Task, rollout: Rollout, actor: Actor) -> Sequence[int]:
        """For each step, the number of items of the answer with which it has ended."""
        lengths = [len(step) + len(self.separator) for step in self._steps(task)]
        ends = list(accumulate(lengths))[:-1]
        last, before = rollout.last_response, rollout.length - len(rollout.last_response.items)
        texts = (actor.truncate(rollout, n).last_response.text for n in range(len(last.items)))
        sizes = [len(text) for text in texts]
        cuts = [next((n for n, size in enumerate(sizes) if size >= end), 0) for end in ends]
        cuts = [before + cut for cut in cuts] + [rollout.length - 1]
        if len(set(cuts)) < len(cuts):
            self._refuse(task, self.completions, "steps that end at different tokens")
        return cuts

    def _refuse(self, task: Task, column: str, allowed: str) -> None:
        value = task.columns.get(column)
        shown = f"no {column!r}" if value is None else f"{str(value)[:60]!r} as its {column!r}"
        raise ConfigError(f"tasks: {describe_task(task)} has {shown}. Allowed: {allowed}.")
