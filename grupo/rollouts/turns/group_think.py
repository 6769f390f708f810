"""Group Think: several thinkers write at the same time, and each reads what all have written."""

from collections.abc import Sequence
from dataclasses import replace

from grupo.core.component import check_field, component
from grupo.core.decoding import LockStep
from grupo.core.forms import fill, placeholders
from grupo.core.interfaces import Actor
from grupo.core.paper import Paper, Source
from grupo.core.private_turns import add_private_turn
from grupo.core.ranges import Calls
from grupo.core.types import Observation, Response, Rollout
from grupo.rollouts.turns.best_of import CHOSEN, as_chosen
from grupo.rollouts.turns.choices import CandidateChoice, text_since
from grupo.rollouts.turns.forced_start import append_forced


@component
class GroupThink:
    """A turn of n thinkers in lock step, whose tokens read the tokens so far of all thinkers.

    Each step generates one token of each thinker, until all have ended. A thinker has a block of
    positions of its own behind the prompt, of the policy's `max_new_tokens` and the longest start,
    so that nothing is read again; blocks become shorter where the context ends. Without a choice,
    the answer is what all thinkers have written, one after the other. The policy must generate in
    this process, from text alone, with rotary positions.

    Args:
        n: Number of thinkers.
        start: Beginning of each thinker's text, in which {number} is its number from 1; "" for
            none. Without a choice it also divides the texts of the answer.
        by: Chooses the text of one thinker as the answer; None for all texts.

    Raises:
        ConfigError: `start` has another placeholder. When the turn is taken: the policy does not
            generate in this process, reads pictures, or has other positions.
    """

    n: Calls = 4
    start: str = "\n\nThinker {number}: "
    by: CandidateChoice | None = None

    provides = CHOSEN

    def __post_init__(self) -> None:
        known = set(placeholders(self.start)) <= {"number"}
        check_field(self, "start", known, "a text with no placeholder but {number}")

    async def __call__(self, actor: Actor, rollout: Rollout, observation: Observation) -> Rollout:
        starts = [await self._start(actor, rollout, observation, i) for i in range(1, self.n + 1)]
        lock_step = LockStep(tuple(start.items for start in starts))
        thoughts = await actor.decode(rollout, observation, lock_step)
        if not thoughts[0].items:  # no room for an answer
            return rollout.append_turn(observation, thoughts[0])
        pairs = list(zip(starts, thoughts, strict=True))
        if self.by is None:
            parts = [(start, _without_end(thought)) for start, thought in pairs[:-1]]
            responses = [response for pair in (*parts, pairs[-1]) for response in pair]
            return as_chosen(rollout, _one_answer(rollout, observation, responses))
        candidates = [_one_answer(rollout, observation, pair) for pair in pairs]
        index = await self.by(actor, rollout, candidates)
        for i, candidate in enumerate(candidates):
            label = f"thinker {i + 1} of {self.n}" + ", chosen" * (i == index)
            add_private_turn(label, text_since(rollout, candidate))
        return as_chosen(rollout, candidates[index])

    async def _start(
        self, actor: Actor, rollout: Rollout, observation: Observation, number: int
    ) -> Response:
        """The given beginning of a thinker's text, which has no token if there is none."""
        if not self.start:
            return Response((), ())
        text = fill(self.start, {"number": str(number)})
        return (await append_forced(actor, rollout, observation, text)).last_response


def _one_answer(
    rollout: Rollout, observation: Observation, responses: Sequence[Response]
) -> Rollout:
    """The rollout with several responses to one observation, each of which continues the last."""
    first, *later = [response for response in responses if response.items]
    answer = rollout.append_turn(observation, first)
    for response in later:
        continuing = replace(response, observation=(), resets_context=False, rewrites_history=False)
        answer = answer.append_turn("", continuing)
    return answer


def _without_end(response: Response) -> Response:
    """The response without its end token, which is not the end of the answer."""
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
        "The text before a thinker's own is our choice.",
        "A block of positions has the policy's max_new_tokens.",
        "A choice of one thinker's text.",
    ),
    shown=(
        "tests/inference/test_lock_step.py::test_cached_steps_equal_one_forward_pass_with_the_mask",
        "docs/answer_time.md#thinkers-that-read-one-another",
    ),
)
