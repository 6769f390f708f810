"""Rewrites of a task by the policy: a hard task is simplified, a medium one is varied."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from grupo.core.component import check_field, component
from grupo.core.dynamic_number import DynamicNumber
from grupo.core.interfaces import Actor, Env, initial_observation
from grupo.core.numbers import Fraction, NumberOrSchedule
from grupo.core.paper import Paper, Source
from grupo.core.prompt_text import prompt_as_text
from grupo.core.ranges import PositiveInt
from grupo.core.requires import Provides
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.hints import append_to_prompt, leaks_answer
from grupo.rollouts.samplers.wrapper import SamplerWrapper

PART = "part"  # name of the reward term
SIMPLIFY = "\n\nReword this problem so that it is simpler and has the same answer."
VARY = "\n\nReword this problem differently, with the same answer."


def whole_text(text: str) -> str:
    """The text without spaces at its ends."""
    return text.strip()


@component
class Rewritten(SamplerWrapper):
    """Adds the policy's rewrites of a task to the group, and answers to these rewrites.

    The accuracy of a task is the fraction of correct rollouts in the group. A task with an accuracy
    of at most `hard` is simplified. Another task with an accuracy of at most `medium` is varied. An
    easier task is not rewritten. A rewrite has the reference answer of its task. The answers to a
    rewrite are kept if some of them are correct and some are not.

    The reward of a rewrite is the accuracy of its answers minus the accuracy of the task. A rewrite
    that adds the reference answer to the prompt is not answered, and its answers count as wrong.
    The source of rewrites is "rewrite".

    The reward term `part` is 0 for answers to the task, 1 for rewrites, and 2, 3, … for the answers
    to the first, the second, … rewrite. `GroupedBy(estimator, ByRewardTerm("part"))` compares only
    rollouts of the same part. CLPO, Zhang et al. (arXiv:2509.25004).

    Args:
        inner: The sampler of the answers.
        rewrites: Number of rewrites of a task.
        hard: Largest accuracy of a hard task.
        medium: Largest accuracy of a medium task.
        simplify: Text at the end of the prompt for rewrites of a hard task.
        vary: Text at the end of the prompt for rewrites of a medium task.
        parse: Returns the new prompt in the text of a rewrite; "" if there is none.
        success_threshold: A rollout is correct if its reward is above this.

    Raises:
        ConfigError: `hard` is above `medium`.
    """

    rewrites: PositiveInt = 2
    hard: Fraction = 0.25
    medium: Fraction = 0.75
    simplify: str = SIMPLIFY
    vary: str = VARY
    parse: Callable[[str], str] = whole_text
    success_threshold: NumberOrSchedule = 0.5

    provides = Provides(reward_terms=(PART,))

    def __post_init__(self) -> None:
        if not any(isinstance(end, DynamicNumber) for end in (self.hard, self.medium)):
            check_field(self, "hard", self.hard <= self.medium, f"at most medium, {self.medium}")

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        group = await self.inner(task, env, actor)
        instruction = self._instruction(group)
        rollouts = [*_in_part(group.rollouts, 0)]
        if instruction:
            pairs = await asyncio.gather(
                *(
                    self._rewrite(group, instruction, env, actor.fork("rewrite", i))
                    for i in range(self.rewrites)
                )
            )
            rollouts += _in_part([rewrite for rewrite, _ in pairs], 1)
            for part, (_, answers) in enumerate(pairs, 2):
                rollouts += _in_part(answers, part)
        return group.with_rollouts(rollouts)

    def _instruction(self, group: Group) -> str:
        """The instruction for rewrites; "" for an easy task or if no answer could be scored."""
        if all(rollout.error for rollout in group.rollouts):
            return ""
        accuracy = self.accuracy(group.rollouts)
        if accuracy <= self.hard:
            return self.simplify
        return self.vary if accuracy <= self.medium else ""

    def accuracy(self, rollouts: Sequence[Rollout]) -> float:
        """The fraction of the scored rollouts that are correct; 0 if no rollout was scored."""
        rewards = [rollout.reward for rollout in rollouts if not rollout.error]
        return sum(r > self.success_threshold for r in rewards) / max(1, len(rewards))

    async def _rewrite(
        self, group: Group, instruction: str, env: Env, actor: Actor
    ) -> tuple[Rollout, Sequence[Rollout]]:
        """A rewrite with its reward, and the answers to it that are kept."""
        instructed_task = append_to_prompt(group.task, instruction)
        observation = await initial_observation(instructed_task, env)
        rewrite = Rollout(source="rewrite")
        rewrite = rewrite.append_turn(observation, await actor(rewrite, observation))
        prompt = self.parse(rewrite.text)
        answers: Sequence[Rollout] = ()
        if _is_answerable(group.task, prompt):
            rewritten_task = replace(group.task, prompt=prompt)
            answers = (await self.inner(rewritten_task, env, actor.fork("answers"))).rollouts
        accuracy = self.accuracy(answers)
        rewrite = replace(rewrite, reward=accuracy - self.accuracy(group.rollouts))
        return rewrite, answers if 0 < accuracy < 1 else ()


def _is_answerable(task: Task, prompt: str) -> bool:
    """False if a prompt is empty, equals the task's prompt or adds the reference answer to it."""
    task_prompt = prompt_as_text(task.prompt)
    adds_answer = leaks_answer(task, prompt) and not leaks_answer(task, task_prompt)
    return bool(prompt) and prompt != task_prompt and not adds_answer


def _in_part(rollouts: Sequence[Rollout], part: int) -> Sequence[Rollout]:
    """The rollouts with the reward term `part`."""
    return [rollout.with_reward_terms({PART: float(part)}) for rollout in rollouts]


PAPER = Paper(
    title="CLPO: Curriculum Learning meets Policy Optimization for LLM Reasoning",
    use="Many tasks are too hard for any rollout, and the policy can word them more simply.",
    tags=("curriculum", "hints"),
    kind="sampler",
    checked=("golden", "run"),
    catalogue=("clpo",),
    source=Source(
        "third_party",
        "abstracts of arXiv 2509.25004 v1 and v2; a public review for accuracy and thresholds",
    ),
    missing=("The paper's first version weighs the KL divergence by the difficulty of the task.",),
    deviations=(
        "Thresholds, the number of rewrites and the instructions are our choice.",
        "A rewrite is not answered if it is empty, equals the prompt, or adds the reference answer"
        " to the prompt. The reward of the rewrite is then minus the accuracy of the task.",
    ),
    shown=(
        "docs/guidance_shown/rescue_sums.md#results",
        "tests/rollouts/samplers/test_rewritten.py::test_a_rewrite_earns_the_gain_of_accuracy",
        "tests/rollouts/samplers/test_rewritten.py::test_only_informative_rewrites_are_trained_on",
    ),
)
