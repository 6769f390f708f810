"""Given answers: expert solutions beside sampled rollouts, demonstrations, teachers' solutions.

Compared: whether a given answer joins a group, behind which prompt and in which place, that it is
not sampled, which of its texts are trained, and whether its reward counts in the baseline.
"""

from collections.abc import Mapping

from tests.reference.rollouts_plain.record import (
    Part,
    Policy,
    Question,
    Reward,
    Trained,
    forced,
    merged,
    reference,
    sample,
    solved,
)

Rollouts = list[Trained]


def _expert(q: Question, reward: Reward, *, baseline: bool) -> Rollouts:
    """The task's solution as a rollout, if there is one."""
    if not q.columns.get("solution"):
        return []
    text = q.columns["solution"]
    part = forced(text, trained=True)
    return [Trained(q.prompt, (part,), reward(text), source="expert", baseline=baseline)]


@reference("ahpo", "arXiv:2510.08540 by the record: the gate is the advantage's; no baseline")
@reference("amft", "TSYJ-He/AMFT by the record: the demonstration has no advantage")
@reference("chord_mu", "modelscope/Trinity-RFT, examples/mix_chord: RL and SFT rows are separate")
@reference("chord_phi", "modelscope/Trinity-RFT, examples/mix_chord: RL and SFT rows are separate")
@reference("hpt", "TsinghuaC3I/Unify-Post-Training, hpt/verl/verl/mix_src; before the gate")
@reference("srft", "TsinghuaC3I/Unify-Post-Training, exp_scripts/train_srft.sh; rewards are signs")
def beside_an_expert(q: Question, policy: Policy, reward: Reward, *, size: int = 8) -> Rollouts:
    group = sample(q.prompt, policy, reward, size)
    return [*group, *_expert(q, reward, baseline=False)]


@reference("grao", "arXiv:2508.07750 by the record: mean and std run over all G + 1 answers")
@reference("luffy", "ElliottYan/LUFFY, luffy/verl/verl/mix_src, adv_estimator grpo: one group of 8")
def with_an_expert(q: Question, policy: Policy, reward: Reward, *, size: int = 8) -> Rollouts:
    group = sample(q.prompt, policy, reward, size)
    return [*group, *_expert(q, reward, baseline=True)]


@reference(
    "ampo",
    "SII-Enigma/AMPO, adaptive_mix_src/mix_dapo_trainer.py: mix_off_policy_rollout, adaptive, and"
    " workers/reward_manager/prob.py; the last rollouts are replaced, as the record says",
)
def ampo(
    q: Question,
    policy: Policy,
    reward: Reward,
    *,
    probabilities: Mapping[str, float],
    columns: tuple[str, ...],
    size: int = 8,
    count: int = 2,
) -> Rollouts:
    """`probabilities`: of the answer's letters behind each solution's reasoning, on average."""
    group = sample(q.prompt, policy, reward, size)
    if solved(group):
        return group
    solutions = [q.columns[name] for name in columns if q.columns.get(name)]
    count = min(count, len(solutions))
    best = sorted(solutions, key=lambda text: -probabilities[text])[:count]
    for i in range(size - count, size):
        text = best.pop(i % len(best))
        group[i] = Trained(q.prompt, (forced(text, trained=True),), reward(text))
    return group


@reference(
    "dft", "yongliang-wu/DFT, verl/verl/trainer/fsdp_dft_trainer.py: the response is trained"
)
def dft(q: Question, policy: Policy, reward: Reward) -> Rollouts:
    return [Trained(q.prompt, (forced(q.columns["solution"], trained=True),), None)]


@reference("sft", "huggingface/trl, trl/trainer/sft_trainer.py: assistant_only_loss on messages")
def sft(q: Question, policy: Policy, reward: Reward) -> Rollouts:
    first, *others = q.columns["messages"]
    parts: list[Part] = [
        forced(message["content"], trained=message["role"] == "assistant") for message in others
    ]
    return [Trained(first["content"], merged(parts), None)]
