from math import log

import pytest
import torch

from grupo.algo.losses import KL, Clip
from grupo.methods.intuitor import intuitor
from grupo.models.token_statistics import self_certainty_of
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch


def test_reward_is_mean_self_certainty_of_actions():
    signals = {"self_certainty": [[1.0, 99.0], [2.0, 4.0]]}
    batch = make_batch(group=[0, 0], reward=[5.0, 5.0], length=[1, 2], signals=signals)
    advantage = intuitor().advantage(batch.reward, batch).tolist()
    # means 1 and 3
    assert advantage == pytest.approx([-(0.5**0.5), 0.5**0.5], abs=1e-6)


def test_constant_offset_in_self_certainty_cancels():
    # with and without log |V|, |V| = 7
    plain = {"self_certainty": [[1.0], [2.0], [4.0]]}
    shifted = {"self_certainty": [[x[0] - log(7)] for x in plain["self_certainty"]]}
    a, b = (make_batch(group=[0, 0, 0], signals=signals) for signals in (plain, shifted))
    estimator = intuitor().advantage
    assert estimator(a.reward, a).tolist() == pytest.approx(estimator(b.reward, b).tolist())


def test_matches_reference_implementation():
    # sunblaze-ucb/Intuitor @ 3f0cdd7, verl-intuitor/verl: utils/torch_functional.py,
    # self_certainty_from_logits; trainer/ppo/ray_trainer.py, compute_advantage, its branch
    # INTUITOR; inputs as below, log |V| more than in grupo
    logits = [
        [[1.0, 0.0, -1.0, 0.5], [2.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]],
        [[3.0, -1.0, -1.0, 0.0], [0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]],
        [[0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]],
        [[2.0, 2.0, -2.0, -2.0], [1.0, 0.0, 3.0, 0.0], [0.1, 0.2, 0.3, 4.0]],
    ]
    recorded = [1.6215672492980957, 1.8407530784606934, 1.4936684370040894]
    recorded += [2.8328864574432373, 1.4172241687774658, 1.3862943649291992]
    recorded += [1.4936684370040894, 1.3862943649291992, 1.3862943649291992]
    recorded += [2.711297035217285, 2.2109975814819336, 2.915165901184082]
    logp = torch.tensor(logits).double().log_softmax(-1).view(-1, 4)
    certainty = self_certainty_of(logp, torch.zeros(12, dtype=torch.long))
    assert (certainty + log(4)).tolist() == pytest.approx(recorded, rel=1e-5)
    signals = {"self_certainty": certainty.view(4, 3).tolist()}
    batch = make_batch(group=[0] * 4, length=[3, 2, 1, 3], signals=signals)
    A = [-0.6313906908035278, 0.30549758672714233, -0.9449572563171387, 1.270850419998169]
    assert intuitor().advantage(batch.reward, batch).tolist() == pytest.approx(A, rel=1e-5)


def test_defaults_match_paper():
    assert intuitor().sampler == GroupSampler(7)
    assert intuitor().loss == Clip(0.2, 0.2) + 0.005 * KL()
    assert intuitor().requires.all_signals == {"self_certainty", "logp@ref"}
