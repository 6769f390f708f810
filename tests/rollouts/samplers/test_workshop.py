"""Workshops: prompts, roles and rewards of drafts, reviews and revisions."""

import asyncio
from dataclasses import replace

from grupo.rollouts.samplers import ReviewPairs, Workshop
from tests.helpers.scripted_actor import TASK, Once, Script, texts

REVIEW, REVISE = "[{answer}?", "[{answer}?{review}!"


class Writer(Script):
    """A scripted actor whose rollouts can be moved behind another prompt."""

    def with_prompt(self, rollout, prompt):
        (_, response), *rest = rollout.turns
        return replace(rollout, turns=((prompt, replace(response, off_context=True)), *rest))


def letter(context: str, key: int) -> str:
    """Drafts a; reviews good or bad by the stream; after a good review x, after a bad one b."""
    answer = context.rpartition("!")[2] if context.count("!") else context.rpartition("?")[2]
    if "!" in context:
        return "." if answer else ("x" if "g." in context else "b")
    if "?" in context:
        return "." if answer else "gb"[key % 2]
    return "." if context.endswith("a") else "a"


def group_of(sampler, key=0):
    actor = Writer(letter, [], key)
    return asyncio.run(sampler(TASK, Once(lambda text: "x" in text), actor)), actor.log


def test_a_draft_is_reviewed_and_revised_in_each_round():
    group, log = group_of(Workshop(2, REVIEW, REVISE))
    draft, revision = group.rollouts
    assert draft.text == "a."
    assert len(log) == 1 + 2 * 2
    assert log[1][0] == "Q[a.?"
    assert log[2][0] == f"Q[a.?{log[1][1]}!"
    assert log[3][0] == f"Q[{log[2][1]}?"
    assert (revision.text, revision.source) == (log[4][1], "revision")
    (prompt, response), *_ = revision.turns
    assert (prompt, response.off_context) == ("Q", True)
    assert group.rewards == (0.0, float("x" in revision.text))


def test_reviews_are_scored_by_the_revisions_that_they_lead_to():
    groups = [group_of(ReviewPairs(4, REVIEW, REVISE), key)[0] for key in range(4)]
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    assert {r.text for r in rollouts} == {"g.", "b."}
    assert all(r.reward == (r.text == "g.") for r in rollouts)
    assert {(r.role, r.source) for r in rollouts} == {("reviewer", "review")}
    assert all(len(texts(group)) == 4 for group in groups)
