"""A small flow model learns from drawings."""

import random
from dataclasses import replace

import torch

from grupo.models.flow import Flow
from grupo.rewards.image_shapes import PALETTE, SHAPE_PIXELS, palette_indices
from grupo.tasks.shape_captions import parse_scene
from grupo.toy.flow_pretrain import ensure_trained_flow, train_flow
from grupo.toy.shape_flow import ShapesFlow
from grupo.training.callbacks import NullCallback

QUICK = ShapesFlow(width=16, batch_size=16, max_steps=30)


class Heard(NullCallback):
    """Somebody who remembers what was said."""

    def __init__(self):
        self.lines = []

    def on_message(self, line):
        self.lines.append(line)


def test_the_loss_falls_and_equal_seeds_grow_equal_models():
    one, other = train_flow(QUICK), train_flow(QUICK)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
    heard = Heard()
    train_flow(replace(QUICK, max_steps=101), heard)
    first, *_, last = [float(line.rpartition(" ")[2]) for line in heard.lines]
    assert first > 1.5  # of noise and image, of variances 1 and about 0.7
    assert last < 0.7 * first


def fits(caption, image):
    """Do the caption's colours and nobody else's cover what its things do?"""
    shade = palette_indices((image + 1) / 2).flatten().bincount(minlength=5)[1:]
    things = {x.colour: x.count * SHAPE_PIXELS[x.shape] for x in parse_scene(caption).shapes}
    return shade.tolist() == [things.get(colour, 0) for colour in PALETTE]


def test_the_share_of_loose_captions_is_of_another_image():
    for loose, wanted in ((0.0, 300), (0.5, 150), (1.0, 0)):
        flow, rng = ShapesFlow(wrong_caption_frac=loose), random.Random(0)
        right = sum(fits(*flow.example(rng)) for _ in range(300))
        assert abs(right - wanted) <= 30  # another caption has the same areas now and then


def test_a_grown_model_is_kept_and_loads_as_a_policy(tmp_path, monkeypatch):
    monkeypatch.setenv("GRUPO_HOME", str(tmp_path))
    quick = replace(QUICK, max_steps=2)
    home = ensure_trained_flow(quick)
    before = (home / "model.safetensors").stat().st_mtime_ns
    assert ensure_trained_flow(quick) == home
    assert (home / "model.safetensors").stat().st_mtime_ns == before
    Flow(str(home)).build()
    assert [path.name for path in home.parent.iterdir()] == [home.name]
