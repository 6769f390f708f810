"""Multimodal policies: export, refused fields, videos, and media that cannot be read."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from grupo.core.media import Image, Video
from grupo.core.types import Rollout, Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.inference.vllm import Vllm
from grupo.models.causal_lm import CausalLM
from grupo.models.lora import Lora
from grupo.models.multimodal.processor_loading import load_processor
from grupo.models.vision_lm import VisionLM
from grupo.recipe import Recipe
from grupo.tasks import InMemoryTasks
from grupo.training.resume.start_from import with_model
from grupo.util.errors import ConfigError
from tests.helpers.fast_cases import fast_cases
from tests.helpers.media_prompts import answers, mixed_prompts, prompt
from tests.helpers.tiny_lm import batch_of
from tests.helpers.vision_policies import cached_policy_of, kind_of, policy_of


@pytest.mark.parametrize("lora", fast_cases(1, [None, Lora(4)]), ids=["full", "lora"])
@pytest.mark.parametrize("name", fast_cases(1, ["qwen2_vl", "llava", "idefics3", "qwen2_audio"]))
def test_an_export_loads_with_transformers_and_as_a_policy(
    vision_folders, name, lora, tmp_path: Path
):
    policy = policy_of(vision_folders[name], lora=lora)
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


@pytest.mark.parametrize(
    ("fields", "words"), [({"engine": Vllm()}, "engine"), ({"train_tower": 3}, "train_tower")]
)
def test_fields_that_cannot_work_are_refused_before_loading(fields, words):
    with pytest.raises(ConfigError, match=words):
        VisionLM("nowhere", **fields).check()


@pytest.mark.parametrize(("frames", "read"), [(3, [0, 1, 2]), (9, [0, 3, 5, 8]), (1, [0])])
def test_a_video_is_read_as_frames_at_equal_distances(vision_folders, frames, read):
    policy = cached_policy_of(vision_folders["qwen2_vl"], max_frames=4)
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


def test_a_placeholder_in_the_text_is_refused(vision_folders):
    policy = cached_policy_of(vision_folders["llava"])
    with pytest.raises(ConfigError, match="placeholder"):
        policy.encode_observation(Rollout(), prompt("image", [0], "What is <image>?"))


def test_a_kind_of_media_that_the_model_does_not_read_is_refused(vision_folders):
    policy = cached_policy_of(vision_folders["llava"])
    with pytest.raises(ConfigError, match=r"'audio', which .* does not read"):
        policy.encode_observation(Rollout(), prompt("audio", [0]))


def test_an_export_keeps_the_settings_for_videos(vision_folders, tmp_path: Path):
    source, export = tmp_path / "source", tmp_path / "export"
    shutil.copytree(vision_folders["qwen2_vl"], source)
    file = source / "processor_config.json"
    video = {"video_processor_type": "Qwen2VLVideoProcessor", "patch_size": 8}
    file.write_text(json.dumps({**json.loads(file.read_text()), "video_processor": video}))
    policy_of(str(source)).export(export)
    assert json.loads((export / file.name).read_text())["video_processor"] == video


@pytest.mark.parametrize("name", ["llava", "qwen2_audio"])
def test_a_multimodal_folder_as_model_gives_a_multimodal_policy(vision_folders, name):
    def length(task: Task, rollout: Rollout) -> float:
        return float(rollout.length)

    env = SingleTurn((RewardTerm("length", length),))
    recipe = Recipe(CausalLM("other", max_new_tokens=9), env, InMemoryTasks([]))
    policy = with_model(recipe, vision_folders[name]).policy
    assert policy == VisionLM(vision_folders[name], max_new_tokens=9)
