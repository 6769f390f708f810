"""GRPO, Dr. GRPO and DAPO: hand-computed losses and gradients of one group of two rollouts.

Rewards 1 and 0, lengths 1 and 2; the policy's log-probabilities differ from the old ones (which are
also the reference's) by 0.22, 0.3 and -0.3: ratios 1.2461, 1.3499 and 0.7408.
"""

from dataclasses import replace
from math import exp, sqrt

import pytest
import torch

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.aggregation import ConstantLength
from grupo.algo.filters import keep_nonzero_std
from grupo.algo.losses import Clip
from grupo.algo.minibatches import SingleUpdate
from grupo.algo.ratios import CappedRatio
from grupo.methods.dapo import dapo
from grupo.methods.dr_grpo import dr_grpo
from grupo.methods.grpo import grpo
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch, perturb_logp

MOVES = [[0.22, 0.0], [0.3, -0.3]]


def loss_and_gradient(method):
    batch = make_batch(group=[0, 0], reward=[1.0, 0.0], length=[1, 2]).with_advantage(
        method.advantage
    )
    pi = perturb_logp(batch, MOVES)
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    assert gradient[0, 1] == 0  # padding
    return loss.item(), gradient[batch.mask].tolist()


def k3(d):
    return exp(d) - d - 1


def test_grpo_loss_and_gradient():
    A = 0.5 / (sqrt(0.5) + 1e-6)  # mean 1/2, std sqrt((1/4 + 1/4) / 1)
    loss, gradient = loss_and_gradient(grpo(kl_coef=0.04))
    # weights 1/2, 1/4, 1/4; A > 0 above 1.2 is clipped, A < 0 above is not, A < 0 below is
    assert loss == pytest.approx(
        (-1.2 * A + 0.04 * k3(-0.22)) / 2
        + (A * exp(0.3) + 0.04 * k3(-0.3)) / 4
        + (A * 0.8 + 0.04 * k3(0.3)) / 4
    )
    assert gradient == pytest.approx(
        [
            0.04 * (1 - exp(-0.22)) / 2,
            (A * exp(0.3) + 0.04 * (1 - exp(-0.3))) / 4,
            0.04 * (1 - exp(0.3)) / 4,
        ]
    )


def test_grpo_without_kl_requires_no_reference():
    assert grpo(kl_coef=0.0).required_signals == frozenset()
    assert grpo().required_signals == {"logp@ref"}


def test_dr_grpo_loss_and_gradient():
    loss, gradient = loss_and_gradient(dr_grpo(max_length=4))
    # A = 1/2 and -1/2, every token weighs 1 / (2 * 4)
    assert loss == pytest.approx((-0.5 * 1.2 + 0.5 * exp(0.3) + 0.5 * 0.8) / 8)
    assert gradient == pytest.approx([0.0, 0.5 * exp(0.3) / 8, 0.0])


def test_dapo_loss_and_gradient():
    loss, gradient = loss_and_gradient(dapo(max_length=2, overlong_buffer=1))
    # the second is as long as the limit: rewards 1 and 0 - 1, mean 0, std sqrt(1 + 1)
    A = 1 / (sqrt(2) + 1e-6)
    # 1.2461 is below 1 + 0.28: not clipped here; every token weighs 1/3
    assert loss == pytest.approx((-A * exp(0.22) + A * exp(0.3) + A * 0.8) / 3)
    assert gradient == pytest.approx([-A * exp(0.22) / 3, A * exp(0.3) / 3, 0.0])


def test_defaults_match_paper():
    paper = dapo(max_length=20_480, overlong_buffer=4_096)
    assert paper.sampler == GroupSampler(16)
    assert (paper.loss.clip_low, paper.loss.clip_high) == (0.2, 0.28)
    assert paper.filter is keep_nonzero_std
    assert paper.curriculum.max_resample_rounds == 10
    assert grpo().updates == SingleUpdate()  # "a single update following each exploration stage"


OLD = [[-1.0, -0.5, -2.0], [-0.7, -1.2, -0.3]]
REFERENCE = [[-1.2, -0.9, -1.0], [-0.7, -0.3, -0.1]]


def loss_and_gradient_on_example(method, by):
    batch = make_batch(
        group=[0, 0], length=[3, 2], advantage=[1.0, -1.0], signals={"logp@ref": REFERENCE}
    )
    batch = replace(batch, old_logp=torch.tensor(OLD, dtype=torch.float64))
    pi = perturb_logp(batch, by)
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    return loss.item(), gradient.flatten().tolist()


