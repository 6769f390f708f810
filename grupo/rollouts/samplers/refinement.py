"""Revisions of a group's best rollout, which is shown with the items that it lacks."""

from collections.abc import Callable, Mapping, Sequence

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env
from grupo.core.requires import Requires
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.hints import append_to_prompt
from grupo.rollouts.samplers.kept_answers import best_answers
from grupo.rollouts.samplers.rescue import AttemptPrompts, GenerationPrompt

REFINE = "\n\nAn answer: {answer}\n\nIt lacks:\n{items}\n\nWrite a better answer."


@component
class FailedItems:
    """The criteria of a task's rubric that a rollout does not meet.

    Args:
        column: Column of the rubric: a list of items with the fields `name` and `criterion`.
        reward_term: Name of the rubric's reward term. A criterion is not met if the reward term
            `<reward_term>/<name>` is below 1/2.
    """

    column: str = "rubric"
    reward_term: str = "rubric"

    @property
    def requires(self) -> Requires:
        return Requires(columns=(self.column,))

    def __call__(self, task: Task, rollout: Rollout) -> Sequence[str]:
        items: Sequence[Mapping[str, str]] = task.columns.get(self.column, ())
        return [
            item["criterion"]
            for item in items
            if rollout.reward_terms.get(f"{self.reward_term}/{item['name']}", 0.0) < 0.5
        ]


@component
class RefineBest:
    """Builds the prompt for one revision of the group's best rollout.

    The prompt lists the items that the rollout lacks. If it lacks none, there is no prompt.

    Args:
        lacks: Returns the items that a rollout of a task lacks, each as a text.
        instruction: Text at the end of the prompt, with the fields {answer} and {items}.
    """

    lacks: Callable[[Task, Rollout], Sequence[str]] = FailedItems()
    instruction: str = REFINE

    async def __call__(self, group: Group, env: Env, actor: Actor) -> AttemptPrompts:
        ranked = best_answers(group.rollouts)
        lacking_items = self.lacks(group.task, ranked[0]) if ranked else ()
        if not lacking_items:
            return AttemptPrompts()
        text = self.instruction.format(answer=ranked[0].text, items="\n".join(lacking_items))
        revision_task = append_to_prompt(group.task, text)
        return AttemptPrompts((GenerationPrompt(revision_task, (("refined",),)),))
