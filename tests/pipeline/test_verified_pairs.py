"""Pairs by a verifier: which rollouts are chosen, which rejected, and for which flaw."""

from grupo.core.types import Response, Rollout
from grupo.pipeline import VerifiedPairs

CHECKS = VerifiedPairs(("consistent", "varied"))


def judged(text, *, right=1.0, consistent=1.0, varied=1.0, length=1):
    terms = {"right": right, "consistent": consistent, "varied": varied}
    response = Response((1,) * length, (0.0,) * length, text=text)
    return Rollout((("?", response),), reward_terms=terms)


def right(rollout):
    return rollout.reward_terms["right"] > 0.5


def rows(group, verifier=CHECKS):
    return [(row["chosen"], row["rejected"], row["flaw"]) for row in verifier(tuple(group), right)]


def test_chosen_rollouts_are_right_and_consistent():
    # the catalogue: 3 right and consistent, 2 right and inconsistent, 3 wrong
    good = [judged(f"good {i}", length=i + 1) for i in range(3)]
    inconsistent = [judged(f"inconsistent {i}", consistent=0.0, length=9) for i in range(2)]
    wrong = [judged(f"wrong {i}", right=0.0, length=9) for i in range(3)]
    found = rows((*wrong, *inconsistent, *good))
    assert found == [
        ("good 2", "wrong 0", "wrong"),
        ("good 2", "inconsistent 0", "consistent"),
    ]


def test_a_wrong_rollout_is_wrong_whatever_its_thoughts():
    group = [judged("good"), judged("bad", right=0.0, consistent=0.0, varied=0.0)]
    assert rows(group) == [("good", "bad", "wrong")]


def test_the_first_failed_check_is_the_flaw():
    group = [judged("good"), judged("bad", consistent=0.0, varied=0.0), judged("round", varied=0)]
    assert rows(group) == [("good", "bad", "consistent"), ("good", "round", "varied")]


def test_a_group_without_a_flawless_rollout_has_no_pair():
    assert rows([judged("bad", consistent=0.0), judged("worse", right=0.0)]) == []


def test_a_group_without_a_flaw_has_no_pair():
    assert rows([judged("good"), judged("better")]) == []


def test_wrong_thoughts_are_corrected_by_those_of_the_chosen_rollout():
    verifier = VerifiedPairs(("consistent",), reflection=" wait ")
    group = [judged("<think>so 4</think>4"), judged("<think>so 5</think>5", right=0.0)]
    assert rows(group, verifier)[1:] == [
        ("<think>so 5 wait so 4</think>4", "<think>so 5</think>5", "unreflected")
    ]


def test_thoughts_without_an_end_are_not_corrected():
    verifier = VerifiedPairs(("consistent",), reflection=" wait ")
    for wrong in ("5", "<think>so 5", "<think> </think>5"):
        group = [judged("<think>so 4</think>4"), judged(wrong, right=0.0)]
        assert [flaw for _, _, flaw in rows(group, verifier)] == ["wrong"]
