"""Split groups, whose parts have different prefixes or prompts, such as token budgets or modes."""

import asyncio

from grupo.core.component import check_field, component
from grupo.core.interfaces import Actor, Env, run_rollout, score_group
from grupo.core.requires import Provides
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.hints import append_to_prompt
from grupo.rollouts.samplers.independent import GroupSampler
from grupo.rollouts.turns.forced_start import ForcedStart
from grupo.util.errors import ConfigError

FORCED = "forced"  # name of the step value


@component
class GroupPart:
    """A part of a group, whose rollouts share a forced prefix or an addition to the prompt.

    Args:
        value: Value of the reward term in the rollouts of this part.
        prefix: Text with which the first answer of a rollout must begin; "" forces nothing.
        prompt_suffix: Text at the end of the prompt.
    """

    value: float
    prefix: str = ""
    prompt_suffix: str = ""


@component
class SplitGroup(GroupSampler):
    """Independent rollouts in equal parts, each with a forced prefix or a prompt of its own.

    The reward term `reward_term` is the value of the rollout's part. The step value `forced` is 1
    for the tokens of a forced prefix, else 0.

    HBPO, Lyu et al. (arXiv:2507.15844), and Hybrid GPO, Jiang et al. (arXiv:2505.14631), eq. 5.

    Args:
        group_size: Number of rollouts in a group, a multiple of the number of parts.
        turn_strategy: Generates the response to one observation, after the forced prefix.
        parts: The parts, in order.
        reward_term: Name of the reward term.
        train_prefix: Whether the tokens of the forced prefix are trained on.

    Raises:
        ConfigError: There is no part, two parts have the same value, or `group_size` is not a
            multiple of the number of parts.

    >>> SplitGroup(6, parts=(GroupPart(512.0), GroupPart(1024.0))).part_of(3).value
    1024.0
    """

    parts: tuple[GroupPart, ...] = (GroupPart(0.0), GroupPart(1.0))
    reward_term: str = "part"
    train_prefix: bool = True

    @property
    def provides(self) -> Provides:
        return Provides(reward_terms=(self.reward_term,))

    def __post_init__(self) -> None:
        values = {part.value for part in self.parts}
        are_distinct = len(values) == len(self.parts) > 0
        check_field(self, "parts", are_distinct, "one or more, each with a value of its own")
        check_field(self, "group_size", self._is_divisible(self.group_size), self._allowed_sizes)

    @property
    def _allowed_sizes(self) -> str:
        return f"a multiple of {len(self.parts)}, the number of parts"

    def _is_divisible(self, count: int) -> bool:
        return count % len(self.parts) == 0

    def part_of(self, index: int, group_size: int = 0) -> GroupPart:
        """The part to which the rollout at an index of the group belongs.

        Args:
            index: Index of the rollout in the group.
            group_size: Number of rollouts in the group; `self.group_size` by default.
        """
        return self.parts[index * len(self.parts) // (group_size or self.group_size)]

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        count = task.group_size or self.group_size
        if not self._is_divisible(count):
            raise ConfigError(
                f"curriculum: it requests {count} rollouts of a task, which SplitGroup cannot"
                f" split. Allowed: {self._allowed_sizes}."
            )
        parts = [self.part_of(i, count) for i in range(count)]
        rollouts = await asyncio.gather(
            *(self._generate(task, env, actor.fork(i), part) for i, part in enumerate(parts))
        )
        group = await score_group(task, env, rollouts)
        return group.with_rollouts(map(self._annotate, group.rollouts, parts))

    async def _generate(self, task: Task, env: Env, actor: Actor, part: GroupPart) -> Rollout:
        suffix = part.prompt_suffix
        part_task = append_to_prompt(task, suffix) if suffix else task
        strategy = ForcedStart(part.prefix, self.train_prefix, self.turn_strategy)
        return await run_rollout(part_task, env, actor, turn_strategy=strategy)

    def _annotate(self, rollout: Rollout, part: GroupPart) -> Rollout:
        is_forced = (
            float(i == 0 and part.prefix != "")
            for i, (_, response) in enumerate(rollout.turns)
            for _ in response.items
        )
        annotated = rollout.with_reward_terms({self.reward_term: part.value})
        return annotated.with_step_values({FORCED: tuple(is_forced)})
