"""The moving average of a run's weights: its value, and the commands that read it."""

from pathlib import Path

import pytest
import torch

from grupo.algo.ema import EMA
from grupo.recipe import Evaluation
from grupo.training.resume.load_run import load_policy
from grupo.training.start import run_training
from grupo.util.errors import ConfigError
from tests.helpers import training_components
from tests.helpers.training_recipes import base


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two steps with an average, both of whose checkpoints are kept, and one without."""
    root = tmp_path_factory.mktemp("ema")
    training_components.save_models(root / "model")
    recipe = base(str(root / "model")).replace(
        max_steps=2, save_every=1, eval_tasks=0, evaluation=Evaluation()
    )
    run_training(recipe.replace(ema=EMA(0.75)), root / "run")
    run_training(recipe, root / "plain")
    return root


@pytest.mark.slow
def test_the_average_is_that_of_the_weights_after_each_update(folder):
    _, recipe = load_policy(folder / "run")
    initial = recipe.policy.build().weights()
    first, second = (load_policy(folder / "run", str(n))[0].weights() for n in (1, 2))
    average = load_policy(folder / "run", "last", "ema")[0].weights()
    for name, weight in average.items():
        # 3/4 (3/4 w0 + 1/4 w1) + 1/4 w2
        expected = 0.5625 * initial[name] + 0.1875 * first[name] + 0.25 * second[name]
        torch.testing.assert_close(weight, expected, rtol=1e-5, atol=1e-7)
    assert any(not torch.equal(average[name], second[name]) for name in average)


@pytest.mark.slow
def test_training_does_not_depend_on_the_average(folder):
    with_average, without = (load_policy(folder / name)[0].weights() for name in ("run", "plain"))
    assert all(torch.equal(with_average[name], without[name]) for name in without)


def test_averaged_weights_of_a_run_without_them_are_refused(folder):
    with pytest.raises(ConfigError, match=r"weights: 'ema', and the run has no ema\. Allowed"):
        load_policy(folder / "plain", "last", "ema")
    with pytest.raises(ConfigError, match=r"weights: 'emma'\. Did you mean 'ema'\?"):
        load_policy(folder / "run", "last", "emma")
