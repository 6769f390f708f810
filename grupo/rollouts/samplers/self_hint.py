"""Hints that the policy generates for tasks at which every rollout fails."""

import asyncio
import re
from collections.abc import Callable, Sequence

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env
from grupo.core.numbers import NumberOrSchedule, PositiveInt
from grupo.core.prompt_text import prompt_as_text
from grupo.core.requires import Provides, Requires
from grupo.core.types import Group, Observation, Rollout, Task
from grupo.rollouts.samplers.hints import append_to_prompt, leaks_answer
from grupo.rollouts.samplers.independent import GroupSampler
from grupo.rollouts.samplers.merge_rules import add_all
from grupo.rollouts.samplers.rescue import (
    AllIncorrect,
    GenerationPrompt,
    Rescue,
    RescueAttempt,
    RescuePrompts,
)
from grupo.rollouts.samplers.trained_prompts import keep_generation_prompt

HINTER_ROLE = "hinter"  # the role of the policy that generates hints
IS_HINT, HINT_INDEX, HINT_REJECTED = "is_hint", "hint_index", "hint_rejected"  # reward terms
WITH_SELF_HINT = "with_self_hint"  # `Rollout.source` of the rollouts with a hint
HINT_TEMPLATE = (
    "Somebody failed at this task. Write one hint, of three sentences at most, that leads to the"
    " right way without giving any number of the solution or its result.\n\nTask:\n{task}"
    "\n\nWrong attempt:\n{attempt}\n\nSolution, which the other must not learn:\n{solution}"
    "\n\nSay what went wrong, then the hint between <hint> and </hint>.\n"
)


@component
class HintPrompt:
    """The prompt from which the policy generates a hint: the task and an incorrect rollout.

    Args:
        template: Text with the fields {task}, {attempt} and {solution}; {attempt} is the text of
            the incorrect rollout.
        column: Column of the solution. The data set must have this column; a single task may lack
            it, and the prompt then shows its reference answer.
    """

    template: str = HINT_TEMPLATE
    column: str = "solution"

    @property
    def requires(self) -> Requires:
        return Requires(columns=(self.column,))

    def __call__(self, task: Task, wrong_rollout: Rollout) -> Observation:
        prompt = prompt_as_text(task.prompt)
        solution = str(task.columns.get(self.column, task.reference_answer))
        return self.template.format(task=prompt, attempt=wrong_rollout.text, solution=solution)


def parse_hint(text: str) -> str:
    """The text between <hint> and </hint>; "" if a tag is missing.

    >>> parse_hint("It forgot to carry. <hint> Carry! </hint>")
    'Carry!'
    """
    _, *after_open = re.split(r"<hint>", text, maxsplit=1, flags=re.IGNORECASE)
    hint, *after_close = re.split(r"</hint>", "".join(after_open), maxsplit=1, flags=re.IGNORECASE)
    return hint.strip() if after_close else ""


@component
class SelfHints:
    """Lets the policy generate hints, and builds a prompt with each of them.

    The policy of the role `hinter`, or the policy itself, generates the hints. Each prompt with a
    hint gets as many rollouts as the group has. A hint is rejected, and has no prompt, if it cannot
    be extracted or contains the reference answer. The rollout that generated a hint joins the
    group, with reward 0.

    Reward terms: `is_hint` is 1 for a rollout that generated a hint. `hint_rejected` is 1 if no
    rollout used this hint. `hint_index` is the number of the hint, from 1, for the rollout that
    generated the hint and for the rollouts that use it. A term that a rollout lacks counts as 0.

    Args:
        num_hints: Number of hints that are generated.
        hint_prompt: Returns the prompt for a hint, from the task and an incorrect rollout.
        extract_hint: Returns the hint in the generated text; "" if there is none.
        prefix_text: Text between the prompt and the hint.
    """

    num_hints: PositiveInt = 4
    hint_prompt: Callable[[Task, Rollout], Observation] = HintPrompt()
    extract_hint: Callable[[str], str] = parse_hint
    prefix_text: str = "\n\n"

    provides = Provides(
        roles=(HINTER_ROLE,),
        trained_roles=("", HINTER_ROLE),
        reward_terms=(IS_HINT, HINT_INDEX, HINT_REJECTED),
    )

    async def __call__(self, group: Group, env: Env, actor: Actor) -> RescuePrompts:
        wrong_rollouts = [rollout for rollout in group.rollouts if not rollout.error]
        prompt = self.hint_prompt(group.task, actor.rng("wrong").choice(wrong_rollouts))
        indices = range(1, self.num_hints + 1)
        hint_rollouts = await asyncio.gather(
            *(_generate_hint(prompt, i, actor.fork("hint", i)) for i in indices)
        )
        hints = {i: self.extract_hint(rollout.text) for i, rollout in enumerate(hint_rollouts, 1)}
        prompts = (
            self._prompt_with_hint(group, i, hint)
            for i, hint in hints.items()
            if hint and not leaks_answer(group.task, hint)
        )
        return RescuePrompts(
            prompts=tuple(prompts),
            extra_rollouts=tuple(rollout for rollout in hint_rollouts if rollout.length),
        )

    def _prompt_with_hint(self, group: Group, hint_index: int, hint: str) -> GenerationPrompt:
        hinted_task = append_to_prompt(group.task, self.prefix_text + hint)
        rng_labels = tuple(("hinted", hint_index, i) for i in range(len(group.rollouts)))
        return GenerationPrompt(hinted_task, rng_labels, {HINT_INDEX: float(hint_index)})


