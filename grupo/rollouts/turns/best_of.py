"""Best of n: several attempts at a turn, of which a choice returns one."""

import asyncio
from dataclasses import replace

from grupo.core.component import component
from grupo.core.extract_answer import Extractor, final_answer
from grupo.core.interfaces import Actor, TurnStrategy, single_response
from grupo.core.private_turns import add_private_turn, reject_answers
from grupo.core.ranges import Calls
from grupo.core.requires import Provides
from grupo.core.types import Observation, Rollout
from grupo.rollouts.turns.choices import (
    CandidateChoice,
    Likeliest,
    MostVoted,
    RejectsSome,
    text_since,
)

CHOSEN = Provides(given=True)  # a chosen answer is no sample: no ratio is taken of it


@component
class BestOf:
    """A turn with n attempts, of which one is returned.

    Its responses are marked as not sampled: they are likelier than a sample to be what the choice
    prefers, so losses that take a ratio to the sampling policy refuse the strategy.

    Args:
        n: Number of attempts at the turn.
        by: Chooses one of them.
        inner: Generates an attempt.
    """

    n: Calls = 8
    by: CandidateChoice = Likeliest()
    inner: TurnStrategy = single_response

    provides = CHOSEN

    async def __call__(self, actor: Actor, rollout: Rollout, observation: Observation) -> Rollout:
        turn = len(rollout.turns)
        actors = (actor.fork("attempt", turn, i) for i in range(self.n))
        candidates = await asyncio.gather(*(self.inner(a, rollout, observation) for a in actors))
        index = await self.by(actor, rollout, candidates)
        for i, candidate in enumerate(candidates):
            label = f"attempt {i + 1} of {self.n}" + ", chosen" * (i == index)
            add_private_turn(label, text_since(rollout, candidate))
        if isinstance(self.by, RejectsSome):
            rejected = self.by.rejected(rollout, candidates, index)
        else:
            rejected = [*candidates[:index], *candidates[index + 1 :]]
        reject_answers(text_since(rollout, candidate) for candidate in rejected)
        return as_chosen(rollout, candidates[index])


@component
class Vote:
    """A turn with n attempts, of which the first one with the most frequent answer is returned.

    `BestOf(n, MostVoted(extract))`, which is self-consistency. Ties and missing answers are those
    of `MostVoted`.

    Args:
        n: Number of attempts at the turn.
        extract: Finds the answer in the text of an attempt.
        inner: Generates an attempt.
    """

    n: Calls = 8
    extract: Extractor = final_answer
    inner: TurnStrategy = single_response

    provides = CHOSEN

    async def __call__(self, actor: Actor, rollout: Rollout, observation: Observation) -> Rollout:
        best = BestOf(self.n, MostVoted(self.extract), self.inner)
        return await best(actor, rollout, observation)


def as_chosen(before: Rollout, rollout: Rollout) -> Rollout:
    """The rollout whose responses after those of `before` are marked as not sampled."""
    start = len(before.turns)
    new = ((o, replace(response, sampled=False)) for o, response in rollout.turns[start:])
    return replace(rollout, turns=(*rollout.turns[:start], *new))
