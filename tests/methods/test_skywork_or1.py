import pytest
import torch

from grupo.algo.aggregation import token_mean
from grupo.algo.filters import keep_nonzero_std
from grupo.algo.losses import Clip
from grupo.algo.losses.regularizers import EntropyBonus
from grupo.core.batch import Signals
from grupo.core.controllers import TargetEntropy
from grupo.core.schedules import resolve_schedules
from grupo.methods.skywork_or1 import skywork_or1
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch


def entropy_coefficient(*entropies):
    return resolve_schedules(
        skywork_or1(), 0.5, {"policy/entropy": entropies}
    ).loss.right.entropy_coef


def test_entropy_coef_rises_while_entropy_is_low():
    assert entropy_coefficient() == 0.0
    assert entropy_coefficient(0.1) == pytest.approx(0.005)
    assert entropy_coefficient(0.1, 0.1, 0.2) == pytest.approx(0.015)


def test_entropy_bonus_is_off_above_target_and_resumes_lower():
    assert entropy_coefficient(0.1, 0.1, 0.3) == 0.0
    assert entropy_coefficient(0.1, 0.1, 0.3, 0.1) == pytest.approx(0.01)  # 0.005 * (1 + 1 - 1 + 1)


def test_bonus_gradient_is_its_coefficient():
    batch = make_batch(group=[0, 0], length=[1, 2])
    entropy = torch.tensor([[0.5, 9.0], [0.2, 0.3]], dtype=torch.float64, requires_grad=True)
    pi = Signals(logp=batch.old_logp, entropy=entropy)
    loss = (token_mean(batch) * EntropyBonus(0.03)(pi, batch)).sum()
    (gradient,) = torch.autograd.grad(loss, entropy)
    assert loss.item() == pytest.approx(-0.03 * (0.5 + 0.2 + 0.3) / 3)
    assert gradient.tolist() == [pytest.approx([-0.01, 0.0]), pytest.approx([-0.01, -0.01])]


def test_defaults_match_paper():
    method = skywork_or1()
    assert method.sampler == GroupSampler(16)
    assert method.loss == Clip(0.2, 0.2) + EntropyBonus(TargetEntropy(target=0.2, step_size=0.005))
    assert (method.filter, method.aggregation) == (keep_nonzero_std, token_mean)
    assert method.requires.all_signals == {"entropy"}
