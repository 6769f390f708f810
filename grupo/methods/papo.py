"""PAPO: an answer should depend on the image. Wang et al., 2025, arXiv:2507.06448."""

from collections.abc import Mapping

from torch import Tensor

from grupo.algo.divergences import k3_clamped
from grupo.algo.losses import KL, Clip, Loss
from grupo.algo.minibatches import Updates
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def papo(
    group_size: PositiveInt = 5,
    perception_coef: NonNegative = 0.02,
    entropy_coef: NonNegative = 0.05,
    kl_coef: NonNegative = 0.01,
    clip_eps: NonNegative = 0.2,
) -> Method:
    """GRPO with a reward for tokens that depend on the image.

    loss = -min(R A, clip(R, 1 - clip_eps, 1 + clip_eps) A) + kl_coef k3
      - perception_coef k + entropy_coef (H(l) + H(m)),  H(x) = -x at the sampled tokens.
    The recipe defines "masked", a view of the task whose image has lost 0.6 of its patches (14 x
    14).

    A step has 3 updates, each on a minibatch of its groups.

    Args:
        group_size: rollouts per task (authors' configuration: 5).
        perception_coef: weight of the divergence from the masked view (authors' code: 0.02, or 0.01
            without a KL).
        entropy_coef: weight of the entropies (authors' 7B script: 0.05; the 3B script has none, and
            those without a KL 0.03).
        kl_coef: weight of the KL divergence from the reference policy (authors' code: 0.01).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
    """
    loss = Clip(clip_eps, clip_eps) + kl_coef * KL() + PerceptionLoss(perception_coef, entropy_coef)
    return Method(sampler=GroupSampler(group_size), loss=loss, updates=Updates(minibatches=3))


@component
class PerceptionLoss(Loss):
    """-perception_coef k + entropy_coef (-l - m), k = e^(m - l) - (m - l) - 1.

    l = log pi, m the same with the image masked, a constant measured before the update; m - l is
    clamped to +-20, k to +-10.

    Args:
        perception_coef: weight of the divergence from the masked view.
        entropy_coef: weight of the entropy of both views.
        view: name of the masked view among the auxiliary models.
    """

    perception_coef: NumberOrSchedule
    entropy_coef: NumberOrSchedule
    view: str = "masked"

    @property
    def requires(self) -> Requires:
        return Requires(signals=(f"logp@{self.view}",))

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        m = batch.signals[f"logp@{self.view}"]
        return -self.perception_coef * k3_clamped(pi.logp, m) - self.entropy_coef * (pi.logp + m)

    def metrics(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return {f"policy/kl_{self.view}": k3_clamped(pi.logp, batch.signals[f"logp@{self.view}"])}


PAPER = Paper(
    title="Perception-Aware Policy Optimization for Multimodal Reasoning",
    use="A model that reasons about images answers without using them.",
    tags=("multimodal", "kl"),
    trl="PAPOTrainer, experimental, gone by 1.10; it masked the images itself",
    checked=("golden", "properties", "reference", "run"),
    catalogue=("papo",),
    source=Source(
        "code",
        "MikeWangWZHL/PAPO: examples/papo_grpo/qwen2_5_vl_7b_grpo_papo.sh, "
        "examples/configs/config_grpo_papo.yaml, verl/workers/actor/dp_actor.py",
    ),
    plan=(
        "the four PAPO scripts of papo_grpo: 384 prompts per step in minibatches of 128, 3 updates"
    ),
    missing=(
        "The form on DAPO (perception 0.01, entropies 0.03, no KL).",
        "Annealing of perception_coef, and its restriction to some tokens or answers.",
        "The framework's upper clip of 0.3, dual clip of 3 and clamp of kl_coef's k3 to +-10.",
        "The top-p of 0.99 with which the configuration samples.",
        "The reward of the scripts: 0.9 correct + 0.1 format.",
    ),
    deviations=(
        (
            "The masked view is held constant, as in the scripts by default, so its entropy has"
            " a value and no gradient."
        ),
        (
            "The mean is over answers, as the paper prints GRPO: the framework's default is "
            "over the tokens of 4 rollouts at a time."
        ),
        (
            "MaskedImages blackens exactly 0.6 of the patches; the framework each of them with "
            "probability 0.6."
        ),
    ),
    audit=(
        "all coefficients, group size, mask and plan compared with the scripts and the "
        "configuration"
    ),
    shown=("docs/vision_shown/landed_methods.md#papo",),
)
