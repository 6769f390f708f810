"""Rewards from a head of an exported model."""

import shutil
from dataclasses import replace

import pytest
import torch
from torch import nn

from grupo.core.aux_heads import DeepHead, ExportedHead, LinearHead, OwnModelHead
from grupo.core.types import Group, Response, Rollout, Task
from grupo.models.aux_heads import HEADS_FILE
from grupo.models.causal_lm import CausalLM
from grupo.models.causal_policy import CausalPolicy
from grupo.models.lora import Lora
from grupo.rewards import LearnedReward
from grupo.training.update.collate import collate
from grupo.util.errors import ConfigError
from grupo.util.event_loop import run_coroutine
from tests.helpers.tiny_lm import CONTEXT, answer_batch, save_model

TASK = Task("t", "Hi")


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> str:
    return str(save_model(tmp_path_factory.mktemp("model"), "llama"))


def with_random_head(spec: CausalLM, head) -> CausalPolicy:
    policy = spec.build()
    linear = policy.attach_heads((head,)).heads["score"]
    assert isinstance(linear, nn.Linear)
    nn.init.normal_(linear.weight)
    return policy


def answered(policy: CausalPolicy, text: str) -> Rollout:
    """A rollout with one answer that ends with the end token."""
    prompt = policy.chat_tokenizer.encode_observation(Rollout(), "Hi")
    items = policy.chat_tokenizer.encode_answer(text)
    response = Response(items, (0.0,) * len(items), prompt, text, sampled=False)
    return Rollout().append_turn("Hi", response)


def last_scores(policy: CausalPolicy, rollouts) -> list[float]:
    """The head before the last response of each rollout, as losses read it."""
    batch = collate([Group(TASK, tuple(replace(r, reward=0.0) for r in rollouts))], policy.encode)
    scores = policy.signals(batch, ["score"])["score"]
    return scores[torch.arange(len(rollouts)), batch.mask.sum(1) - 1].tolist()


@pytest.mark.parametrize("head", [LinearHead("score"), DeepHead("score"), OwnModelHead("score")])
@pytest.mark.parametrize("lora", [None, Lora(2, 4.0)], ids=["full", "lora"])
def test_an_exported_head_scores_as_in_training(model, tmp_path, head, lora):
    policy = with_random_head(CausalLM(model, lora=lora, max_new_tokens=8), head)
    with torch.no_grad():
        for parameter in (*policy.parameters(), *policy.aux_heads.parameters()):
            parameter.add_(0.05 * torch.randn_like(parameter))
    rollouts = [answered(policy, text) for text in ("4", "five", "six or seven")]
    expected = last_scores(policy, rollouts)
    policy.export(tmp_path / "out")
    own_model = tmp_path / "out" / "heads" / "score"
    folder = own_model if own_model.exists() else tmp_path / "out"
    reward = LearnedReward(str(folder), dtype="float32")
    assert run_coroutine(reward(TASK, rollouts)) == pytest.approx(expected, rel=1e-3, abs=1e-4)
    assert len({round(value, 3) for value in expected}) == 3


def test_a_rollout_beyond_the_context_fails_alone(model, tmp_path):
    policy = with_random_head(CausalLM(model, max_new_tokens=8), DeepHead("score"))
    policy.export(tmp_path / "out")
    reward = LearnedReward(str(tmp_path / "out"), dtype="float32")
    rollouts = [answered(policy, "4"), answered(policy, "4" * CONTEXT)]
    score, error = run_coroutine(reward(TASK, rollouts))
    assert isinstance(score, float)
    assert isinstance(error, ConfigError)
    assert f"the rollout has {CONTEXT + 3} tokens" in str(error)


def test_a_folder_without_heads_is_refused(model):
    reward = LearnedReward(model)
    with pytest.raises(ConfigError, match="has no auxiliary_heads"):
        reward.validate_tasks([TASK])


def test_a_head_that_was_not_trained_is_refused(model, tmp_path):
    policy = with_random_head(CausalLM(model, max_new_tokens=8), DeepHead("score"))
    policy.export(tmp_path / "out")
    with pytest.raises(ConfigError, match=r"head: 'scores'\. Did you mean 'score'"):
        LearnedReward(str(tmp_path / "out"), "scores").validate_tasks([TASK])


def test_a_value_model_starts_as_a_reward_model(model, tmp_path):
    trained = with_random_head(CausalLM(model, max_new_tokens=8), DeepHead("score"))
    with torch.no_grad():
        for parameter in trained.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    trained.export(tmp_path / "out")
    policy = CausalLM(model, max_new_tokens=8).build()
    policy.attach_heads((OwnModelHead("value", start=ExportedHead(str(tmp_path / "out"))),))
    batch = answer_batch(policy)
    value = policy.signals(batch, ["value"])["value"]
    torch.testing.assert_close(value, trained.signals(batch, ["score"])["score"])


def test_a_head_of_a_model_of_another_width_is_refused(model, tmp_path):
    trained = with_random_head(CausalLM(model, max_new_tokens=8), DeepHead("score"))
    trained.export(tmp_path / "out")
    wide = save_model(tmp_path / "wide", "llama", hidden_size=64)
    shutil.copy(tmp_path / "out" / HEADS_FILE, wide)
    with pytest.raises(ConfigError, match="another number of features"):
        LearnedReward(str(wide)).validate_tasks([TASK])


def test_the_tokens_of_another_tokenizer_are_not_read(model, tmp_path):
    policy = with_random_head(CausalLM(model, max_new_tokens=8), DeepHead("score"))
    policy.export(tmp_path / "out")
    own = answered(policy, "five")
    ((observation, response),) = own.turns
    foreign = Response((7, 8), (0.0, 0.0), (3, 4, 5), response.text, sampled=False)
    rollouts = [own, Rollout().append_turn(observation, foreign)]
    first, second = run_coroutine(
        LearnedReward(str(tmp_path / "out"), dtype="float32")(TASK, rollouts)
    )
    assert first == pytest.approx(second)


def test_a_prompt_beyond_the_context_is_refused_before_the_run(model, tmp_path):
    policy = with_random_head(CausalLM(model, max_new_tokens=8), DeepHead("score"))
    policy.export(tmp_path / "out")
    reward = LearnedReward(str(tmp_path / "out"), dtype="float32")
    reward.validate_tasks([TASK, Task("fits", "4" * (CONTEXT - 1))])
    message = f"has {CONTEXT} tokens of its tokenizer. Allowed: {CONTEXT - 1}, so that"
    with pytest.raises(ConfigError, match=message):
        reward.validate_tasks([TASK, Task("long", "4" * CONTEXT)])
