"""Self-generated hints for tasks at which every rollout fails."""

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env, run_rollout, score_group
from grupo.core.message_content import content_text
from grupo.core.numbers import Number, PositiveInt
from grupo.core.requires import Provides, Requires
from grupo.core.types import Group, Observation, Rollout, Task
from grupo.rollouts.samplers.hints import all_incorrect, append_to_prompt, leaks_answer
from grupo.rollouts.samplers.independent import GroupSampler

HINTER_ROLE = "hinter"  # the role of the policy that generates hints
HINT_TEMPLATE = (
    "Somebody failed at this task. Write one hint, of three sentences at most, that leads to the"
    " right way without giving any number of the solution or its result.\n\nTask:\n{task}"
    "\n\nWrong attempt:\n{attempt}\n\nSolution, which the other must not learn:\n{solution}"
    "\n\nSay what went wrong, then the hint between <hint> and </hint>.\n"
)


@component
class HintPrompt:
    """The prompt for a hint, from the task, an incorrect attempt and the solution.

    Args:
        template: Text with the fields {task}, {attempt} and {solution}.
        column: Column of the solution; the reference answer where a task lacks it.
    """

    template: str = HINT_TEMPLATE
    column: str = "solution"

    @property
    def requires(self) -> Requires:
        return Requires(columns=(self.column,))

    def __call__(self, task: Task, attempt: Rollout) -> Observation:
        prompt = task.prompt if isinstance(task.prompt, str) else _chat_text(task.prompt)
        solution = str(task.columns.get(self.column, task.reference_answer))
        return self.template.format(task=prompt, attempt=attempt.text, solution=solution)


def parse_hint(text: str) -> str:
    """The text between <hint> and </hint>; empty if there is none.

    >>> parse_hint("It forgot to carry. <hint> Carry! </hint>")
    'Carry!'
    """
    match = re.search(r"<hint>(.*?)</hint>", text, re.DOTALL | re.IGNORECASE)
    return match[1].strip() if match else ""


@component
class WithSelfHint:
    """Adds hints and rollouts with a hint to a group in which all rollouts are incorrect.

    The policy, or the policy of the role `hinter`, generates `num_hints` hints. For each hint the
    policy generates as many rollouts as the group has, with `prefix_text` and the hint at the end
    of the prompt. A hint that cannot be extracted, that contains the reference answer or that
    leaves no room for an answer is rejected: it gets no rollouts.

    Reward terms: `is_hint`, 1 for a hint and 0 for an attempt; `hint_index`, the number of the hint
    from 1, 0 for none; `hint_rejected`, 1 for a rejected hint. The reward of a hint is 0; its value
    is computed by the advantage estimator. HiLL, Xia et al. (arXiv:2604.00698).

    Args:
        inner: The sampler of the plain rollouts.
        num_hints: Hints that are generated.
        hint_prompt: The prompt for a hint, from the task and an incorrect attempt.
        extract_hint: Finds the hint in the generated text; empty if there is none.
        prefix_text: Text between the prompt and the hint.
        success_threshold: A rollout with a higher reward is correct.
    """

    inner: GroupSampler
    num_hints: PositiveInt = 4
    hint_prompt: Callable[[Task, Rollout], Observation] = HintPrompt()
    extract_hint: Callable[[str], str] = parse_hint
    prefix_text: str = "\n\n"
    success_threshold: Number = 0.5

    provides = Provides(
        roles=(HINTER_ROLE,), reward_terms=("is_hint", "hint_index", "hint_rejected")
    )

    @property
    def group_size(self) -> int:
        """Rollouts in a group, hints and the rollouts with a hint not counted."""
        return self.inner.group_size

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        group = await self.inner(task, env, actor)
        plain = [_with_hint_terms(rollout) for rollout in group.rollouts]
        if not all_incorrect(group, self.success_threshold):
            return replace(group, rollouts=tuple(plain))
        candidates = [rollout for rollout in group.rollouts if not rollout.error]
        prompt = self.hint_prompt(task, actor.rng("wrong").choice(candidates))
        indices = range(1, self.num_hints + 1)
        hints = await asyncio.gather(
            *(self._generate_hint(prompt, actor.fork("hint", i)) for i in indices)
        )
        attempts = await asyncio.gather(
            *(self._attempt_with_hint(task, i, hint, env, actor) for i, hint in enumerate(hints, 1))
        )
        scored = await self._score_attempts(task, env, attempts)
        generated = [
            _with_hint_terms(hint, 1.0, i, not attempts[i - 1])
            for i, hint in enumerate(hints, 1)
            if hint.length
        ]
        return replace(group, rollouts=(*plain, *generated, *scored))

    async def _generate_hint(self, prompt: Observation, actor: Actor) -> Rollout:
        rollout = Rollout(source="hint", role=HINTER_ROLE, reward=0.0)
        return rollout.append_turn(prompt, await actor(rollout, prompt))

    async def _attempt_with_hint(
        self, task: Task, hint_index: int, hint: Rollout, env: Env, actor: Actor
    ) -> Sequence[Rollout]:
        """Rollouts with a hint; none if the hint is rejected."""
        text = self.extract_hint(hint.text)
        if not text or leaks_answer(task, text):
            return ()
        hinted_task = append_to_prompt(task, self.prefix_text + text)
        count = task.group_size or self.inner.group_size
        rollouts = await asyncio.gather(
            *(
                run_rollout(
                    hinted_task,
                    env,
                    actor.fork("hinted", hint_index, i),
                    Rollout(source="with_self_hint"),
                    self.inner.turn_strategy,
                )
                for i in range(count)
            )
        )
        return rollouts if all(rollout.length for rollout in rollouts) else ()

    async def _score_attempts(
        self, task: Task, env: Env, attempts_per_hint: Sequence[Sequence[Rollout]]
    ) -> Sequence[Rollout]:
        indexed = [
            (i, rollout) for i, attempts in enumerate(attempts_per_hint, 1) for rollout in attempts
        ]
        if not indexed:
            return []
        group = await score_group(task, env, [rollout for _, rollout in indexed])
        return [
            _with_hint_terms(rollout, 0.0, i)
            for (i, _), rollout in zip(indexed, group.rollouts, strict=True)
        ]


def prompt_without_hint(group: Group, rollout: Rollout) -> Observation | None:
    """The task's plain prompt, for rollouts that were generated with a self-generated hint."""
    return group.task.prompt if rollout.source == "with_self_hint" else None


def _with_hint_terms(
    rollout: Rollout, is_hint: float = 0.0, hint_index: int = 0, rejected: bool = False
) -> Rollout:
    terms = {
        "is_hint": is_hint,
        "hint_index": float(hint_index),
        "hint_rejected": float(rejected),
    }
    return replace(rollout, reward_terms={**rollout.reward_terms, **terms})


def _chat_text(messages: Sequence[object]) -> str:
    contents = (
        content_text(dict(message)["content"]) for message in messages if isinstance(message, dict)
    )
    return "\n\n".join(contents)
