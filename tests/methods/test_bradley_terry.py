from math import exp, log

import pytest
import torch

from grupo.core.batch import Signals
from grupo.methods.bradley_terry import bradley_terry
from grupo.testing.batches import make_batch


def loss_of(score, reward, **fields) -> torch.Tensor:
    batch = make_batch(group=[0, 0], reward=reward, **fields)
    return bradley_terry().loss(Signals(logp=batch.old_logp, score=torch.tensor(score)), batch)


def test_equal_scores_have_loss_log_2():
    assert loss_of([[3.0], [3.0]], [1.0, 0.0])[0, 0] == pytest.approx(log(2))


def test_a_difference_of_one_has_loss_log_of_one_plus_e_to_minus_one():
    assert loss_of([[2.0], [1.0]], [1.0, 0.0])[0, 0] == pytest.approx(log(1 + exp(-1)))  # 0.3133
    assert loss_of([[2.0], [1.0]], [0.0, 1.0])[0, 0] == pytest.approx(log(1 + exp(1)))


def test_every_rejected_answer_has_a_pair_of_its_own():
    batch = make_batch(group=[0, 0, 0], reward=[1.0, 0.0, 0.0])
    score = torch.tensor([[1.0], [2.0], [-4.0]])
    loss = bradley_terry().loss(Signals(logp=batch.old_logp, score=score), batch)
    # differences of -1 and 5; their mean of 2 would hide the answer that is scored too high
    expected = (log(1 + exp(1)) + log(1 + exp(-5))) / 2
    assert loss[:, 0].tolist() == pytest.approx([expected] * 3)


def test_only_the_last_token_of_an_answer_is_scored():
    short = loss_of([[9.0, 2.0], [1.0, 7.0]], [1.0, 0.0], length=[2, 1])
    assert short[0, 0] == pytest.approx(log(1 + exp(-1)))


def test_a_constant_added_to_all_scores_changes_nothing():
    assert torch.equal(loss_of([[2.0], [1.0]], [1.0, 0.0]), loss_of([[4.0], [3.0]], [1.0, 0.0]))


def test_the_score_alone_has_a_gradient():
    batch = make_batch(group=[0, 0], reward=[1.0, 0.0])
    logp = torch.zeros(2, 1, dtype=torch.float64, requires_grad=True)
    score = torch.zeros(2, 1, dtype=torch.float64, requires_grad=True)
    loss = bradley_terry().loss(Signals(logp=logp, score=score), batch).sum()
    of_logp, of_score = torch.autograd.grad(loss, (logp, score), allow_unused=True)
    assert of_logp is None
    assert of_score[:, 0].tolist() == pytest.approx([-1.0, 1.0])  # -1/2 of a pair on 2 actions
