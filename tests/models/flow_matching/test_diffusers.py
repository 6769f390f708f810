"""A tiny pipeline of diffusers as a policy: what it draws is what diffusers draws."""

from dataclasses import replace

import pytest
import torch

from grupo.core.errors import ConfigError
from grupo.models.flow import Flow
from grupo.models.loading import Lora
from grupo.storage import tensor_text
from tests.helpers import tiny_diffusers_pipeline, tiny_flow

pytestmark = pytest.mark.filterwarnings("ignore")  # of what libraries say to each other
PROMPTS = ("a red square", "blue")


@pytest.fixture(scope="module")
def flow(tmp_path_factory):
    folder = tiny_diffusers_pipeline.plant(tmp_path_factory.mktemp("pipeline") / "tiny")
    return Flow(folder, num_steps=3)


@pytest.mark.parametrize("way", [{}, {"guidance": 4.0}, {"lora": Lora(rank=2)}], ids=str)
def test_what_was_drawn_is_as_likely_as_when_it_was(flow, way):
    policy = replace(flow, **way).build()
    batch = tiny_flow.batch_of(policy, tiny_flow.drawn(policy.actor(1), PROMPTS))
    said = policy.signals(batch)
    assert batch.mask.all()
    assert (said.logp - batch.old_logp).abs().max() < 1e-5
    assert said.logp.requires_grad


def test_greedy_pictures_are_those_of_the_pipeline(flow):
    policy = flow.build()
    (rollout,) = tiny_flow.drawn(policy.actor(1).at(top_k=1), ["red"])
    ((_, action),) = rollout.turns
    pipeline = policy.backbone.pipeline
    pipeline.set_progress_bar_config(disable=True)
    theirs = pipeline(
        "red",
        latents=tensor_text.decode_tensor(action.observation[1])[None],
        num_inference_steps=3,
        guidance_scale=1.0,
        height=16,
        width=16,
        output_type="pt",
    ).images[0]
    ours = tensor_text.decode_tensor(action.image).float() / 255
    assert ours.shape == (3, 16, 16)
    assert (ours - theirs).abs().max() < 1 / 255


def test_it_is_written_as_a_pipeline_with_its_adapters_merged(flow, tmp_path):
    policy = replace(flow, lora=Lora(rank=2)).build()
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.add_(0.1)
    policy.export(tmp_path / "merged")
    (mine,) = tiny_flow.drawn(policy.actor(1).at(top_k=1), ["red"])
    loaded = Flow(str(tmp_path / "merged"), num_steps=3).build()
    (theirs,) = tiny_flow.drawn(loaded.actor(1).with_sampling(top_k=1), ["red"])
    last = [tensor_text.decode_tensor(r.turns[0][1].items[-1]) for r in (mine, theirs)]
    assert torch.allclose(*last, atol=1e-5)


def test_a_folder_that_is_no_such_pipeline_is_refused(tmp_path):
    (tmp_path / "model_index.json").write_text('{"_class_name": "Other"}')
    with pytest.raises(ConfigError, match="is no Stable Diffusion 3 pipeline"):
        Flow(str(tmp_path)).build()
