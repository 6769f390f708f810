import torch

from grupo.core.types import Group, Rollout, Task
from grupo.methods.rft import KeepCorrect, rft
from grupo.testing.batches import make_batch, perturb_logp


def group(*right):
    rollouts = tuple(Rollout(reward=x, reward_terms={"correct": x}) for x in right)
    return Group(Task("k", "?"), rollouts)


def test_correct_rollouts_are_kept_and_empty_groups_dropped():
    groups = KeepCorrect()([group(1.0, 0.0, 1.0), group(0.0, 0.0)])
    assert [g.rewards for g in groups] == [(1.0, 1.0)]


def test_filter_declares_the_reward_term_that_it_reads():
    assert KeepCorrect(reward_term="passed").requires.reward_terms == {"passed"}


def test_loss_is_token_mean_likelihood_of_kept_rollouts():
    batch = make_batch([0, 0], reward=[1.0, 1.0], length=[1, 3]).with_advantage(rft().advantage)
    pi = perturb_logp(batch, [[0.0] * 3] * 2)
    (gradient,) = torch.autograd.grad(
        (rft().aggregation(batch) * rft().loss(pi, batch)).sum(), pi.logp
    )
    assert gradient.tolist() == [[-0.25, 0.0, 0.0], [-0.25, -0.25, -0.25]]


def test_default_hyperparameters():
    assert rft().requires.all_signals == frozenset()
