"""Does the sampler say what the trainer learns from?"""

from collections.abc import Iterator
from dataclasses import replace
from statistics import median

from grupo.report.checks.finding import (
    Finding,
    FindingTemplate,
    Location,
    format_steps,
    step_locations,
)
from grupo.report.checks.run_data import MIN_STEPS, RunData
from grupo.report.read_run import MetricSeries

# Of log-probabilities, in nats. Float32 agrees to 1e-6, bfloat16 with one kernel to some 1e-2.
MAX_LOGP_DIFF_MEAN = 0.01
MAX_LOGP_DIFF_STEP = 0.05
MAX_LOGP_DIFF_ACTION = 2.0  # of a single action: its ratio is off by e^2, one clip away from lost
STALE_GROWTH = (
    5.0  # times what it was at the first step, when the weights were the same for certain
)

SAMPLER_MISMATCH = FindingTemplate(
    "sampler and trainer disagree",
    "warning",
    (
        "The sampler answers with other weights, or in another precision.",
        "Temperature, top_k or top_p are not the same on both sides.",
        "Answers were tokenised anew and came out otherwise.",
    ),
    ("A smaller `tolerance`, so that ratios are the trainer's own.", 'dtype="float32" once.'),
)
STALE_WEIGHTS = FindingTemplate(
    "stale weights",
    "error",
    (
        "The sampler goes on with old weights: what was trained does not reach it.",
        "It has the model without its adapters.",
        "It keeps what it computed with older weights, a cache of prefixes say.",
    ),
    (
        "Look whether `load` of the policy's voice reaches the engine, at every step.",
        "Sample without an engine once (`--policy.engine None`): the mismatch must go away.",
    ),
)
WRONG_MASK = FindingTemplate(
    "wrong mask",
    "error",
    (
        "What the world said, a tool or a user, is learned as if the policy had said it.",
        "The mask is shifted by a token, or of another tokenization.",
        "Padding is learned.",
    ),
    (
        "Look at what makes or changes `Batch.mask`; `collate` of the library is exact.",
        "Train one turn without tools once: nothing must be foreign then.",
    ),
)


def sampler_mismatch(run: RunData) -> Iterator[Finding]:
    """The trainer disagrees with the sampler about how likely the answers were."""
    mean, most = (_on_policy_series(run, f"sampler_mismatch/{name}") for name in ("mean", "max"))
    high, once = max(mean.values, default=0.0), max(most.values, default=0.0)
    if (
        mean.mean > MAX_LOGP_DIFF_MEAN or high > MAX_LOGP_DIFF_STEP or once > MAX_LOGP_DIFF_ACTION
    ) and not _mismatch_grew(mean, run.window):
        yield replace(
            SAMPLER_MISMATCH, severity="error" if high > MAX_LOGP_DIFF_STEP else "warning"
        )(
            f"Before any update of a step, log-probabilities differ by {mean.mean:.2g} on average,"
            f" by {high:.2g} at the worst step and by {once:.2g} at the worst action. Expected:"
            f" below {MAX_LOGP_DIFF_MEAN} on average, and below {MAX_LOGP_DIFF_ACTION} everywhere.",
            locations=_worst_action(run, most),
        )


def stale_weights(run: RunData) -> Iterator[Finding]:
    """Sampler and trainer began alike and drift apart as the policy learns."""
    mean, most = (_on_policy_series(run, f"sampler_mismatch/{name}") for name in ("mean", "max"))
    if _mismatch_grew(mean, run.window):
        last = mean.last(run.window)
        yield STALE_WEIGHTS(
            f"Log-probabilities of sampler and trainer differed by {mean.values[0]:.2g} at"
            f" {format_steps(mean.steps[:1])} and by {last.mean:.2g} at {format_steps(last.steps)}, before any"
            f" update of the step, though answers are said to be drawn with the newest weights.",
            locations=_worst_action(run, most),
        )


def wrong_mask(run: RunData) -> Iterator[Finding]:
    """What is learned is not what the policy said."""
    foreign, missing = run("mask/extra_frac"), run("mask/dropped_frac")
    bad = sorted({step for of in (foreign, missing) for step, x in of if x})
    if bad:
        yield WRONG_MASK(
            f"At {format_steps(bad)} the batch learned what no action of the policy holds,"
            f" {max(foreign.values):.1%} of what was to be learned at most, and left out"
            f" {max(missing.values):.1%} of it.",
            locations=step_locations(bad),
        )


def _mismatch_grew(mean: MetricSeries, width: int) -> bool:
    """Did it begin as it should be, and does it no more?"""
    if len(mean.values) < MIN_STEPS:
        return False
    first, last = mean.values[0], median(mean.last(width).values)
    return first <= MAX_LOGP_DIFF_MEAN < last and last > STALE_GROWTH * first


def _on_policy_series(run: RunData, name: str) -> MetricSeries:
    """A metric at the steps whose answers were all drawn with the newest weights."""
    old = {step for step, x in run("staleness") if x > 0}
    kept = [(step, x) for step, x in run(name) if step not in old]
    return MetricSeries(tuple(step for step, _ in kept), tuple(x for _, x in kept))


def _worst_action(run: RunData, most: MetricSeries) -> list[Location]:
    """The action at which they differ most."""
    step = most.steps[most.values.index(max(most.values))] if most.values else -1
    numbers = next((m for m in run.steps if m["step"] == step), {})
    learned = [(g.task, i) for g in run.groups if g.step == step for i in g.trained_rollouts]
    number = int(numbers.get("sampler_mismatch/max_rollout", -1))
    if not 0 <= number < len(learned):
        return step_locations([step] * (step >= 0))
    action, token = (
        int(numbers["sampler_mismatch/max_action"]),
        int(numbers["sampler_mismatch/max_token"]),
    )
    return [Location(step, *learned[number], action, token)]
