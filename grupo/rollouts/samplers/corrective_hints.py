"""Corrective hints: a wrong answer is cut at a flaw and continued after a short hint."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

from grupo.core.component import check_field, component
from grupo.core.interfaces import Actor, Env, score_group
from grupo.core.numbers import Fraction, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.ranges import NonEmptyString
from grupo.core.requires import Provides
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.intervener import AskedIntervener
from grupo.rollouts.samplers.rethinking import cut_back, without_end
from grupo.rollouts.samplers.wrapper import SamplerWrapper
from grupo.rollouts.turns.forced_start import append_forced

CORRECTED = "corrected"  # `Rollout.source` of an answer with hints
HINT_SHARE = "hint_share"  # name of the reward term
# (task, text) -> (flawed part of the text, hint), or None if the text has no flaw
FlawFinder = Callable[[Task, str], tuple[str, str] | None]


@component
class TextFlaws:
    """Finds a flaw in an answer: the first rule whose text occurs in the answer.

    Args:
        rules: Pairs of a text that shows a flaw and the hint that replaces this text.

    >>> find_flaw = TextFlaws((("by hand", "I should write code."),))
    >>> find_flaw(Task("k", "?"), "I add by hand"), find_flaw(Task("k", "?"), "I run code")
    (('by hand', 'I should write code.'), None)
    """

    rules: tuple[tuple[NonEmptyString, NonEmptyString], ...]

    def __post_init__(self) -> None:
        check_field(self, "rules", bool(self.rules), "at least one pair of a text and a hint")

    def __call__(self, task: Task, text: str) -> tuple[str, str] | None:
        return next((rule for rule in self.rules if rule[0] in text), None)


@component
class CorrectiveHints(SamplerWrapper):
    """Adds corrected copies of wrong rollouts to the group.

    A wrong rollout of one turn is corrected in up to `max_rounds` rounds. In a round, `find_flaw`
    reads the text that the policy generated last. The rollout is cut before the last occurrence of
    the flawed part, the hint is forced there, and the policy continues. The corrected rollout is
    added if it is correct and its share of hint tokens is below `max_hint_share`.

    A corrected rollout has the source "corrected". Its hints are trained on like a demonstration,
    and are marked as not sampled. The reward term `hint_share` is the share of hint tokens, and 0
    for other rollouts.

    CALM, Tang et al. (arXiv:2510.04204).

    Args:
        inner: The sampler of the group.
        find_flaw: The paper's intervener: a function that returns the flawed part of a text and a
            hint, or None; or a model that is asked for them.
        max_rounds: Largest number of hints in a rollout (our choice).
        max_hint_share: The share of hint tokens in a rollout must be below this (paper: 2.6 %).
        success_threshold: A rollout with a higher reward is correct.
    """

    find_flaw: FlawFinder | AskedIntervener
    max_rounds: PositiveInt = 5
    max_hint_share: Fraction = 0.026
    success_threshold: NumberOrSchedule = 0.5

    @property
    def provides(self) -> Provides:
        """The reward term, and the role of a model that intervenes."""
        model = self.find_flaw if isinstance(self.find_flaw, AskedIntervener) else None
        roles = model.provides.roles if model else ()
        return Provides(reward_terms=(HINT_SHARE,), roles=roles)

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        group = await self.inner(task, env, actor)
        corrected = await asyncio.gather(
            *(
                self._corrected(task, rollout, env, actor.fork("correct", i))
                for i, rollout in enumerate(group.rollouts)
                if not rollout.error and len(rollout.turns) == 1
            )
        )
        kept = [rollout for rollout in corrected if self._is_kept(rollout)]
        rollouts = (*group.rollouts, *(replace(rollout, source=CORRECTED) for rollout in kept))
        return group.with_rollouts(map(_with_hint_share, rollouts))

    async def _corrected(self, task: Task, rollout: Rollout, env: Env, actor: Actor) -> Rollout:
        """The scored rollout after its corrections; a correct rollout is returned unchanged."""
        for round_index in range(self.max_rounds):
            if rollout.reward > self.success_threshold or rollout.error:
                break
            flaw = await self._flaw(task, env, actor.fork("flaw", round_index), rollout)
            if flaw is None:
                break
            flawed_part, hint = flaw
            beginning = cut_back(without_end(rollout, actor), actor, (flawed_part,))
            hinted = await append_forced(actor, beginning, "", hint)
            response = await actor.fork(round_index)(hinted, "")
            if not response.items:  # the context has no room left
                break
            group = await score_group(task, env, [hinted.append_turn("", response)])
            rollout = group.rollouts[0]
        return rollout

    async def _flaw(
        self, task: Task, env: Env, actor: Actor, rollout: Rollout
    ) -> tuple[str, str] | None:
        """The flawed part of what the policy generated last, and its hint."""
        text = rollout.last_response.text
        if isinstance(self.find_flaw, AskedIntervener):
            return await self.find_flaw.find_flaw(task, env, actor, text)
        return self.find_flaw(task, text)

    def _is_kept(self, rollout: Rollout) -> bool:
        is_correct = not rollout.error and rollout.reward > self.success_threshold
        return is_correct and 0 < hint_share(rollout) < self.max_hint_share


def hint_share(rollout: Rollout) -> float:
    """The fraction of a rollout's tokens that were not sampled."""
    num_hint_tokens = sum(len(r.items) for _, r in rollout.turns if not r.sampled)
    return num_hint_tokens / max(rollout.length, 1)


def _with_hint_share(rollout: Rollout) -> Rollout:
    """The rollout with its reward term; all responses of a corrected rollout are trained on."""
    if rollout.source != CORRECTED:
        return rollout.with_reward_terms({HINT_SHARE: 0.0})
    turns = ((observation, replace(r, in_loss=True)) for observation, r in rollout.turns)
    trained = replace(rollout, turns=tuple(turns))
    return trained.with_reward_terms({HINT_SHARE: hint_share(rollout)})


PAPER = Paper(
    title="CALM Before the STORM: Unlocking Native Reasoning for Optimization Modeling",
    use="Wrong answers have flaws that a rule or a model recognises, and a short hint mends them.",
    tags=("hints", "sft"),
    kind="sampler",
    catalogue=("calm-storm",),
    checked=("golden", "run"),
    source=Source("abstract", "arXiv:2510.04204, abstract"),
    missing=(
        "A table with a model as intervener: `AskedIntervener` was run by a script alone.",
        "Tool calls in the middle of a trace: in `recipes/guidance/calm_storm.py` an answer is one"
        " program, without tool calls.",
    ),
    deviations=(
        "max_hint_share bounds the hints of each rollout; the abstract states 2.6 % of all tokens.",
        "The number of rounds is our choice, and so is the relative difference within which"
        " `grupo.envs.PrintedNumber` compares numbers.",
    ),
    shown=(
        "docs/guidance_shown/calm_storm.md#calm-and-storm-on-production-plans",
        "tests/rollouts/samplers/test_corrective_hints.py"
        "::test_a_wrong_rollout_is_cut_before_its_flaw_and_goes_on_behind_the_hint",
        "tests/envs/test_printed_number.py::test_a_program_that_calls_a_solver_finds_the_optimum",
    ),
)
