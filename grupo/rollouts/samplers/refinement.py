"""Revisions of a group's best rollout, which is shown with the criteria that it does not meet.

`RefineBest` is the `build_prompts` of a `RescueAttempt` in a `Rescue` sampler. Such a builder
returns `RescuePrompts`: prompts that the policy answers, rollouts that are ready, or both.
"""

from collections.abc import Callable, Mapping, Sequence

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env
from grupo.core.requires import Requires
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.hints import append_to_prompt
from grupo.rollouts.samplers.merge_rules import ranked_answers
from grupo.rollouts.samplers.rescue import GenerationPrompt, RescuePrompts

REFINE = "\n\nAn answer: {answer}\n\nIt lacks:\n{items}\n\nWrite a better answer."


@component
class FailedItems:
    """The criteria of a task's rubric that a rollout does not meet.

    Args:
        column: Column of the rubric: a list of criteria with the fields `name` and `criterion`.
        reward_term: Name of the rubric's reward term. A criterion is not met if the reward term
            `<reward_term>/<name>` is below 1/2.
    """

    column: str = "rubric"
    reward_term: str = "rubric"

    @property
    def requires(self) -> Requires:
        return Requires(columns=(self.column,))

    def __call__(self, task: Task, rollout: Rollout) -> Sequence[str]:
        rubric: Sequence[Mapping[str, str]] = task.columns.get(self.column, ())
        return [
            entry["criterion"]
            for entry in rubric
            if rollout.reward_terms.get(f"{self.reward_term}/{entry['name']}", 0.0) < 0.5
        ]


@component
class RefineBest:
    """Builds the prompt for one revision of the group's best rollout.

    The prompt lists the criteria that the rollout does not meet. If it meets all, there is no
    prompt.

    Args:
        lacks: Returns the criteria that a rollout of a task does not meet, each as a text.
        instruction: Text at the end of the prompt. Its field {answer} is the rollout's text, and
            its field {items} is the list of criteria.
    """

    lacks: Callable[[Task, Rollout], Sequence[str]] = FailedItems()
    instruction: str = REFINE

    async def __call__(self, group: Group, env: Env, actor: Actor) -> RescuePrompts:
        best_first = ranked_answers(group.rollouts)  # without the rollouts that could not be scored
        unmet_criteria = self.lacks(group.task, best_first[0]) if best_first else ()
        if not unmet_criteria:
            return RescuePrompts()
        text = self.instruction.format(answer=best_first[0].text, items="\n".join(unmet_criteria))
        prompt = GenerationPrompt(
            task=append_to_prompt(group.task, text),
            rng_labels=(("refined",),),  # a random stream for each rollout, here one
        )
        return RescuePrompts(prompts=(prompt,))
