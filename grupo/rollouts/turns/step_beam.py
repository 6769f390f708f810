"""Beam search over steps, ranked by a value head. OVM, Yu et al., 2023, arXiv:2311.09724."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

from grupo.core.component import check_field, component
from grupo.core.interfaces import Actor
from grupo.core.paper import Paper, Source
from grupo.core.ranges import Calls, NonEmptyString, PositiveInt
from grupo.core.types import Observation, Response, Rollout
from grupo.rollouts.turns.join_responses import join_responses


@dataclass(frozen=True)
class _Beam:
    """A partial or finished answer.

    Args:
        rollout: The rollout with the answer as its last response. Before the first step, it has no
            such response.
        is_finished: Whether the policy or a token limit has ended the answer.
        value: Output of the head for the answer.
    """

    rollout: Rollout
    is_finished: bool = False
    value: float = 0.0


@component
class StepBeam:
    """Beam search over the steps of an answer, ranked by a value head.

    A beam is a partial or finished answer. In each round, `samples_per_round` next steps are
    sampled, the same number after each unfinished beam. Of the new beams and of those that were
    finished before, the `width` beams with the highest values are kept. Of identical beams one is
    kept. The search ends when all kept beams are finished, or after `max_steps` rounds. It returns
    the finished beam with the highest value, or the beam with the highest value if none is
    finished.

    The value of a partial answer is the head's output after its last token. The value of a finished
    answer is the output before its last token, because heads are not trained on the state after it.
    The response is marked as not `sampled`, because the head has chosen it.

    Args:
        head: Name of an auxiliary head of the policy.
        width: Number of beams that are kept.
        samples_per_round: Number of steps that are sampled in a round; `width` or more.
        step_end: Text that ends a step.
        max_steps: Largest number of steps in an answer.

    Raises:
        ConfigError: `samples_per_round` is below `width`. When the turn is taken: the policy has
            no such head.
    """

    head: NonEmptyString = "value"
    width: Calls = 4
    samples_per_round: Calls = 20
    step_end: NonEmptyString = "\n"
    max_steps: PositiveInt = 10

    def __post_init__(self) -> None:
        check_field(
            self,
            "samples_per_round",
            self.samples_per_round >= self.width,
            f"{self.width}, the width, or more",
        )

    @property
    def read_heads(self) -> tuple[str, ...]:
        """The name of the head."""
        return (self.head,)

    async def __call__(self, actor: Actor, rollout: Rollout, observation: Observation) -> Rollout:
        beams: Sequence[_Beam] = [_Beam(rollout)]
        for step in range(self.max_steps):
            step_actor = actor.fork("step", len(rollout.turns), step).with_stop(self.step_end)
            unfinished = [beam.rollout for beam in beams if not beam.is_finished]
            rollouts = await self._expand(step_actor, unfinished, rollout, observation)
            new_beams = await asyncio.gather(*(self._evaluate(actor, path) for path in rollouts))
            candidates = [*(beam for beam in beams if beam.is_finished), *new_beams]
            beams = sorted(candidates, key=lambda beam: -beam.value)[: self.width]
            if all(beam.is_finished for beam in beams):
                break
        best = max(beams, key=lambda beam: (beam.is_finished, beam.value))
        *turns, (_, response) = best.rollout.turns
        return replace(
            best.rollout, turns=(*turns, (observation, replace(response, sampled=False)))
        )

    async def _expand(
        self, actor: Actor, paths: Sequence[Rollout], start: Rollout, observation: Observation
    ) -> Sequence[Rollout]:
        """The distinct continuations of the unfinished beams by one step."""
        copies = [path for path in paths for _ in range(self.samples_per_round // len(paths))]
        steps = await asyncio.gather(
            *(
                actor.fork(number)(path, observation if path is start else "")
                for number, path in enumerate(copies)
            )
        )
        extended = (
            start.append_turn(observation, _extended(path, start, step))
            for path, step in zip(copies, steps, strict=True)
        )
        distinct = {rollout.last_response.items: rollout for rollout in extended}
        return list(distinct.values())

    async def _evaluate(self, actor: Actor, rollout: Rollout) -> _Beam:
        """The beam of a rollout, with the value that the head predicts."""
        last = rollout.last_response
        if not last.items:  # the context has no room for an answer
            return _Beam(rollout, is_finished=True, value=-inf)
        is_partial = last.finish_reason == "stop" and self.step_end in last.text
        state = rollout if is_partial else actor.truncate(rollout, len(last.items) - 1)
        return _Beam(rollout, not is_partial, await actor.predict_head(state, self.head))


def _extended(path: Rollout, start: Rollout, step: Response) -> Response:
    """The answer of `path` with one more step, as one response."""
    return step if path is start else join_responses(path.last_response, step)


PAPER = Paper(
    title="OVM, Outcome-supervised Value Models for Planning in Mathematical Reasoning",
    kind="evaluation",
    use="A head predicts whether a partial answer will be right, and answers have steps.",
    tags=("critic", "process-reward"),
    checked=("golden",),
    catalogue=("ovm",),
    source=Source(
        "third_party",
        "the catalogue's row, which quotes FreedomIntelligence/OVM, scripts/gsm8k and"
        " utils/verifier_models.py; the code was not opened again",
    ),
    missing=(
        "Training of the head on labelled answers as one method: OutcomeValueLoss, NLL and a"
        " DeepHead are its parts.",
        "The state of the end token, at which the release values a finished answer.",
        "GSM8K, and the comparison with a vote at equal tokens.",
    ),
    deviations=(
        "The steps of a round are shared among the unfinished beams, also if these are fewer than"
        " the width; the release samples K / b steps for each beam.",
        "The temperature is that of the policy; the release samples at 0.7.",
    ),
    shown=(
        "tests/rollouts/turns/test_step_beam.py::test_beam_of_one_finds_what_sampling_finds_half"
        "_the_time",
    ),
)
