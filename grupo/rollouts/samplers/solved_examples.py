"""Further attempts with similar tasks that the policy has solved in the prompt."""

from dataclasses import replace

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env
from grupo.core.prompt_text import append_text, prepend_text
from grupo.core.ranges import PositiveInt
from grupo.core.requires import Requires
from grupo.core.types import Group, Observation, Task
from grupo.rollouts.samplers.rescue import AttemptPrompts, GenerationPrompt


@component
class SolvedExamples:
    """Builds the prompt with the most similar other tasks that the policy has solved.

    The prompt shows these tasks and the policy's answers. It is for as many rollouts as the group
    has. It is left out if it equals the task's prompt, because no similar task is solved and
    `instruction` is empty.

    Args:
        count: Largest number of solved tasks in the prompt.
        example: Text of a solved task, before the prompt, with the fields {prompt} and {answer}.
        instruction: Text at the end of the prompt; its field {attempt} is a random scored rollout
            of the group, of which all are incorrect.
    """

    count: PositiveInt = 2
    example: str = "{prompt}{answer}\n\n"
    instruction: str = ""

    @property
    def requires(self) -> Requires:
        return Requires(demonstrations=self.count)

    async def __call__(self, group: Group, env: Env, actor: Actor) -> AttemptPrompts:
        shown = self.prompt_of(group.task, self._instruction(group, actor))
        if shown == group.task.prompt:
            return AttemptPrompts()
        streams = tuple(("exemplified", i) for i in range(len(group.rollouts)))
        return AttemptPrompts((GenerationPrompt(replace(group.task, prompt=shown), streams),))

    def _instruction(self, group: Group, actor: Actor) -> str:
        if "{attempt}" not in self.instruction:
            return self.instruction
        scored = [rollout for rollout in group.rollouts if not rollout.error]
        attempt = actor.rng("shown").choice(scored)
        return self.instruction.replace("{attempt}", attempt.text)

    def prompt_of(self, task: Task, instruction: str) -> Observation:
        """The prompt between examples and an instruction."""
        examples = [
            self.example.format(prompt=solved.prompt, answer=solved.answer)
            for solved in task.demonstrations[: self.count]
        ]
        shown = prepend_text("".join(examples), task.prompt) if examples else task.prompt
        return append_text(shown, instruction) if instruction else shown
