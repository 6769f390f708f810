"""Hints that the policy gives itself, where nothing else helps."""

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env, run_rollout, score_group
from grupo.core.types import Group, Observation, Rollout, Task
from grupo.rollouts.samplers.hints import all_incorrect, append_to_prompt, leaks_answer
from grupo.rollouts.samplers.independent import GroupSampler

HINTER_ROLE = "hinter"  # the role of who hints
HINT_TEMPLATE = (
    "Somebody failed at this task. Write one hint, of three sentences at most, that leads to the"
    " right way without giving any number of the solution or its result.\n\nTask:\n{task}"
    "\n\nWrong attempt:\n{attempt}\n\nSolution, which the other must not learn:\n{solution}"
    "\n\nSay what went wrong, then the hint between <hint> and </hint>.\n"
)


@component
class HintPrompt:
    """What is shown to who hints: a {task}, a wrong {attempt}, a column as the {solution}."""

    template: str = HINT_TEMPLATE
    column: str = "solution"

    @property
    def required_columns(self) -> tuple[str, ...]:
        """The columns of tasks that it reads."""
        return (self.column,)

    def __call__(self, task: Task, attempt: Rollout) -> Observation:
        prompt = task.prompt if isinstance(task.prompt, str) else _chat_text(task.prompt)
        solution = str(task.columns.get(self.column, task.reference_answer))
        return self.template.format(task=prompt, attempt=attempt.text, solution=solution)


def parse_hint(text: str) -> str:
    """What stands between <hint> and </hint>; nothing if nothing does.

    >>> parse_hint("It forgot to carry. <hint> Carry! </hint>")
    'Carry!'
    """
    found = re.search(r"<hint>(.*?)</hint>", text, re.DOTALL | re.IGNORECASE)
    return found[1].strip() if found else ""


@component
class WithSelfHint:
    """The inner sampler's group; where all of it is wrong, hints, and attempts that saw one each.

    The policy, or the one whose role is `hinter`, is asked for `num_hints` hints, shown what `ask(task,
    attempt)` says of a wrong attempt; `read` finds the hint in what it says. Behind each hint as
    many attempts are made as the group has, with `lead` and the hint at the end of the prompt. A
    hint that cannot be read, holds the task's answer or leaves no room is refused, and tried by
    nobody.

    Parts tell them apart: `role`, 1 for a hint and 0 for an attempt; `hint`, its number from 1 on,
    0 for none; `refused`, 1 where a hint was. A hint's reward is 0: what it is worth is a credit's
    to say. HiLL, Xia et al. (arXiv:2604.00698).
    """

    inner: GroupSampler
    num_hints: int = 4
    hint_prompt: Callable[[Task, Rollout], Observation] = HintPrompt()
    extract_hint: Callable[[str], str] = parse_hint
    prefix_text: str = "\n\n"
    success_threshold: float = 0.5
    roles = (HINTER_ROLE,)

    @property
    def group_size(self) -> int:
        """How many rollouts a group has, hints and who saw one not counted."""
        return self.inner.group_size

    @property
    def provides(self) -> tuple[str, ...]:
        """The parts of the reward that it adds."""
        return ("role", "hint", "refused")

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        group = await self.inner(task, env, actor)
        plain = [_with_hint_terms(rollout) for rollout in group.rollouts]
        if not all_incorrect(group, self.success_threshold):
            return replace(group, rollouts=tuple(plain))
        wrong = actor.rng("wrong").choice([one for one in group.rollouts if not one.error])
        asked = self.hint_prompt(task, wrong)
        hints = await asyncio.gather(
            *(
                self._generate_hint(asked, actor.fork("hint", i))
                for i in range(1, self.num_hints + 1)
            )
        )
        tried = await asyncio.gather(
            *(self._attempt_with_hint(task, i, hint, env, actor) for i, hint in enumerate(hints, 1))
        )
        judged = await self._score_attempts(task, env, tried)
        said = [
            _with_hint_terms(h, 1.0, i, not tried[i - 1])
            for i, h in enumerate(hints, 1)
            if h.length
        ]
        return replace(group, rollouts=(*plain, *said, *judged))

    async def _generate_hint(self, prompt: Observation, actor: Actor) -> Rollout:
        start = Rollout(source="hint", role=HINTER_ROLE, reward=0.0)
        return start.append_turn(prompt, await actor(start, prompt))

    async def _attempt_with_hint(
        self, task: Task, hint_index: int, hint: Rollout, env: Env, actor: Actor
    ) -> Sequence[Rollout]:
        """Attempts behind a hint; none if it is refused."""
        text = self.extract_hint(hint.text)
        if not text or leaks_answer(task, text):
            return ()
        asked, turn = append_to_prompt(task, self.prefix_text + text), self.inner.turn_strategy
        forks = (
            actor.fork("hinted", hint_index, i)
            for i in range(task.group_size or self.inner.group_size)
        )
        plays = (run_rollout(asked, env, fork, Rollout(source="hinted"), turn) for fork in forks)
        played = await asyncio.gather(*plays)
        return played if all(rollout.length for rollout in played) else ()

    async def _score_attempts(
        self, task: Task, env: Env, attempts_per_hint: Sequence[Sequence[Rollout]]
    ) -> Sequence[Rollout]:
        every = [(i, rollout) for i, some in enumerate(attempts_per_hint, 1) for rollout in some]
        attempts = [rollout for _, rollout in every]
        group = await score_group(task, env, attempts) if every else Group(task, ())
        return [
            _with_hint_terms(r, 0.0, i) for (i, _), r in zip(every, group.rollouts, strict=True)
        ]


def prompt_without_hint(group: Group, rollout: Rollout) -> Observation | None:
    """The task's prompt in place of the one with a hint, for who saw one."""
    return group.task.prompt if rollout.source == "hinted" else None


def _with_hint_terms(
    rollout: Rollout, is_hint: float = 0.0, hint_index: int = 0, rejected: bool = False
) -> Rollout:
    told = {"role": is_hint, "hint": float(hint_index), "refused": float(rejected)}
    return replace(rollout, reward_terms={**rollout.reward_terms, **told})


def _chat_text(messages: Sequence[object]) -> str:
    return "\n\n".join(str(dict(m)["content"]) for m in messages if isinstance(m, dict))
