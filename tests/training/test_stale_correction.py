"""The importance correction of stale rollouts, a field of the recipe."""

from math import exp

import pytest
import torch

from grupo.algo.losses import (
    BoundedIS,
    CorrectedLoss,
    ImportanceWeight,
    IntervalMask,
    Reinforce,
    TruncatedIS,
)
from grupo.config.staleness import describe_staleness
from grupo.config.validate import check_recipe
from grupo.core.schedules import Linear
from grupo.core.serialization import from_data, to_data
from grupo.method import Method
from grupo.methods.tis import tis
from grupo.report.read_run import read_journal
from grupo.testing.batches import make_batch, perturb_logp
from grupo.testing.smoke.run import echo_recipe
from grupo.training.callbacks import NullCallback
from grupo.training.collect.async_rollouts import with_stale_correction
from grupo.training.learner import Learner
from grupo.training.resume.run_folder import RunFolder
from grupo.training.start import resume_training, run_training
from grupo.util.errors import ConfigError
from tests.helpers.training_components import save_models
from tests.helpers.training_recipes import recipe

BOUNDED = BoundedIS(0.9, 1.1)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    save_models(folder)
    return str(folder)


@pytest.mark.parametrize(
    ("bound", "weights"),
    [
        (TruncatedIS(2.0), (2.0, exp(0.5), exp(-2.0))),
        (BoundedIS(0.5, 1.5), (1.5, 1.5, 0.5)),
        (IntervalMask(0.5, 2.0), (0.0, exp(0.5), 0.0)),
        (None, (1.0, 1.0, 1.0)),
    ],
)
def test_loss_of_each_action_is_multiplied_by_the_bounded_weight(bound, weights):
    # w = exp(logp_old - logp_sampler) = exp(3), exp(0.5), exp(-2); the loss is -A * logp = 1
    sampler = {"logp@sampler": [[-4.0, -1.5, 1.0]]}
    batch = make_batch([0], length=[3], advantage=[1.0], logp=-1.0, signals=sampler)
    method = with_stale_correction(Method(loss=Reinforce()), bound)
    loss = method.loss(perturb_logp(batch, [[0.0, 0.0, 0.0]]), batch)
    assert loss.tolist() == [pytest.approx(weights)]


def test_a_loss_with_a_correction_of_its_own_is_unchanged():
    assert with_stale_correction(tis(), TruncatedIS(2.0)) == tis()


def trained_weights(recipe) -> dict[str, torch.Tensor]:
    learner = Learner(recipe)
    for _ in range(3):
        learner.step()
    learner.close()
    return {name: weight.clone() for name, weight in learner.policy.weights().items()}


@pytest.mark.slow
def test_the_default_is_truncation_at_2_to_the_bit(model):
    stale = recipe("async", model)
    weight = ImportanceWeight(TruncatedIS(2.0))
    method = stale.method.replace(loss=CorrectedLoss(stale.method.loss, weight))
    expected = trained_weights(stale.replace(method=method, stale_correction=None))
    default = trained_weights(stale)
    assert all(torch.equal(default[name], expected[name]) for name in expected)
    off = trained_weights(stale.replace(stale_correction=None))
    assert not all(torch.equal(default[name], off[name]) for name in off)


def test_a_schedule_in_the_correction_is_resolved_at_each_step(model):
    stale = recipe("async", model)
    constant = trained_weights(stale.replace(stale_correction=BOUNDED))
    schedule = BoundedIS(Linear(0.9, 0.9), 1.1)
    scheduled = trained_weights(stale.replace(stale_correction=schedule))
    assert all(torch.equal(scheduled[name], constant[name]) for name in constant)


class InterruptAfterStep3(NullCallback):
    """Interrupts a run whose newest checkpoint is that of step 2."""

    def on_step_end(self, step, metrics):
        if step == 3:
            raise KeyboardInterrupt


def corrections(run) -> list[float]:
    """The mean and the fraction of zeros of the weights of each step."""
    journal = read_journal(run / "metrics.jsonl")
    names = ("is_correction/weight_mean", "is_correction/rejected_frac", "grad_norm")
    return [record[name] for record in journal for name in names]


@pytest.mark.slow
def test_a_resumed_run_has_the_correction_of_its_recipe(model, tmp_path):
    stale = recipe("async", model).replace(stale_correction=BOUNDED, max_steps=4, save_every=2)
    run_training(stale, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run_training(stale, tmp_path / "run", InterruptAfterStep3())
    assert RunFolder.open(tmp_path / "run").recipe.stale_correction == BOUNDED
    resume_training(tmp_path / "run")
    assert corrections(tmp_path / "run") == corrections(tmp_path / "whole")


@pytest.mark.parametrize("correction", [TruncatedIS(5.0), BOUNDED, IntervalMask(0.5, 2.0), None])
def test_recipe_json_holds_the_correction(correction):
    stale = echo_recipe(Method()).replace(max_staleness=1, stale_correction=correction)
    check_recipe(stale)
    assert from_data(to_data(stale)).stale_correction == correction


def test_without_stale_rollouts_a_correction_is_refused():
    message = (
        r"^stale_correction: BoundedIS\(low=0.9, high=1.1\). Allowed with max_staleness=0, which"
        r" has no stale rollouts: TruncatedIS\(cap=2.0\), the default, or None."
    )
    with pytest.raises(ConfigError, match=message):
        check_recipe(echo_recipe(Method()).replace(stale_correction=BOUNDED))
    check_recipe(echo_recipe(Method()).replace(stale_correction=None))


def test_two_corrections_are_refused():
    message = r"^stale_correction: .*Allowed with this method, whose loss has a correction of its"
    with pytest.raises(ConfigError, match=message):
        check_recipe(echo_recipe(tis()).replace(max_staleness=1, stale_correction=BOUNDED))
    check_recipe(echo_recipe(tis()).replace(max_staleness=1))


def test_a_schedule_that_leaves_the_range_names_its_field():
    crossing = BoundedIS(Linear(0.5, 2.0), 1.1)
    with pytest.raises(ConfigError, match=r"^stale_correction, at step \d+: BoundedIS.high: 1.1"):
        check_recipe(echo_recipe(Method()).replace(max_staleness=1, stale_correction=crossing))


def test_a_dry_run_says_when_the_method_has_a_correction_of_its_own(model):
    stale = recipe("grpo", model).replace(max_staleness=1)
    line = (
        "stale_correction TruncatedIS(cap=2.0) is not applied: the loss of the method has a"
        " correction of its own"
    )
    assert describe_staleness(stale) == []
    corrected = stale.replace(method=tis(group_size=4))
    assert describe_staleness(corrected) == [line]
    assert describe_staleness(corrected.replace(stale_correction=None)) == []
    assert describe_staleness(corrected.replace(max_staleness=0)) == []
