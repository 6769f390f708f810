"""A2PR: imitates the better of logged and generated actions. Liu et al., 2024, arXiv:2405.19909."""

from copy import deepcopy
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from grupo.core.paper import Paper, Source

HIDDEN = 32
TARGET_RATE = 0.05  # with which the target of the critic follows it (authors: 0.005 a step)


@dataclass(frozen=True)
class TransitionLog:
    """M recorded transitions of an environment of S states and A actions.

    Args:
        state: State before each action.
        action: The action.
        reward: Its reward.
        next_state: State after it.
        ends: 1 where the episode ended, else 0.
        features: F numbers that describe each state, which all networks read.
        num_actions: A.
    """

    state: Int[Tensor, "M"]
    action: Int[Tensor, "M"]
    reward: Float[Tensor, "M"]
    next_state: Int[Tensor, "M"]
    ends: Float[Tensor, "M"]
    features: Float[Tensor, "S F"]
    num_actions: int

    def counts(self, weight: Float[Tensor, "M"]) -> Float[Tensor, "S A"]:
        """Sum of the weights of the transitions of each state and action."""
        table = weight.new_zeros(len(self.features), self.num_actions)
        return table.index_put((self.state, self.action), weight, accumulate=True)

    @property
    def logged(self) -> Bool[Tensor, "S A"]:
        """Whether the log has an action in a state."""
        return self.counts(torch.ones_like(self.reward)) > 0


class Networks(nn.Module):
    """Policy, generator of actions, and critics, each a network of one hidden layer.

    Args:
        log: The log, for its sizes.
        seed: Draws the weights at the start.
    """

    def __init__(self, log: TransitionLog, seed: int = 0) -> None:
        super().__init__()
        size = log.features.shape[1]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.policy = _network(size, log.num_actions)
            self.generator = _network(size, log.num_actions)
            self.q = _network(size, log.num_actions)
            self.v = _network(size, 1)
        self.to(log.features.dtype)

    @torch.no_grad()
    def advantage(self, features: Float[Tensor, "S F"]) -> Float[Tensor, "S A"]:
        """Value of each action less that of its state."""
        return self.q(features) - self.v(features)


def _network(inputs: int, outputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(inputs, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, outputs))


def critic_loss(log: TransitionLog, networks: Networks, target: nn.Module, gamma: float) -> Tensor:
    """Squared errors of both critics: of Q and of V, from r + gamma E_pi Q of the next state.

    Args:
        log: The log.
        networks: The critics and the policy.
        target: The network of Q that values the next state.
        gamma: Discount.
    """
    with torch.no_grad():
        policy = networks.policy(log.features).softmax(-1)
        following = (policy * target(log.features)).sum(-1)[log.next_state]
        wanted = log.reward + gamma * (1 - log.ends) * following
    q = networks.q(log.features)[log.state, log.action]
    v = networks.v(log.features)[log.state, 0]
    return ((q - wanted) ** 2).mean() + ((v - wanted) ** 2).mean()


def generator_loss(log: TransitionLog, networks: Networks) -> Tensor:
    """-E log of the generator over the logged actions of positive advantage.

    All logged actions count where no advantage is positive.
    """
    advantage = networks.advantage(log.features)[log.state, log.action]
    good = advantage > 0
    good = good if good.any() else torch.ones_like(good)
    logp = networks.generator(log.features).log_softmax(-1)[log.state, log.action]
    return -(logp * good).sum() / good.sum()


@torch.no_grad()
def generated_actions(
    log: TransitionLog,
    networks: Networks,
    allowed: Bool[Tensor, "S A"],
    random: torch.Generator,
) -> Int[Tensor, "M"]:
    """An action of the generator for each state of the log, which the log need not have there.

    Args:
        log: The log.
        networks: Has the generator.
        allowed: Actions that may be generated.
        random: Draws the actions.
    """
    logits = networks.generator(log.features).masked_fill(~allowed, -torch.inf)
    return logits.softmax(-1)[log.state].multinomial(1, generator=random)[:, 0]


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


def policy_loss(
    log: TransitionLog,
    networks: Networks,
    generated: Int[Tensor, "M"],
    alpha: float,
    imitation_weight: float,
) -> Tensor:
    """-alpha E_pi Q / mean |Q| + imitation_weight E[w (-log pi(target))].

    Args:
        log: The log.
        networks: Policy and critics.
        generated: A generated action for each transition.
        alpha: Weight of the critic.
        imitation_weight: Weight of the imitation.
    """
    advantage = networks.advantage(log.features)
    target, weight = imitation_targets(
        advantage[log.state, log.action], advantage[log.state, generated], log.action, generated
    )
    logp = networks.policy(log.features).log_softmax(-1)[log.state]
    value = (logp.exp() * networks.q(log.features).detach()[log.state]).sum(-1)
    imitation = -(weight * logp.gather(1, target[:, None])[:, 0]).mean()
    scale = value.detach().abs().mean().clamp(min=1e-8)
    return -alpha * value.mean() / scale + imitation_weight * imitation


def fit_a2pr(
    log: TransitionLog,
    allowed: Bool[Tensor, "S A"] | None = None,
    gamma: float = 0.95,
    alpha: float = 2.5,
    imitation_weight: float = 1.0,
    steps: int = 200,
    seed: int = 0,
) -> Networks:
    """Train all networks on a log; `imitation_weight` 0 is a policy gradient without a constraint.

    Args:
        log: The log.
        allowed: Actions that may be generated; None allows all, logged or not.
        gamma: Discount.
        alpha: Weight of the critic (authors: 2.5).
        imitation_weight: Weight of the imitation (authors: 0.4 to 1).
        steps: Updates of each network.
        seed: Draws the weights and the generated actions.
    """
    random = torch.Generator().manual_seed(seed)
    networks = Networks(log, seed)
    target = deepcopy(networks.q)
    optimizer = torch.optim.Adam(networks.parameters(), 0.01)
    allowed = torch.ones_like(log.logged) if allowed is None else allowed
    for _ in range(steps):
        generated = generated_actions(log, networks, allowed, random)
        loss = critic_loss(log, networks, target, gamma) + generator_loss(log, networks)
        loss = loss + policy_loss(log, networks, generated, alpha, imitation_weight)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for old, new in zip(target.parameters(), networks.q.parameters(), strict=True):
                old.lerp_(new, TARGET_RATE)
    return networks


PAPER = Paper(
    title="Adaptive Advantage-Guided Policy Regularization for Offline Reinforcement Learning",
    use="A log of mixed quality is all there is, and its best actions are to be combined.",
    tags=("off-policy", "sft", "critic"),
    kind="policy",
    catalogue=("a2pr",),
    checked=("golden", "run"),
    source=Source("code", "ltlhuuu/A2PR, A2PR.py"),
    missing=(
        "The trainer: a log of choices in an environment without text has a loop of its own.",
    ),
    deviations=(
        "Actions are discrete: the generator is a network with a probability for each action, in "
        "place of a VAE; the squared error is a negative log-likelihood.",
        "One critic instead of the smaller of two, and no noise on its actions.",
        "Each update reads the whole log, and targets are drawn anew for it.",
    ),
    shown=("docs/small_claims.md#logs-of-choices",),
)
