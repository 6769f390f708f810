import pytest
import torch

from grupo.losses import Reinforce
from grupo.methods.remax import remax
from grupo.sampling import Independent, WithGreedy
from grupo.testing import batch_of, moved


def test_the_greedy_answers_reward_is_the_baseline():
    parts = {"greedy": [0.5, 0.5, 0.0]}
    batch = batch_of(group=[0, 0, 1], reward=[1.0, 0.0, 1.0], parts=parts)
    assert remax().credit(batch.reward, batch).tolist() == [0.5, -0.5, 1.0]
    assert remax().reads_parts == {"greedy"}


def test_doing_as_well_as_greedy_teaches_nothing():
    batch = batch_of(group=[0, 1], reward=[1.0, 0.0], parts={"greedy": [1.0, 0.0]})
    assert remax().credit(batch.reward, batch).tolist() == [0.0, 0.0]


def test_a_kl_is_taken_off_the_reward_and_not_off_the_baseline():
    seen = {"logp@ref": [[-2.0, -1.0]]}  # log old is -1: k1 = 1 and 0
    batch = batch_of(group=[0], reward=[1.0], length=[2], parts={"greedy": [0.25]}, seen=seen)
    assert remax(kl=0.1).credit(batch.reward, batch).tolist() == pytest.approx([1 - 0.1 - 0.25])


def test_every_token_is_credited_with_the_same():
    batch = batch_of(group=[0], reward=[1.0], length=[2], parts={"greedy": [0.25]})
    batch = batch.credited(remax().credit)
    pi = moved(batch, [[0.5, -0.5]])
    loss = (remax().weigh(batch) * remax().loss(pi, batch)).sum()
    assert loss.item() == pytest.approx(-0.75 * (-0.5 - 1.5))
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    assert gradient.tolist() == [[-0.75, -0.75]]


def test_the_defaults_are_the_papers():
    method = remax()
    assert method.sample == WithGreedy(Independent(1))
    assert method.loss == Reinforce()
    assert method.needs == frozenset()
