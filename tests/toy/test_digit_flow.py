"""The toy flow model of digits, and its training with Flow-GRPO."""

import json
from dataclasses import replace
from statistics import fmean

import pytest

from tests.helpers.paths import ROOT

pytest.importorskip("sklearn")

from grupo.algo.advantages import chain
from grupo.models.flow import Flow
from grupo.tasks.digit_captions import DIGIT_NAMES
from grupo.testing.smoke.run import negate
from grupo.toy.digit_flow import DigitsFlow
from grupo.toy.flow_pretrain import ensure_trained_flow, train_flow
from grupo.training.start import run_training
from grupo.util.importing import import_object
from grupo.util.rng import make_rng

RECIPE = f"{ROOT}/recipes/images/digits.py:RECIPE"


def test_an_example_is_a_grey_image_and_its_digits_name():
    rng = make_rng(0, "test")
    for name, image in (DigitsFlow().example(rng) for _ in range(5)):
        assert name in DIGIT_NAMES
        assert image.shape == (3, 8, 8)
        assert -1 <= image.min() < image.max() <= 1
        assert (image[0] == image[1]).all()


def test_a_trained_model_loads_as_a_policy(tmp_path, monkeypatch):
    monkeypatch.setenv("GRUPO_HOME", str(tmp_path))
    folder = ensure_trained_flow(DigitsFlow(width=8, batch_size=4, max_steps=2))
    assert Flow(str(folder)).build().backbone.shape == (3, 8, 8)


def test_the_trained_weights_are_a_moving_average():
    flows = (DigitsFlow(width=8, batch_size=4, max_steps=3, ema_rate=rate) for rate in (1.0, 1e-9))
    last, other = map(train_flow, flows)
    pairs = zip(last.parameters(), other.parameters(), strict=True)
    assert any(not bool((a == b).all()) for a, b in pairs)


@pytest.mark.slow
def test_flow_grpo_improves_the_reward_and_negated_advantages_lower_it(tmp_path, monkeypatch):
    monkeypatch.setenv("GRUPO_HOME", str(tmp_path))
    ensure_trained_flow(DigitsFlow())
    recipe = import_object(RECIPE)
    policy = replace(recipe.policy, model=str(DigitsFlow().model_dir))
    recipe = recipe.replace(policy=policy, max_steps=20)
    negated = recipe.method.replace(advantage=chain(recipe.method.advantage, negate))
    assert reward_gain(recipe, tmp_path / "run") > 0.05
    assert reward_gain(recipe.replace(method=negated), tmp_path / "negated") < -0.1


def reward_gain(recipe, run_dir):
    """The mean reward of the last five steps, minus that of the first two."""
    run_training(recipe, run_dir)
    lines = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
    rewards = [line["reward/mean"] for line in lines]
    return fmean(rewards[-5:]) - fmean(rewards[:2])
