"""Multimodal policies: the model's own logits, a ratio of 1, frozen towers, adapters, export."""

import functools
from dataclasses import replace
from typing import Any

import pytest
import torch
from transformers import AutoModelForMultimodalLM

from grupo.core.media import media_of
from grupo.core.types import Rollout
from grupo.kernels import native
from grupo.kernels.llama.backend import NativeLlamaBackend
from grupo.models.evaluator import PackedEvaluator
from grupo.models.lora import Lora
from grupo.models.multimodal.media_tokens import is_media_token
from grupo.models.quiet_loading import quiet_transformers
from grupo.models.vision_lm import VisionPolicy
from grupo.util.event_loop import run_coroutine
from tests.helpers.fast_cases import fast_cases
from tests.helpers.media_prompts import answers, mixed_prompts, prompt
from tests.helpers.tiny_lm import batch_of
from tests.helpers.vision_families import FAMILIES
from tests.helpers.vision_policies import cached_policy_of, kind_of, policy_of

# models whose text part attends only backwards, without features between layers
PACKED = {name for name in FAMILIES if name not in ("gemma3", "qwen3_vl")}


def processor_inputs(policy: VisionPolicy, observation: Any) -> Any:
    """Outputs of the processor of transformers for a prompt."""
    parts = [
        {k: x for k, x in p.items() if k != p["type"] or k == "text"}
        for p in content_of(observation)
    ]
    text = policy.processor.processor.apply_chat_template(
        [{"role": "user", "content": parts}], tokenize=False, add_generation_prompt=True
    )
    return policy.processor._call(text, list(media_of(observation)))


