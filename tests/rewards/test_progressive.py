"""The staged reward of PRS: parse, format, and a BLEU that short answers can reach."""

from math import exp, sqrt

import pytest

from grupo.core.component import component
from grupo.core.types import Response, Rollout, Task
from grupo.envs.tools import ParsedCalls
from grupo.rewards import LengthAwareBleu, ProgressiveReward
from grupo.rewards.base import PerRolloutReward
from grupo.util.event_loop import run_coroutine

TASK = Task("k", "?", "a red cat")
CALL = '<tool_call>{"name": "find", "arguments": {}}</tool_call>'
BROKEN = '<tool_call>{"name": "find", </tool_call>'


@component
class HasAnswerTag(PerRolloutReward):
    """1 if the text ends with an answer in tags."""

    def score(self, task, rollout):
        return float(rollout.text.endswith("</answer>"))


def rollout(text: str) -> Rollout:
    return Rollout((("?", Response((1,), (0.0,), text=text)),))


def scores(*texts: str, answer=LengthAwareBleu()):
    reward = ProgressiveReward(ParsedCalls(), HasAnswerTag(), answer)
    return run_coroutine(reward(TASK, [rollout(text) for text in texts]))


def test_a_stage_counts_only_where_the_earlier_ones_are_passed():
    texts = (
        f"{BROKEN}<answer>a red cat</answer>",
        f"{CALL} a red cat",
        f"{CALL}<answer>dog</answer>",
        f"{CALL}<answer>a red cat</answer>",
    )
    assert scores(*texts) == pytest.approx([0.0, 0.1, 0.2, 1.0])


def test_the_quality_is_weighted_by_four_fifths():
    # 2 of 2 words, 1 of 1 pair; brevity exp(1 - 3 / 2)
    assert scores(f"{CALL}<answer>red cat</answer>") == pytest.approx([0.2 + 0.8 * exp(-0.5)])


def test_answers_that_do_not_get_there_are_not_scored():
    scored_texts = []

    @component
    class Judge(PerRolloutReward):
        """Records the texts that it scores."""

        def score(self, task, rollout):
            scored_texts.append(rollout.text)
            return {"score": 0.5, "reason": 1.0}

    texts = (BROKEN, f"{CALL} cat", f"{CALL}<answer>cat</answer>")
    assert scores(*texts, answer=Judge()) == pytest.approx([0.0, 0.1, 0.6])
    assert scored_texts == [texts[-1]]
    assert scores(BROKEN, answer=Judge()) == [0.0]


def test_a_reward_that_does_not_apply_has_no_number():
    @component
    class Undecided(PerRolloutReward):
        """None for every rollout."""

        def score(self, task, rollout):
            return None

    assert scores(f"{CALL}<answer>cat</answer>", BROKEN, answer=Undecided()) == [None, 0.0]


@pytest.mark.parametrize(
    ("answer", "score"),
    [
        ("a red cat", 1.0),
        ("A Red Cat", 1.0),
        ("", 0.0),
        # 3 of 4 words, 2 of 3 pairs, 1 of 2 triples: cube root of 1/4; 3 of 4 words of length
        ("a red cat sleeps", 0.75 * (3 / 4 * 2 / 3 * 1 / 2) ** (1 / 3)),
        # 2 of 2 words, 0 of 1 pair
        ("cat red", 0.0),
        # 2 of 3 words, 1 of 2 pairs, 0 of 1 triple
        ("a red dog", 0.0),
        ("cat", exp(-2.0)),
    ],
)
def test_length_aware_bleu_by_hand(answer, score):
    text = f"<answer>{answer}</answer>"
    assert LengthAwareBleu().score(TASK, rollout(text)) == pytest.approx(score)


def test_two_words_of_reference_use_pairs_at_most():
    task = Task("k", "?", "red cat")
    # 2 of 3 words, 1 of 2 pairs; two thirds for the length
    score = LengthAwareBleu().score(task, rollout("<answer>red cat here</answer>"))
    assert score == pytest.approx(sqrt(2 / 3 * 1 / 2) * 2 / 3)
