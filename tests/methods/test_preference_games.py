"""Rock, paper, scissors with a policy of one token: what self-play and a reward model converge to.

Preferences are cyclic, and the Nash policy is (1/3, 1/3, 1/3). All policies start at the reference
policy, (0.63, 0.23, 0.14).
"""

import pytest
import torch
from torch import Tensor

from grupo.algo.losses import Logistic, LogRatio, Preference, all_ordered_pairs
from grupo.core.batch import Batch, SignalDict, Signals
from grupo.method import Method
from grupo.methods.dpo import dpo
from grupo.methods.inpo import inpo
from grupo.methods.sppo import sppo

START = torch.tensor([1.0, 0.0, -0.5], dtype=torch.float64)
BEATS = torch.tensor([[0.5, 1.0, 0.0], [0.0, 0.5, 1.0], [1.0, 0.0, 0.5]], dtype=torch.float64)
UNIFORM = torch.full((3,), 1 / 3, dtype=torch.float64)


def sample(logits: Tensor, groups: int, size: int, generator: torch.Generator):
    """The answers of a step, and their batch: the reward is the win rate against the others."""
    num = groups * size
    answer = torch.multinomial(logits.softmax(-1), num, replacement=True, generator=generator)
    in_groups = answer.view(groups, size)
    wins = BEATS[in_groups[:, :, None], in_groups[:, None]].sum(2) - 0.5  # without itself
    win_rate = (wins / (size - 1)).flatten()
    batch = Batch.of(
        win_rate,
        torch.arange(groups).repeat_interleave(size),
        rollout=torch.arange(num),
        mask=torch.ones(num, 1).bool(),
        old_logp=logits.log_softmax(-1)[answer][:, None],
        signals=SignalDict({"logp@ref": START.log_softmax(-1)[answer][:, None]}),
        reward_terms=SignalDict({"win_rate": win_rate}),
    )
    return answer, batch


def play(method: Method, *, rounds=300, updates=10, rate=0.5, groups=64, size=5, seed=0):
    """The mean of the policies of all rounds."""
    generator = torch.Generator().manual_seed(seed)
    logits, mean = START, torch.zeros(3, dtype=torch.float64)
    for _ in range(rounds):
        answer, batch = sample(logits, groups, size, generator)
        for _ in range(updates):
            x = logits.detach().requires_grad_()
            pi = Signals(logp=x.log_softmax(-1)[answer][:, None])
            loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
            logits = x.detach() - rate * torch.autograd.grad(loss, x)[0]
        mean = mean + logits.softmax(-1) / rounds
    return mean


def distance_from_nash(policy: Tensor) -> float:
    """The largest difference of a probability from 1/3."""
    return (policy - UNIFORM).abs().max().item()


def dpo_on_pairs(beta: float) -> Method:
    return dpo().replace(loss=Preference(LogRatio(), Logistic(beta), all_ordered_pairs))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_mean_iterate_of_sppo_is_near_the_nash_policy(seed):
    mean = play(sppo(eta=0.3), rounds=400, updates=5, rate=1.0, seed=seed)
    assert distance_from_nash(mean) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_mean_iterate_of_inpo_is_near_the_nash_policy(seed):
    mean = play(inpo(eta=2.0, ref_weight=0.01), groups=128, size=2, seed=seed)
    assert distance_from_nash(mean) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("beta", [0.1, 0.3, 1.0])
def test_dpo_on_pairs_of_the_reference_policy_is_far_from_it(beta):
    fitted = play(dpo(beta), rounds=1, updates=1_500, rate=2.0, groups=512, size=2)
    assert distance_from_nash(fitted) > 0.25


@pytest.mark.slow
def test_mean_iterate_of_dpo_on_its_own_pairs_depends_on_beta():
    """A strong pull to the reference keeps it away, a weak one does not: not Nash by design."""
    strong, weak = (play(dpo_on_pairs(beta), groups=128, size=2) for beta in (1.0, 0.1))
    assert distance_from_nash(strong) > 0.15
    assert distance_from_nash(weak) < 0.05
