"""Dichotomy of Control: a latent that has no information about luck. Yang et al., 2022."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from grupo.core.paper import Paper, Source
from grupo.evidence.claims.offline.outcomes import OutcomeLog


@dataclass(frozen=True)
class Losses:
    """The three terms, each a mean over the log.

    Args:
        cloning: -E log pi(a | s, z).
        information: The contrastive lower bound of I(outcome; z | s, a), in nats.
        value: -E log V(outcome | s, z), which trains the value alone.
    """

    cloning: Tensor
    information: Tensor
    value: Tensor


class ControlTables(nn.Module):
    """Logits of posterior, policy, value and energy for each state, action, outcome and latent.

    Letters: S states, A actions, K outcomes, Z latents.

    Args:
        log: The log, for its sizes.
        num_latents: Z; 0 takes A * K, as the authors' code.
        seed: Draws the logits at the start.
    """

    def __init__(self, log: OutcomeLog, num_latents: int = 0, seed: int = 0) -> None:
        super().__init__()
        S, A, K = log.num_states, log.num_actions, len(log.values)
        Z = num_latents or A * K
        generator = torch.Generator().manual_seed(seed)

        def logits(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.randn(*shape, generator=generator, dtype=log.values.dtype))

        self.posterior = logits(S, A, K, Z)
        self.policy = logits(S, Z, A)
        self.value = logits(S, Z, K)
        self.energy = logits(S, A, K, Z)

    def losses(self, frequencies: Float[Tensor, "S A K"]) -> Losses:
        """The terms under the shares of (state, action, outcome) in a log."""
        joint = frequencies[..., None] * self.posterior.softmax(-1)  # p(s, a, o, z)
        log_policy = self.policy.log_softmax(-1).transpose(1, 2)  # (S, A, Z)
        log_value = self.value.log_softmax(-1).transpose(1, 2)  # (S, K, Z)
        return Losses(
            -(joint.sum(2) * log_policy).sum(),
            (joint * self._log_ratio(frequencies)).sum(),
            -(joint.detach().sum(1) * log_value).sum(),
        )

    def _log_ratio(self, frequencies: Float[Tensor, "S A K"]) -> Float[Tensor, "S A K Z"]:
        """f(o, z) - log E_o' exp f(o', z), with o' from the outcomes of the same (s, a)."""
        share = frequencies / frequencies.sum(-1, keepdim=True).clamp(min=1e-300)
        weighted = self.energy + share.clamp(min=1e-300).log()[..., None]
        return self.energy - weighted.logsumexp(2, keepdim=True)

    def prior(self, frequencies: Float[Tensor, "S A K"]) -> Float[Tensor, "S Z"]:
        """Distribution of the latent in each state of the log."""
        joint = (frequencies[..., None] * self.posterior.softmax(-1)).sum((1, 2))
        return joint / joint.sum(-1, keepdim=True).clamp(min=1e-300)

    @torch.no_grad()
    def best_policy(self, log: OutcomeLog) -> Float[Tensor, "S A"]:
        """pi(a | s, z) of the latent with the largest expected return among the likely ones."""
        expected = self.value.softmax(-1) @ log.values  # (S, Z)
        prior = self.prior(log.frequencies())
        likely = prior >= 0.5 / prior.shape[-1]
        latent = expected.masked_fill(~likely, -torch.inf).argmax(-1)
        return self.policy.softmax(-1)[torch.arange(len(latent)), latent]


def fit_control(
    tables: ControlTables,
    log: OutcomeLog,
    information_weight: float = 1.0,
    steps: int = 400,
    energy_steps: int = 3,
    learning_rate: float = 0.05,
) -> ControlTables:
    """Minimise cloning + information_weight * information + value; the energy maximises its term.

    Args:
        tables: The tables, which are changed.
        log: The log.
        information_weight: Weight b of the constraint; 0 leaves the latent free.
        steps: Updates of posterior, policy and value.
        energy_steps: Updates of the energy before each of them (our choice).
        learning_rate: Of Adam (our choice).
    """
    frequencies = log.frequencies()
    others = [tables.posterior, tables.policy, tables.value]
    minimiser = torch.optim.Adam(others, learning_rate)
    maximiser = torch.optim.Adam([tables.energy], learning_rate, maximize=True)
    for _ in range(steps):
        for _ in range(energy_steps):
            maximiser.zero_grad()
            tables.losses(frequencies).information.backward()
            maximiser.step()
        minimiser.zero_grad()
        losses = tables.losses(frequencies)
        (losses.cloning + information_weight * losses.information + losses.value).backward()
        minimiser.step()
    return tables


PAPER = Paper(
    title="Dichotomy of Control: Separating What You Can Control from What You Cannot",
    use="A log of an environment whose outcomes are luck in part is learned by conditioning.",
    tags=("sft", "off-policy"),
    kind="policy",
    catalogue=("dichotomy-of-control",),
    checked=("golden", "run"),
    source=Source(
        "code",
        "google-research/google-research, dichotomy_of_control/dichotomy_of_control/models/"
        "tabular_sdt.py (of arXiv:2210.13435)",
    ),
    missing=(
        "Several time steps, the transformer and the trainer: a loop of its own fits tables of "
        "one-step choices.",
    ),
    deviations=(
        "Expectations over the latent are exact sums; the code samples it, straight-through.",
        "The posterior minimises the contrastive bound that the energy maximises, as the "
        "constraint asks; in the code both minimise its negative.",
        "Negative outcomes come from those of the same state and action, as the constraint "
        "asks; in the code from all.",
        "The value does not train the posterior; in the code it does.",
        "The latent at test time is the best of those with a prior of at least 1 / (2 Z); the "
        "code takes the best of all, also of those that no data has.",
    ),
    shown=(
        "tests/evidence/claims/offline/test_dichotomy_of_control.py"
        "::test_the_sure_arm_is_chosen_and_the_return_conditioned_policy_gambles",
    ),
)
