"""RiskPO: optimises the lower tail of bundled scores. Ren et al., 2025, arXiv:2510.00911."""

from math import inf

from torch import Tensor

from grupo.algo.advantages.risk import bundle_scores, mixed_risk, std_or_one, track_quantile
from grupo.algo.minibatches import Updates
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.controllers import LastValue
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveFraction, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def riskpo(
    group_size: PositiveInt = 5,
    bundle_size: PositiveInt = 5,
    quantile_low: PositiveFraction = 0.2,
    quantile_high: PositiveFraction = 0.9,
    cvar_weight: NonNegative = 1.5,
) -> Method:
    """A <= 0 on bundles of the i-th rollouts of bundle_size tasks; 0 above the high quantile.

    The quantiles q, Q are those of the first batch, then move by 0.1 (level - mean(S < q)) a step.

    A step makes 2 updates, one on each of 2 minibatches.

    Args:
        group_size: rollouts per task (authors' code: 5).
        bundle_size: tasks per bundle (authors' code: 5).
        quantile_low: level of the low quantile (authors' code: 0.2).
        quantile_high: level of the high quantile (authors' code: 0.9).
        cvar_weight: weight of the lower tail (authors' code: 1.5).
    """
    advantage = MixedRiskAdvantage(
        bundle_size, (quantile_low, quantile_high), cvar_weight, *PREVIOUS_QUANTILES
    )
    return Method(
        sampler=GroupSampler(group_size),
        advantage=advantage,
        updates=Updates(minibatches=2),
    )


PREVIOUS_QUANTILES = (
    LastValue("quantile/low", -inf),
    LastValue("quantile/high", -inf),
)  # -inf: none yet


@component
class MixedRiskAdvantage:
    """`mixed_risk` of a bundle's score, divided by the stds of the bundle and of the rollout's
    task.

    Args:
        bundle_size: tasks per bundle.
        quantile_levels: levels of the low and high quantile.
        cvar_weight: weight of the lower tail.
        quantile_low: low quantile after the last step.
        quantile_high: high quantile after the last step.
    """

    bundle_size: PositiveInt
    quantile_levels: tuple[PositiveFraction, PositiveFraction]
    cvar_weight: NumberOrSchedule
    quantile_low: NumberOrSchedule
    quantile_high: NumberOrSchedule

    requires = Requires(whole_batch=True)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        S, bundle, index = bundle_scores(x, batch, self.bundle_size)
        risk = mixed_risk(S, self._quantiles(S), self.quantile_levels, self.cvar_weight)
        return (risk / std_or_one(S, bundle))[index] / std_or_one(x, batch.group)

    def metrics(self, batch: Batch) -> dict[str, float]:
        scores, *_ = bundle_scores(batch.reward, batch, self.bundle_size)
        return dict(zip(("quantile/low", "quantile/high"), self._quantiles(scores), strict=True))

    def _quantiles(self, scores: Tensor) -> list[float]:
        return [
            track_quantile(scores, a, q)
            for a, q in zip(
                self.quantile_levels, (self.quantile_low, self.quantile_high), strict=True
            )
        ]


PAPER = Paper(
    title="RiskPO: Risk-based Policy Optimization via Verifiable Reward for LLM Post-Training",
    use="The mean reward rises while hard tasks are given up and entropy collapses.",
    tags=("advantage", "exploration"),
    checked=("golden", "properties", "reference"),
    catalogue=("riskpo",),
    source=Source(
        "code",
        "RTkenny/RiskPO, verl/trainer/ppo/core_algos.py and scripts/run_qwen2.5_1.5b_MVaR_math.sh",
    ),
    plan="run_qwen2.5_1.5b_MVaR_math.sh: train batch 1024, minibatch 512: 2 updates per step",
    missing=(
        (
            "Other credit within a bundle (uniform, score, sum-mean), other quantiles (batch, "
            "mix) and the risk-seeking upper tail."
        ),
        "The dual clip of 3 of the release.",
    ),
    deviations=(
        (
            "The code bundles tasks and rollouts in the order they come, and adds 1e-6 to a "
            "bundle's std of 0. The last bundle may have fewer tasks: its score is their sum in "
            "the code, here their mean times bundle_size."
        ),
        (
            "The tracked quantiles act, as use_q_track_mode=track intends. The release stores them "
            "in the step's batch after its advantages were computed, and the next step has a new "
            "batch, so that each bundle uses the quantiles of its own scores."
        ),
        "The quantiles move by a step's scores before they are used in it, in the release after.",
        "Rows count equally, as in GRPO; the released code averages over the tokens of a"
        " micro-batch of 64 answers.",
    ),
    audit=(
        "scores, both risks, credit (credit_assign_mode std), constants and batch sizes compared "
        "with core_algos.py and the script"
    ),
    shown=("docs/claims.md#difficulty",),
)
