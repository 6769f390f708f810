"""A2PR: imitates the better of logged and generated actions. Liu et al., 2024, arXiv:2405.19909."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from grupo.core.paper import Paper, Source


@dataclass(frozen=True)
class TransitionLog:
    """M recorded transitions of an environment of S states and A actions.

    Args:
        state: State before each action.
        action: The action.
        reward: Its reward.
        next_state: State after it.
        ends: 1 where the episode ended, else 0.
        num_states: S.
        num_actions: A.
    """

    state: Int[Tensor, "M"]
    action: Int[Tensor, "M"]
    reward: Float[Tensor, "M"]
    next_state: Int[Tensor, "M"]
    ends: Float[Tensor, "M"]
    num_states: int
    num_actions: int

    def counts(self, weight: Float[Tensor, "M"]) -> Float[Tensor, "S A"]:
        """Sum of the weights of the transitions of each state and action."""
        table = weight.new_zeros(self.num_states, self.num_actions)
        return table.index_put((self.state, self.action), weight, accumulate=True)


@dataclass
class Critic:
    """Value of each action under a policy, and of each state in the log.

    Args:
        q: Value of each action; those that are not logged keep their start.
        v: Mean of the targets in each logged state.
    """

    q: Float[Tensor, "S A"]
    v: Float[Tensor, "S"]

    def update(self, log: TransitionLog, policy: Tensor, gamma: float, rate: float) -> None:
        """A step towards r + gamma E_pi Q of the next state."""
        following = (policy * self.q).sum(-1)[log.next_state]
        target = log.reward + gamma * (1 - log.ends) * following
        count = log.counts(torch.ones_like(target))
        mean = log.counts(target) / count.clamp(min=1)
        self.q += rate * (count > 0) * (mean - self.q)
        visits = count.sum(-1)
        state_mean = log.counts(target).sum(-1) / visits.clamp(min=1)
        self.v += rate * (visits > 0) * (state_mean - self.v)


def behaviour_model(log: TransitionLog, critic: Critic) -> Float[Tensor, "S A"]:
    """Frequencies of the logged actions of positive advantage; of all where none is positive."""
    advantage = critic.q - critic.v[:, None]
    count = log.counts(torch.ones_like(log.reward))
    good = count * (advantage > 0)
    chosen = torch.where(good.sum(-1, keepdim=True) > 0, good, count)
    return chosen / chosen.sum(-1, keepdim=True).clamp(min=1)


def imitation_targets(
    advantage_logged: Tensor, advantage_generated: Tensor, logged: Tensor, generated: Tensor
) -> tuple[Tensor, Tensor]:
    """The action of the larger advantage, and its weight: how many of both are above 0.

    >>> log, new = torch.tensor([0.5, -1.0]), torch.tensor([0.2, -0.5])
    >>> imitation_targets(log, new, torch.tensor([3, 3]), torch.tensor([7, 7]))
    (tensor([3, 7]), tensor([2., 0.]))
    """
    target = torch.where(advantage_generated >= advantage_logged, generated, logged)
    weight = (advantage_generated >= 0).float() + (advantage_logged > 0).float()
    return target, weight


def fit_a2pr(
    log: TransitionLog,
    q: Float[Tensor, "S A"],
    gamma: float = 0.95,
    alpha: float = 2.5,
    imitation_weight: float = 1.0,
    steps: int = 300,
    seed: int = 0,
) -> tuple[Float[Tensor, "S A"], Critic]:
    """The policy and its critic; `imitation_weight` 0 is a policy gradient without a constraint.

    loss = -alpha E_pi Q / mean |Q| + imitation_weight E[w (-log pi(target))].

    Args:
        log: The log.
        q: Values of actions at the start.
        gamma: Discount.
        alpha: Weight of the critic (authors: 2.5).
        imitation_weight: Weight of the imitation (authors: 0.4 to 1).
        steps: Updates.
        seed: Draws the generated actions.
    """
    generator = torch.Generator().manual_seed(seed)
    critic = Critic(q.clone(), q.mean(-1))
    logits = torch.zeros_like(q, requires_grad=True)
    optimizer = torch.optim.Adam([logits], 0.05)
    for _ in range(steps):
        critic.update(log, logits.detach().softmax(-1), gamma, 0.3)
        model = behaviour_model(log, critic)[log.state]
        generated = model.multinomial(1, generator=generator)[:, 0]
        advantage = critic.q - critic.v[:, None]
        target, weight = imitation_targets(
            advantage[log.state, log.action],
            advantage[log.state, generated],
            log.action,
            generated,
        )
        logp = logits.log_softmax(-1)[log.state]
        value = (logp.exp() * critic.q[log.state]).sum(-1)
        imitation = -(weight * logp.gather(1, target[:, None])[:, 0]).mean()
        loss = -alpha * value.mean() / value.detach().abs().mean() + imitation_weight * imitation
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return logits.detach().softmax(-1), critic


PAPER = Paper(
    title="Adaptive Advantage-Guided Policy Regularization for Offline Reinforcement Learning",
    use="A log of mixed quality is all there is, and its best actions are to be combined.",
    tags=("off-policy", "sft", "critic"),
    kind="policy",
    catalogue=("a2pr",),
    checked=("golden", "run"),
    source=Source("code", "ltlhuuu/A2PR, A2PR.py"),
    deviations=(
        "Tables of discrete actions: the behaviour model is the frequency of logged actions of "
        "positive advantage, in place of a VAE; the squared error is a negative log-likelihood.",
        "One critic instead of the smaller of two, and no noise on its actions.",
        "Expectations over the log are exact, and targets are drawn anew for each update.",
    ),
    shown=(
        "tests/evidence/claims/offline/test_a2pr.py"
        "::test_against_cloning_and_a_policy_gradient_without_a_constraint",
    ),
)
