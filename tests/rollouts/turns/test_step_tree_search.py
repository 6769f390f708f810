"""Tree search over the steps of an answer, with a scripted policy and facts that are looked up."""

import asyncio
from dataclasses import dataclass

import pytest

from grupo.core.interfaces import run_rollout
from grupo.core.usage import count_external_usage
from grupo.rollouts.turns import StepTreeSearch
from grupo.rollouts.turns.associations import Association, LookUp, no_association
from grupo.util.errors import ConfigError
from grupo.util.rng import make_rng
from tests.helpers.scripted_actor import END, TASK, Once, script

FACTS = ("k: v", "v: w")  # two hops: from k to v, from v to w


def searched(query):
    """The facts, those whose key is in the query first."""
    return "\n".join(sorted(FACTS, key=lambda fact: fact[0] not in query))


def fact_reader(context, key):
    """k or x, then what was looked up for it, and an answer; the guess u without a fact."""
    text = context[1:]
    if text.count("\n") > 6:
        return END
    line = text.rpartition("\n")[2]
    if not text:
        return "kx"[make_rng(key, 0).randrange(2)]
    if not line:
        return "w" if "v: w" in text else "v" if "k: v" in text else "u"
    if line in "wu":
        return END
    return "\n"


def search(strategy, next_letter=fact_reader, key=0):
    actor = script(next_letter).fork(key)
    with count_external_usage() as usage:
        rollout = asyncio.run(run_rollout(TASK, Once(), actor, turn_strategy=strategy))
    return rollout, usage, actor.log


def by_ending(text):
    """Score by the last letter of an answer: a fact that was read scores 1, a guess 0."""

    async def score(actor, before, rollout):
        return float(rollout.text.rstrip(END)[-1:] == text)

    return score


def test_a_fact_that_is_looked_up_is_found_and_never_without_association():
    strategy = StepTreeSearch(
        iterations=6, branches=4, score=by_ending("w"), associate=LookUp(searched)
    )
    without = StepTreeSearch(iterations=6, branches=4, score=by_ending("w"))
    found = [search(strategy, key=key)[0].text for key in range(8)]
    assert all(text.endswith("w.") for text in found)
    assert not any("w" in search(without, key=key)[0].text for key in range(8))


def test_associated_texts_are_forced_and_the_answer_is_no_sample():
    rollout, usage, log = search(
        StepTreeSearch(iterations=6, branches=4, score=by_ending("w"), associate=LookUp(searched))
    )
    assert rollout.text == "k\n(k: v)\nv\n(v: w)\nw."
    assert [response.in_loss for _, response in rollout.turns] == [True, False, True, False, True]
    assert not any(response.sampled for _, response in rollout.turns)
    assert usage["tree/associated"] >= 2
    assert not any("(k" in text for _, text in log)  # the policy generates no looked-up text


def test_value_is_the_score_plus_beta_times_the_quality():
    # a scores 0.5; b scores 0.4 and is associated with quality 1: 0.4 + 0.2 * 1 = 0.6
    async def score(actor, before, rollout):
        return {"a": 0.5, "b": 0.4}[rollout.text[0]]

    def associate(step, known):
        return Association("+", 1.0) if step == "b" else Association()

    def letters(context, key):
        text = context[1:]
        return "ab"[make_rng(key, 0).randrange(2)] if not text else "\n" if len(text) == 1 else END

    strategy = StepTreeSearch(iterations=8, branches=6, score=score, associate=associate, beta=0.2)
    assert search(strategy, letters)[0].text[0] == "a"  # finished answers have no association
    open_only = StepTreeSearch(1, 6, 1, score=score, associate=associate, beta=0.2)
    rollout, usage, _ = search(open_only, letters)
    assert rollout.text[0] == "b"
    assert usage["tree/unfinished"] == 1


def test_a_search_that_never_finishes_stops_at_its_limits_and_is_counted():
    def forever(context, key):
        return "\n" if context[-1] == "x" else "x"

    strategy = StepTreeSearch(iterations=5, branches=2, max_steps=2, max_step_tokens=3)
    rollout, usage, log = search(strategy, lambda c, k: END if c.count("x") > 3 else forever(c, k))
    assert usage["tree/unfinished"] == 1
    assert rollout.text.startswith("x\nx\n")
    assert len(log) == 2 * 2 + 1  # two expansions of two steps, and the rest of the best path


def test_expansions_whose_steps_are_alike_are_counted():
    _, usage, _ = search(StepTreeSearch(iterations=3, branches=3), lambda c, k: "x\n."[len(c[1:])])
    assert usage["tree/alike"] == usage["tree/expansions"] == 2


@dataclass
class Documents:
    text: str

    def __call__(self, query):
        return self.text


def test_known_documents_and_those_without_a_word_of_the_step_are_not_added():
    look_up = LookUp(Documents("Lima is in Peru\nPeru has Lima"), form="{document}")
    assert look_up("where is Peru", "") == Association("Lima is in Peru", 2 / 3)
    assert look_up("where is Peru", "Lima is in Peru").text == "Peru has Lima"
    assert look_up("Chile", "") == Association()
    assert no_association("Peru", "") == Association()


def test_long_documents_are_cut():
    assert LookUp(Documents("a b c d"), "{document}", max_words=2)("a", "").text == "a b"


def test_a_form_without_the_document_is_refused():
    with pytest.raises(ConfigError, match=r"LookUp.form: 'x' lacks \{document\}"):
        LookUp(Documents(""), form="x")
