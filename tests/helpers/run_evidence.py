"""Evidence by hand: a healthy run, and the same with one thing wrong."""

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
    "entropy": lambda i: 1.0 - 0.01 * i,
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
    "budget": lambda i: 2048.0,
    "time_frac/generate": lambda i: 0.6,
    "time_frac/score": lambda i: 0.01,
    "time/step": lambda i: 4.0,
    "time/score": lambda i: 0.1,
}
MIXED = (0.0, 1.0, 0.0, 1.0)


def run(count=40, groups=(), held_out=None, **changes) -> RunData:
    """A healthy run of so many steps, but for the metrics named with _ in place of /."""
    names = {name.replace("/", "_"): name for name in HEALTHY}
    course = HEALTHY | {names[name]: change for name, change in changes.items()}
    steps = tuple({"step": i, **{n: f(i) for n, f in course.items()}} for i in range(count))
    found = groups or [GroupSummary(i, MIXED, 4, 4) for i in range(count)]
    return RunData(steps, tuple(found), {"held_out": held_out} if held_out else {})


def flat(rewards, texts=4, count=40) -> list[GroupSummary]:
    """Groups of mixed rewards first, and then of these only."""
    half = [GroupSummary(i, MIXED, 4, 4) for i in range(count // 2)]
    return half + [GroupSummary(i, rewards, texts, 4) for i in range(count // 2, count)]


def every(count=40, **more) -> list[GroupSummary]:
    """Groups of mixed rewards, the same but for what is said of them."""
    made = GroupSummary(0, MIXED, 4, 4, task="sum", scored_rollouts=(0, 1, 2, 3))
    return [replace(made, step=i, **more) for i in range(count)]


def scores(share: float) -> dict:
    spans = {n: [share - 0.1, share + 0.1] for n in ("greedy", "sampled")}
    return {"greedy": share, "sampled": share, "intervals": spans}


def names(evidence: RunData) -> list[str]:
    return [finding.name for finding in diagnose(evidence)]


def one(evidence: RunData) -> Finding:
    (finding,) = diagnose(evidence)
    return finding


SICK = {
    "reward always zero": run(
        reward_mean=lambda i: 0.0, reward_std=lambda i: 0.0, reward_right=lambda i: 0.0
    ),
    "no signal, all right": run(groups=flat((1.0,) * 4), groups_signal=lambda i: 0.6 * (i < 30)),
    "no signal, all wrong": run(groups=flat((0.0,) * 4), groups_signal=lambda i: 0.6 * (i < 30)),
    "nothing learned from": run(groups_learned=lambda i: 8.0 * (i % 4 > 0)),
    "reward part never changes: right": run(reward_right=lambda i: 0.0),
    "identical answers": run(groups=flat(MIXED, texts=1)),
    "no gradient": run(gradient_norm=lambda i: 0.0),
    "loss is zero": run(loss=lambda i: 3e-9),
    "gradient not finite": run(gradient_nonfinite=lambda i: 0.5 * (i in (3, 7))),
    "gradient explodes": run(gradient_norm=lambda i: 0.5 if i < 30 else 6.0),
    "sampler and trainer disagree": run(mismatch_mean=lambda i: 0.02),
    "KL grows without bound: policy/kl_ref": run(kl_ref=lambda i: 0.001 * i * i),
    "entropy collapse": run(entropy=lambda i: 1.0 if i < 30 else 0.05),
    "answers cut off": run(rollouts_truncated=lambda i: 0.05 if i < 30 else 0.35),
    "reward fell back": run(reward_mean=lambda i: 0.3 + 0.02 * (i if i < 20 else 40 - i)),
    "longer without reward": run(
        length_mean=lambda i: 50.0 + 2 * i, reward_mean=lambda i: 0.3 + 0.01 * (i % 2)
    ),
    "failed rewards": run(groups=[GroupSummary(i, MIXED, 5, 5, ("it hung",)) for i in range(40)]),
    "reward never differs": run(
        groups=[GroupSummary(i, (0.5,) * 4, 4, 4) for i in range(40)],
        reward_mean=lambda i: 0.5,
        reward_std=lambda i: 0.0,
        groups_signal=lambda i: 0.0,
    ),
    "NaN rewards": run(groups=every(nameless=(2,))),
    "not a number": run(entropy=lambda i: math.nan if i == 7 else 1.0),
    "wrong mask": run(mask_missing=lambda i: 0.25 * (i == 3)),
    "pushed the wrong way": run(advantage_push=lambda i: -0.8),
    "advantages against the reward": run(groups=every(advantages=(1.0, -1.0, 1.0, -1.0))),
    "weights go uphill": run(update_descent=lambda i: -0.3),
    "weights do not change": run(update_changed=lambda i: 0.0),
    "learning rate too high": run(update_size=lambda i: 0.2),
    "stale weights": run(mismatch_mean=lambda i: 0.001 * i),
    "reward follows length": run(groups=every(lengths=(2.0, 5.0, 3.0, 6.0))),
    "answer in the prompt": run(groups=every(told=True)),
    "waiting for judges": run(share_judge=lambda i: 0.7),
    "a few long answers": run(length_max=lambda i: 500.0),
    "memory did not suffice": run(budget=lambda i: 2048.0 if i < 9 else 1024.0),
    "half written": replace(run(), files=RunFiles(torn_journals=("metrics.jsonl",))),
    "another version": replace(run(), files=RunFiles(missing_fields=("`failed`",))),
    "nothing happens": replace(
        run(), files=RunFiles(is_locked=True, seconds_since_write=81.0)
    ),  # 20 x 4 s
    "stopped before its end": replace(run(), recipe={"steps": 50}),
    "steps lost": replace(run(), steps=run().steps[:9] + run().steps[10:]),
}
