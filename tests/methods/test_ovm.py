from math import log

import pytest
import torch

from grupo.core.aux_heads import LinearHead
from grupo.core.batch import Signals
from grupo.methods.ovm import ovm
from grupo.testing.batches import make_batch
from grupo.util.errors import ConfigError


def loss_of(value, reward, logp=0.0, **arguments):
    batch = make_batch(group=[0, 1], reward=reward, length=[2, 2], logp=logp)
    return ovm(**arguments).loss(Signals(logp=batch.old_logp, value=torch.tensor(value)), batch)


def test_every_token_is_regressed_on_the_label_of_the_answer():
    loss = loss_of([[0.5, 1.0], [0.5, 0.25]], [1.0, 0.0], nll_coef=0.0)
    assert loss.tolist() == [[0.25, 0.0], [0.25, 0.0625]]


def test_likelihood_is_added_for_right_and_wrong_answers():
    loss = loss_of([[1.0, 1.0], [0.0, 0.0]], [1.0, 0.0], logp=log(0.5))
    assert loss.flatten().tolist() == pytest.approx([log(2)] * 4)


def test_the_minimiser_is_the_share_of_right_answers_behind_a_prefix():
    # 5 answers begin alike, and 4 of them are right: the value at the first token is 0.8
    batch = make_batch(group=range(5), reward=[1.0, 1.0, 1.0, 1.0, 0.0], length=[1] * 5)
    value = torch.zeros(1, requires_grad=True, dtype=torch.float64)
    optimizer = torch.optim.SGD([value], lr=0.5)
    for _ in range(50):
        optimizer.zero_grad()
        pi = Signals(logp=batch.old_logp, value=value.expand(5, 1))
        method = ovm(nll_coef=0.0)
        (method.aggregation(batch) * method.loss(pi, batch)).sum().backward()
        optimizer.step()
    assert value.item() == pytest.approx(0.8)


def test_a_head_of_another_name_is_refused():
    with pytest.raises(ConfigError, match="a head of the name 'value'"):
        ovm(head=LinearHead("score"))
