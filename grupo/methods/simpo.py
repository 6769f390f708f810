"""SimPO: mean log-likelihoods and a margin, no reference. Meng et al., 2024, arXiv:2405.14734."""

from grupo.algo.advantages import identity
from grupo.algo.aggregation import group_mean
from grupo.algo.losses import ConstantMargin, Logistic, Preference
from grupo.algo.losses.contrastive import mean_logp
from grupo.core.numbers import NonNegative, Positive
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import PreferencePairs


def simpo(beta: Positive = 2.0, margin_ratio: NonNegative = 0.5) -> Method:
    """loss = mean over pairs of -log sigmoid(beta (m(chosen) - m(rejected)) - gamma).

    Eq. 6, with m = log pi(y) / |y| and gamma = margin_ratio beta.

    Args:
        beta: inverse temperature (2.0 to 2.5 in the paper).
        margin_ratio: gamma / beta, the margin per unit of mean log-likelihood.
    """
    loss = Preference(mean_logp, Logistic(beta), margin=ConstantMargin(margin_ratio))
    return Method(sampler=PreferencePairs(), advantage=identity, loss=loss, aggregation=group_mean)


PAPER = Paper(
    title="SimPO: Simple Preference Optimization with a Reference-Free Reward",
    use="There is no memory for a reference policy, or DPO makes answers longer.",
    tags=("preferences", "length"),
    trl="CPOConfig(loss_type='simpo', cpo_alpha=0.0, simpo_gamma=1.0)",
    checked=("golden", "properties", "reference", "run"),
    source=Source("third_party", "TRL 1.16, experimental/cpo/cpo_trainer.py, loss_type 'simpo'"),
    plan="a pass over the pairs, one update per batch; prompts_per_step is the batch",
    audit="loss and gradient compared with numbers that TRL 1.16 computed; defaults from memory",
    shown=("docs/comparisons/preferences.md#ten-methods-under-a-noisy-and-under-the-true-judge",),
)