async def _generate_hint(prompt: Observation, hint_index: int, actor: Actor) -> Rollout:
    terms = {IS_HINT: 1.0, HINT_INDEX: float(hint_index)}
    rollout = Rollout(source="hint", role=HINTER_ROLE, reward=0.0, reward_terms=terms)
    return rollout.append_turn(prompt, await actor(rollout, prompt))


def add_and_mark_rejected_hints(group: Group, added_rollouts: Sequence[Rollout]) -> Group:
    """Add the rollouts that generated hints, and the rollouts with a hint, to the group.

    The rollout that generated a hint gets the reward term `hint_rejected` = 1 if no rollout used
    the hint. `SelfHints` rejected the hint, or the prompt with the hint was too long.
    """
    # only the rollouts that generated a hint have the term `is_hint`
    with_hint = (r for r in added_rollouts if IS_HINT not in r.reward_terms)
    used_hints = {r.reward_terms[HINT_INDEX] for r in with_hint}
    marked = (
        r.with_reward_terms({HINT_REJECTED: 1.0})
        if r.reward_terms.get(IS_HINT) and r.reward_terms[HINT_INDEX] not in used_hints
        else r
        for r in added_rollouts
    )
    return add_all(group, tuple(marked))


def with_self_hints(
    inner: GroupSampler,
    num_hints: PositiveInt = 4,
    hint_prompt: Callable[[Task, Rollout], Observation] = HintPrompt(),
    extract_hint: Callable[[str], str] = parse_hint,
    prefix_text: str = "\n\n",
    success_threshold: NumberOrSchedule = 0.5,
) -> Rescue:
    """Adds hints and rollouts with a hint to a group in which all rollouts are incorrect.

    The rollouts with a hint have the `Rollout.source` "with_self_hint" and are trained with the
    hint in their prompt. A rollout that generated a hint is stored with reward 0;
    `HintRoleAdvantage` computes its advantage from the rollouts with the same `hint_index`. HiLL,
    Xia et al. (arXiv:2604.00698).

    Args:
        inner: The sampler of the rollouts without a hint.
        num_hints: Number of hints that are generated.
        hint_prompt: Returns the prompt for a hint, from the task and an incorrect rollout.
        extract_hint: Returns the hint in the generated text; "" if there is none.
        prefix_text: Text between the prompt and the hint.
        success_threshold: A rollout with a higher reward is correct.
    """
    rescue_attempt = RescueAttempt(
        build_prompts=SelfHints(num_hints, hint_prompt, extract_hint, prefix_text),
        merge=add_and_mark_rejected_hints,
        training_prompt=keep_generation_prompt,
        source=WITH_SELF_HINT,
        turn_strategy=inner.turn_strategy,
    )
    return Rescue(inner, (rescue_attempt,), AllIncorrect(success_threshold))


def prompt_without_hint(group: Group, rollout: Rollout) -> Observation | None:
    """The task's own prompt for a rollout with a self-generated hint; None for another rollout."""
    return group.task.prompt if rollout.source == WITH_SELF_HINT else None
