"""A rollout that a chat template forked into rows is one sequence to losses of a sequence."""

from dataclasses import replace

import pytest
import torch

from grupo.catalogue.entries import methods
from grupo.core.batch import Batch, SignalDict, Signals

METHODS = {entry.key: entry.method for entry in methods()}
SEQUENCE_LEVEL = (
    *("gspo", "gspo_token", "luspo", "gmpo", "tic_grpo", "topr", "fspo", "vespo", "seq_tis"),
    *("seq_mis", "off_policy_sequence_masking", "dhpo"),
)
LOG_RATIO = torch.tensor([0.1, 0.04, -0.02, 0.05, -0.3, 0.1, 0.2, 0.0], dtype=torch.float64)
SAMPLER = torch.tensor([0.1, -0.2, 0.3, 0.05, -0.1, 0.2, 0.1, 0.0], dtype=torch.float64)
# rows and columns of the eight actions of two rollouts, each of four
WHOLE = ([0, 0, 0, 0, 1, 1, 1, 1], [0, 1, 2, 3, 0, 1, 2, 3])
FORKED = ([0, 1, 1, 1, 2, 2, 2, 2], [0, 0, 1, 2, 0, 1, 2, 3])


def batch_of(method, places, rollout):
    """The batch of the two rollouts, whose actions are at these places."""
    rows, width = len(rollout), 4

    def laid_out(values):
        return torch.zeros(rows, width, dtype=torch.float64).index_put(places, values)

    mask = laid_out(torch.ones(8, dtype=torch.float64)) > 0
    old_logp = laid_out(torch.full((8,), -1.0, dtype=torch.float64))
    signals = {name: laid_out(SAMPLER.abs()) for name in method.requires.all_signals}
    signals |= {"logp@sampler": laid_out(-1.0 + SAMPLER), "logp@ref": laid_out(-1.0 - SAMPLER)}
    return Batch.of(
        torch.tensor([1.0, 0.25], dtype=torch.float64),
        torch.tensor([0, 0]),
        rollout=torch.tensor(rollout),
        sequence=torch.tensor(rollout),
        mask=mask,
        old_logp=old_logp,
        signals=SignalDict(signals),
    )


def gradient_per_action(method, places, rollout):
    """The gradient of the loss in the log-probability of each of the eight actions."""
    places = tuple(map(torch.tensor, places))
    batch = batch_of(method, places, rollout).with_advantage(method.advantage)
    log_ratio = torch.zeros_like(batch.old_logp).index_put(places, LOG_RATIO)
    logp = (batch.old_logp + log_ratio).requires_grad_()
    pi = Signals({"logp": logp, "entropy": batch.signals.get("entropy", logp.detach().abs())})
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    (gradient,) = torch.autograd.grad(loss, logp)
    return gradient[places].tolist()


@pytest.mark.parametrize("name", SEQUENCE_LEVEL)
def test_a_forked_rollout_has_the_gradient_of_the_same_rollout_in_one_row(name):
    method = METHODS[name]
    assert method.requires.coupled_sequences
    whole = gradient_per_action(method, WHOLE, [0, 1])
    forked = gradient_per_action(method, FORKED, [0, 0, 1])
    assert any(whole)
    assert forked == pytest.approx(whole)


def test_rows_of_their_own_have_ratios_of_their_own():
    """Rows that an environment's new context began are sequences of their own, as before."""
    batch = batch_of(METHODS["gspo"], tuple(map(torch.tensor, FORKED)), [0, 0, 1])
    assert batch.has_forks
    apart = replace(batch, sequence=torch.arange(3))
    assert not apart.has_forks
    assert apart.sequence_index.tolist() == [0, 1, 2]
    assert batch.sequence_index.tolist() == [0, 0, 1]
