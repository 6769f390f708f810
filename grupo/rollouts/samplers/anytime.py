"""Anytime reasoning: a chain of thought that is answered at every token budget."""

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
    """Generates `traces` chains of thought and answers each at every token budget.

    Where the thinking is cut by a budget, `cutoff_text`, `think_end` and `answer_header` are
    forced; where it had ended, `answer_header` alone. A rollout that ends while thinking has no
    answer. Reward terms: `trace_index`, the chain of thought; `budget_index`, 0 for the smallest;
    `cut_index`, the budget at which the thinking ended or was cut. The segment of thinking before
    a cut is trained with the first answer there, and is context only elsewhere. The step value
    `thinking` is 1 for thinking and 0 for answers.

    AnytimeReasoner, Qi et al. (arXiv:2505.13438).

    Args:
        traces: Chains of thought in a group.
        token_budgets: Lengths in tokens at which the thinking is cut and answered.
        answers_per_budget: Answers to each chain of thought at each budget.
        answer_tokens: Maximum length of an answer in tokens.
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
        requested = task.group_size or self.group_size
        traces = range(max(1, requested * self.traces // self.group_size))
        thoughts = await asyncio.gather(
            *(self._generate_trace(actor.fork("trace", i), observation) for i in traces)
        )
        branches = [
            (trace, budget, answer)
            for trace in traces
            for budget in range(len(self.token_budgets))
            for answer in range(self.answers_per_budget)
        ]
        rollouts = await asyncio.gather(
            *(
                self._answer(task, env, actor.fork("answer", i, s, a), thoughts[i], s, a)
                for i, s, a in branches
            )
        )
        group = await score_group(task, env, rollouts)
        annotated = (
            self._annotate(rollout, thoughts[trace], trace, budget)
            for rollout, (trace, budget, _) in zip(group.rollouts, branches, strict=True)
        )
        return replace(group, rollouts=tuple(annotated))

    async def _generate_trace(self, actor: Actor, observation: Observation) -> Rollout:
        """A chain of thought, one response for each budget that it reaches."""
        rollout = Rollout()
        for start, budget in pairwise((0, *self.token_budgets)):
            room = budget - start
            prompt = "" if start else observation
            segment = actor.with_stop(self.think_end, max_new_tokens=room)
            response = await segment(rollout, prompt)
            rollout = rollout.append_turn(prompt, response)
            if response.finish_reason != "length" or len(response.items) < room:
                break
        return rollout

    async def _answer(
        self,
        task: Task,
        env: Env,
        actor: Actor,
        thinking: Rollout,
        budget_index: int,
        answer_index: int,
    ) -> Rollout:
        cut = self._cut_index(thinking, budget_index)
        trained = cut if answer_index == 0 and cut == budget_index else -1
        rollout = Rollout(
            tuple(
                (observation, replace(response, in_loss=i == trained))
                for i, (observation, response) in enumerate(thinking.turns[: cut + 1])
            )
        )
        finish_reason = rollout.turns[-1][1].finish_reason
        if finish_reason != "end":
            cut_text = self.cutoff_text + self.think_end if finish_reason != "stop" else ""
            forced = await actor.prefill_forced(rollout, "", cut_text + self.answer_header)
            rollout = rollout.append_turn("", forced)
            answer = await actor.with_stop(max_new_tokens=self.answer_tokens)(rollout, "")
            rollout = rollout.append_turn("", answer)
        return await run_rollout(task, env, actor.fork("on"), rollout)

    def _cut_index(self, thinking: Rollout, budget_index: int) -> int:
        return min(budget_index, len(thinking.turns) - 1)

    def _annotate(
        self, rollout: Rollout, thinking: Rollout, trace_index: int, budget_index: int
    ) -> Rollout:
        cut = self._cut_index(thinking, budget_index)
        length = sum(len(response.items) for _, response in thinking.turns[: cut + 1])
        is_thinking = (1.0,) * length + (0.0,) * (rollout.length - length)
        terms = {
            "trace_index": float(trace_index),
            "budget_index": float(budget_index),
            "cut_index": float(cut),
        }
        return replace(
            rollout,
            reward_terms={**rollout.reward_terms, **terms},
            step_values={**rollout.step_values, "thinking": is_thinking},
        )
