"""Rewards for agreement within a group."""

from math import exp

import pytest

from grupo.core.types import Response, Rollout, Task
from grupo.rewards.majority_vote import CrossPromptSimilarity, MajorityVote, bleu, majority_votes


def rollout(prompt, text):
    return Rollout(turns=((prompt, Response((text,), (0.0,), text=text)),))


def test_bleu_is_the_geometric_mean_of_word_and_pair_precision():
    # 3 of 4 words, 2 of 3 pairs, equally long
    assert bleu("a b c d", "a b c e") == pytest.approx((3 / 4 * 2 / 3) ** 0.5)
    assert bleu("a b", "a c", max_order=1) == 0.5
    assert bleu("a b", "a b") == 1.0


def test_bleu_counts_a_word_at_most_as_often_as_the_reference():
    assert bleu("a a a a", "a b c d", max_order=1) == 0.25


def test_bleu_penalises_a_short_candidate():
    assert bleu("a b", "a b c d") == pytest.approx(exp(1 - 4 / 2))
    assert bleu("", "a") == bleu("a", "") == 0.0


def test_bleu_of_one_word_uses_words_only():
    assert bleu("Paris", "Paris") == 1.0


def test_similarity_is_averaged_over_the_rollouts_of_other_prompts():
    rollouts = [rollout("p", "x"), rollout("p", "y"), rollout("q", "x"), rollout("q", "x")]
    values = CrossPromptSimilarity(lambda a, b: float(a == b))(Task("k", "p"), rollouts)
    assert [value["score"] for value in values] == [1.0, 0.0, 0.5, 0.5]
    assert [value["prompt"] for value in values] == [0, 0, 2, 2]


def test_a_single_prompt_has_similarity_zero():
    (value,) = CrossPromptSimilarity()(Task("k", "p"), [rollout("p", "x")])
    assert value["score"] == 0.0


def test_the_most_frequent_answer_scores_one():
    assert majority_votes(["4", "4", "5", "4", "6"]) == [1, 1, 0, 1, 0]


def test_a_missing_answer_does_not_vote():
    assert majority_votes([None, None, "4"]) == [0, 0, 1]
    assert majority_votes([None, None]) == [0, 0]
    assert majority_votes([]) == []


def test_all_answers_of_a_tie_score_one():
    assert majority_votes(["4", "5", "4", "5", "6"]) == [1, 1, 1, 1, 0]
    assert majority_votes(["5", "4", "6", "4", "5"]) == [1, 1, 0, 1, 1]


def test_the_majority_vote_compares_boxed_answers():
    rollouts = [rollout("?", text) for text in (r"so \boxed{4}", r"or \boxed{4}", "4")]
    assert MajorityVote()(Task("t", ""), rollouts) == [1, 1, 0]
