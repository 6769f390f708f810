"""Trimmed thinking: a chain of thought is paired with its shortest beginning that is enough."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from grupo.core.component import check_field, component
from grupo.core.interfaces import Actor, Env, initial_observation, run_rollout, score_group
from grupo.core.numbers import Fraction, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.types import Group, Rollout, Task

CUES = ("Wait", "Alternatively", "Let me check", "Hmm")


@component
class TrimmedThinking:
    """A pair made of one chain of thought: trimmed with reward 1, and as generated with reward 0.

    The chain is cut before the first cue, then before the second, and so on. At a cut,
    `instruction` and `think_end` are forced, and `attempts` answers are generated. The cut is
    accepted if the fraction of correct answers is at least `threshold`. The first accepted cut with
    its first correct answer is the trimmed chain. Without one, the group has only the whole chain.

    DTO, An et al. (arXiv:2505.21765).

    Args:
        cues: Texts that begin a new segment of thinking.
        attempts: Number of answers at each cut.
        threshold: Smallest fraction of correct answers at an accepted cut.
        instruction: Text that is forced at a cut.
        think_end: Text that ends the thinking.
        success_threshold: An answer with a higher reward is correct.
    """

    cues: tuple[str, ...] = CUES
    attempts: PositiveInt = 8
    threshold: Fraction = 0.5
    instruction: str = "\n"
    think_end: str = "</think>"
    success_threshold: NumberOrSchedule = 0.5

    def __post_init__(self) -> None:
        check_field(self, "cues", all(self.cues) and bool(self.cues), "one text or more")

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        observation = await initial_observation(task, env)
        response = await actor.with_stop(self.think_end)(Rollout(), observation)
        thinking = Rollout().append_turn(observation, response)
        original = thinking
        if response.finish_reason == "stop":
            original = thinking.append_turn("", await actor.fork("answer")(thinking, ""))
        original = await run_rollout(task, env, actor.fork("on"), original)
        for i, cut in enumerate(cut_positions(actor, thinking, self.cues)):
            trimmed = await self._answer_at(task, env, actor.fork("cut", i), thinking, cut)
            if trimmed:
                pair = (replace(trimmed, reward=1.0), replace(original, reward=0.0))
                return Group(task, pair)
        return Group(task, (replace(original, reward=0.0),))

    async def _answer_at(
        self, task: Task, env: Env, actor: Actor, thinking: Rollout, cut: int
    ) -> Rollout | None:
        """The first correct rollout after a cut; None if too few are correct."""
        shortened = actor.truncate(thinking, cut)
        forced = await actor.prefill_forced(shortened, "", self.instruction + self.think_end)
        ended_thinking = shortened.append_turn("", forced)

        async def attempt(index: int) -> Rollout:
            forked = actor.fork(index)
            answered = ended_thinking.append_turn("", await forked(ended_thinking, ""))
            return await run_rollout(task, env, forked.fork("on"), answered)

        rollouts = await asyncio.gather(*map(attempt, range(self.attempts)))
        group = await score_group(task, env, rollouts)
        correct = [r for r in group.rollouts if not r.error and r.reward > self.success_threshold]
        is_accepted = len(correct) >= self.threshold * self.attempts
        return correct[0] if correct and is_accepted else None


def cut_positions(actor: Actor, thinking: Rollout, cues: Sequence[str]) -> list[int]:
    """The number of tokens before each cue of the thinking, in ascending order; 0 is left out.

    Args:
        actor: Decodes prefixes of the thinking, to find the token at a character.
        thinking: A rollout whose last response is the thinking.
        cues: Texts that begin a segment.
    """
    response = thinking.last_response
    text = response.text
    starts = {i for i in range(len(text)) if text.startswith(tuple(cues), i)}
    positions = {_tokens_before(actor, thinking, start) for start in starts}
    return sorted(positions - {0, len(response.items)})


def _tokens_before(actor: Actor, thinking: Rollout, characters: int) -> int:
    """The largest number of first tokens whose text has at most this many characters."""
    low, high = 0, len(thinking.last_response.items)
    while low < high:
        middle = (low + high + 1) // 2
        if len(actor.truncate(thinking, middle).last_response.text) <= characters:
            low = middle
        else:
            high = middle - 1
    return low


PAPER = Paper(
    title="Don't Think Longer, Think Wisely: Optimizing Thinking Dynamics for Large Reasoning "
    "Models",
    use="Chains of thought go on after the answer is known.",
    tags=("length", "preferences"),
    kind="sampler",
    catalogue=("dto-thinking-patterns",),
    checked=("golden", "run"),
    source=Source("abstract", "arXiv:2505.21765, abstract; two reviews of the paper"),
    missing=("Segments in the middle that an auxiliary model judges useless are not dropped.",),
    deviations=("Cues, number of attempts and threshold are our choice.",),
    shown=(
        "tests/rollouts/samplers/test_trimmed_training.py"
        "::test_thinking_becomes_shorter_and_accuracy_falls_slightly",
    ),
)
