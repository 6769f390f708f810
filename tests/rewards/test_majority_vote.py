"""How an answer agrees with the others of its group."""

from math import exp

import pytest

from grupo.core.types import Action, Rollout, Task
from grupo.rewards.majority_vote import CrossPromptSimilarity, MajorityVote, bleu, majority_votes


def said(prompt, text):
    return Rollout(turns=((prompt, Action((text,), (0.0,), text=text)),))


def test_bleu_is_the_geometric_mean_of_shared_words_and_pairs():
    # 3 of 4 words, 2 of 3 pairs, equally long
    assert bleu("a b c d", "a b c e") == pytest.approx((3 / 4 * 2 / 3) ** 0.5)
    assert bleu("a b", "a c", max_order=1) == 0.5
    assert bleu("a b", "a b") == 1.0


def test_bleu_counts_a_word_no_oftener_than_the_other_text():
    assert bleu("a a a a", "a b c d", max_order=1) == 0.25


def test_bleu_punishes_what_is_too_short():
    assert bleu("a b", "a b c d") == pytest.approx(exp(1 - 4 / 2))
    assert bleu("", "a") == bleu("a", "") == 0.0


def test_one_word_is_compared_as_one_word():
    assert bleu("Paris", "Paris") == 1.0


def test_agreement_is_with_answers_to_other_paraphrases():
    rollouts = [said("p", "x"), said("p", "y"), said("q", "x"), said("q", "x")]
    marks = CrossPromptSimilarity(lambda a, b: float(a == b))(Task("k", "p"), rollouts)
    assert [m["score"] for m in marks] == [1.0, 0.0, 0.5, 0.5]
    assert [m["prompt"] for m in marks] == [0, 0, 2, 2]


def test_without_another_paraphrase_there_is_no_agreement():
    (mark,) = CrossPromptSimilarity()(Task("k", "p"), [said("p", "x")])
    assert mark["score"] == 0.0


def test_who_answers_with_the_majority_is_right():
    assert majority_votes(["4", "4", "5", "4", "6"]) == [1, 1, 0, 1, 0]


def test_who_has_no_answer_does_not_vote():
    assert majority_votes([None, None, "4"]) == [0, 0, 1]
    assert majority_votes([None, None]) == [0, 0]
    assert majority_votes([]) == []


def test_all_of_a_tie_count_in_whatever_order():
    assert majority_votes(["4", "5", "4", "5", "6"]) == [1, 1, 1, 1, 0]
    assert majority_votes(["5", "4", "6", "4", "5"]) == [1, 1, 0, 1, 1]


def test_answers_are_those_in_the_box():
    rollouts = [said("?", r"so \boxed{4}"), said("?", r"or \boxed{4}"), said("?", "4")]
    assert MajorityVote()(Task("t", ""), rollouts) == [1, 1, 0]
