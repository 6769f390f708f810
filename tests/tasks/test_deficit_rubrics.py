"""Rubrics of what an answer lacks by the consensus of a committee."""

from grupo.core.types import Response, Rollout, Task
from grupo.rewards import CheckedRubric
from grupo.rewards.judges import RubricColumn
from grupo.tasks.deficit_rubrics import CRITICAL, IMPORTANT, MINOR, consensus, deficit_rubric

COMMITTEE = [["dog", "ball"], ["dog", "tree"], ["ball", "dog"], ["cat"], []]
SEVERITIES = {"dog": CRITICAL, "ball": IMPORTANT}


def severity(fact, place):
    return SEVERITIES.get(fact, MINOR)


def states(criterion, text):
    kind, _, fact = criterion.partition(": ")
    return (fact in text.split(", ")) != kind.endswith("not state")


def score(rubric, text):
    task = Task("k", "?", columns={"rubric": rubric})
    rollout = Rollout((("?", Response((1,), (0.0,), text=text)),))
    return CheckedRubric(RubricColumn("rubric"), states).score(task, rollout)["score"]


def test_two_of_five_make_a_consensus():
    assert consensus(COMMITTEE) == ["dog", "ball"]  # tree and cat have one member each
    assert consensus([["dog", "dog"], []]) == []  # the same member twice


def test_facts_of_the_consensus_that_the_answer_has_are_no_criteria():
    (item,) = deficit_rubric(["dog", "tree"], COMMITTEE, severity=severity)
    assert item == {"name": "ball", "criterion": "The answer states: ball", "weight": 2.0}
    assert deficit_rubric(["ball", "dog"], COMMITTEE, severity=severity) == []


def test_the_reward_is_the_share_of_the_deficit_that_is_closed():
    rubric = deficit_rubric(["fox"], COMMITTEE, severity=severity, wrong_severity=MINOR)
    assert [item["weight"] for item in rubric] == [3.0, 2.0, 1.0]
    assert score(rubric, "dog") == (3 + 1) / 6
    assert score(rubric, "dog, fox") == 0.5
    assert score(rubric, "dog, ball, cat") == 1.0
