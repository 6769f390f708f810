"""Early exits: answers from several positions of one chain of thought."""

import asyncio

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env, initial_observation
from grupo.core.numbers import PositiveInt
from grupo.core.requires import Provides
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.prefixes import finish_and_score


@component
class EarlyExits:
    """Generates one chain of thought with an answer, and further answers after early cuts of it.

    Cut positions are drawn uniformly over the tokens of the chain of thought. At a cut,
    `instruction` and `think_end` are forced, and the policy answers. A chain with fewer tokens than
    `num_exits` has a cut at each token. The reward term `exit_index` is 0 for the
    earliest cut, 1 for the next one, and highest for the complete chain.

    Args:
        num_exits: Number of cuts. A task with a `group_size` has `group_size` - 1 cuts instead.
        instruction: Text that is forced at a cut.
        think_end: Text that ends the thinking.
    """

    num_exits: PositiveInt = 7
    instruction: str = "\n\nTime is limited, stop thinking and start answering.\n"
    think_end: str = "</think>"

    provides = Provides(reward_terms=("exit_index",))

    @property
    def group_size(self) -> int:
        """Rollouts in a group."""
        return self.num_exits + 1

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        observation = await initial_observation(task, env)
        response = await actor.with_stop(self.think_end)(Rollout(), observation)
        thinking = Rollout().append_turn(observation, response)
        requested = task.group_size or self.group_size
        positions = await self._cut_positions(actor, thinking, requested - 1)
        early = (
            self._answer_early(actor.fork("exit", i), thinking, position)
            for i, position in enumerate(positions)
        )
        answered = await asyncio.gather(*early, self._answer_after_thinking(actor, thinking))
        group = await finish_and_score(task, env, actor, answered)
        return group.with_rollouts(
            rollout.with_reward_terms({"exit_index": float(i)})
            for i, rollout in enumerate(group.rollouts)
        )

    async def _cut_positions(self, actor: Actor, thinking: Rollout, max_cuts: int) -> list[int]:
        """Random cut positions in ascending order: each is the number of tokens before a cut."""
        response = thinking.last_response
        think_end_length = len((await actor.prefill_forced(thinking, "", self.think_end)).items)
        # tokens of `think_end`, or the end token: the last early exit is directly before them
        num_end_tokens = {"stop": think_end_length, "end": 1}.get(response.finish_reason, 0)
        positions = range(1, len(response.items) - num_end_tokens + 1)
        return sorted(actor.rng("exits").sample(positions, min(max_cuts, len(positions))))

    async def _answer_early(self, actor: Actor, thinking: Rollout, position: int) -> Rollout:
        cut = actor.truncate(thinking, position)
        forced = await actor.prefill_forced(cut, "", self.instruction + self.think_end)
        rollout = cut.append_turn("", forced)
        return rollout.append_turn("", await actor(rollout, ""))

    async def _answer_after_thinking(self, actor: Actor, thinking: Rollout) -> Rollout:
        if thinking.last_response.finish_reason != "stop":  # `think_end` was not generated
            return thinking
        return thinking.append_turn("", await actor(thinking, ""))
