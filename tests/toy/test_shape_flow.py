"""The toy flow model of coloured shapes."""

import random
from dataclasses import replace

import pytest
import torch

from grupo.models.flow import Flow
from grupo.rewards.image_shapes import PALETTE, SHAPE_PIXELS, palette_indices
from grupo.tasks.shape_captions import parse_scene
from grupo.toy.flow_pretrain import ensure_trained_flow, train_flow
from grupo.toy.shape_flow import ShapesFlow
from grupo.training.callbacks import NullCallback

QUICK = ShapesFlow(width=16, batch_size=16, max_steps=30)


class RecordingCallback(NullCallback):
    """A callback that records the messages."""

    def __init__(self):
        self.messages = []

    def on_message(self, message):
        self.messages.append(message)


@pytest.mark.slow
def test_the_loss_falls_and_equal_seeds_train_equal_models():
    quick = replace(QUICK, max_steps=5)
    first, second = train_flow(quick), train_flow(quick)
    pairs = zip(first.parameters(), second.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    callback = RecordingCallback()
    train_flow(replace(QUICK, max_steps=101), callback)
    first, *_, last = [float(line.rpartition(" ")[2]) for line in callback.messages]
    assert first > 1.5  # noise and image have variances of 1 and about 0.7
    assert last < 0.7 * first


def areas_match(caption, image):
    """True if each colour covers as many pixels as the caption's shapes."""
    areas = palette_indices((image + 1) / 2).flatten().bincount(minlength=5)[1:]
    expected = {x.colour: x.count * SHAPE_PIXELS[x.shape] for x in parse_scene(caption).shapes}
    return areas.tolist() == [expected.get(colour, 0) for colour in PALETTE]


@pytest.mark.slow
def test_wrong_caption_frac_is_the_fraction_of_wrong_captions():
    for fraction, expected in ((0.0, 300), (0.5, 150), (1.0, 0)):
        flow, rng = ShapesFlow(wrong_caption_frac=fraction), random.Random(0)
        matching = sum(areas_match(*flow.example(rng)) for _ in range(300))
        assert abs(matching - expected) <= 30  # some wrong captions have the same areas


def test_a_trained_model_is_not_trained_again_and_loads_as_a_policy(tmp_path, monkeypatch):
    monkeypatch.setenv("GRUPO_HOME", str(tmp_path))
    quick = replace(QUICK, max_steps=2)
    folder = ensure_trained_flow(quick)
    mtime = (folder / "model.safetensors").stat().st_mtime_ns
    assert ensure_trained_flow(quick) == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == mtime
    Flow(str(folder)).build()
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]
