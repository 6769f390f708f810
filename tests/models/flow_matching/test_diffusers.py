"""Diffusers pipelines as policies: images match those of diffusers."""

from dataclasses import replace

import pytest
import torch

from grupo.models.flow import Flow
from grupo.models.lora import Lora
from grupo.storage import tensor_text
from grupo.util.errors import ConfigError
from tests.helpers import tiny_diffusers_pipeline, tiny_flow
from tests.helpers.fast_cases import fast_cases

pytestmark = pytest.mark.filterwarnings("ignore")  # warnings of diffusers and transformers
PROMPTS = ("a red square", "blue")


@pytest.fixture(scope="module")
def flow(tmp_path_factory):
    folder = tiny_diffusers_pipeline.save_model(tmp_path_factory.mktemp("pipeline") / "tiny")
    return Flow(folder, num_steps=3)


@pytest.mark.parametrize(
    "changes", fast_cases(1, [{}, {"guidance_scale": 4.0}, {"lora": Lora(rank=2)}]), ids=str
)
def test_evaluated_logp_matches_generation(flow, changes):
    policy = replace(flow, **changes).build()
    batch = tiny_flow.batch_of(policy, tiny_flow.generate(policy.actor(1), PROMPTS))
    signals = policy.signals(batch)
    assert batch.mask.all()
    assert (signals.logp - batch.old_logp).abs().max() < 1e-5
    assert signals.logp.requires_grad


def test_greedy_images_match_the_pipeline(flow):
    policy = flow.build()
    (rollout,) = tiny_flow.generate(policy.actor(1).with_sampling(top_k=1), ["red"])
    ((_, response),) = rollout.turns
    pipeline = policy.backbone.pipeline
    pipeline.set_progress_bar_config(disable=True)
    expected = pipeline(
        "red",
        latents=tensor_text.decode_tensor(response.observation[1])[None],
        num_inference_steps=3,
        guidance_scale=1.0,
        height=16,
        width=16,
        output_type="pt",
    ).images[0]
    image = tensor_text.decode_tensor(response.image).float() / 255
    assert image.shape == (3, 16, 16)
    assert (image - expected).abs().max() < 1 / 255


def test_export_writes_a_pipeline_with_merged_adapters(flow, tmp_path):
    policy = replace(flow, lora=Lora(rank=2)).build()
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.add_(0.1)
    policy.export(tmp_path / "merged")
    (exported,) = tiny_flow.generate(policy.actor(1).with_sampling(top_k=1), ["red"])
    loaded = Flow(str(tmp_path / "merged"), num_steps=3).build()
    (reloaded,) = tiny_flow.generate(loaded.actor(1).with_sampling(top_k=1), ["red"])
    last = [tensor_text.decode_tensor(r.turns[0][1].items[-1]) for r in (exported, reloaded)]
    assert torch.allclose(*last, atol=1e-5)


def test_folder_of_another_pipeline_raises_config_error(tmp_path):
    (tmp_path / "model_index.json").write_text('{"_class_name": "Other"}')
    with pytest.raises(ConfigError, match="is no Stable Diffusion 3 pipeline"):
        Flow(str(tmp_path)).build()
