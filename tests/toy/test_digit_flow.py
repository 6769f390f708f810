"""A small flow model learns to write digits, and by a classifier to write them better."""

import json
from dataclasses import replace
from statistics import fmean

import pytest

from tests.helpers.paths import ROOT

pytest.importorskip("sklearn")

from grupo.algo.advantages import chain
from grupo.core.importing import import_object
from grupo.core.rng import make_rng
from grupo.models.flow import Flow
from grupo.tasks.digit_captions import DIGIT_NAMES
from grupo.testing.smoke.run import negate
from grupo.toy.digit_flow import DigitsFlow
from grupo.toy.flow_pretrain import ensure_trained_flow, train_flow
from grupo.training.trainer import train

RECIPE = f"{ROOT}/recipes/images/digits.py:RECIPE"


def test_an_example_is_a_grey_image_and_its_name():
    rng = make_rng(0, "test")
    for name, image in (DigitsFlow().example(rng) for _ in range(5)):
        assert name in DIGIT_NAMES
        assert image.shape == (3, 8, 8)
        assert -1 <= image.min() < image.max() <= 1
        assert (image[0] == image[1]).all()


def test_what_is_grown_loads_as_a_policy(tmp_path, monkeypatch):
    monkeypatch.setenv("GRUPO_HOME", str(tmp_path))
    home = ensure_trained_flow(DigitsFlow(width=8, batch_size=4, max_steps=2))
    assert Flow(str(home)).build().backbone.shape == (3, 8, 8)


def test_its_last_weights_are_a_mean_of_the_last_ones():
    one, other = (
        train_flow(DigitsFlow(width=8, batch_size=4, max_steps=3, ema_rate=f)) for f in (1.0, 1e-9)
    )
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    assert any(not bool((a == b).all()) for a, b in pairs)


@pytest.mark.slow
def test_it_learns_to_write_what_is_read_right_and_turned_round_it_does_not(tmp_path, monkeypatch):
    monkeypatch.setenv("GRUPO_HOME", str(tmp_path))
    ensure_trained_flow(DigitsFlow())
    recipe = import_object(RECIPE)
    recipe = recipe.replace(
        policy=replace(recipe.policy, model=str(DigitsFlow().model_dir)), max_steps=20
    )
    turned = recipe.method.replace(advantage=chain(recipe.method.credit, negate))
    assert gain(recipe, tmp_path / "run") > 0.05
    assert gain(recipe.replace(method=turned), tmp_path / "turned") < -0.1


def gain(recipe, run):
    """What the last five steps were better than the first two."""
    train(recipe, run)
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    rewards = [line["reward/mean"] for line in lines]
    return fmean(rewards[-5:]) - fmean(rewards[:2])
