"""Choices: rules that choose one of several candidates, which are attempts at the same turn.

A choice reads the candidates and, through the actor, the policy. It never receives the task, so it
cannot read the reference answer.
"""

import asyncio
from collections import Counter
from collections.abc import Hashable, Sequence
from statistics import fmean
from typing import Protocol, runtime_checkable

from grupo.core.component import component
from grupo.core.extract_answer import Extractor, final_answer
from grupo.core.interfaces import Actor
from grupo.core.protocols import implemented_in
from grupo.core.ranges import NonEmptyString
from grupo.core.types import Rollout, turn_text
from grupo.core.usage import add_external_usage
from grupo.util.errors import ConfigError


@implemented_in("grupo.rewards.choices")
class CandidateChoice(Protocol):
    """Chooses one of several candidates."""

    async def __call__(
        self, actor: Actor, before: Rollout, candidates: Sequence[Rollout], /
    ) -> int:
        """The index of the chosen candidate.

        Args:
            actor: The policy, whose heads or replies a choice may use.
            before: The rollout before the turn.
            candidates: For each attempt at the turn, the rollout after the turn.
        """
        ...


@runtime_checkable
class NamesRejected(Protocol):
    """A choice that names the candidates that it rejects.

    For other choices, all candidates but the chosen one count as rejected.
    """

    def rejected(
        self, before: Rollout, candidates: Sequence[Rollout], index: int, /
    ) -> Sequence[Rollout]:
        """The candidates that count as worse than the chosen one, which is at `index`."""
        ...


@component
class MostVoted:
    """The first candidate with the most frequent answer: self-consistency.

    If several answers are the most frequent, the earliest one wins. A candidate without an answer,
    or with an empty one, does not vote. If no candidate votes, the first candidate is chosen. The
    usage `votes/all` counts votes, `votes/tied` counts votes with several most frequent answers,
    and `votes/empty` counts votes in which no candidate votes. Wang et al., 2022, arXiv:2203.11171.

    Args:
        extract: Finds the answer in the text of the turn.
    """

    extract: Extractor = final_answer

    async def __call__(self, actor: Actor, before: Rollout, candidates: Sequence[Rollout]) -> int:
        return index_of_most_voted(self._answers(before, candidates))

    def rejected(
        self, before: Rollout, candidates: Sequence[Rollout], index: int
    ) -> Sequence[Rollout]:
        """The candidates with another answer, or without one. No candidate if none voted."""
        answers = self._answers(before, candidates)
        pairs = zip(candidates, answers, strict=True)
        return [x for x, answer in pairs if answers[index] and answer != answers[index]]

    def _answers(self, before: Rollout, candidates: Sequence[Rollout]) -> list[str | None]:
        return [self.extract(text_since(before, rollout)) or None for rollout in candidates]


def index_of_most_voted(answers: Sequence[Hashable | None]) -> int:
    """Index of the first attempt with the most frequent answer; counts the vote in the usage.

    Args:
        answers: The answer of each attempt; None does not vote.
    """
    votes = Counter(answer for answer in answers if answer is not None)
    top = sorted(votes.values(), reverse=True)[:2]
    is_tied = len(top) == 2 and top[0] == top[1]
    counts = {"votes/all": 1, "votes/tied": is_tied, "votes/empty": not votes}
    add_external_usage({name: float(count) for name, count in counts.items()})
    return most_voted(answers)


def most_voted(answers: Sequence[Hashable | None]) -> int:
    """Index of the first of the most frequent answers. None does not vote; 0 if all are None.

    >>> most_voted(["a", "b", "b"]), most_voted(["a", None, "b"]), most_voted([None, "b"])
    (1, 0, 1)
    """
    votes = Counter(answer for answer in answers if answer is not None)
    if not votes:
        return 0
    return answers.index(max(votes, key=votes.__getitem__))  # the first of equal ones


@component
class Likeliest:
    """The candidate with the largest mean log-probability of its sampled tokens.

    The log-probabilities are those of the sampling distribution, in nats. Of candidates with
    equal means, the earliest one is chosen.
    """

    async def __call__(self, actor: Actor, before: Rollout, candidates: Sequence[Rollout]) -> int:
        values = [mean_logp(before, rollout) for rollout in candidates]
        return values.index(max(values))


