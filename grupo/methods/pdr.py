"""PDR: answers refined from distilled drafts. Madaan et al., 2025, arXiv:2510.01123."""

from grupo.algo.losses import Loss, WeightedReinforce
from grupo.algo.ratios import ClippedRatio
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.numbers import Fraction, NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import DistilledDrafts


def pdr(
    group_size: PositiveInt = 8,
    drafts: PositiveInt = 4,
    max_tokens: PositiveInt = 512,
    share: Fraction = 0.5,
    sft_coef: NonNegative = 0.1,
    clip_low: NonNegative = 1.0,
    clip_high: NonNegative = 0.2,
) -> Method:
    """loss = -sg(clip(R, 1 - clip_low, 1 + clip_high)) A log pi + sft_coef NLL of correct rollouts.

    R is the ratio of a token, A = (r - mean(r)) / std(r). A share of the groups answers behind a
    summary of drafts, the others as usual. The NLL is the mean over a group's correct rollouts.

    Args:
        group_size: rollouts per task.
        drafts: drafts of a workspace (M in the paper).
        max_tokens: tokens of a workspace at most (kappa in the paper).
        share: probability that a group has a workspace (paper: 0.5).
        sft_coef: weight of the NLL (paper: 0.1).
        clip_low: weights are at least 1 - clip_low.
        clip_high: weights are at most 1 + clip_high.
    """
    return Method(
        sampler=DistilledDrafts(group_size, drafts=drafts, max_tokens=max_tokens, share=share),
        loss=WeightedReinforce(ClippedRatio(clip_low, clip_high)) + sft_coef * CorrectRolloutNLL(),
    )


@component
class CorrectRolloutNLL(Loss):
    """-log pi / p on correct rollouts, 0 on others, with p the share of correct ones of the group.

    Under a mean over rollouts and their tokens, the sum is the mean over groups of equal size of
    the mean NLL of their correct rollouts.

    Args:
        success_threshold: a rollout with a higher reward is correct.
    """

    success_threshold: NumberOrSchedule = 0.5

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        correct = (batch.reward > self.success_threshold).to(pi.logp)
        share = group_ops.mean(correct, batch.group).clamp(min=1e-9)
        return -pi.logp * (correct / share)[batch.rollout, None]


PAPER = Paper(
    title="Rethinking Thinking Tokens: LLMs as Improvement Operators",
    use="Several short drafts can be paid at inference, and the policy should learn to use them.",
    tags=("hints", "sft", "importance-sampling"),
    checked=("golden", "properties", "run"),
    catalogue=("pdr-operator",),
    source=Source(
        "third_party",
        "a public reading note on the paper: round equations, objective, one round in training; "
        "CISPO by its own paper (arXiv:2506.13585)",
    ),
    plan=(
        "not stated in any source that was opened; one update per step, in which the weight is 1 "
        "and its clip does not act"
    ),
    missing=(
        "Several rounds, which are used at inference only.",
        "The sequential token budget: tokens are counted in all calls.",
        "Top-k evidence of each draft as the workspace; LikeliestDrafts keeps whole drafts.",
    ),
    deviations=(
        "CISPO's mean over tokens is one over rollouts and their tokens, as is the SFT term's.",
        "A group has a workspace with probability 1/2; the paper splits minibatches in half.",
        "All rollouts of a group share drafts and workspace, so that they share a prompt.",
        "Drafts and summary are not trained on: our reading, since the paper could not be opened.",
        "Drafts, tokens of the workspace, group size and clip are our choice.",
    ),
    audit="objective, SFT term and shares compared with the note",
    shown=(
        "docs/guidance_shown/rescue_sums.md#results",
        "tests/methods/test_pdr.py"
        "::test_a_refiner_that_copies_the_plurality_of_five_drafts_solves_more_than_one_draft",
    ),
)
