"""Best of n: several attempts at a turn, one of which is returned."""

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
    NamesRejected,
    text_since,
)

# a chosen answer is not a sample of the policy, so no loss may take a ratio of its probability
NOT_SAMPLED = Provides(given=True)


@component
class BestOf:
    """A turn with n attempts, of which one is returned.

    The responses of the turn are marked as not `sampled`, because the choice has another
    distribution than the policy. A method whose loss takes a ratio to the sampling policy is
    refused with this strategy.

    Args:
        n: Number of attempts at the turn.
        choice: Chooses one of the attempts.
        inner: Generates an attempt.
    """

    n: Calls = 8
    choice: CandidateChoice = Likeliest()
    inner: TurnStrategy = single_response

    provides = NOT_SAMPLED

    async def __call__(self, actor: Actor, rollout: Rollout, observation: Observation) -> Rollout:
        turn = len(rollout.turns)
        actors = (actor.fork("attempt", turn, i) for i in range(self.n))
        candidates = await asyncio.gather(*(self.inner(a, rollout, observation) for a in actors))
        index = await self.choice(actor, rollout, candidates)
        for i, candidate in enumerate(candidates):
            label = f"attempt {i + 1} of {self.n}" + ", chosen" * (i == index)
            add_private_turn(label, text_since(rollout, candidate))
        if isinstance(self.choice, NamesRejected):
            rejected = self.choice.rejected(rollout, candidates, index)
        else:
            rejected = [*candidates[:index], *candidates[index + 1 :]]
        reject_answers(text_since(rollout, candidate) for candidate in rejected)
        return mark_not_sampled(rollout, candidates[index])


@component
class Vote:
    """A turn with n attempts, which returns the first one with the most frequent answer.

    It is `BestOf(n, MostVoted(extract))`, known as self-consistency. `MostVoted` says what happens
    if answers tie or are missing.

    Args:
        n: Number of attempts at the turn.
        extract: Finds the answer in the text of an attempt.
        inner: Generates an attempt.
    """

    n: Calls = 8
    extract: Extractor = final_answer
    inner: TurnStrategy = single_response

    provides = NOT_SAMPLED

    async def __call__(self, actor: Actor, rollout: Rollout, observation: Observation) -> Rollout:
        best = BestOf(self.n, MostVoted(self.extract), self.inner)
        return await best(actor, rollout, observation)


def mark_not_sampled(before: Rollout, rollout: Rollout) -> Rollout:
    """The rollout with the responses of the turn after `before` marked as not `sampled`."""
    start = len(before.turns)
    marked = ((o, replace(response, sampled=False)) for o, response in rollout.turns[start:])
    return replace(rollout, turns=(*rollout.turns[:start], *marked))
