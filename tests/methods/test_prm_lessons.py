from math import log

import pytest
import torch

from grupo.core.batch import Signals
from grupo.methods.prm_lessons import prm_lessons
from grupo.testing.batches import make_batch

STEPS = {
    "step/prefix_cut": [[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]],
    "step/prefix_value": [[0.0, 1.0, 0.0], [0.5, 0.0, 0.0]],
}


def weighted_loss(process):
    batch = make_batch(group=[0, 1], reward=[1.0, 0.0], length=[3, 3], signals=STEPS)
    method = prm_lessons()
    pi = Signals(logp=batch.old_logp, process=torch.tensor(process, dtype=torch.float64))
    return method.aggregation(batch) * method.loss(pi, batch)


def test_labelled_steps_have_the_cross_entropy_of_their_labels():
    # sigmoid(log 3) = 3/4: -log(3/4) of a good step, -log(1/4) of a bad one, half of both
    loss = weighted_loss([[9.0, log(3), log(3)], [log(3), 9.0, 9.0]])
    half = -(log(3 / 4) + log(1 / 4)) / 2
    expected = [0.0, -log(3 / 4) / 2, -log(1 / 4) / 2, half / 2, 0.0, 0.0]  # mean of two answers
    assert loss.flatten().tolist() == pytest.approx(expected)


def test_the_minimum_of_a_soft_label_is_its_logit():
    batch = make_batch(
        group=[0], signals={"step/prefix_cut": [[1.0]], "step/prefix_value": [[0.75]]}
    )
    q = torch.tensor([[log(3)]], dtype=torch.float64, requires_grad=True)
    prm_lessons().loss(Signals(logp=batch.old_logp, process=q), batch).sum().backward()
    assert q.grad is not None
    assert q.grad.item() == pytest.approx(0.0, abs=1e-12)
