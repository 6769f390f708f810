"""VAPO: length-adaptive lambda and imitation of correct answers."""

import pytest
import torch

from grupo.algo.minibatches import Updates
from grupo.core.batch import Signals
from grupo.methods.vapo import CorrectNLL, vapo
from grupo.testing.batches import make_batch


def answers():
    return make_batch(
        group=[0, 0],
        reward=[1.0, -1.0],
        length=[4, 2],
        reward_terms={"correct": [1.0, 0.0]},
        signals={"value": [[0.0, 0.1, 0.2, 0.4], [0.0, 0.0, 9.0, 9.0]]},
    )


def test_lambda_grows_with_answer_length():
    A = answers().with_advantage(vapo(lambda_length_scale=0.5).advantage).advantage
    # l = 4: lambda 1/2, d = 0.1, 0.1, 0.2, 0.6; l = 2: lambda 0, d = 0, -1
    assert A[0].tolist() == pytest.approx([0.1 + 0.05 + 0.05 + 0.075, 0.1 + 0.1 + 0.15, 0.5, 0.6])
    assert A[1].tolist() == pytest.approx([0.0, -1.0, 0.0, 0.0])


def test_correct_answers_are_imitated_by_token_mean():
    batch, method = answers(), vapo()
    logp = torch.full((2, 4), -2.0, dtype=torch.float64, requires_grad=True)
    loss = (method.aggregation(batch) * CorrectNLL()(Signals(logp=logp), batch)).sum()
    assert loss.item() == pytest.approx(2.0)
    (gradient,) = torch.autograd.grad(loss, logp)
    assert gradient.tolist() == [pytest.approx([-0.25] * 4), [0.0] * 4]


def test_imitation_loss_has_the_precision_of_the_log_probabilities():
    # 7 actions, of which 3 are correct: 7/3 has no exact single-precision value
    batch = make_batch(group=[0, 0], length=[3, 4], reward_terms={"correct": [1.0, 0.0]})
    logp = torch.full((2, 4), -1.0, dtype=torch.float64)
    assert CorrectNLL()(Signals(logp=logp), batch)[0, 0].item() == 7 / 3


def test_imitation_loss_is_zero_without_correct_answers():
    batch = make_batch(group=[0], reward_terms={"correct": [0.0]})
    assert CorrectNLL()(Signals(logp=batch.old_logp), batch).item() == 0


def test_defaults_match_paper():
    assert vapo().updates == Updates(minibatches=16)
