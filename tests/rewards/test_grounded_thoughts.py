"""Rewards of GRIT, by hand."""

import pytest

from grupo.core.types import Response, Rollout, Task
from grupo.rewards import BoxBeforeTag, FewRepetitions, SingleTag, ThoughtTags, UnigramBleu

TASK = Task("k", "?", "red")
GOOD = "<think>circle at [3, 4, 9, 10]</think><rethink>it is red</rethink><answer>red</answer>"
TERMS = ((ThoughtTags(), 1.0), (BoxBeforeTag(), 1.0), (SingleTag(), 1.0), (UnigramBleu(), 0.1))


def rollout(text, items=(1, 2, 3)):
    return Rollout((("?", Response(items, (0.0,) * len(items), text=text)),))


def total(text, judge=1.0):
    terms = [weight * reward.score(TASK, rollout(text)) for reward, weight in TERMS]
    return judge + sum(terms) + FewRepetitions().score(TASK, rollout(text))


def test_a_perfect_answer_with_a_box_scores_3_1():
    assert total(GOOD) == pytest.approx(0.5 + 0.5 + 0.5 + 1 + 0.1 + 0.5)


def test_the_same_answer_without_a_box_scores_2_6():
    assert total(GOOD.replace("[3, 4, 9, 10]", "the left")) == pytest.approx(2.6)


def test_tags_in_another_order_do_not_count():
    text = "<rethink>a b</rethink><think>c d</think>"
    assert ThoughtTags().score(TASK, rollout(text)) == pytest.approx(0.5 * 2 / 5)


def test_thoughts_of_one_word_lack_the_fifth_part():
    text = "<think>a</think><rethink>b</rethink>"
    assert ThoughtTags().score(TASK, rollout(text)) == pytest.approx(0.5 * 4 / 5)


def test_as_many_boxes_as_the_counted_things_score_one_more():
    task = Task("k", "How many?", "2", columns={"asks_count": True})
    reward = BoxBeforeTag(counts="asks_count")
    two = rollout("[1, 2, 3, 4] [5, 6, 7, 8]<rethink>")
    assert reward.score(task, two) == 1.5
    assert reward.score(task, rollout("[1, 2, 3, 4]<rethink>")) == 0.5
    assert reward.score(Task("k", "Where?", "2"), two) == 0.5


def test_repeated_runs_of_words_and_tokens_are_subtracted():
    words, tokens = "a b " * 10, (1, 2) * 10  # 20 of each, with period 2
    # words: 5 runs of 8 repeat, of 20 - 8 starts; tokens: 5 of 5
    assert FewRepetitions().score(TASK, rollout(words, tokens)) == pytest.approx(
        0.5 * (1 - 5 / 12 - 1)
    )
    assert FewRepetitions().score(TASK, rollout(words, tuple(range(20)))) == pytest.approx(
        0.5 * (1 - 5 / 12)
    )
    assert FewRepetitions().score(TASK, rollout("a b", (1, 1))) == 0.5
