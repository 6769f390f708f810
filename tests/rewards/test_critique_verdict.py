"""Critique-RL's rewards of both stages, by hand."""

import pytest
import torch

from grupo.algo.advantages import Center
from grupo.core import group_ops
from grupo.core.types import Task
from grupo.rewards import Downstream, ExactMatch, HelpfulCritique, VerdictMatch
from grupo.rewards.critique_verdict import RIGHT, WRONG
from grupo.testing.batches import make_batch
from grupo.util.errors import ConfigError
from tests.helpers.judged import ScriptedModel, failing, results, terms

SOLVED = Task("s", "2 + 2 = 4", "4", columns={"first_correct": True})
FAILED = Task("f", "2 + 2 = 5", "4", columns={"first_correct": 0})


@pytest.mark.parametrize(
    ("critique", "solved", "failed"),
    [
        (f"Add again. {WRONG}", -1, 1),
        (f"Fine. {RIGHT}", 1, -1),
        ("Correct.", -1, -1),
        (f"{RIGHT} {WRONG}", -1, -1),
        ("", -1, -1),
    ],
)
def test_the_first_stage_rewards_true_verdicts(critique, solved, failed):
    for task, expected in ((SOLVED, solved), (FAILED, failed)):
        (result,) = results(VerdictMatch(), critique, task=task)
        assert result.reward == expected


def test_the_second_stage_rewards_help_behind_a_true_verdict():
    critiques = {
        f"Add 2 and 2. {WRONG}": "4",  # true verdict, refined to the right answer
        f"Hm. {WRONG}": "5",
        f"Fine. {RIGHT}": "4",  # false verdict, although the answer would be right
        f"Hm again. {WRONG}": "6",
    }
    model = ScriptedModel(critiques.get)
    reward = HelpfulCritique(Downstream(model, "{completion}", ExactMatch()))
    scored = results(reward, *critiques, task=FAILED)
    rewards = [result.reward for result in scored]
    assert rewards == pytest.approx([1.2, 0.2, -1.0, 0.2])
    assert [terms(result)["quality/verdict"] for result in scored] == [1, 1, 0, 1]
    assert len(model.conversations) == 3  # none for the false verdict
    batch = make_batch([0] * 4, rewards)
    A = Center(group_ops.leave_one_out_mean)(batch.reward, batch)
    # each minus the mean of the others: 1.2 - (-0.6 / 3), 0.2 - 0.4 / 3, -1 - 1.6 / 3
    expected = torch.tensor([1.4, 0.2 / 3, -4.6 / 3, 0.2 / 3], dtype=torch.float64)
    torch.testing.assert_close(A, expected)


def test_an_answer_that_is_missing_fails_its_critique_alone():
    replies = {f"a {WRONG}": failing("a"), f"b {WRONG}": "4"}
    reward = HelpfulCritique(Downstream(ScriptedModel(replies.get), "{completion}", ExactMatch()))
    first, second = results(reward, *replies, task=FAILED)
    assert "no reply to 'a'" in first.error
    assert second.reward == pytest.approx(1.2)


@pytest.mark.parametrize("value", [None, "yes", 2])
def test_a_column_without_a_truth_value_is_refused(value):
    task = Task("k", "?", "4", columns={"first_correct": value})
    with pytest.raises(ConfigError, match=r"column 'first_correct': .*Allowed: true, false, 1 or"):
        VerdictMatch().validate_tasks([task])


def test_verdicts_that_contain_one_another_are_refused():
    with pytest.raises(ConfigError, match=r"VerdictMatch.right: 'correct'.*does not contain"):
        VerdictMatch(right="correct", wrong="incorrect")
