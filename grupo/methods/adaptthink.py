"""AdaptThink: thinks only where that pays. Zhang et al., 2025, arXiv:2505.13417."""

from torch import Tensor

from grupo.algo import ratios
from grupo.algo.losses import Clip
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, OpenFraction, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import ChosenStart, WithColumnTerm


def adaptthink(
    group_size: PositiveInt = 16,
    delta: NonNegative = 0.05,
    no_think_prob: OpenFraction = 0.5,
    clip_eps: NonNegative = 0.2,
    no_think_text: str = "</think>",
    think_text: str = "Alright",
    column: str = "pass_rate",
) -> Method:
    """A = r - reference + delta [no thinking]; no thinking has the probability no_think_prob.

    Each answer begins with no_think_text or think_text, drawn with probability no_think_prob and
    1 - no_think_prob: its old probability. loss = mean over rollouts of
    -min(s A, clip(s, 1 - clip_eps, 1 + clip_eps) A), s = exp(mean over tokens of log pi - log old).

    Args:
        group_size: rollouts per task (authors' script: 16).
        delta: the accuracy that thinking has to add (authors' script: 0.05).
        no_think_prob: probability of an answer without thinking (authors' script: 0.5).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
        no_think_text: beginning of an answer without thinking.
        think_text: beginning of an answer with thinking (authors' script: "Alright").
        column: column of the task with the accuracy of thinking before training, as `grupo survey`
            measures it.
    """
    starts = ((no_think_text, no_think_prob), (think_text, 1 - no_think_prob))
    return Method(
        sampler=WithColumnTerm(ChosenStart(group_size, starts=starts), column),
        advantage=NoThinkBonus(delta),
        loss=Clip(clip_eps, clip_eps, ratios.sequence),
    )


@component
class NoThinkBonus:
    """A = x - reference + delta [the answer starts without thinking].

    The reward term "reference" is the accuracy of the model before training on the task, "start"
    is 0 for an answer without thinking.

    Args:
        delta: the accuracy that thinking has to add.
    """

    delta: NumberOrSchedule

    requires = Requires(reward_terms=("reference", "start"))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        no_thinking = (batch.reward_terms["start"] < 0.5).to(x)
        return x - batch.reward_terms["reference"].to(x) + self.delta * no_thinking


PAPER = Paper(
    title="AdaptThink: Reasoning Models Can Learn When to Think",
    use="The policy can answer with and without thinking, and should think on hard tasks only.",
    tags=("length", "importance-sampling"),
    checked=("golden", "properties", "run"),
    catalogue=("adaptthink",),
    source=Source(
        "code",
        "THU-KEG/AdaptThink: src/adapt_think_core_algos.py, adapt_think_reward_manager.py,"
        " adapt_think_vllm_rollout.py, scripts/run_adapt_think_1.5b_deepscaler_16k_delta0.05_*.sh",
    ),
    plan="the script: train batch 128, minibatch 128: one update per step",
    missing=(
        "The shorter token limit of answers without thinking (4096 instead of 16384).",
        "The temperature of 0.6 at which the script samples.",
        "An answer with <think>, or without exactly one </think>, is wrong in the release.",
    ),
    deviations=(
        "The modes are drawn with probability no_think_prob, as in the paper's derivation; the"
        " release generates exactly that share of each group.",
    ),
    audit="advantage, ratio, clip and constants compared with the three files and the script",
    shown=(
        "docs/guidance_shown/adaptthink.md#adaptthink-on-sums-of-digits",
        "tests/methods/test_adaptthink.py::test_loss_of_an_answer_without_thinking_by_hand",
        "tests/methods/test_adaptthink.py"
        "::test_thinking_dies_out_where_it_does_not_pay_and_stays_where_it_does",
    ),
)
