"""Given answers with a label for each step: places of labels, first errors, and judges."""

from dataclasses import replace

import pytest

from grupo.core.types import Task
from grupo.envs.unscored import Unscored
from grupo.models.causal_lm import CausalLM
from grupo.rollouts.samplers import LabelledSteps
from grupo.util.errors import ConfigError
from grupo.util.event_loop import run_coroutine
from tests.helpers.tiny_lm import save_model

STEPS = ["ab", "c", "de"]  # "ab\nc\nde" and an end token: steps end behind 3, 5 and 7 tokens


def task(labels=(True, True, True), **columns):
    return Task("k", "Hi", columns={"completions": STEPS, "labels": list(labels), **columns})


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    return CausalLM(str(save_model(tmp_path_factory.mktemp("model"))), max_new_tokens=5).build()


def group_of(policy, sampler, row):
    return run_coroutine(sampler(row, Unscored(), policy.actor(0)))


def labels_of(policy, sampler, row):
    """The label behind each number of tokens."""
    (rollout,) = group_of(policy, sampler, row).rollouts
    cuts, values = rollout.step_values["prefix_cut"], rollout.step_values["prefix_value"]
    return {i: values[i] for i, is_cut in enumerate(cuts) if is_cut}


def test_labels_are_behind_the_separators_and_at_the_end_token(policy):
    group = group_of(policy, LabelledSteps(), task())
    assert group.rollouts[0].text == "ab\nc\nde"
    assert labels_of(policy, LabelledSteps(), task((1, 0.75, 0.5))) == {3: 1.0, 5: 0.75, 7: 0.5}


def test_steps_behind_the_first_error_have_no_label(policy):
    row = task((True, False, True))
    assert labels_of(policy, LabelledSteps(), row) == {3: 1.0, 5: 0.0}
    every = LabelledSteps(up_to_first_error=False)
    assert labels_of(policy, every, row) == {3: 1.0, 5: 0.0, 7: 1.0}


@pytest.mark.parametrize(("labels", "reward"), [((1, 1, 1), 1.0), ((1, 0, 1), 0.0)])
def test_an_answer_is_good_if_all_steps_are(policy, labels, reward):
    assert group_of(policy, LabelledSteps(), task(labels)).rewards == (reward,)


def test_the_outcome_may_differ_from_the_steps(policy):
    row = task((1, 0, 1), correct=True)
    assert group_of(policy, LabelledSteps(outcome="correct"), row).rewards == (1.0,)


@pytest.mark.parametrize(
    ("labels", "judge", "kept"),
    [((1, 1, 0), 3, True), ((1, 1, 0), 0, False), ((1, 1, 1), 0, True), ((1, 0, 0), 3, False)],
)
def test_answers_are_kept_whose_judge_names_the_same_step(policy, labels, judge, kept):
    row = task(labels, judge=judge)
    assert bool(group_of(policy, LabelledSteps(judged="judge"), row).rollouts) == kept


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"completions": "ab"}, r"'ab' as its 'completions'\. Allowed: a list of texts"),
        ({"completions": []}, r"as its 'completions'\. Allowed: a list of texts"),
        ({"completions": ["a", " ", "b"]}, "Allowed: a list of texts, one for each step"),
        ({"labels": [True]}, r"'\[True\]' as its 'labels'\. Allowed: 3 labels, one for each"),
        ({"labels": [1, 2, 1]}, "Allowed: 3 labels, one for each step, from 0 to 1"),
        ({"judge": 4}, "'4' as its 'judge'. Allowed: a step from 1 to 3, or 0 for none"),
    ],
)
def test_wrong_rows_are_refused(columns, message):
    good = task(judge=0)
    row = replace(good, columns={**good.columns, **columns})
    with pytest.raises(ConfigError, match=message):
        LabelledSteps(judged="judge").validate_every_task([row])
