"""Multimodal policies: the model's own logits, a ratio of 1, frozen towers, adapters, export."""

import functools
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForMultimodalLM

from grupo.core.media import Image, Video, media_of
from grupo.core.types import Rollout, Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.inference.vllm import Vllm
from grupo.kernels import native
from grupo.kernels.llama.backend import NativeLlamaBackend
from grupo.models.causal_lm import CausalLM
from grupo.models.evaluator import PackedEvaluator
from grupo.models.lora import Lora
from grupo.models.multimodal.media_tokens import is_media_token
from grupo.models.multimodal.processor_loading import load_processor
from grupo.models.quiet_loading import quiet_transformers
from grupo.models.vision_lm import VisionLM, VisionPolicy
from grupo.recipe import Recipe
from grupo.tasks import InMemoryTasks
from grupo.training.resume.start_from import with_model
from grupo.util.errors import ConfigError
from grupo.util.event_loop import run_coroutine
from tests.helpers import vision_families
from tests.helpers.fast_cases import fast_cases
from tests.helpers.media_prompts import answers, mixed_prompts, prompt
from tests.helpers.tiny_lm import batch_of
from tests.helpers.vision_families import FAMILIES

# models whose text part attends only backwards, without features between layers
PACKED = {name for name in FAMILIES if name not in ("gemma3", "qwen3_vl")}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Folder of a tiny model of each family."""
    root = tmp_path_factory.mktemp("multimodal")
    return {name: str(vision_families.save_model(root / name, name)) for name in FAMILIES}


def kind_of(name: str) -> str:
    """The kind of media that a family reads."""
    return "audio" if name == "qwen2_audio" else "image"


def policy_of(folder: str, **fields: Any) -> VisionPolicy:
    return VisionLM(folder, max_new_tokens=8, **fields).build()


@functools.cache
def cached_policy_of(folder: str, **fields: Any) -> VisionPolicy:
    """The policy, built once: for tests that do not change it."""
    return policy_of(folder, **fields)


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
def test_logits_are_those_of_the_forward_pass_of_transformers(folders, name):
    policy = cached_policy_of(folders[name])
    assert isinstance(policy.evaluator, PackedEvaluator) == (name in PACKED)
    with quiet_transformers():
        model = AutoModelForMultimodalLM.from_pretrained(folders[name]).eval()
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
def test_evaluated_logp_is_that_of_generation_in_mixed_batches(folders, name):
    policy = cached_policy_of(folders[name])
    batch = batch_of(policy, answers(policy, mixed_prompts(kind_of(name))))
    off = (policy.signals(batch).logp - batch.old_logp)[batch.mask]
    assert off.abs().max() < 2e-5
    assert batch.old_logp[batch.mask].std() > 0.5  # not constant


@pytest.mark.parametrize("name", fast_cases(2, FAMILIES))
def test_a_prompt_has_the_same_logp_alone_and_in_a_batch(folders, name):
    policy = cached_policy_of(folders[name])
    rollouts = answers(policy, mixed_prompts(kind_of(name)))
    together = policy.signals(batch_of(policy, rollouts)).logp.detach()
    for i, rollout in enumerate(rollouts):
        alone = policy.signals(batch_of(policy, [rollout])).logp[0].detach()
        torch.testing.assert_close(together[i, : len(alone)], alone, rtol=0, atol=2e-5)


@pytest.mark.parametrize("name", fast_cases(2, FAMILIES))
def test_answers_depend_on_the_media(folders, name):
    policy = cached_policy_of(folders[name])
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
def test_a_later_observation_holds_media(folders, name):
    policy = cached_policy_of(folders[name])
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
def test_gradients_reach_what_is_trained_and_nothing_else(folders, name, part):
    policy = policy_of(folders[name], **{f"train_{part}": True})
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
def test_language_models_of_the_llama_kind_run_in_compiled_code(folders, name):
    evaluator = cached_policy_of(folders[name]).evaluator
    assert isinstance(evaluator, PackedEvaluator)
    has_compiler = native.library(torch.float32) is not None
    assert isinstance(evaluator.backend, NativeLlamaBackend) == has_compiler


def test_gradient_of_the_projector_is_that_of_transformers(folders):
    policy = policy_of(folders["llava"], train_projector=True)
    (rollout,) = answers(policy, [prompt("image", [0])], attempts=1)
    policy.signals(batch_of(policy, [rollout])).logp.sum().backward()
    with quiet_transformers():
        model = AutoModelForMultimodalLM.from_pretrained(folders["llava"]).eval()
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
def test_features_of_a_frozen_tower_are_computed_once(folders, monkeypatch):
    policy = policy_of(folders["llava"])
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


def test_a_trained_tower_changes_the_next_answers(folders):
    policy = policy_of(folders["llava"], train_tower=True)
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
def test_adapters_are_on_the_language_model_only(folders, name):
    policy = policy_of(folders[name], lora=Lora(4))
    names = [n for n, p in policy.module.named_parameters() if p.requires_grad]
    assert names
    assert all("language_model" in n and "lora_" in n for n in names)
    batch = batch_of(policy, answers(policy, mixed_prompts("image")))
    policy.signals(batch).logp.sum().backward()
    assert any(p.grad is not None and p.grad.any() for p in policy.parameters())


@pytest.mark.parametrize("lora", fast_cases(1, [None, Lora(4)]), ids=["full", "lora"])
@pytest.mark.parametrize("name", fast_cases(1, ["qwen2_vl", "llava", "idefics3", "qwen2_audio"]))
def test_an_export_loads_with_transformers_and_as_a_policy(folders, name, lora, tmp_path: Path):
    policy = policy_of(folders[name], lora=lora)
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.add_(0.05)
    policy.export(tmp_path)
    rollouts = answers(policy, mixed_prompts(kind_of(name)))  # they keep the media of the batch
    batch = batch_of(policy, rollouts)
    again = VisionLM(str(tmp_path), max_new_tokens=8).build()
    off = again.signals(batch).logp - policy.signals(batch).logp
    assert off[batch.mask].abs().max() < 5e-4
    assert load_processor(str(tmp_path)).chat_template == policy.processor.processor.chat_template


@pytest.mark.slow
def test_a_policy_reads_rollouts_of_another_process(folders):
    policy = policy_of(folders["llava"])
    (rollout,) = answers(policy, [prompt("image", [5])], attempts=1)
    logp = policy.signals(batch_of(policy, [rollout])).logp.detach()
    again = policy_of(folders["llava"])
    observation = prompt("image", [5])  # other objects with the same content
    restored = replace(rollout, turns=((observation, rollout.turns[0][1]),))
    restored_logp = again.signals(batch_of(again, [restored])).logp.detach()
    torch.testing.assert_close(restored_logp, logp, rtol=0, atol=2e-5)


@pytest.mark.slow
def test_reference_and_policy_agree_at_the_start(folders):
    policy = policy_of(folders["qwen2_vl"])
    rollouts = answers(policy, mixed_prompts("image"))
    frozen = policy.load_frozen_copy()
    batch = batch_of(policy, rollouts)
    off = (frozen.signals(batch).logp - policy.signals(batch).logp)[batch.mask]
    assert off.abs().max() < 2e-5


@pytest.mark.slow
def test_asynchronous_generation_reads_pictures(folders):
    policy = policy_of(folders["llava"])
    policy.use_weight_copy_for_generation()
    batch = batch_of(policy, answers(policy, mixed_prompts("image")))
    assert (policy.signals(batch).logp - batch.old_logp)[batch.mask].abs().max() < 2e-5


@pytest.mark.parametrize(
    ("fields", "words"), [({"engine": Vllm()}, "engine"), ({"train_tower": 3}, "train_tower")]
)
def test_fields_that_cannot_work_are_refused_before_loading(fields, words):
    with pytest.raises(ConfigError, match=words):
        VisionLM("nowhere", **fields).check()


@pytest.mark.parametrize(("frames", "read"), [(3, [0, 1, 2]), (9, [0, 3, 5, 8]), (1, [0])])
def test_a_video_is_read_as_frames_at_equal_distances(folders, frames, read):
    policy = cached_policy_of(folders["qwen2_vl"], max_frames=4)
    pixels = np.stack([np.full((32, 32, 3), 20 * i, dtype=np.uint8) for i in range(frames)])
    clip = {"type": "video", "video": Video.from_frames(pixels, 2.0)}
    images = [{"type": "image", "image": Image.from_pixels(pixels[i])} for i in read]
    text = {"type": "text", "text": "What moves?"}
    video, stills = (({"role": "user", "content": [*parts, text]},) for parts in ([clip], images))
    expected = policy.encode_observation(Rollout(), stills)
    assert policy.encode_observation(Rollout(), video) == expected
    (rollout,) = answers(policy, [video], attempts=1)
    batch = batch_of(policy, [rollout])
    off = (policy.signals(batch).logp - batch.old_logp)[batch.mask]
    assert off.abs().max() < 2e-5


def test_a_placeholder_in_the_text_is_refused(folders):
    policy = cached_policy_of(folders["llava"])
    with pytest.raises(ConfigError, match="placeholder"):
        policy.encode_observation(Rollout(), prompt("image", [0], "What is <image>?"))


def test_a_kind_of_media_that_the_model_does_not_read_is_refused(folders):
    policy = cached_policy_of(folders["llava"])
    with pytest.raises(ConfigError, match=r"'audio', which .* does not read"):
        policy.encode_observation(Rollout(), prompt("audio", [0]))


def test_an_export_keeps_the_settings_for_videos(folders, tmp_path: Path):
    source, export = tmp_path / "source", tmp_path / "export"
    shutil.copytree(folders["qwen2_vl"], source)
    file = source / "processor_config.json"
    video = {"video_processor_type": "Qwen2VLVideoProcessor", "patch_size": 8}
    file.write_text(json.dumps({**json.loads(file.read_text()), "video_processor": video}))
    policy_of(str(source)).export(export)
    assert json.loads((export / file.name).read_text())["video_processor"] == video


@pytest.mark.parametrize("name", ["llava", "qwen2_audio"])
def test_a_multimodal_folder_as_model_gives_a_multimodal_policy(folders, name):
    def length(task: Task, rollout: Rollout) -> float:
        return float(rollout.length)

    env = SingleTurn((RewardTerm("length", length),))
    recipe = Recipe(CausalLM("other", max_new_tokens=9), env, InMemoryTasks([]))
    policy = with_model(recipe, folders[name]).policy
    assert policy == VisionLM(folders[name], max_new_tokens=9)
