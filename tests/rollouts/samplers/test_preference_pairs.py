"""Given pairs as groups: rewards, tokens that count, and revisions of one another."""

import pytest

from grupo.core.types import RewardResult, Task
from grupo.models.causal_lm import CausalLM
from grupo.rollouts.samplers import (
    LabelledAnswers,
    PreferencePairs,
    RevisionPrompt,
    SelfImprovingPairs,
)
from grupo.util.event_loop import run_coroutine
from tests.helpers.tiny_lm import batch_of, save_model

TASK = Task("k", "Hi", columns={"chosen": "Yo", "rejected": "No!", "label": False})
END = 0


class LengthEnv:
    """Scores an answer by its length, with a total reward of 9."""

    async def reply(self, task, rollout):
        return None if rollout.turns else task.prompt

    async def score(self, task, rollouts):
        return [RewardResult(9.0, {"length": float(len(r.text))}) for r in rollouts]


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    return CausalLM(str(save_model(tmp_path_factory.mktemp("model"))), max_new_tokens=5).build()


def group_of(sampler, policy, task=TASK):
    return run_coroutine(sampler(task, LengthEnv(), policy.actor(0)))


def test_chosen_answer_has_reward_1_and_the_rejected_one_0(policy):
    group = group_of(PreferencePairs(), policy)
    assert [r.text for r in group.rollouts] == ["Yo", "No!"]
    assert group.rewards == (1.0, 0.0)
    assert {r.source for r in group.rollouts} == {"preference"}
    assert not any(response.sampled for r in group.rollouts for _, response in r.turns)


def test_end_token_counts_and_prompt_does_not(policy):
    group = group_of(PreferencePairs(), policy)
    batch = batch_of(policy, group.rollouts)
    assert batch.lengths.tolist() == [3, 4]  # with an end token each
    assert [r.turns[0][1].items[-1] for r in group.rollouts] == [END, END]
    assert not batch.old_logp.any()


def test_environment_scores_the_reward_terms_that_are_kept(policy):
    group = group_of(PreferencePairs(reward_terms=("length",)), policy)
    assert [r.reward_terms["length"] for r in group.rollouts] == [2.0, 3.0]
    assert group.rewards == (1.0, 0.0)
    assert not group_of(PreferencePairs(), policy).rollouts[0].reward_terms


def test_lists_of_answers_are_one_group(policy):
    task = Task("k", "Hi", columns={"chosen": ["a", "b"], "rejected": ["c"]})
    group = group_of(PreferencePairs(), policy, task)
    assert [(r.text, r.reward) for r in group.rollouts] == [("a", 1.0), ("b", 1.0), ("c", 0.0)]


@pytest.mark.parametrize("label", [True, False])
def test_label_is_the_reward(policy, label):
    task = Task("k", "Hi", columns={"completion": "Yo", "label": label})
    group = group_of(LabelledAnswers(), policy, task)
    assert [(r.text, r.reward) for r in group.rollouts] == [("Yo", float(label))]


def test_each_answer_is_a_revision_of_each(policy):
    group = group_of(SelfImprovingPairs(revision_prompt=RevisionPrompt("|")), policy)
    assert [(r.turns[0][0], r.text) for r in group.rollouts] == [
        ("Hi", "Yo"),
        ("Hi", "No!"),
        ("HiYo|", "Yo"),
        ("HiNo!|", "Yo"),
        ("HiYo|", "No!"),
        ("HiNo!|", "No!"),
    ]
    assert group.rewards == (1.0, 0.0, 1.0, 1.0, 0.0, 0.0)
    previous = [r.reward_terms["previous_is_chosen"] for r in group.rollouts]
    assert previous == [0.5, 0.5, 1.0, 0.0, 1.0, 0.0]
    assert group.rewards == tuple(r.reward_terms["answer_is_chosen"] for r in group.rollouts)
