"""Likelihood weighted towards several policies: the catalogue's numbers, and an exact bandit."""

from dataclasses import replace

import pytest
import torch

from grupo.algo.losses import MultiReferenceNLL
from grupo.core.batch import Signals
from grupo.testing.batches import make_batch
from grupo.util.errors import ConfigError


def bandit(behaviour, policies, advantage):
    """A row for each arm, whose old log-probability is that of the behaviour."""
    arms = len(behaviour)
    signals = {f"logp@{i}": p.log()[:, None].tolist() for i, p in enumerate(policies)}
    batch = make_batch([0] * arms, advantage=advantage.tolist(), signals=signals)
    return replace(batch, old_logp=behaviour.log()[:, None])


def optimum(loss, batch) -> torch.Tensor:
    """The policy after 2,000 steps of gradient descent on the expected loss."""
    share = batch.old_logp.exp()
    logits = torch.zeros(len(share), dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([logits], 0.05)
    for _ in range(2000):
        optimizer.zero_grad()
        logp = logits.log_softmax(0)[:, None]
        (share * loss(Signals(logp=logp), batch)).sum().backward()
        optimizer.step()
    return logits.detach().softmax(0)


@pytest.mark.parametrize(
    ("advantage", "expected"),
    # sqrt(.8 .5) = .6325; sqrt(.2 .5) e^(1/2) = .5214; without advantage .6325 and .3162
    [([0.0, 1.0], [0.5481, 0.4519]), ([0.0, 0.0], [0.6667, 0.3333])],
)
def test_weights_of_the_catalogue(advantage, expected):
    policies = torch.tensor([[0.8, 0.2], [0.5, 0.5]], dtype=torch.float64)
    behaviour = torch.tensor([0.3, 0.7], dtype=torch.float64)
    batch = bandit(behaviour, policies, torch.tensor(advantage))
    loss = MultiReferenceNLL((("0", 1.0), ("1", 1.0)))
    mass = behaviour * loss.weight(batch)[:, 0]
    assert (mass / mass.sum()).tolist() == pytest.approx(expected, abs=5e-5)


@pytest.mark.slow
def test_a_bandit_reaches_the_optimal_policy():
    generator = torch.Generator().manual_seed(0)
    behaviour, first, second = torch.rand(3, 6, generator=generator).double().softmax(1)
    advantage = torch.randn(6, generator=generator).double()
    loss = MultiReferenceNLL((("0", 0.5), ("1", 1.5)))
    expected = (0.25 * first.log() + 0.75 * second.log() + advantage / 2).softmax(0)
    reached = optimum(loss, bandit(behaviour, [first, second], advantage))
    assert torch.allclose(reached, expected, atol=1e-4)


# watch time, likes and shares of six videos: the longest is hardly liked
REWARDS = torch.tensor(
    [[9.0, 6, 5, 3, 2, 1], [0.1, 0.5, 0.4, 0.5, 0.9, 0.2], [0.1, 0.4, 0.6, 0.5, 0.3, 0.9]]
).double()
COEFFICIENTS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)


def reward_changes(coefficient: float) -> list[list[float]]:
    """Relative changes of the three rewards: constrained by both policies, or by the data alone."""
    main, *auxiliary = ((row - row.mean()) / row.std() for row in REWARDS)
    behaviour = torch.full((6,), 1 / 6).double()
    stage_one = [(behaviour.log() + row).softmax(0) for row in auxiliary]
    names = (("0", coefficient), ("1", coefficient))
    both = bandit(behaviour, stage_one, main)
    data = bandit(behaviour, [behaviour, behaviour], main)
    masses = [behaviour * MultiReferenceNLL(names).weight(x)[:, 0] for x in (both, data)]
    return [(REWARDS @ (m / m.sum()) / (REWARDS @ behaviour) - 1).tolist() for m in masses]


def test_main_and_auxiliary_rewards_by_the_weight_of_the_policies():
    """No weight raises watch time while likes and shares stay within 5 %: the claim fails here.

    Near the stage-one policies watch time costs fewer likes and shares than near the data: +21 %
    for -3 % and -10 %, against +15 % for -7 % and -9 %.
    """
    table = {coefficient: reward_changes(coefficient) for coefficient in COEFFICIENTS}
    near_policies = [rows[0] for rows in table.values()]
    assert not any(main > 0 and min(others) > -0.05 for main, *others in near_policies)
    assert table[0.5][0] == pytest.approx([0.208, -0.032, -0.103], abs=1e-3)
    assert table[1.0][0] == pytest.approx([-0.025, 0.088, 0.022], abs=1e-3)
    assert table[2.0][1] == pytest.approx([0.148, -0.070, -0.091], abs=1e-3)


def test_a_loss_without_a_policy_is_rejected():
    with pytest.raises(ConfigError, match=r"coefficients.*at least one policy"):
        MultiReferenceNLL(())
