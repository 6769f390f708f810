"""Analogies and comparisons of answers: which answer is kept, layers, order, bad input."""

import asyncio

import pytest

from grupo.config.strategies import check_strategy
from grupo.core.component import component
from grupo.core.types import Rollout
from grupo.core.usage import count_external_usage
from grupo.rewards.choices import ByReward
from grupo.rollouts.turns import Analogies, BestOf
from grupo.rollouts.turns.pairwise_comparison import PairwiseComparison
from grupo.toy.quickstart import RECIPE
from grupo.util.errors import ConfigError
from tests.helpers.scripted_actor import script

PROPOSE = "P({task}){count}"
MERGE = "M({task})({answer}){analogies}"
COMPARE = "C({first})({second}){task}"
FORMS = {"propose_prompt": PROPOSE, "merge_prompt": MERGE}


@component
class Checker:
    """1 for the shortest path of the graph, else 0."""

    path: str = "a-c."

    def __call__(self, task, rollouts):
        return [float(r.text == self.path) for r in rollouts]


def answered(replies, strategy, question="Q"):
    """Rollout, prompts and usage; replies are looked up by the longest matching prompt."""

    def next_letter(context, key):
        prompt = max((p for p in replies if context.startswith(p)), key=len)
        return f"{replies[prompt]}."[len(context) - len(prompt)]

    actor = script(next_letter)
    with count_external_usage() as usage:
        rollout = asyncio.run(strategy(actor, Rollout(), question))
    return rollout, [prompt for prompt, _ in actor.log], usage


def replies(first, second):
    """The first answer, two similar problems with their answers, and the second answer."""
    merged = f"M(Q)({first}.)R 1.\nS. 2."
    return {"Q": first, "P(Q)2": "R\nS", "R": "1", "S.": "2", merged: second}


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [("a-b", "a-c", "a-c."), ("a-c", "a-b", "a-c."), ("a-b", "a-d", "a-b.")],
)
def test_with_a_checker_the_answer_is_never_worse_than_the_first(first, second, expected):
    strategy = Analogies(**FORMS, choice=ByReward(Checker()))
    rollout, prompts, usage = answered(replies(first, second), strategy)
    assert rollout.text == expected
    assert sorted(prompts) == sorted(replies(first, second))
    assert usage["analogies/solved"] == 2
    assert rollout.turns[0][0] == "Q"
    assert not rollout.last_response.sampled


@pytest.mark.parametrize(
    ("in_order", "reversed_order", "expected", "undecided"),
    [("2", "1", "new.", 0), ("1", "2", "old.", 0), ("2", "2", "old.", 1), ("both", "1", "old.", 1)],
)
def test_the_second_answer_is_kept_if_both_orders_prefer_it(
    in_order, reversed_order, expected, undecided
):
    texts = replies("old", "new")
    texts |= {"C(old.)(new.)Q": in_order, "C(new.)(old.)Q": reversed_order}
    rollout, _, usage = answered(texts, Analogies(**FORMS, choice=PairwiseComparison(COMPARE)))
    assert rollout.text == expected
    assert usage.get("comparisons/undecided", 0) == undecided


def test_equal_answers_are_not_compared():
    rollout, prompts, _ = answered(
        replies("same", "same"), Analogies(**FORMS, choice=PairwiseComparison(COMPARE))
    )
    assert rollout.text == "same."
    assert not [p for p in prompts if p.startswith("C")]


def test_a_second_layer_amends_the_answers_to_similar_problems():
    texts = {
        "Q": "0",
        "P(Q)1": "R",
        "R.": "1",
        "P(R.)1": "S",
        "S.": "2",
        "M(R.)(1.)S. 2.": "3",
        "M(Q)(0.)R. 3.": "4",
    }
    strategy = Analogies(1, 2, **FORMS, choice=ByReward(Checker("4.")))
    rollout, prompts, usage = answered(texts, strategy)
    assert rollout.text == "4."
    assert sorted(prompts) == sorted(texts)
    assert usage["analogies/solved"] == 2


def test_without_a_similar_problem_the_first_answer_stays_and_is_counted():
    rollout, _, usage = answered({"Q.": "0", "P(Q.)2": "Q"}, Analogies(**FORMS), "Q.")
    assert rollout.text == "0."
    assert usage == {"analogies/solved": 0, "analogies/none": 1}


def test_of_several_candidates_each_is_compared_with_the_best_before():
    better = {"C(b.)(c.)Q": "2", "C(c.)(b.)Q": "1", "C(c.)(a.)Q": "1", "C(a.)(c.)Q": "2"}
    sequence = iter("bca")

    async def given(actor, rollout, observation):
        return rollout.append_turn(observation, await actor(rollout, f"#{next(sequence)}"))

    texts = better | {f"#{x}": x for x in "abc"}
    rollout, prompts, _ = answered(texts, BestOf(3, PairwiseComparison(COMPARE), given))
    assert rollout.text == "c."
    assert [p for p in prompts if p[0] == "C"] == list(better)


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        (lambda: Analogies(0), r"Analogies\.count: 0\. Allowed: 1 or more"),
        (lambda: Analogies(depth=0), r"Analogies\.depth: 0"),
        (
            lambda: Analogies(propose_prompt="{count}"),
            r"Analogies\.propose_prompt: .* lacks \{task\}",
        ),
        (lambda: Analogies(role="tutor"), "needs a policy of the role 'tutor'"),
        (
            lambda: Analogies(choice=PairwiseComparison(role="judge")),
            "needs a policy of the role 'judge'",
        ),
        (
            lambda: PairwiseComparison("{task}{first}"),
            r"PairwiseComparison\.prompt: .* lacks \{second\}",
        ),
    ],
)
def test_bad_input_is_named_before_the_run(strategy, message):
    with pytest.raises(ConfigError, match=message):
        check_strategy("strategy", strategy(), RECIPE)