def test_grpo_advantages_match_verl_and_trl():
    # verl-project/verl @ 1dda039, trainer/ppo/core_algos.py, compute_grpo_outcome_advantage with
    # deviation and without (Dr. GRPO's); a lone answer keeps its reward there and gets 0 here
    verl = [0.999998, -0.999998, 0.0, 0.7071064479, -0.7071064479, 0.74999925]
    centred = [0.5, -0.5, 0.0, 1.5, -1.5, 0.75]
    reward = [1.0, 0.0, 0.5, 2.0, -1.0, 0.75]
    batch = make_batch(group=[0, 0, 0, 1, 1, 2], reward=reward)
    assert grpo().advantage(batch.reward, batch)[:5].tolist() == pytest.approx(verl[:5])
    assert grpo().advantage(batch.reward, batch)[5] == 0
    assert dr_grpo(8).advantage(batch.reward, batch)[:5].tolist() == pytest.approx(centred[:5])
    # huggingface/trl @ f2cd577, trainer/grpo_trainer.py, its lines for "sum_then_normalize": it
    # adds 1e-4 to the deviation where verl and grupo add 1e-6
    trl = [0.99980004, -0.99980004, 0.0, 0.940039767, -1.0506326807, 0.1105929138]
    batch = make_batch(group=[0, 0, 0, 1, 1, 1], reward=reward)
    actual = chain(Center(), ScaleByStd(eps=1e-4))(batch.reward, batch)
    assert actual.tolist() == pytest.approx(trl)
    assert grpo().advantage(batch.reward, batch).tolist() == pytest.approx(trl, rel=3e-4)
    # huggingface/trl's scale_rewards="none" and sail-sg/understand-r1-zero @ dfca49d,
    # train_zero_math.py, compute_monte_carlo_advantages with "drgrpo"
    centred = [0.5, -0.5, 0.0, 1.416666666667, -1.583333333333, 0.166666666667]
    assert dr_grpo(8).advantage(batch.reward, batch).tolist() == pytest.approx(centred)


def test_grpo_matches_verl_and_trl():
    # verl-project/verl @ 1dda039, trainer/ppo/core_algos.py, compute_policy_loss_vanilla with
    # loss_agg_mode "seq-mean-token-mean"; no ratio of a bad token is above its clip_ratio_c, 3
    moves = [[0.5, -0.1, -1.5], [-0.6, 0.9, 0.7]]
    loss, gradient = loss_and_gradient_on_example(grpo(kl_coef=0.0), moves)
    assert loss == pytest.approx(0.426906178643984)
    assert gradient == pytest.approx(
        [0.0, -0.150806235837, -0.037188359901, 0.0, 0.614900774715, 0.0]
    )
    # huggingface/trl @ f2cd577, trainer/grpo_trainer.py, the lines of _compute_loss after the
    # log-probabilities, loss_type "grpo", beta 0.04; it has no such bound unless delta is set
    moves = [[0.5, -0.1, -1.5], [-0.6, 1.3, 0.7]]
    loss, gradient = loss_and_gradient_on_example(grpo(), moves)
    assert loss == pytest.approx(0.7917199422395185)
    assert gradient == pytest.approx(
        [0.003356098, -0.1490783578, -0.1117383198, -0.008221188, 0.9206209664, 0.0]
    )


def test_dr_grpo_matches_verl_and_trl():
    # the same of trl, loss_type "dr_grpo", max_completion_length 8
    moves = [[0.5, -0.1, -1.5], [-0.6, 1.3, 0.7]]
    loss, gradient = loss_and_gradient_on_example(dr_grpo(max_length=8), moves)
    assert loss == pytest.approx(0.13383306808967843)
    assert gradient == pytest.approx(
        [0.0, -0.0565523386, -0.013945635, 0.0, 0.2293310417, 0.0], rel=1e-5
    )
    # the same of verl, "seq-mean-token-sum-norm": with loss_scale_factor 8 and, without one, over
    # the padded width, 3; the bad token above 3 has a gradient in the paper and none in verl
    verl, padded = 0.09200202636347565, 0.24533873696926842
    capped = dr_grpo(max_length=8).replace(loss=Clip(0.2, 0.2, CappedRatio(3.0)))
    loss, gradient = loss_and_gradient_on_example(capped, moves)
    assert loss == pytest.approx(verl)
    assert gradient == pytest.approx(
        [0.0, -0.056552338627, -0.013945635009, 0.0, 0.0, 0.0], rel=1e-5
    )
    assert loss_and_gradient_on_example(capped.replace(aggregation=ConstantLength(3)), moves)[
        0
    ] == pytest.approx(padded)
