"""SFT: supervised fine-tuning on demonstrations. Ouyang et al., 2022, arXiv:2203.02155."""

from grupo.algo.advantages import identity
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import NLL
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import ConversationColumn, DemonstrationSampler


def sft(column: str = "", assistant_only: bool = True) -> Method:
    """loss = mean over the tokens of a step's demonstrations of -log pi.

    A demonstration is an answer in the task's columns, in the formats of TRL's SFTTrainer; the
    policy generates nothing and no reward is computed.

    Args:
        column: column of the answer; "" is the first of `messages`, `completion`, `solution` and
            `text` that a task has.
        assistant_only: of `messages`, the assistant's are trained on; otherwise all tokens are
            (TRL's assistant_only_loss).
    """
    return Method(
        sampler=DemonstrationSampler(ConversationColumn(column, assistant_only)),
        advantage=identity,
        loss=NLL(),
        aggregation=token_mean,
    )


PAPER = Paper(
    title="Training language models to follow instructions with human feedback",
    use="There are demonstrations, and the policy does not solve any task yet.",
    tags=("sft",),
    trl="SFTTrainer",
    checked=("golden", "properties", "run"),
    source=Source(
        "third_party",
        "huggingface/trl, trl/trainer/sft_trainer.py and sft_config.py: loss over completions and"
        " over the messages of the assistant; section 3.5 of the paper",
    ),
    plan="one pass of the loss over the demonstrations of a step: one update per step",
    deviations=(
        "Dropout of 0.2 on the residual stream, section C.1 of the paper, is not applied.",
        "The mean is over all tokens of a step, as with average_tokens_across_devices in TRL.",
        "Of `messages` only the assistant's are trained on by default; TRL's default of"
        " assistant_only_loss trains all tokens.",
    ),
    audit="columns, masks and mean over tokens compared with TRL's SFTTrainer",
    shown=("docs/comparisons/preferences.md#ten-methods-under-a-noisy-and-under-the-true-judge",),
)
