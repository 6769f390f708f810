"""SEED-GRPO: smaller updates where answers disagree. Chen et al., 2025, arXiv:2505.12346."""

from collections.abc import Callable

from torch import Tensor

from grupo.algo.advantages import Center, chain
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def seed_grpo(group_size: PositiveInt = 8, uncertainty_coef: NonNegative = 0.5) -> Method:
    """A = (r - mean(r)) f(uncertainty_coef SE / log G), SE the semantic entropy of the answers.

    Args:
        group_size: rollouts per task.
        uncertainty_coef: weight of the semantic entropy (alpha in the paper) (our choice).
    """
    # Others: .replace(advantage=chain(Center(), ScaleByCertainty(1.0, exponential))).
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(Center(), ScaleByCertainty(uncertainty_coef)),
    )


def linear(u: Tensor) -> Tensor:
    """max(1 - u, 0)."""
    return (1 - u).clamp(min=0)


def exponential(u: Tensor) -> Tensor:
    """exp(-u)."""
    return (-u).exp()


def focal(u: Tensor) -> Tensor:
    """(1 - u)^2."""
    return linear(u) ** 2


@component
class ScaleByCertainty:
    """x f(uncertainty_coef SE / log G), SE = -sum over meanings k of n_k/G log(n_k/G) in the group.

    Args:
        uncertainty_coef: weight of the semantic entropy SE (alpha in the paper).
        scale_fn: f, one of `linear`, `exponential` and `focal`.
    """

    uncertainty_coef: NumberOrSchedule
    scale_fn: Callable[[Tensor], Tensor] = linear

    requires = Requires(reward_terms=("cluster",))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        G = group_ops.count(x, batch.group)
        SE = group_ops.entropy(batch.reward_terms["cluster"], batch.group)
        return x * self.scale_fn(self.uncertainty_coef * SE / G.clamp(min=2).log())


PAPER = Paper(
    title="SEED-GRPO: Semantic Entropy Enhanced GRPO for Uncertainty-Aware Policy Optimization",
    use="Labels are noisy where the policy is uncertain, and answers can be clustered by meaning.",
    tags=("advantage", "entropy"),
    checked=("golden", "properties", "run"),
    catalogue=("seed-grpo",),
    source=Source(
        "third_party",
        "a public review that quotes SE, f and alpha without their values",
    ),
    plan="not stated in any source that was opened; one update per step",
    deviations=(
        (
            "SE is the entropy of the shares of answers, -sum p log p. The review's is the mean of "
            "-log p over the meanings, with equal weights, and p from the answers' likelihoods. No "
            "answer (-1) is a meaning, too."
        ),
        "Of linear, exponential and focal the linear f is our choice, and so is its coefficient.",
        "The clip of 0.2, the mean over answers, group_size and the absence of a KL divergence are"
        " our choice.",
    ),
    audit="formula compared with the review; the authors' repository has no code",
    shown=("docs/claims.md#modes",),
)
