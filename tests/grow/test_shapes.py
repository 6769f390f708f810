"""A small flow model learns from drawings: within seconds a little, within minutes to draw."""

import json
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest
import torch

from grupo.credit import chain
from grupo.grow.flows import ensure, grow
from grupo.grow.shapes import ShapesFlow
from grupo.imports import find
from grupo.policies.flow import Flow
from grupo.proving.trial import negative as turned
from grupo.trainer import train
from grupo.watch import Silent

RECIPE = f"{Path(__file__).parents[2]}/recipes/images/shapes.py:RECIPE"
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


def test_a_grown_model_is_kept_and_loads_as_a_policy(tmp_path, monkeypatch):
    monkeypatch.setenv("GRUPO_HOME", str(tmp_path))
    quick = replace(QUICK, steps=2)
    home = ensure(quick)
    before = (home / "model.safetensors").stat().st_mtime_ns
    assert ensure(quick) == home
    assert (home / "model.safetensors").stat().st_mtime_ns == before
    Flow(str(home)).build()
    assert [path.name for path in home.parent.iterdir()] == [home.name]


@pytest.mark.slow
def test_a_grown_model_learns_and_turned_round_it_does_not(tmp_path, monkeypatch):
    monkeypatch.setenv("GRUPO_HOME", str(tmp_path))
    ensure(ShapesFlow())
    recipe = find(RECIPE).but(held_out=0, steps=40)
    recipe = recipe.but(policy=replace(recipe.policy, model=str(ShapesFlow().home)))
    method = recipe.method
    gained = gain(recipe, tmp_path / "run")
    assert gained > 0.08
    other = recipe.but(method=method.but(credit=chain(method.credit, turned)))
    assert gain(other, tmp_path / "turned") < 0.0


def gain(recipe, run):
    """What the last ten steps were better than the first five."""
    train(recipe, run)
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    rewards = [line["reward/mean"] for line in lines]
    return fmean(rewards[-10:]) - fmean(rewards[:5])
