"""Thoughts that are answered at every budget."""

import asyncio
from dataclasses import replace
from itertools import pairwise

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env, initial_observation, run_rollout, score_group
from grupo.core.types import Group, Observation, Rollout, Task


@component
class AnytimeBudgets:
    """`traces` thoughts, each answered `answers` times at every one of `token_budgets`, in tokens.

    Where a thought is cut, `cutoff_text`, `close` and `answer_header` are forced, and where it had come to its
    end, `answer_header` alone; an answer has up to `solve` tokens. Who ends while thinking does not
    answer. Parts: `trace`; `budget`, 0 for the smallest; `cut`, that by which the thought is over,
    or was cut. The piece of thought before a cut is learned with the first answer there, elsewhere
    it is only read. Actions are marked `thinking_reward`: 1 there, 0 in answers.

    AnytimeReasoner, Qi et al. (arXiv:2505.13438).
    """

    traces: int = 8
    token_budgets: tuple[int, ...] = (2000, 4000, 6000, 8000)
    answers_per_budget: int = 4
    answer_tokens: int = 118
    cutoff_text: str = "...\n\n...\n\n"
    think_end: str = "</think>"
    answer_header: str = "\n\n**Final Answer**\n"
    provides = ("trace", "budget", "cut")

    @property
    def group_size(self) -> int:
        """How many rollouts a group has."""
        return self.traces * len(self.token_budgets) * self.answers_per_budget

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        seen = await initial_observation(task, env)
        budgets, answers = range(len(self.token_budgets)), range(self.answers_per_budget)
        traces = range(
            max(1, (task.group_size or self.group_size) * self.traces // self.group_size)
        )
        thoughts = await asyncio.gather(
            *(self._generate_trace(actor.fork("trace", i), seen) for i in traces)
        )
        places = [(i, s, a) for i in traces for s in budgets for a in answers]
        plays = (
            self._answer(task, env, actor.fork("answer", i, s, a), thoughts[i], s, a)
            for i, s, a in places
        )
        group = await score_group(task, env, await asyncio.gather(*plays))
        told = (
            self._annotate(one, thoughts[i], i, s)
            for one, (i, s, _) in zip(group.rollouts, places, strict=True)
        )
        return replace(group, rollouts=tuple(told))

    async def _generate_trace(self, actor: Actor, observation: Observation) -> Rollout:
        """A thought in one piece for each budget that it comes to."""
        said = Rollout()
        for done, budget in pairwise((0, *self.token_budgets)):
            room = budget - done
            more = await actor.with_stop(self.think_end, max_new_tokens=room)(
                said, "" if done else observation
            )
            said = said.append_turn("" if done else observation, more)
            if more.finish_reason != "length" or len(more.items) < room:
                break
        return said

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
        taught = cut if answer_index == 0 and cut == budget_index else -1
        pieces = enumerate(thinking.turns[: cut + 1])
        known = Rollout(tuple((seen, replace(a, in_loss=i == taught)) for i, (seen, a) in pieces))
        why = known.turns[-1][1].finish_reason
        if why != "end":
            forced = (
                self.answer_header
                if why == "stop"
                else self.cutoff_text + self.think_end + self.answer_header
            )
            known = known.append_turn("", await actor.prefill_forced(known, "", forced))
            known = known.append_turn(
                "", await actor.with_stop(max_new_tokens=self.answer_tokens)(known, "")
            )
        return await run_rollout(task, env, actor.fork("on"), known)

    def _cut_index(self, thinking: Rollout, budget_index: int) -> int:
        return min(budget_index, len(thinking.turns) - 1)

    def _annotate(
        self, rollout: Rollout, thinking: Rollout, trace_index: int, budget_index: int
    ) -> Rollout:
        cut = self._cut_index(thinking, budget_index)
        length = sum(len(action.items) for _, action in thinking.turns[: cut + 1])
        marks = (1.0,) * length + (0.0,) * (rollout.length - length)
        parts = {"trace": float(trace_index), "budget": float(budget_index), "cut": float(cut)}
        more = {
            "parts": {**rollout.reward_terms, **parts},
            "marks": {**rollout.step_values, "thought": marks},
        }
        return replace(rollout, **more)
