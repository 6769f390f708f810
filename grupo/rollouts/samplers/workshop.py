"""Workshops: the policy drafts an answer, a reviewer criticises it, and the policy revises it."""

import asyncio
from dataclasses import replace

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env, initial_observation, run_rollout, score_group
from grupo.core.numbers import PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Provides
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.hints import append_to_prompt

REVIEWER_ROLE = "reviewer"  # the role of the policy that criticises
REVIEW = "\n\nAnswer: {answer}\n\nCriticise this answer."
REVISE = "\n\nAnswer: {answer}\n\nReview: {review}\n\nAnswer again."


@component
class Workshop:
    """A group of two rollouts: a draft, and its last revision after reviews, both scored.

    In each round, the policy of the role `reviewer` criticises the answer, and the policy answers
    again. In a recipe without this role, the policy is its own reviewer. The revision has the
    source "revision" and is trained with the task's own prompt. A loss on preferences pairs the two
    rollouts by their rewards. "The Fellowship of the LLMs" trains a single model on such pairs.

    Args:
        rounds: Number of reviews, each followed by a revision.
        review: Text at the end of the prompt of a review, with the field {answer}.
        revise: Text at the end of the prompt of a revision, with {answer} and {review}.
    """

    rounds: PositiveInt = 2
    review: str = REVIEW
    revise: str = REVISE

    provides = Provides(roles=(REVIEWER_ROLE,))

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        draft = await run_rollout(task, env, actor.fork("draft"))
        revision = draft
        for i in range(self.rounds):
            review = await review_of(task, revision, env, actor.fork("review", i), self.review)
            writer = actor.fork("revise", i)
            revision = await revised(task, revision, review, env, writer, self.revise)
        return await score_group(task, env, [draft, revision])


@component
class ReviewPairs:
    """A group of reviews of one draft. The reward of a review is the reward of its revision.

    The rollouts have the role `reviewer`. "The Fellowship of the LLMs" trains the reviewer of its
    workflow on pairs of such reviews.

    Args:
        reviews: Number of reviews of the draft.
        review: Text at the end of the prompt of a review, with the field {answer}.
        revise: Text at the end of the prompt of a revision, with {answer} and {review}.
    """

    reviews: PositiveInt = 2
    review: str = REVIEW
    revise: str = REVISE

    provides = Provides(roles=(REVIEWER_ROLE,), trained_roles=(REVIEWER_ROLE,))

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        draft = await run_rollout(task, env, actor.fork("draft"))

        async def review_and_revision(index: int) -> tuple[Rollout, Rollout]:
            forked = actor.fork("review", index)
            review = await review_of(task, draft, env, forked, self.review)
            return review, await revised(task, draft, review, env, forked.fork("on"), self.revise)

        pairs = await asyncio.gather(*map(review_and_revision, range(self.reviews)))
        scored = await score_group(task, env, [revision for _, revision in pairs])
        reviews = (
            replace(review, reward=revision.reward, error=revision.error)
            for (review, _), revision in zip(pairs, scored.rollouts, strict=True)
        )
        return Group(task, tuple(reviews))


async def review_of(task: Task, answer: Rollout, env: Env, actor: Actor, request: str) -> Rollout:
    """A rollout of one turn in which the policy of the role `reviewer` reviews an answer."""
    review_task = append_to_prompt(task, request.format(answer=answer.text))
    rollout = Rollout(source="review", role=REVIEWER_ROLE)
    observation = await initial_observation(review_task, env)
    return rollout.append_turn(observation, await actor(rollout, observation))


async def revised(
    task: Task, answer: Rollout, review: Rollout, env: Env, actor: Actor, request: str
) -> Rollout:
    """A revision, generated with the answer and its review, with the task's own prompt."""
    revision_task = append_to_prompt(task, request.format(answer=answer.text, review=review.text))
    rollout = await run_rollout(revision_task, env, actor, Rollout(source="revision"))
    return actor.with_prompt(rollout, await initial_observation(task, env))


PAPER = Paper(
    title="The Fellowship of the LLMs: Multi-Agent Workflows for Synthetic Preference Optimization "
    "Dataset Generation",
    use="Preference pairs are needed and models that criticise one another are at hand.",
    tags=("preferences", "hints"),
    kind="sampler",
    catalogue=("fellowship-po",),
    checked=("golden", "run"),
    source=Source("abstract", "arXiv:2408.08688, abstract; the catalogue's row"),
    missing=(
        "Juries and debates of several language models: recipes/pipelines/fellowship.py has"
        " functions as jurors, and `PairwiseJudge` asks one model.",
    ),
    deviations=("The texts of the prompts are our choice.",),
    shown=("docs/pipelines_shown.md#the-fellowship-of-the-llms",),
)
