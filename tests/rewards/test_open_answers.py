"""Rewards of open answers: similarity, the guard of judges, columns."""

import asyncio
import re

import pytest

from grupo.core.types import Response, Rollout, Task
from grupo.rewards import ColumnMatch, ExactMatch, GuardedAnswer, SimilarText, TextBefore
from grupo.rewards.open_answers import NgramCosine
from grupo.util.errors import ConfigError

TASK = Task("k", "?", "lung nodule")


def rollouts(*texts):
    return [Rollout((("?", Response((1,), (0.0,), text=text)),)) for text in texts]


def guarded(reward, *texts):
    return asyncio.run(reward(TASK, rollouts(*texts)))


async def yes(task, group):
    return [1.0] * len(group)


def test_texts_that_are_no_answers_do_not_reach_the_judge():
    texts = ("a mass", "", "x", "__ nodule", "answer: nodule", "nodule?", "<answer></answer>")
    assert guarded(GuardedAnswer(yes), *texts) == [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]


def test_the_reference_answer_scores_one_without_the_judge():
    def fails(task, group):
        raise AssertionError

    texts = ("<answer>lung nodule.</answer>", "lung nodule", "?")
    assert guarded(GuardedAnswer(fails), *texts) == [1.0, 1.0, 0.0]


def test_the_range_of_the_guard_is_that_of_the_inner_reward():
    assert GuardedAnswer(ExactMatch()).reward_range == (0.0, 1.0)
    assert GuardedAnswer(yes).reward_range is None


def test_shared_runs_of_characters_make_texts_similar():
    # " ab", "ab " against " ab", "abc", "bc ": 1 / sqrt(2 x 3)
    assert NgramCosine()("ab", "ABC") == pytest.approx(6**-0.5)
    group = rollouts("lung nodules", "<answer>lung nodule</answer>", "lung", "")
    assert SimilarText()(TASK, group) == [1.0, 1.0, 0.0, 0.0]
    assert SimilarText(threshold=0.5)(TASK, group) == [1.0, 1.0, 1.0, 0.0]


def test_a_task_without_the_column_is_refused():
    reward = ColumnMatch("modality", TextBefore("<thinking>"))
    assert reward(Task("k", "?", columns={"modality": "<CT>"}), rollouts("<CT> none")) == [0.0]
    with pytest.raises(ConfigError, match="modality"):
        reward.validate_tasks([TASK])


@pytest.mark.parametrize("reference", ["4", "is it a cell?"])
def test_a_reference_answer_that_the_guard_rejects_is_refused(reference):
    with pytest.raises(ConfigError, match=re.escape(repr(reference))):
        GuardedAnswer(SimilarText()).validate_tasks([Task("k", "?", reference)])
