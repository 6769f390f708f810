"""ThinkTuning: answers that a teacher continues. RRV et al., 2025, arXiv:2508.07616."""

from collections.abc import Mapping

import torch
from torch import Tensor

from grupo.algo.aggregation import token_mean
from grupo.algo.data_source import REQUIRES_SAMPLED, sampled_mask
from grupo.algo.losses import Clip, Loss, RatioToCurrent
from grupo.algo.minibatches import Updates
from grupo.algo.ratios import CappedRatio
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.numbers import Fraction, NonNegative, NumberOrSchedule, Positive, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.core.schedules import Linear
from grupo.method import Method
from grupo.rollouts.samplers import TeacherFeedback


def thinktuning(
    group_size: PositiveInt = 5,
    first_share: Fraction = 0.1,
    last_share: Fraction = 0.01,
    clip_eps: NonNegative = 0.2,
    dual_clip: Positive = 3.0,
    gamma_low: NumberOrSchedule = -0.001,
    gamma_high: NumberOrSchedule = 0.001,
) -> Method:
    """PPO's dual clip on the policy's tokens, -A p / (sg(p) + gamma(A)) on those of a teacher.

    A teacher's feedback is appended to a share of the answers before they are scored.
    A = (r - mean(r)) / std(r). Ratios are taken to the policy at the start of the step, and the
    mean is over all tokens.

    A step has 4 updates, each on a minibatch.

    Args:
        group_size: rollouts per task (authors' script: 5).
        first_share: share of answers with feedback at the start (authors' script: 0.1).
        last_share: the same at the end of the run (authors' script: 0.01).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
        dual_clip: largest ratio that counts where A < 0 (authors' code: 3).
        gamma_low: added to p at A = -4 (authors' code: -0.001 for all A).
        gamma_high: added to p at A = 4.
    """
    clip = Clip(clip_eps, clip_eps, CappedRatio(dual_clip))
    return Method(
        sampler=TeacherFeedback(group_size, share=Linear(first_share, last_share)),
        loss=RatioToCurrent(TeacherTokens(clip, gamma_low, gamma_high)),
        aggregation=token_mean,
        updates=Updates(minibatches=4),
    )


LARGEST_ADVANTAGE = 4.0  # gamma is constant beyond


SMALLEST = 1e-30  # denominator: in float32, p may be 0, and the gradient of 0 / 0 is NaN


RARE = 0.01  # probability below which a token with A < 0 is clipped as usual


@component
class TeacherTokens(Loss):
    """-A p / (sg(p) + gamma(A)) on tokens that were not sampled, `loss` on the others, (N, T).

    gamma rises from gamma_low at A = -4 to gamma_high at A = 4. Where sg(p) + gamma is not in
    (0, 1], the factor is 1.0001 below and 0.9999 above. A token with A < 0 and p < 0.01 has `loss`.

    Args:
        loss: loss of the policy's own tokens.
        gamma_low: added to the probability at A = -4.
        gamma_high: added to the probability at A = 4.
    """

    loss: Loss
    gamma_low: NumberOrSchedule
    gamma_high: NumberOrSchedule

    requires = REQUIRES_SAMPLED | Requires(surrogate_gradient=True)

    @property
    def zero_if_no_advantage(self) -> bool:
        return self.loss.zero_if_no_advantage

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        A = batch.advantage
        logp = pi.logp.masked_fill(~batch.mask, 0.0)
        p = logp.exp()
        shifted = p.detach() + self.gamma(A)
        shifted = torch.where(shifted <= 0, p.detach() / 1.0001, shifted)
        shifted = torch.where(shifted > 1, p.detach() / 0.9999, shifted)
        shifted = shifted.clamp(min=SMALLEST)
        is_taught = batch.mask & ~sampled_mask(batch) & ~((A < 0) & (p.detach() < RARE))
        return torch.where(is_taught, -A * p / shifted, self.loss(pi, batch))

    def gamma(self, A: Tensor) -> Tensor:
        """The number that is added to the probability, by the advantage."""
        position = (A.clamp(-LARGEST_ADVANTAGE, LARGEST_ADVANTAGE) / LARGEST_ADVANTAGE + 1) / 2
        return self.gamma_low + (self.gamma_high - self.gamma_low) * position

    def metrics(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return self.loss.metrics(pi, batch)


PAPER = Paper(
    title="ThinkTuning: Instilling Cognitive Reflections without Distillation",
    use="The policy never checks its answers, and a model of its size does when shown how.",
    tags=("hints", "off-policy"),
    checked=("golden", "properties", "run"),
    catalogue=("thinktuning",),
    source=Source(
        "code",
        "3rdAT/ThinkTuning: compute_policy_loss in verl/recipe/thinktuning/core_algos.py,"
        " thinktuning_ray_trainer.py, train_thinktuning.sh, verl/utils/teaching_schedulers.py;"
        " fsdp_workers.py for the choice of answers and how feedback is appended",
    ),
    plan="train_thinktuning.sh: train batch 128, minibatch 32: 4 updates per step",
    missing=(
        "The teacher's examples of cognitive behaviours.",
        "Cosine and exponential shares.",
        "The reward of 0.5 for a phrase that the script's data set asks for (gsm8k_vijay).",
    ),
    deviations=(
        "The release clamps gamma with swapped bounds, so that it is -0.001 for every A; here it"
        " rises from gamma_low at A = -4 to gamma_high at A = 4. gamma_high=-0.001 is the release.",
        "The share of answers with feedback falls over the whole run; in the release, over"
        " its first third, 16 steps, and the feedback ends when the share is 0.06 or less, which is"
        " after 8 steps (eps=0.05).",
        "The teacher's loss is on the feedback alone; the release's mask of the teacher covers the"
        " policy's own part of such an answer as well (fsdp_workers.py).",
        "Each answer gets feedback with the probability of the share; the release draws that share"
        " of a question's answers, but at least one: one of 5 at 0.1.",
        "Answers that the limit cut get feedback, too, and any text is feedback; the release leaves"
        " out answers without an end token and feedback of the wrong format, and appends only its"
        " reason and phrase.",
        "Nothing follows the feedback; the release ends it with an end token, which is trained.",
        "Batches without feedback have the dual clip, too; where compute_policy_loss has no teacher"
        " mask, it averages the loss without it.",
        "The mean is over the tokens of a minibatch; in the release, over a micro-batch of 8.",
    ),
    audit="both losses, gamma, fallback, dual clip, constants and plan compared with the release;"
    " the actor that the release calls could not be opened, and actor/dp_actor.py of the recipe"
    " passes no mask of the teacher",
    shown=(
        "docs/guidance_shown/rescue_sums.md#results",
        "tests/methods/test_thinktuning.py::test_loss_of_a_teachers_token_by_hand",
        "tests/methods/test_thinktuning.py"
        "::test_feedback_becomes_a_part_of_the_answer_that_is_trained_and_not_sampled",
    ),
)
