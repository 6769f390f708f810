"""Hand-made run data: a healthy run, and the same run with one defect each."""

import math
from dataclasses import replace

from grupo.report.checks import Finding, RunData
from grupo.report.checks.group_summary import GroupSummary
from grupo.report.checks.run_data import RunFiles
from grupo.report.doctor import diagnose

HEALTHY = {
    "reward/mean": lambda i: 0.3 + 0.01 * i,
    "reward/std": lambda i: 0.4,
    "reward/right": lambda i: 0.3 + 0.01 * i,
    "groups/nonzero_std_frac": lambda i: 0.6,
    "groups/trained": lambda i: 8.0,
    "completions/truncated_frac": lambda i: 0.05,
    "completions/length_mean": lambda i: 50.0 + i % 3,
    "completions/length_max": lambda i: 90.0,
    "policy/entropy": lambda i: 1.0 - 0.01 * i,
    "policy/entropy_top10": lambda i: 0.9 - 0.01 * i,
    "policy/mass_top10": lambda i: 0.95 + 0.0001 * i,
    "policy/kl_ref": lambda i: 0.001 * i,
    "loss": lambda i: 0.01,
    "grad_norm": lambda i: 0.5 + 0.1 * (i % 2),
    "grad_nonfinite": lambda i: 0.0,
    "sampler_mismatch/logp_diff_mean": lambda i: 1e-7,
    "sampler_mismatch/logp_diff_max": lambda i: 1e-5,
    "update/advantage_alignment": lambda i: 0.9,
    "mask/extra_frac": lambda i: 0.0,
    "mask/dropped_frac": lambda i: 0.0,
    "update/relative_norm": lambda i: 1e-3,
    "update/cos_neg_grad": lambda i: 0.4,
    "update/changed_frac": lambda i: 1.0,
    "lr": lambda i: 1e-5,
    "staleness": lambda i: 0.0,
    "microbatch_tokens": lambda i: 2048.0,
    "time_frac/generate": lambda i: 0.6,
    "time_frac/score": lambda i: 0.01,
    "time/step": lambda i: 4.0,
    "time/score": lambda i: 0.1,
}
MIXED = (0.0, 1.0, 0.0, 1.0)
TRUTH = {"component": "grupo.envs.reward_term:RewardTerm", "name": "right", "weight": 0.0}
MEASURED = {"env": {"rewards": {"tuple": [TRUTH]}}}


def run(count=40, groups=(), held_out=None, **changes) -> RunData:
    """A healthy run with `count` steps; `changes` name metrics with _ for /, and replace them."""
    names = {name.replace("/", "_"): name for name in HEALTHY}
    series = HEALTHY | {names[name]: change for name, change in changes.items()}
    steps = tuple({"step": i + 1, **{n: f(i) for n, f in series.items()}} for i in range(count))
    default = [GroupSummary(i, MIXED, 4, 4) for i in range(1, count + 1)]
    return RunData(steps, tuple(groups or default), {"held_out": held_out} if held_out else {})


