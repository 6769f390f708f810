"""A small flow model learns from drawings."""

import random
from dataclasses import replace

import torch

from grupo.models.flow import Flow
from grupo.rewards.image_shapes import AREA, PALETTE, shades
from grupo.tasks.shape_captions import scene_of
from grupo.toy.flow_pretrain import ensure, grow
from grupo.toy.shape_flow import ShapesFlow
from grupo.training.callbacks import Silent

QUICK = ShapesFlow(width=16, batch=16, steps=30)


class Heard(Silent):
    """Somebody who remembers what was said."""

    def __init__(self):
        self.lines = []

    def said(self, line):
        self.lines.append(line)


def test_the_loss_falls_and_equal_seeds_grow_equal_models():
    one, other = grow(QUICK), grow(QUICK)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
    heard = Heard()
    grow(replace(QUICK, steps=101), heard)
    first, *_, last = [float(line.rpartition(" ")[2]) for line in heard.lines]
    assert first > 1.5  # of noise and image, of variances 1 and about 0.7
    assert last < 0.7 * first


def fits(caption, image):
    """Do the caption's colours and nobody else's cover what its things do?"""
    shade = shades((image + 1) / 2).flatten().bincount(minlength=5)[1:]
    things = {x.colour: x.count * AREA[x.shape] for x in scene_of(caption).things}
    return shade.tolist() == [things.get(colour, 0) for colour in PALETTE]


def test_the_share_of_loose_captions_is_of_another_image():
    for loose, wanted in ((0.0, 300), (0.5, 150), (1.0, 0)):
        flow, rng = ShapesFlow(loose=loose), random.Random(0)
        right = sum(fits(*flow.example(rng)) for _ in range(300))
        assert abs(right - wanted) <= 30  # another caption has the same areas now and then


def test_a_grown_model_is_kept_and_loads_as_a_policy(tmp_path, monkeypatch):
    monkeypatch.setenv("GRUPO_HOME", str(tmp_path))
    quick = replace(QUICK, steps=2)
    home = ensure(quick)
    before = (home / "model.safetensors").stat().st_mtime_ns
    assert ensure(quick) == home
    assert (home / "model.safetensors").stat().st_mtime_ns == before
    Flow(str(home)).build()
    assert [path.name for path in home.parent.iterdir()] == [home.name]
