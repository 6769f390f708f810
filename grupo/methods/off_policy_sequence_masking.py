"""OPSM: masks bad off-policy answers. DeepSeek-AI, 2025, arXiv:2512.02556."""

from grupo.algo.advantages import Center
from grupo.algo.losses import Clip, CorrectedKL, CorrectedLoss
from grupo.algo.token_level import row_mean
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def off_policy_sequence_masking(
    group_size: PositiveInt = 8,
    threshold: NonNegative = 0.1,
    clip_eps: NonNegative = 0.2,
    kl_coef: NonNegative = 0.001,
) -> Method:
    """M x PPO's clipped surrogate + kl_coef R k3, M = 0 for bad answers far off policy.

    M = 0 where A < 0 and mean_t log(old / pi) > threshold (delta of eq. 9, as cited by TRL), with
    the engine's log-probabilities for old. A = r - mean(r). R = pi / old makes k3 unbiased off
    policy.

    Args:
        group_size: rollouts per task.
        threshold: largest mean log-ratio, in nats per token (our choice).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps] (our choice).
        kl_coef: weight of the KL divergence from the reference policy (our choice).
    """
    loss = (
        CorrectedLoss(Clip(clip_eps, clip_eps), OffPolicySequenceMask(threshold))
        + kl_coef * CorrectedKL()
    )
    return Method(sampler=GroupSampler(group_size), advantage=Center(), loss=loss)


@component
class OffPolicySequenceMask:
    """0 where A < 0 in rows with mean_t log(pi_sampler / pi) > threshold, 1 elsewhere.

    Args:
        threshold: largest mean log-ratio, in nats per token.
    """

    threshold: NumberOrSchedule

    requires = Requires(signals=("logp@sampler",), coupled_sequences=True)

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        drift = row_mean((batch.signals["logp@sampler"] - pi.logp).detach(), batch)
        return 1.0 - ((batch.advantage < 0) & (drift > self.threshold)).to(drift)


PAPER = Paper(
    title="DeepSeek-V3.2: Pushing the Frontier of Open Large Language Models",
    use="Several updates are taken on one batch, or rollouts come late, and training is unstable.",
    tags=("off-policy", "filtering"),
    trl="off_policy_mask_threshold=0.1, use_bias_correction_kl=True, scale_rewards='none'",
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "third_party",
        "TRL's index of papers, which cites the report's eq. 9 and its unbiased KL estimate",
    ),
    plan=(
        "not stated in any source that was opened; one update per step, in which the clip does "
        "not act, and the mask only where the engine's log-probabilities differ"
    ),
    missing=(
        (
            "The report's other changes: masks of the experts' routes and of the sampler's "
            "top-p are kept for the update."
        ),
    ),
    deviations=(
        (
            "group_size, threshold, clip_eps and kl_coef are our choice: by TRL's index the report"
            " gives no threshold and no weight of the KL. The index suggests a threshold of 0.5,"
            " and takes a kl_coef of 0.001 from DeepSeek-R1."
        ),
    ),
    audit=(
        "mask, its place before the KL and the corrected KL compared with the formulas in "
        "TRL's index of papers"
    ),
)