def flat_after_half(rewards, texts=4, count=40) -> list[GroupSummary]:
    """Groups with mixed rewards, then groups with these rewards."""
    mixed = [GroupSummary(i, MIXED, 4, 4) for i in range(1, count // 2 + 1)]
    return mixed + [GroupSummary(i, rewards, texts, 4) for i in range(count // 2 + 1, count + 1)]


def uniform_groups(count=40, **fields) -> list[GroupSummary]:
    """Equal groups with mixed rewards, one per step."""
    group = GroupSummary(0, MIXED, 4, 4, task="sum", scored_rollouts=(0, 1, 2, 3))
    return [replace(group, step=i, **fields) for i in range(1, count + 1)]


def scores(mean: float) -> dict:
    intervals = {n: [mean - 0.1, mean + 0.1] for n in ("greedy", "sampled")}
    return {"greedy": mean, "sampled": mean, "intervals": intervals}


def finding_names(run_data: RunData) -> list[str]:
    return [finding.name for finding in diagnose(run_data)]


def only_finding(run_data: RunData) -> Finding:
    (finding,) = diagnose(run_data)
    return finding


DEFECTIVE_RUNS = {
    "over-optimised": run(policy_mass_top10=lambda i: 0.99 - 0.002 * i),
    "reward always zero": run(
        reward_mean=lambda i: 0.0, reward_std=lambda i: 0.0, reward_right=lambda i: 0.0
    ),
    "no reward spread, all correct": run(
        groups=flat_after_half((1.0,) * 4), groups_nonzero_std_frac=lambda i: 0.6 * (i < 30)
    ),
    "no reward spread, all incorrect": run(
        groups=flat_after_half((0.0,) * 4), groups_nonzero_std_frac=lambda i: 0.6 * (i < 30)
    ),
    "no trained groups": run(groups_trained=lambda i: 8.0 * (i % 4 > 0)),
    "constant reward term: right": run(reward_right=lambda i: 0.0),
    "identical answers": run(groups=flat_after_half(MIXED, texts=1)),
    "no gradient": run(grad_norm=lambda i: 0.0),
    "zero loss": run(loss=lambda i: 3e-9),
    "non-finite gradient": run(grad_nonfinite=lambda i: 0.5 * (i in (3, 7))),
    "exploding gradient": run(grad_norm=lambda i: 0.5 if i < 30 else 6.0),
    "sampler mismatch": run(sampler_mismatch_logp_diff_mean=lambda i: 0.02),
    "growing KL: policy/kl_ref": run(policy_kl_ref=lambda i: 0.001 * i * i),
    "large KL: policy/kl_ref": run(policy_kl_ref=lambda i: 1.1),
    "reward without success": replace(
        run(reward_mean=lambda i: 0.3 + 0.014 * i, reward_right=lambda i: 0.2 + 0.005 * i),
        recipe={"evaluation": {"success": {"reward_term": "right", "min_reward": 1.0}}},
    ),
    "reward parted from truth: right": replace(
        run(reward_right=lambda i: 0.3 + 0.02 * (i if i < 20 else 40 - i)), recipe=MEASURED
    ),
    "entropy collapse": run(policy_entropy=lambda i: 1.0 if i < 30 else 0.05),
    "truncated answers": run(completions_truncated_frac=lambda i: 0.05 if i < 30 else 0.35),
    "reward dropped": run(reward_mean=lambda i: 0.3 + 0.02 * (i if i < 20 else 40 - i)),
    "length growth without reward": run(
        completions_length_mean=lambda i: 50.0 + 2 * i, reward_mean=lambda i: 0.3 + 0.01 * (i % 2)
    ),
    "failed rewards": run(groups=[GroupSummary(i, MIXED, 5, 5, ("it hung",)) for i in range(40)]),
    "constant reward": run(
        groups=[GroupSummary(i, (0.5,) * 4, 4, 4) for i in range(40)],
        reward_mean=lambda i: 0.5,
        reward_std=lambda i: 0.0,
        groups_nonzero_std_frac=lambda i: 0.0,
    ),
    "NaN rewards": run(groups=uniform_groups(nan_rollouts=(2,))),
    "non-finite advantages": run(groups=uniform_groups(nonfinite_advantages=(1,))),
    "NaN metrics": run(policy_entropy=lambda i: math.nan if i == 7 else 1.0),
    "wrong mask": run(mask_dropped_frac=lambda i: 0.25 * (i == 3)),
    "loss has the wrong sign": run(update_advantage_alignment=lambda i: -0.8),
    "advantages oppose rewards": run(groups=uniform_groups(advantages=(1.0, -1.0, 1.0, -1.0))),
    "gradient ascent": run(update_cos_neg_grad=lambda i: -0.3),
    "weights unchanged": run(update_changed_frac=lambda i: 0.0),
    "learning rate too high": run(update_relative_norm=lambda i: 0.2),
    "stale weights": run(sampler_mismatch_logp_diff_mean=lambda i: 0.001 * i),
    "reward follows length": run(groups=uniform_groups(lengths=(2.0, 5.0, 3.0, 6.0))),
    "answer in the prompt": run(groups=uniform_groups(answer_in_prompt=True)),
    "slow rewards": run(time_frac_score=lambda i: 0.7),
    "long tail": run(completions_length_max=lambda i: 500.0),
    "OOM retry": run(microbatch_tokens=lambda i: 2048.0 if i < 9 else 1024.0),
    "torn journal": replace(run(), files=RunFiles(torn_journals=("metrics.jsonl",))),
    "version mismatch": replace(run(), files=RunFiles(missing_fields=("`error`",))),
    "stalled run": replace(
        run(), files=RunFiles(is_locked=True, seconds_since_write=81.0)
    ),  # 20 x 4 s
    "stopped early": replace(run(), recipe={"max_steps": 50}),
    "missing steps": replace(run(), steps=run().steps[:9] + run().steps[10:]),
}
