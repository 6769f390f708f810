"""DFT: SFT weighted by the probability of each token. Wu et al., 2025, arXiv:2508.05629."""

from grupo.algo.aggregation import token_mean
from grupo.algo.data_source import unit_advantage
from grupo.algo.losses import WeightedReinforce
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import DemonstrationSampler, SolutionColumn


def dft() -> Method:
    """loss = mean over the tokens of demonstrations of -sg(p) log p.

    Its gradient is that of -p: a policy gradient on the demonstration with reward 1 per token,
    whereas the gradient of -log p has reward 1 / p. The demonstration is the task's column
    "solution".
    """
    return Method(
        sampler=DemonstrationSampler(SolutionColumn()),
        advantage=unit_advantage,
        loss=WeightedReinforce(probability),
        aggregation=token_mean,
    )


def probability(pi: Signals, batch: Batch) -> PerAction:
    """Probability of each action under the policy, (N, T)."""
    return pi.logp.exp()


PAPER = Paper(
    title="On the Generalization of SFT: A Reinforcement Learning Perspective with Reward "
    "Rectification",
    use="Demonstrations exist, and what is learned from them should generalise.",
    tags=("sft",),
    trl="SFTConfig(loss_type='dft')",
    checked=("golden", "properties", "run"),
    source=Source(
        "code",
        "yongliang-wu/DFT, verl/verl/trainer/fsdp_dft_trainer.py and verl/train_dft.sh",
    ),
    plan="train_dft.sh: one pass over the demonstrations, batch 256: one update per step",
    deviations=(
        (
            "The mean is over the tokens of the batch. The release takes it over 4 demonstrations "
            "of a device, and adds the gradients of a device without dividing by their number."
        ),
    ),
    audit=(
        "weight and mean over tokens compared with fsdp_dft_trainer.py, the batch with its script"
    ),
)
