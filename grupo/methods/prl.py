"""PRL: future KL is charged per reasoning step. Yao et al., 2026, arXiv:2601.10201."""

import torch
from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.advantages.token_table import discounted_sum, from_token_table, to_token_table
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.core.batch import Batch, PerAction
from grupo.core.component import component
from grupo.core.numbers import NonNegative, Positive, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def prl(
    group_size: PositiveInt = 5,
    inverse_kl_coef: Positive = 100.0,
    step_length: PositiveInt = 64,
    clip_eps: NonNegative = 0.2,
) -> Method:
    """A_t = (r - mean r) / (std r + 1e-6) - S_e / inverse_kl_coef, e the end of the step that holds
    t.

    S_e is the log-ratio of policy to reference on the rest of the answer from e on. An infinite
    inverse_kl_coef is GRPO.

    Args:
        group_size: rollouts per task (authors' code: 5).
        inverse_kl_coef: inverse weight of the KL (eta in the paper) (a script's value: 100).
        step_length: length of a step, in tokens (a script's value: 64).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
    """
    advantage = chain(Center(), ScaleByStd(), SubtractFutureKL(inverse_kl_coef, step_length))
    return Method(
        sampler=GroupSampler(group_size),
        advantage=advantage,
        loss=Clip(clip_eps, clip_eps),
        aggregation=token_mean,
    )


@component
class SubtractFutureKL:
    """x - S_e / inverse_kl_coef for all tokens of a step that ends with token e.

    S_e = sum_(s >= e) (log pi_old - log pi_ref); a step has step_length tokens, the last one fewer.

    Args:
        inverse_kl_coef: inverse weight of the KL (eta in the paper).
        step_length: length of a step, in tokens.
    """

    inverse_kl_coef: Positive
    step_length: PositiveInt

    requires = Requires(signals=("logp@ref",))

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        drift = to_token_table(batch.old_logp - batch.signals["logp@ref"], batch)
        S = discounted_sum(drift, 1.0)
        t = torch.arange(S.shape[1]).expand_as(S)
        end = (t // self.step_length + 1) * self.step_length - 1
        last = batch.lengths[:, None].long() - 1
        A = x[:, None] - S.gather(1, torch.minimum(end, last).clamp(min=0)) / self.inverse_kl_coef
        return from_token_table(A, batch)


PAPER = Paper(
    title="PRL: Process Reward Learning Improves LLMs' Reasoning Ability",
    use="Step-level credit without a process reward model, with a reference policy to stay near.",
    tags=("process-reward", "kl"),
    checked=("golden", "properties", "reference", "run"),
    catalogue=("prl-process-reward-learning",),
    source=Source(
        "code",
        (
            "MaxwellJryao/Process-Reward-Learning, verl/trainer/ppo/ray_trainer.py, core_algos.py "
            "and the version of runs/run_grpo.sh with adv_estimator=prm"
        ),
    ),
    plan="runs/run_grpo.sh: train batch 128, minibatch 128: one update per step",
    missing=(
        "Steps that end at newlines (prm_step_split of the last version).",
        "The dual clip of 3 of the release, which does not act at one update per step.",
        "The mode prm_adv=prm, which that script switches on: A_t = r - S_t / eta at every token,"
        " without a group mean, a standard deviation or steps.",
    ),
    deviations=(
        (
            "The release recognises the ends of steps by values that differ from 0; here they are "
            "counted."
        ),
        "The formula is the mode prm_adv=orm, which the code has and no released script runs with"
        " the estimator prm: eta 100 and 64 tokens stand in the script of the other mode, where 64"
        " does not act. The last version has 200 and 256, with the estimator grpo.",
        "The mean is over the tokens of the batch, in the release over those of a micro-batch of 16"
        " answers.",
    ),
    audit=(
        "advantage and constants compared with ray_trainer.py, core_algos.py and run_grpo.sh ("
        "later versions have the estimator of GRPO, with which eta does not act)"
    ),
)
