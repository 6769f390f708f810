"""Prompts of rescue attempts, which show similar tasks that the policy has solved."""

from dataclasses import replace

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env
from grupo.core.prompt_text import append_text, prepend_text
from grupo.core.ranges import PositiveInt
from grupo.core.requires import Requires
from grupo.core.types import Group, Observation, Task
from grupo.rollouts.samplers.rescue import GenerationPrompt, RescuePrompts


@component
class SolvedExamples:
    """Builds the prompt with examples: the most similar tasks that the policy has solved.

    The prompt gets as many rollouts as the group has. If no similar task is solved and
    `instruction` is "", there is no prompt.

    Args:
        count: Largest number of solved tasks in the prompt.
        example: Text of a solved task, before the prompt, with the fields {prompt} and {answer}.
        instruction: Text at the end of the prompt; {attempt} is a random scored rollout.
    """

    count: PositiveInt = 2
    example: str = "{prompt}{answer}\n\n"
    instruction: str = ""

    @property
    def requires(self) -> Requires:
        return Requires(demonstrations=self.count)

    async def __call__(self, group: Group, env: Env, actor: Actor) -> RescuePrompts:
        prompt = self.prompt_of(group.task, self._instruction(group, actor))
        if prompt == group.task.prompt:
            return RescuePrompts()
        task = replace(group.task, prompt=prompt)
        rng_labels = tuple(("exemplified", i) for i in range(len(group.rollouts)))
        return RescuePrompts((GenerationPrompt(task, rng_labels),))

    def _instruction(self, group: Group, actor: Actor) -> str:
        if "{attempt}" not in self.instruction:
            return self.instruction
        scored = [rollout for rollout in group.rollouts if not rollout.error]
        attempt = actor.rng("shown").choice(scored)
        return self.instruction.replace("{attempt}", attempt.text)

    def prompt_of(self, task: Task, instruction: str) -> Observation:
        """The task's prompt with examples before it and an instruction after it."""
        examples = [
            self.example.format(prompt=solved.prompt, answer=solved.answer)
            for solved in task.demonstrations[: self.count]
        ]
        prompt = prepend_text("".join(examples), task.prompt) if examples else task.prompt
        return append_text(prompt, instruction) if instruction else prompt
