"""Anytime reasoning: answers to one chain of thought at several token budgets."""

import asyncio
from dataclasses import replace
from itertools import pairwise

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env, initial_observation, run_rollout, score_group
from grupo.core.numbers import PositiveInt
from grupo.core.requires import Provides
from grupo.core.types import Group, Observation, Rollout, Task


@component
class AnytimeBudgets:
    """Generates several chains of thought, and answers to each of them at every token budget.

    If the chain of thought is longer than the budget, the chain is cut at the budget, and
    `cutoff_text`, `think_end` and `answer_header` are forced. If the chain has ended earlier, only
    `answer_header` is forced. If the policy ends the rollout within the chain of thought, the
    rollout has no answer.

    The rollouts of a chain share its segments from one budget to the next. Only one of them trains
    on a segment: the rollout with the first answer at the budget that ends the segment.

    The reward term `trace_index` is the index of the chain, and `budget_index` is the index of the
    budget. `cut_index` is the index of the budget at which the chain was cut, or of the segment in
    which it ended. The step value `thinking` is 1 for thinking and 0 for answers.

    AnytimeReasoner, Qi et al. (arXiv:2505.13438).

    Args:
        traces: Number of chains of thought in a group.
        token_budgets: Lengths in tokens at which a chain of thought is cut, in ascending order.
        answers_per_budget: Number of answers to each chain of thought at each budget.
        answer_tokens: Largest length of an answer in tokens.
        cutoff_text: Text that is forced where the thinking is cut.
        think_end: Text that ends the thinking.
        answer_header: Text that is forced before an answer.
    """

    traces: PositiveInt = 8
    token_budgets: tuple[PositiveInt, ...] = (2000, 4000, 6000, 8000)
    answers_per_budget: PositiveInt = 4
    answer_tokens: PositiveInt = 118
    cutoff_text: str = "...\n\n...\n\n"
    think_end: str = "</think>"
    answer_header: str = "\n\n**Final Answer**\n"

    provides = Provides(reward_terms=("trace_index", "budget_index", "cut_index"))

    @property
    def group_size(self) -> int:
        """Rollouts in a group."""
        return self.traces * len(self.token_budgets) * self.answers_per_budget

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        observation = await initial_observation(task, env)
        requested_size = task.group_size or self.group_size
        # a task with a group size of its own changes only the number of chains, in proportion
        trace_indices = range(max(1, requested_size * self.traces // self.group_size))
        traces = await asyncio.gather(
            *(self._generate_trace(actor.fork("trace", i), observation) for i in trace_indices)
        )
        indices = [
            (trace, budget, answer)
            for trace in trace_indices
            for budget in range(len(self.token_budgets))
            for answer in range(self.answers_per_budget)
        ]

        async def rollout_at(trace: int, budget: int, answer: int) -> Rollout:
            forked = actor.fork("answer", trace, budget, answer)
            return await self._answer(task, env, forked, traces[trace], budget, answer)

        rollouts = await asyncio.gather(*(rollout_at(*index) for index in indices))
        group = await score_group(task, env, rollouts)
        return group.with_rollouts(
            self._annotate(rollout, traces[trace], trace, budget)
            for rollout, (trace, budget, _) in zip(group.rollouts, indices, strict=True)
        )

    async def _generate_trace(self, actor: Actor, observation: Observation) -> Rollout:
        """A chain of thought, with one response for each segment from one budget to the next."""
        rollout = Rollout()
        for start, budget in pairwise((0, *self.token_budgets)):
            max_tokens = budget - start
            prompt = "" if start else observation
            segment_actor = actor.with_stop(self.think_end, max_new_tokens=max_tokens)
            response = await segment_actor(rollout, prompt)
            rollout = rollout.append_turn(prompt, response)
            if response.finish_reason != "length" or len(response.items) < max_tokens:
                break
        return rollout

    async def _answer(
        self,
        task: Task,
        env: Env,
        actor: Actor,
        trace: Rollout,
        budget_index: int,
        answer_index: int,
    ) -> Rollout:
        """The chain of thought up to a budget; with an answer unless the policy ended the chain."""
        cut = self._cut_index(trace, budget_index)
        trained_segment = cut if answer_index == 0 and cut == budget_index else -1  # -1: none
        rollout = Rollout(
            tuple(
                (observation, replace(response, in_loss=i == trained_segment))
                for i, (observation, response) in enumerate(trace.turns[: cut + 1])
            )
        )
        finish_reason = rollout.last_response.finish_reason
        if finish_reason != "end":
            cut_text = self.cutoff_text + self.think_end if finish_reason != "stop" else ""
            forced = await actor.prefill_forced(rollout, "", cut_text + self.answer_header)
            rollout = rollout.append_turn("", forced)
            answer = await actor.with_stop(max_new_tokens=self.answer_tokens)(rollout, "")
            rollout = rollout.append_turn("", answer)
        return await run_rollout(task, env, actor.fork("on"), rollout)

    def _cut_index(self, trace: Rollout, budget_index: int) -> int:
        """Index of the last segment of a chain of thought that a budget includes."""
        return min(budget_index, len(trace.turns) - 1)

    def _annotate(
        self, rollout: Rollout, trace: Rollout, trace_index: int, budget_index: int
    ) -> Rollout:
        cut = self._cut_index(trace, budget_index)
        num_thinking = sum(len(response.items) for _, response in trace.turns[: cut + 1])
        is_thinking = (1.0,) * num_thinking + (0.0,) * (rollout.length - num_thinking)
        terms = {
            "trace_index": float(trace_index),
            "budget_index": float(budget_index),
            "cut_index": float(cut),
        }
        return rollout.with_reward_terms(terms).with_step_values({"thinking": is_thinking})
