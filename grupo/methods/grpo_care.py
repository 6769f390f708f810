"""GRPO-CARE: bonus for answers consistent with reasoning. Chen et al., 2025, arXiv:2506.16141."""

from dataclasses import replace

from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.advantages.intrinsic import MeanSignal
from grupo.algo.losses import Reinforce
from grupo.core import group_ops
from grupo.core.batch import Batch, PerRollout
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.reference_update import ReferenceUpdate
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def grpo_care(
    group_size: PositiveInt = 8, consistency_coef: NonNegative = 0.5, margin: NonNegative = 0.01
) -> Method:
    """GRPO on r + consistency_coef a where the answer is consistent; slow reference, no KL.

    Reward terms: "correct". Signal: "step/answer" is 1 between the tags of the answer. The loss is
    on policy, without a clip.

    Args:
        group_size: rollouts per task (authors' script: 8).
        consistency_coef: weight of the bonus (authors' code: 0.5).
        margin: tolerance below the mean likelihood (authors' code: 0.01).
    """
    # In the released code the reference takes 0.5 % of the policy every 10 steps.
    advantage = chain(ConsistencyBonus(consistency_coef, margin), Center(), ScaleByStd(eps=1e-4))
    return Method(
        sampler=GroupSampler(group_size),
        advantage=advantage,
        loss=Reinforce(),
        reference=ReferenceUpdate(rate=0.005, every=10),
    )


@component
class ConsistencyBonus:
    """x + consistency_coef a for correct rollouts whose answer the reference finds likely enough.

    The likelihood is c = exp(mean log pi_ref over the answer's tokens), at most `likelihood_cap`.
    Correct: a > 0.1 and a >= mean(a). Likely enough: c >= mean c of the correct ones - margin.
    "step/answer" is 1 at the tokens of the answer.

    Args:
        consistency_coef: weight of the bonus.
        margin: tolerance below the mean likelihood.
        likelihood_cap: largest c that counts.
    """

    consistency_coef: NumberOrSchedule
    margin: NumberOrSchedule
    likelihood_cap: NumberOrSchedule = 0.95

    requires = Requires(signals=("logp@ref", "step/answer"), reward_terms=("correct",))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        a = batch.reward_terms["correct"]
        c = self.answer_likelihood(batch)
        g = batch.group
        right = (a > 0.1) & (a >= group_ops.mean(a, g) - 1e-9)  # a mean can round above
        return x + self.consistency_coef * a * (
            right & (c >= group_ops.mean_where(right, c, g) - self.margin)
        )

    def answer_likelihood(self, batch: Batch) -> PerRollout:
        """c of each rollout, 0 without an answer."""
        answer = replace(batch, mask=batch.mask & (batch.signals["step/answer"] > 0))
        c = MeanSignal("logp@ref")(batch.reward, answer).exp().clamp(max=self.likelihood_cap)
        return c * (answer.lengths > 0)


PAPER = Paper(
    title="GRPO-CARE: Consistency-Aware Reinforcement Learning for Multimodal Reasoning",
    use="Answers become correct more often but follow from their reasoning less often.",
    tags=("reward", "multimodal", "kl"),
    checked=("golden", "properties", "reference", "run"),
    catalogue=("grpo-care",),
    source=Source(
        "code",
        "TencentARC/GRPO-CARE: grpo_trainer_ref_ema.py, ema_trainer.py and "
        "scripts/run_grpo_care_margin0.01_seed_bench_r1.sh",
    ),
    plan=(
        "one update per step: the release's ratio is exp(logp - sg(logp)) and its gradient "
        "accumulation 1"
    ),
    missing=(
        "The format reward, which the release adds to the accuracy, is left to the recipe.",
        "The top-p of 0.95 of the release, and the top-k of 50 that its transformers has by "
        "default.",
    ),
    deviations=(
        (
            "A rollout without an answer has no bonus; in the release its likelihood is that of "
            "no token, 1, which the cap lowers to 0.95, so that it has the bonus if it is correct. "
            "If it is correct, its likelihood counts in the mean: as 0 here, as 0.95 there."
        ),
        "The release's span of the answer begins behind the word of its opening tag, so that it "
        "holds the tag's end, and ends three tokens before the end token.",
    ),
    audit=(
        "bonus, cap, margin, eps, loss and aggregation compared with "
        "grpo_trainer_ref_ema.py, constants with the run script; every=10 counts optimizer "
        "steps in ema_trainer.py, which are rollout steps with one update each"
    ),
    shown=("docs/vision_shown/landed_methods.md#grpo-care",),
)
