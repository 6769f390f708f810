"""TriMPI: rules read in some rollouts, learned without them. Liu et al., 2025, arXiv:2510.09474."""

from grupo.algo.losses import KL, Clip, RatioToCurrent
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler, HintColumn, Rescue, RescueAttempt
from grupo.rollouts.samplers.merge_rules import add_all
from grupo.rollouts.samplers.rescue import every_group
from grupo.rollouts.samplers.trained_prompts import plain_prompt


def policyrollout(
    group_size: PositiveInt = 8,
    clip_low: NonNegative = 0.2,
    clip_high: NonNegative = 0.2,
    kl_coef: NonNegative = 0.001,
    column: str = "rules",
    prefix_text: str = "\n\nRules: ",
) -> Method:
    """GRPO on group_size rollouts without and as many with the rules, all trained without them.

    A = (r - mean(r)) / std(r) over all 2 group_size rollouts. loss = mean over rollouts and their
    tokens of -min(R A, clip(R, 1 - clip_low, 1 + clip_high) A) + kl_coef k3, where
    R = pi(o_t | q, o_<t) / pi_step(o_t | q, o_<t) is the ratio to the policy at the start of the
    step, without the rules: it begins at 1 for every token.

    Args:
        group_size: rollouts per task without the rules, and with them.
        clip_low: width of the clip below 1.
        clip_high: width of the clip above 1.
        kl_coef: weight of the KL divergence from the reference policy.
        column: column of the task that holds the rules.
        prefix_text: text between the prompt and the rules.
    """
    with_rules = RescueAttempt(HintColumn(column, prefix_text), add_all, plain_prompt, "with_rules")
    return Method(
        sampler=Rescue(GroupSampler(group_size), (with_rules,), every_group),
        loss=RatioToCurrent(Clip(clip_low, clip_high)) + kl_coef * KL(),
    )


PAPER = Paper(
    title="Multimodal Policy Internalization for Conversational Agents",
    use="A long document of rules stands in every prompt, and the policy should know it by heart.",
    tags=("hints", "off-policy"),
    checked=("golden", "properties", "run"),
    catalogue=("policyrollout-trimpi",),
    source=Source(
        "third_party",
        "section 4.3 of the paper as quoted by a public note on it, and the catalogue's row",
    ),
    plan=(
        "not stated in any source that was opened; one update per step, in which the ratio is 1 "
        "and the clip does not act"
    ),
    missing=(
        "The stages before RL: next-token prediction on rules with pictures, whose tokens are"
        " masked, and fine-tuning on worked answers.",
        "The variant on DAPO: its filter and its aggregation.",
    ),
    deviations=(
        "The group size, the clip and the weight of the KL divergence are our choice.",
        "The objective is printed for whole answers, without tokens. Here ratios are of tokens, and"
        " averaged, as in GRPO's paper.",
        "The rules follow the prompt; the paper does not fix the order.",
    ),
    audit="group, prompts, ratio and clip compared with the quoted section",
    shown=(
        "docs/guidance_shown/forty_rules.md#forty-rules-learned-by-heart",
        "tests/methods/test_policyrollout.py"
        "::test_advantages_and_first_ratios_of_a_group_with_rules_by_hand",
    ),
)