def mean_logp(before: Rollout, candidate: Rollout) -> float:
    """Mean log-probability of the tokens that a turn sampled, in nats; -inf if it has none."""
    responses = [response for _, response in candidate.turns[len(before.turns) :]]
    generated = [response for response in responses if response.in_loss]
    if any(len(response.logp) < len(response.items) for response in generated):
        raise ConfigError(
            "strategy: Likeliest needs log-probabilities, and the engine returned none. Allowed:"
            " an engine that returns them, or another choice, such as MostVoted()."
        )
    logp = [value for response in generated for value in response.logp]
    return fmean(logp) if logp else float("-inf")


@component
class ByHead:
    """The candidate for which an auxiliary head of the policy predicts the largest value.

    The head is read before the last token of each candidate, which is the last position that heads
    are trained on. Of candidates with equal values, the earliest one is chosen.

    Args:
        head: Name of a head that the policy was trained with, such as "score".
    """

    head: NonEmptyString

    @property
    def read_heads(self) -> tuple[str, ...]:
        """The name of the head."""
        return (self.head,)

    async def __call__(self, actor: Actor, before: Rollout, candidates: Sequence[Rollout]) -> int:
        values = await head_values(actor, candidates, self.head)
        return values.index(max(values))


@component
class HeadVote:
    """The candidate whose answer has the largest sum of a head's predictions: a weighted vote.

    The weight of an answer is the sum of the predictions for the candidates that give it, where a
    prediction below 0 counts as 0. A candidate without an answer stands for an answer of its own.
    Of the candidates with the winning answer, the one with the largest prediction is chosen. The
    head is read before the last token of each candidate, see `ByHead`. MedS3, Jiang et al.,
    2025, arXiv:2501.12051.

    Args:
        head: Name of a head that the policy was trained with, such as "process".
        extract: Finds the answer in the text of the turn.
    """

    head: NonEmptyString = "process"
    extract: Extractor = final_answer

    @property
    def read_heads(self) -> tuple[str, ...]:
        """The name of the head."""
        return (self.head,)

    async def __call__(self, actor: Actor, before: Rollout, candidates: Sequence[Rollout]) -> int:
        values = await head_values(actor, candidates, self.head)
        answers = [self.extract(text_since(before, rollout)) or None for rollout in candidates]
        return weighted_vote(answers, values)


def weighted_vote(answers: Sequence[Hashable | None], weights: Sequence[float]) -> int:
    """Index of the largest weight of the winning answer: the one with the largest sum of weights.

    Weights below 0 add 0 to the sum. A candidate whose answer is None stands for itself.

    >>> weighted_vote(["a", "b", "b"], [0.75, 0.5, 0.25]), weighted_vote(["a", "b"], [0.75, 0.25])
    (0, 0)
    >>> weighted_vote(["a", "b", "b"], [0.75, 0.5, 0.5]), weighted_vote([None, None], [0.25, 0.75])
    (1, 1)
    """
    keys = [(answer, i if answer is None else -1) for i, answer in enumerate(answers)]
    votes: dict[Hashable, float] = {}
    for key, weight in zip(keys, weights, strict=True):
        votes[key] = votes.get(key, 0.0) + max(0.0, weight)
    return max(range(len(keys)), key=lambda i: (votes[keys[i]], weights[i]))


async def head_values(actor: Actor, candidates: Sequence[Rollout], head: str) -> Sequence[float]:
    """The predictions of a head before the last token of each candidate."""
    states = [_before_last_token(actor, rollout) for rollout in candidates]
    return await asyncio.gather(*(actor.predict_head(state, head) for state in states))


def _before_last_token(actor: Actor, rollout: Rollout) -> Rollout:
    """The rollout without the last token of its answer, if the answer has a token."""
    count = len(rollout.last_response.items)
    return actor.truncate(rollout, count - 1) if count else rollout


def text_since(before: Rollout, rollout: Rollout) -> str:
    """The text of the turn that `rollout` has after `before`."""
    return "".join(turn_text(*turn) for turn in rollout.turns[len(before.turns) :])
