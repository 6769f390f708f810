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
        beta: inverse temperature (authors' configs: 2.0, 2.5 and 10).
        margin_ratio: gamma / beta, the margin per unit of mean log-likelihood (authors' configs:
            0.1 to 0.8).
    """
    loss = Preference(mean_logp, Logistic(beta), margin=ConstantMargin(margin_ratio))
    return Method(sampler=PreferencePairs(), advantage=identity, loss=loss, aggregation=group_mean)


PAPER = Paper(
    title="SimPO: Simple Preference Optimization with a Reference-Free Reward",
    use="There is no memory for a reference policy, or DPO makes answers longer.",
    tags=("preferences", "length"),
    trl="CPOConfig(loss_type='simpo', cpo_alpha=0.0, beta=2.0, simpo_gamma=1.0)",
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "code",
        "princeton-nlp/SimPO, scripts/simpo_trainer.py and training_configs/"
        "llama-3-8b-base-simpo.yaml",
    ),
    plan="a pass over the pairs, one update per batch; prompts_per_step is the batch",
    deviations=(
        "beta 2 and gamma / beta 0.5 are those of Llama-3-8B-Base; the authors tune both for each"
        " model, and TRL's paper index quotes 2.5 and 0.55, of Llama-3-8B-Instruct.",
    ),
    audit=(
        "loss and gradient compared with numbers that TRL 1.16 computed; loss and defaults with"
        " simpo_trainer.py and the configurations"
    ),
    shown=("docs/comparisons/preferences.md#ten-methods-under-a-noisy-and-under-the-true-judge",),
)
