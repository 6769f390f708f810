"""Hints that the policy writes from the solution, at levels from vague to detailed."""

from collections.abc import Callable
from dataclasses import replace

from grupo.core.component import check_field, component
from grupo.core.interfaces import Actor, Env
from grupo.core.numbers import NumberOrSchedule
from grupo.core.prompt_text import prompt_as_text
from grupo.core.ranges import PositiveInt, Probability
from grupo.core.requires import Requires
from grupo.core.task_statistic import ScoredGroup, StatisticState, TaskStatistic
from grupo.core.types import Group, Observation, Rollout, Task
from grupo.rollouts.samplers.hints import append_to_prompt, leaks_answer
from grupo.rollouts.samplers.rescue import GenerationPrompt, RescuePrompts
from grupo.rollouts.samplers.self_hint import parse_hint
from grupo.rollouts.samplers.wrapper import SamplerWrapper

LEVELS = (
    "It names the main idea alone.",
    "It names the method and one step in between.",
    "It describes the way in detail and leaves the last steps to the reader.",
)
TEMPLATE = (
    "Write a hint for this task that does not give its answer. {level}\n\nTask:\n{task}"
    "\n\nSolution:\n{solution}\n\nWrite the hint between <hint> and </hint>.\n"
)


@component
class LeveledHintPrompt:
    """The prompt from which the policy generates a hint: the task and its solution.

    Args:
        template: Text with the fields {level}, {task} and {solution}.
        levels: Description of each level, the vaguest first.
        column: Column of the solution. A task without it shows its reference answer instead.
    """

    template: str = TEMPLATE
    levels: tuple[str, ...] = LEVELS
    column: str = "solution"

    @property
    def requires(self) -> Requires:
        return Requires(columns=(self.column,))

    def __call__(self, task: Task, level: int) -> Observation:
        return self.template.format(
            level=self.levels[level - 1],
            task=prompt_as_text(task.prompt),
            solution=str(task.columns.get(self.column, task.reference_answer)),
        )


@component
class LeveledHint:
    """Lets the policy write a hint of one level, and builds the task's prompt with this hint.

    The prompt gets as many rollouts as the group has. The hint is not trained on. A hint is
    rejected if it cannot be extracted or contains the reference answer; then there is no prompt.

    Args:
        level: The level, from 1.
        hint_prompt: Returns the prompt from which the policy generates a hint of a level.
        extract_hint: Returns the hint in the generated text; "" if there is none.
        prefix_text: Text between the prompt and the hint.
    """

    level: PositiveInt = 1
    hint_prompt: Callable[[Task, int], Observation] = LeveledHintPrompt()
    extract_hint: Callable[[str], str] = parse_hint
    prefix_text: str = "\n\n"

    async def __call__(self, group: Group, env: Env, actor: Actor) -> RescuePrompts:
        hinted = await self.hinted_task(group.task, actor.fork("hint"))
        if hinted is None:
            return RescuePrompts()
        rng_labels = tuple(("hinted", i) for i in range(len(group.rollouts)))
        return RescuePrompts((GenerationPrompt(hinted, rng_labels),))

    async def hinted_task(self, task: Task, actor: Actor) -> Task | None:
        """The task with a hint in its prompt; None if the hint was rejected."""
        prompt = self.hint_prompt(task, self.level)
        hint = self.extract_hint((await actor(Rollout(), prompt)).text)
        if not hint or leaks_answer(task, hint):
            return None
        return append_to_prompt(task, self.prefix_text + hint)


@component
class HintLevel(TaskStatistic):
    """The level of a task's hints, which rises after failures and falls after successes.

    Level 0 stands for no hint. SAGE, Liao et al. (arXiv:2602.03143), the light variant.

    Args:
        max_level: The highest level.
        low: A group with at most this fraction of correct rollouts raises the level by one.
        high: A group with more than this fraction of correct rollouts lowers the level by one.
        success_threshold: A rollout with a higher reward is correct.

    Raises:
        ConfigError: `high` is below `low`.

    >>> HintLevel()((1.0,), ScoredGroup(0, (0.0, 0.0))), HintLevel()((1.0,), ScoredGroup(1, (1.0,)))
    ((2.0,), (0.0,))
    """

    max_level: PositiveInt = 3
    low: Probability = 0.1  # as in the authors' run script; the default of their trainer is 0
    high: Probability = 0.35
    success_threshold: NumberOrSchedule = 0.5

    def __post_init__(self) -> None:
        check_field(self, "high", self.high >= self.low, f"at least low, {self.low}")

    @property
    def initial_state(self) -> StatisticState:
        return (0.0,)

    def __call__(self, state: StatisticState, group: ScoredGroup) -> StatisticState:
        (level,) = state
        num_correct = sum(reward > self.success_threshold for reward in group.rewards)
        accuracy = num_correct / len(group.rewards)
        if accuracy <= self.low:
            return (min(level + 1, float(self.max_level)),)
        return (max(level - 1, 0.0) if accuracy > self.high else level,)


@component
class AtHintLevel(SamplerWrapper):
    """The inner sampler's group, generated with a hint whose level depends on earlier groups.

    The rollouts are trained with the hint in their prompt. At level 0, or if the hint is rejected,
    the prompt has no hint. SAGE, the light variant: no group is generated twice.

    Args:
        inner: The sampler of the group.
        level: The statistic of a task's earlier groups that computes the level.
        hint: Lets the policy write the hint. Its own level is not used.
    """

    level: HintLevel = HintLevel()
    hint: LeveledHint = LeveledHint()

    @property
    def requires(self) -> Requires:
        return Requires(task_statistics=(self.level,))

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        level_number = int(task.state(self.level)[0])
        hinted = None
        if level_number:
            hint_writer = replace(self.hint, level=level_number)
            hinted = await hint_writer.hinted_task(task, actor.fork("hint"))
        group = await self.inner(hinted or task, env, actor)
        return replace(group, task=task)
