"""Group Think: several texts are generated in lock step, and each one attends to all of them."""

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from grupo.core.component import check_field, component
from grupo.core.decoding import LockStep
from grupo.core.forms import fill, placeholders
from grupo.core.interfaces import Actor
from grupo.core.paper import Paper, Source
from grupo.core.private_turns import add_private_turn
from grupo.core.ranges import Calls
from grupo.core.types import Observation, Response, Rollout
from grupo.rollouts.turns.best_of import NOT_SAMPLED, mark_not_sampled
from grupo.rollouts.turns.choices import CandidateChoice, text_since
from grupo.rollouts.turns.forced_start import append_forced
from grupo.rollouts.turns.join_responses import join_responses


@component
class GroupThink:
    """A turn in which n thinkers each generate a text, in lock step.

    Each step generates one token for each thinker, until all texts have ended. A token attends to
    the tokens so far of all thinkers. Each thinker has a block of positions after the prompt, so
    that no token changes its position and is computed again. A block has room for the longest start
    and for the policy's `max_new_tokens`. Blocks are shorter if the context has less room.

    Without a `choice`, the answer is the texts of all thinkers, one after the other. The policy
    must generate in this process, from text alone, with rotary positions.

    Args:
        n: Number of thinkers.
        start: Beginning of each thinker's text; "" for none. {number} is the thinker's number, from
            1. In an answer of all texts, the starts separate the texts.
        choice: Chooses the text of one thinker as the answer; None for all texts.

    Raises:
        ConfigError: `start` has a placeholder other than {number}. When the turn is taken: the
            policy does not generate in this process, reads pictures, or has no rotary positions.
    """

    n: Calls = 4
    start: str = "\n\nThinker {number}: "
    choice: CandidateChoice | None = None

    provides = NOT_SAMPLED

    def __post_init__(self) -> None:
        has_known_placeholders = set(placeholders(self.start)) <= {"number"}
        check_field(
            self, "start", has_known_placeholders, "a text with no placeholder but {number}"
        )

    async def __call__(self, actor: Actor, rollout: Rollout, observation: Observation) -> Rollout:
        starts = [await self._start(actor, rollout, observation, i) for i in range(1, self.n + 1)]
        lock_step = LockStep(tuple(start.items for start in starts))
        thoughts = await actor.decode(rollout, observation, lock_step)
        if not thoughts[0].items:  # no room for an answer
            return rollout.append_turn(observation, thoughts[0])
        if self.choice is None:
            answer = _written_together(starts, thoughts)
            return mark_not_sampled(rollout, rollout.append_turn(observation, answer))
        candidates = [
            _candidate(rollout, observation, start, thought)
            for start, thought in zip(starts, thoughts, strict=True)
        ]
        index = await self.choice(actor, rollout, candidates)
        for i, candidate in enumerate(candidates):
            label = f"thinker {i + 1} of {self.n}" + ", chosen" * (i == index)
            add_private_turn(label, text_since(rollout, candidate))
        return mark_not_sampled(rollout, candidates[index])

    async def _start(
        self, actor: Actor, rollout: Rollout, observation: Observation, number: int
    ) -> Response:
        """The beginning of a thinker's text as a response, without tokens if `start` is ""."""
        if not self.start:
            return Response((), ())
        text = fill(self.start, {"number": str(number)})
        return (await append_forced(actor, rollout, observation, text)).last_response


def _written_together(starts: Sequence[Response], thoughts: Sequence[Response]) -> Response:
    """One response with all texts; only the last text keeps its end token."""
    shortened = [*map(_without_end, thoughts[:-1]), thoughts[-1]]
    parts = (part for pair in zip(starts, shortened, strict=True) for part in pair)
    whole = reduce(join_responses, parts)
    return replace(
        thoughts[0],
        items=whole.items,
        logp=whole.logp,
        text=whole.text,
        finish_reason=whole.finish_reason,
    )


def _candidate(
    rollout: Rollout, observation: Observation, start: Response, thought: Response
) -> Rollout:
    """The rollout with the text of one thinker; the start of the text is a separate response."""
    if not start.items:
        return rollout.append_turn(observation, thought)
    continuing = replace(thought, observation=(), resets_context=False, rewrites_history=False)
    return rollout.append_turn(observation, start).append_turn("", continuing)


def _without_end(response: Response) -> Response:
    """The response without its end token, because the text of another thinker follows."""
    if response.finish_reason != "end":
        return response
    return replace(response, items=response.items[:-1], logp=response.logp[:-1])


PAPER = Paper(
    title="Group Think: Multiple Concurrent Reasoning Agents Collaborating at Token Level"
    " Granularity",
    use="Answers that divide into parts, such as lists, and less time than one long answer takes.",
    tags=("exploration",),
    kind="evaluation",
    catalogue=("group-think",),
    checked=("golden", "reference", "run"),
    source=Source(
        "abstract",
        "arXiv:2505.11107, abstract and summaries of the paper; the catalogue's row. The paper"
        " itself was not opened, and no released code was found.",
    ),
    missing=(
        "Training on texts that were written together: losses with a ratio refuse the strategy.",
        "Batches of several prompts: one prompt after the other is decoded.",
        "Native kernels for the steps, which the model's own modules compute.",
        "The paper's models and tasks: shortest paths and programs.",
    ),
    deviations=(
        "The text at the beginning of a thinker's text is our choice.",
        "A block of positions has the policy's max_new_tokens.",
        "A choice of one thinker's text.",
    ),
    shown=(
        "tests/inference/test_lock_step.py::test_cached_steps_equal_one_forward_pass_with_the_mask",
        "docs/answer_time.md#thinkers-that-read-one-another",
    ),
)
