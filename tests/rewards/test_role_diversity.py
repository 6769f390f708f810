"""Diversity of roles and words, worked by hand."""

import asyncio

import pytest

from grupo.core.types import Response, Rollout, Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.pipeline import JoinedRoleChains
from grupo.rewards import ExactMatch, InsideTag, RegexMatch, RoleDiversity, TagFormat
from grupo.rewards.role_diversity import distinct_bigrams, type_token_ratio
from grupo.util.errors import ConfigError

WELL_FORMED = RegexMatch(r"[\s\S]*")
MEASURES = (type_token_ratio, distinct_bigrams)
ROLES = ("nurse", "pilot", "tax clerk")


def rollout(text):
    return Rollout((("?", Response((1,), (0.0,), text=text)),))


def task(**columns):
    return Task("k", "Is tea good?", "yes", columns=columns, location="t.jsonl, line 2")


def reward(text, format=TagFormat()):
    env = SingleTurn(
        (
            RewardTerm("correct", ExactMatch(InsideTag("answer"))),
            RewardTerm("diversity", RoleDiversity(format, measures=MEASURES), 0.2),
            RewardTerm("format", format, 0.1),
        )
    )
    (result,) = asyncio.run(env.score(task(roles=ROLES), [rollout(text)]))
    return result.reward


def test_lexical_diversity_of_three_words_in_four():
    value = RoleDiversity(WELL_FORMED, measures=MEASURES).score(task(), rollout("a b a c"))
    assert value == {"score": 0.875, "lexical": 0.875}  # (0.75 + 3 / 3) / 2
    assert pytest.approx(1.275) == 1 + 0.2 * 0.875 + 0.1 * 1  # a correct answer in good format


def test_perspectives_are_roles_named_of_those_asked_for():
    diversity = RoleDiversity(WELL_FORMED, measures=MEASURES)
    value = diversity.score(task(roles=ROLES), rollout("Nurse yes Tax clerk no pilots"))
    assert value["roles"] == pytest.approx(2 / 3)  # "pilots" is another word
    assert value["lexical"] == 1.0
    assert value["score"] == pytest.approx((2 / 3 + 1) / 2)


def test_diversity_is_paid_in_good_format_alone():
    broken = "<think>nurse pilot tax clerk<answer>yes</answer>"
    assert reward(broken) == 1.0
    assert RoleDiversity(TagFormat()).score(task(), rollout(broken))["score"] == 0.0


def test_a_wrong_answer_of_full_diversity_is_below_any_right_one():
    wrong = reward("<think>nurse pilot tax clerk</think> <answer>no</answer>")
    right = reward("yes yes yes yes <answer>yes</answer>")
    assert wrong == pytest.approx(0.2 + 0.1)  # all words and pairs differ, all roles are named
    assert right == 1.0


@pytest.mark.parametrize("roles", ["nurse", [1], ["", "nurse"], 3])
def test_roles_that_are_no_list_of_names_are_refused(roles):
    with pytest.raises(ConfigError, match=r"t.jsonl, line 2, column 'roles': .* a list of names"):
        RoleDiversity(TagFormat()).validate_tasks([task(roles=roles)])


def test_chains_of_agreeing_roles_are_joined():
    def chain(role, answer, words="so"):
        return f"<role>{role}</role> {words} <answer>{answer}</answer>"

    texts = [
        *(chain("nurse", "no", "first"), chain("nurse", "yes"), chain("nurse", "yes", "later")),
        *(chain("pilot", "yes"), chain("pilot", "no"), chain("pilot", "maybe")),
        *(chain("clerk", "no"), "no role <answer>yes</answer>", "<role>clerk</role> no answer"),
    ]
    rows = JoinedRoleChains()([rollout(text) for text in texts], bool)
    nurse, clerk = chain("nurse", "yes"), chain("clerk", "no")
    assert [row["completion"] for row in rows] == [nurse, f"{nurse}\n{clerk}"]
    (one,) = JoinedRoleChains(max_roles=1)([rollout(text) for text in texts], bool)
    assert one == rows[0]
