"""Options of other libraries that no component of the library expresses.

Their numbers were recorded from the other library's own code; tests compare those that a component
expresses. Each row has the reason, and the component that comes nearest.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from grupo.catalogue.pages import markdown_table

HEADER = ("library", "option", "reason", "nearest", "numbers")
INTRODUCTION = """\
The losses, advantages and weights of TRL 1.16, verl 0.9.1 and OpenRLHF 0.11.2 were computed by
their own code on small batches and are compared with components. No component expresses the
options of this table; the last column names the recorded numbers in `tests/reference`."""


@dataclass(frozen=True)
class Unexpressed:
    """An option of another library without a component.

    Args:
        library: The other library.
        option: Its option, or the part of its loss.
        reason: Why no component expresses it.
        nearest: Names of the components or methods that come nearest.
        numbers: File of `tests/reference` with numbers of the other library; "" if there is none.
    """

    library: str
    option: str
    reason: str
    nearest: tuple[str, ...]
    numbers: str = ""


UNEXPRESSED = (
    Unexpressed(
        "TRL",
        "A2PO: the values V* of the first stage, and the tasks that it removes",
        "No component computes V* of a task from rollouts of the reference policy, which a"
        " `CollectStage` of a pipeline writes. The loss is a `RegressScore` whose target reads V*"
        " as a reward term.",
        ("RegressScore",),
        "a2po.json",
    ),
    Unexpressed(
        "TRL",
        "TPO: `tpo_alpha` above 0; `sft` among several losses of DPO",
        "A loss has one aggregation: each answer has its own mean, where TRL averages over the"
        " tokens of all answers. They are equal for answers of equal length. `PreferencePairs` has"
        " no column for a gold answer.",
        ("ChosenNLL",),
        "tpo.json",
    ),
    Unexpressed(
        "TRL",
        "GRPO: an entropy bonus with another `loss_type` than a token mean",
        "A loss has one aggregation, which the bonus shares; TRL averages the entropy over tokens.",
        ("EntropyBonus",),
    ),
    Unexpressed(
        "TRL",
        "KTO: the KL divergence of `kto`",
        "It is measured on answers that follow the prompts of other answers, and the policy"
        " evaluates an answer after its own prompt. With the divergence as a given number the loss"
        " is a `LabelledScore`; `apo_zero_unpaired`, without it, is equal.",
        ("LabelledScore", "BatchMeanShift"),
        "kto.json",
    ),
    Unexpressed(
        "TRL",
        "DPO: `f_divergence_type` other than `reverse_kl`; CPO: `alpha` above 0 (AlphaPO)",
        "No score is a function of the log-ratio or of the likelihood. A function of one line is"
        " such a score, and has equal losses and gradients.",
        ("LogRatio", "mean_logp"),
        "dpo_options.json",
    ),
    Unexpressed(
        "TRL",
        "DPO: `ld_alpha`",
        "No score weighs the tokens beyond the length of the pair's shorter answer.",
        ("MeanLogRatio",),
    ),
    Unexpressed(
        "TRL",
        "DPO: `use_weighting`",
        "No component weighs the loss of a pair by the likelihood of its answers.",
        ("Preference",),
    ),
    Unexpressed(
        "TRL",
        "`beta` or `distillation_alpha` other than 0, 0.5 and 1 (distillation, GKD, SDPO)",
        "The mixture of the Jensen-Shannon divergence has equal parts.",
        ("JSD",),
        "distillation/distillation_losses.json",
    ),
    Unexpressed(
        "TRL",
        "SDPO: `distillation_mode` `topk_logits`, with or without a tail",
        "Divergences are over the whole vocabulary.",
        ("JSD",),
        "distillation/distillation_losses.json",
    ),
    Unexpressed(
        "TRL",
        "IW-OPD: `iw_opd_gamma` above 0",
        "No advantage is weighted by the advantages of earlier tokens. At 0 the loss is that of"
        " `opd`.",
        ("opd",),
        "distillation/distillation_losses.json",
    ),
    Unexpressed(
        "verl",
        "`algorithm.use_pf_ppo`",
        "A rule of replay draws rollouts of earlier steps, and no rule draws those of the step"
        " again. In the mean over draws the loss of a rollout is weighted by its expected number of"
        " draws, a `NormalisedWeight` of any function of the reward.",
        ("NormalisedWeight", "FillFromBuffer"),
        "pf_ppo.json",
    ),
    Unexpressed(
        "verl",
        "`loss_mode` `dro`, where the old log-probabilities are not the sampler's",
        "`KL` compares with a named policy, and the old one has no name. Where the sampler's"
        " log-probabilities are the old ones, `Reinforce() + beta * KL(k2, 'sampler')` is equal.",
        ("KL", "MirrorDescentLoss"),
        "dro.json",
    ),
    Unexpressed(
        "verl",
        "`rollout_rs` under a mean: the number that the loss is divided by",
        "verl takes rejected actions out of the mask before the mean. An aggregation reads the"
        " batch before the update, with rejected actions. Sums over tokens are equal, means up to"
        " that number.",
        ("RejectionMask",),
        "rollout_correction_losses.json",
    ),
    Unexpressed(
        "verl",
        "`adv_estimator` `gpg`: the factor of the advantages",
        "`ScaleByInformative` counts the rollouts of groups whose rewards differ, as GPG's authors"
        " do, and verl the rewards that are not 0.",
        ("gpg",),
    ),
    Unexpressed(
        "OpenRLHF",
        "`reinforce` and `reinforce_baseline`: the variance by n",
        "`Whiten` divides by n - 1, the number of tokens less one: advantages are smaller by the"
        " square root of (n - 1) / n.",
        ("Whiten",),
        "openrlhf.json",
    ),
    Unexpressed(
        "OpenRLHF",
        "`no_std_norm`",
        "No component subtracts the mean over tokens without the division by the deviation; a"
        " function of one line does.",
        ("Whiten",),
        "openrlhf.json",
    ),
    Unexpressed(
        "OpenRLHF",
        "`flash_reinforce`",
        "No component subtracts the mean reward of the batch without the division by the deviation;"
        " a function of one line does.",
        ("StandardiseBatch",),
    ),
    Unexpressed(
        "OpenRLHF",
        "`kl.unbiased_gradient`",
        "The gradient of the KL divergence is weighted by the ratio of the policies, at most 10. In"
        " the first update of a step the ratio is 1, and `StraightThroughKL` is equal.",
        ("StraightThroughKL",),
    ),
    Unexpressed(
        "OpenRLHF",
        "`kl.use_loss` or `entropy_coef` with `policy_loss_type` `gspo` or `loss_agg_mode`"
        " `seq-mean-token-mean`",
        "A loss has one aggregation, which both terms share; OpenRLHF averages them over tokens.",
        ("KL", "EntropyBonus"),
    ),
)


def not_expressible_section(rows: Iterable[Unexpressed] = UNEXPRESSED) -> list[str]:
    """The section of the page, in Markdown."""
    return ["## Not expressible", INTRODUCTION, markdown_table(HEADER, map(_row, rows))]


def _row(entry: Unexpressed) -> list[str]:
    nearest = ", ".join(f"`{name}`" for name in entry.nearest)
    numbers = f"`{entry.numbers}`" if entry.numbers else ""
    return [entry.library, entry.option, entry.reason, nearest, numbers]