def content_of(observation: Any) -> list[dict[str, Any]]:
    content = observation[0]["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


@pytest.mark.parametrize("name", fast_cases(1, FAMILIES))
def test_logits_are_those_of_the_forward_pass_of_transformers(vision_folders, name):
    policy = cached_policy_of(vision_folders[name])
    assert isinstance(policy.evaluator, PackedEvaluator) == (name in PACKED)
    with quiet_transformers():
        model = AutoModelForMultimodalLM.from_pretrained(vision_folders[name]).eval()
    for observation in mixed_prompts(kind_of(name)):
        tokens = policy.encode_observation(Rollout(), observation)
        with torch.no_grad():
            expected = model(**processor_inputs(policy, observation)).logits[0]
            assert len(tokens) == len(expected)
            column = torch.arange(len(tokens))
            length = torch.tensor([len(tokens)])
            hidden = policy.evaluator.hidden_states(
                torch.tensor([tokens]), length, torch.zeros_like(column), column
            )
            logits = policy.lm_head(hidden.values)
        torch.testing.assert_close(logits, expected, rtol=0, atol=1e-5 * float(expected.std() + 1))


@pytest.mark.parametrize("name", fast_cases(2, FAMILIES))
def test_evaluated_logp_is_that_of_generation_in_mixed_batches(vision_folders, name):
    policy = cached_policy_of(vision_folders[name])
    batch = batch_of(policy, answers(policy, mixed_prompts(kind_of(name))))
    off = (policy.signals(batch).logp - batch.old_logp)[batch.mask]
    assert off.abs().max() < 2e-5
    assert batch.old_logp[batch.mask].std() > 0.5  # not constant


@pytest.mark.parametrize("name", fast_cases(2, FAMILIES))
def test_a_prompt_has_the_same_logp_alone_and_in_a_batch(vision_folders, name):
    policy = cached_policy_of(vision_folders[name])
    rollouts = answers(policy, mixed_prompts(kind_of(name)))
    together = policy.signals(batch_of(policy, rollouts)).logp.detach()
    for i, rollout in enumerate(rollouts):
        alone = policy.signals(batch_of(policy, [rollout])).logp[0].detach()
        torch.testing.assert_close(together[i, : len(alone)], alone, rtol=0, atol=2e-5)


@pytest.mark.parametrize("name", fast_cases(2, FAMILIES))
def test_answers_depend_on_the_media(vision_folders, name):
    policy = cached_policy_of(vision_folders[name])
    kind = kind_of(name)
    (rollout,) = answers(policy, [prompt(kind, [0])], attempts=1)
    other = policy.replace_prompt(rollout, prompt(kind, [3]))
    same = policy.replace_prompt(rollout, prompt(kind, [0]))
    logp, changed, unchanged = (
        policy.signals(batch_of(policy, [x])).logp.detach() for x in (rollout, other, same)
    )
    assert torch.equal(logp, unchanged)
    assert (logp - changed).abs().max() > 0.01


@pytest.mark.parametrize(
    "name", fast_cases(["qwen2_vl"], ["llava", "qwen2_vl", "qwen3_vl", "qwen2_audio"])
)
def test_a_later_observation_holds_media(vision_folders, name):
    policy = cached_policy_of(vision_folders[name])
    kind = kind_of(name)

    async def two_turns() -> Rollout:
        actor = policy.actor(3)
        first, second = prompt(kind, [0]), prompt(kind, [1], "And this?")
        rollout = Rollout().append_turn(first, await actor(Rollout(), first))
        return rollout.append_turn(second, await actor(rollout, second))

    rollout = run_coroutine(two_turns())
    later = torch.tensor(rollout.turns[1][1].observation)
    assert is_media_token(later).any()
    batch = batch_of(policy, [rollout])
    off = (policy.signals(batch).logp - batch.old_logp)[batch.mask]
    assert off.abs().max() < 2e-5


@pytest.mark.parametrize(
    "name", fast_cases(1, ["llava", "qwen2_5_vl", "qwen3_vl", "idefics3", "qwen2_audio"])
)
@pytest.mark.parametrize("part", ["tower", "projector"])
def test_gradients_reach_what_is_trained_and_nothing_else(vision_folders, name, part):
    policy = policy_of(vision_folders[name], **{f"train_{part}": True})
    batch = batch_of(policy, answers(policy, mixed_prompts(kind_of(name))))
    policy.signals(batch).logp.sum().backward()
    named = dict(policy.hf_model.named_parameters())
    names = ("projector", "connector", "merger")
    outside = {n for n in named if not n.startswith(("model.language_model", "model.text_model"))}
    outside -= {"lm_head.weight"}
    expected = {n for n in outside if any(x in n for x in names) == (part == "projector")}
    gradients = {n: named[n].grad for n in outside}
    has_gradient = {n for n, grad in gradients.items() if grad is not None and grad.any()}
    trained = {n for n in outside if named[n].requires_grad}
    assert trained == expected
    assert has_gradient
    assert has_gradient <= expected


@pytest.mark.parametrize("name", sorted(PACKED))
def test_language_models_of_the_llama_kind_run_in_compiled_code(vision_folders, name):
    evaluator = cached_policy_of(vision_folders[name]).evaluator
    assert isinstance(evaluator, PackedEvaluator)
    has_compiler = native.library(torch.float32) is not None
    assert isinstance(evaluator.backend, NativeLlamaBackend) == has_compiler


def test_gradient_of_the_projector_is_that_of_transformers(vision_folders):
    policy = policy_of(vision_folders["llava"], train_projector=True)
    (rollout,) = answers(policy, [prompt("image", [0])], attempts=1)
    policy.signals(batch_of(policy, [rollout])).logp.sum().backward()
    with quiet_transformers():
        model = AutoModelForMultimodalLM.from_pretrained(vision_folders["llava"]).eval()
    inputs = processor_inputs(policy, rollout.turns[0][0])
    items = torch.tensor([rollout.turns[0][1].items])
    count = inputs["input_ids"].shape[1]
    tokens = torch.cat([inputs["input_ids"], items], 1)
    logits = model(input_ids=tokens, pixel_values=inputs["pixel_values"]).logits[0, count - 1 : -1]
    logits.log_softmax(-1).gather(1, items[0][:, None]).sum().backward()
    name = "model.multi_modal_projector.linear_1.weight"
    mine, expected = (dict(m.named_parameters())[name].grad for m in (policy.hf_model, model))
    torch.testing.assert_close(mine, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_features_of_a_frozen_tower_are_computed_once(vision_folders, monkeypatch):
    policy = policy_of(vision_folders["llava"])
    calls = list[int]()
    base: Any = policy.hf_model.base_model
    function = type(base).get_image_features

    @functools.wraps(function)
    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        return function(self, *args, **kwargs)

    monkeypatch.setattr(type(base), "get_image_features", counted)
    batch = batch_of(policy, answers(policy, mixed_prompts("image"), attempts=4))
    policy.signals(batch).logp.sum().backward()
    policy.signals(batch)
    assert len(calls) == 3  # three different pictures


def test_a_trained_tower_changes_the_next_answers(vision_folders):
    policy = policy_of(vision_folders["llava"], train_tower=True)
    (before,) = answers(policy, [prompt("image", [0])], attempts=1)
    with torch.no_grad():
        base: Any = policy.hf_model.base_model
        for parameter in base.vision_tower.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    policy.sync_weights(policy.weight_sync.snapshot(), 1)
    (after,) = answers(policy, [prompt("image", [0])], attempts=1)
    batch = batch_of(policy, [after])
    assert (policy.signals(batch).logp - batch.old_logp)[batch.mask].abs().max() < 2e-5
    assert before.turns[0][1].logp != after.turns[0][1].logp


@pytest.mark.parametrize("name", fast_cases(1, ["llava", "qwen2_vl", "gemma3"]))
def test_adapters_are_on_the_language_model_only(vision_folders, name):
    policy = policy_of(vision_folders[name], lora=Lora(4))
    names = [n for n, p in policy.module.named_parameters() if p.requires_grad]
    assert names
    assert all("language_model" in n and "lora_" in n for n in names)
    batch = batch_of(policy, answers(policy, mixed_prompts("image")))
    policy.signals(batch).logp.sum().backward()
    assert any(p.grad is not None and p.grad.any() for p in policy.parameters())


@pytest.mark.slow
def test_a_policy_reads_rollouts_of_another_process(vision_folders):
    policy = policy_of(vision_folders["llava"])
    (rollout,) = answers(policy, [prompt("image", [5])], attempts=1)
    logp = policy.signals(batch_of(policy, [rollout])).logp.detach()
    again = policy_of(vision_folders["llava"])
    observation = prompt("image", [5])  # other objects with the same content
    restored = replace(rollout, turns=((observation, rollout.turns[0][1]),))
    restored_logp = again.signals(batch_of(again, [restored])).logp.detach()
    torch.testing.assert_close(restored_logp, logp, rtol=0, atol=2e-5)


@pytest.mark.slow
def test_reference_and_policy_agree_at_the_start(vision_folders):
    policy = policy_of(vision_folders["qwen2_vl"])
    rollouts = answers(policy, mixed_prompts("image"))
    frozen = policy.load_frozen_copy()
    batch = batch_of(policy, rollouts)
    off = (frozen.signals(batch).logp - policy.signals(batch).logp)[batch.mask]
    assert off.abs().max() < 2e-5


@pytest.mark.slow
def test_asynchronous_generation_reads_pictures(vision_folders):
    policy = policy_of(vision_folders["llava"])
    policy.use_weight_copy_for_generation()
    batch = batch_of(policy, answers(policy, mixed_prompts("image")))
    assert (policy.signals(batch).logp - batch.old_logp)[batch.mask].abs().max() < 2e-5
