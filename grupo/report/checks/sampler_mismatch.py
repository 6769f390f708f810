"""Checks of the log-probabilities and the mask: sampler mismatch, stale weights, wrong mask."""

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

# Differences of log-probabilities in nats.
MIN_ERROR = 0.05  # of a step, for an error in place of a warning
STEP_RATIO = 2.0  # of a single step to the limit of the mean, at least
MAX_LOGP_DIFF_ACTION = 2.0  # of a single action: its ratio is off by a factor of e^2
STALE_GROWTH = 5.0  # times the value at the first step, when both have the same weights

SAMPLER_MISMATCH = FindingTemplate(
    "sampler mismatch",
    "warning",
    (
        "The inference engine has other weights, or another precision.",
        "Temperature, top_k or top_p differ between sampler and trainer.",
        "The generated text was tokenized again, into other tokens.",
    ),
    (
        "Use a smaller `old_logp_tolerance`: the trainer then recomputes the old log-probs.",
        'Try dtype="float32" once.',
    ),
)
STALE_WEIGHTS = FindingTemplate(
    "stale weights",
    "error",
    (
        "The weight sync fails: the inference engine keeps old weights.",
        "The engine has the model without its adapters.",
        "The engine reuses results of older weights, for example a prefix cache.",
    ),
    (
        "Check that `load` of the policy's `weight_sync` reaches the engine at every step.",
        "Train once without an engine (`--policy.engine None`): the mismatch must vanish.",
    ),
)
WRONG_MASK = FindingTemplate(
    "wrong mask",
    "error",
    (
        "Observations (tool results, user messages) are in the loss.",
        "The mask is shifted by a token, or belongs to another tokenization.",
        "Padding is in the loss.",
    ),
    (
        "Check the code that sets or changes `Batch.mask`; the library's `collate` is exact.",
        "Train once with a single turn without tools: `mask/extra_frac` must be 0.",
    ),
)


def sampler_mismatch(run: RunData) -> Iterator[Finding]:
    """Log-probabilities of sampler and trainer differ before any update."""
    mean, largest = _mismatch_series(run)
    worst_step = max(mean.values, default=0.0)
    worst_action = max(largest.values, default=0.0)
    max_step = max(MIN_ERROR, STEP_RATIO * run.max_logp_diff)
    is_large = (
        mean.mean > run.max_logp_diff
        or worst_step > max_step
        or worst_action > MAX_LOGP_DIFF_ACTION
    )
    if is_large and not _mismatch_grew(mean, run):
        severity = "error" if worst_step > max_step else "warning"
        yield replace(SAMPLER_MISMATCH, severity=severity)(
            f"Before any update of a step, log-probabilities differ by {mean.mean:.2g} on average,"
            f" by {worst_step:.2g} at the worst step and by {worst_action:.2g} at the worst action."
            f" Expected: below {run.max_logp_diff} on average, and below {MAX_LOGP_DIFF_ACTION}"
            " everywhere.",
            locations=_worst_action(run, largest),
        )


def stale_weights(run: RunData) -> Iterator[Finding]:
    """The mismatch is small at the first step and grows as the policy learns."""
    mean, largest = _mismatch_series(run)
    if _mismatch_grew(mean, run):
        last = mean.last(run.window)
        yield STALE_WEIGHTS(
            f"Log-probabilities of sampler and trainer differed by {mean.values[0]:.2g} at"
            f" {format_steps(mean.steps[:1])} and by {last.mean:.2g} at {format_steps(last.steps)},"
            " before any update of the step, although the rollouts are marked as generated with the"
            " newest weights.",
            locations=_worst_action(run, largest),
        )


def wrong_mask(run: RunData) -> Iterator[Finding]:
    """The mask includes tokens that the policy did not generate, or leaves out some that it did."""
    extra = run("mask/extra_frac")
    dropped = run("mask/dropped_frac")
    bad = sorted({step for series in (extra, dropped) for step, x in series if x})
    if bad:
        yield WRONG_MASK(
            f"At {format_steps(bad)} the mask included tokens that the policy did not generate (up"
            f" to {max(extra.values):.1%} of the tokens to train on), and left out up to"
            f" {max(dropped.values):.1%} of them.",
            locations=step_locations(bad),
        )


def _mismatch_series(run: RunData) -> tuple[MetricSeries, MetricSeries]:
    """Mean and maximum of the absolute differences, at on-policy steps."""
    mean = _on_policy_series(run, "sampler_mismatch/logp_diff_mean")
    return mean, _on_policy_series(run, "sampler_mismatch/logp_diff_max")


def _mismatch_grew(mean: MetricSeries, run: RunData) -> bool:
    """True if the mismatch was small at the first step and is not any more."""
    if len(mean.values) < MIN_STEPS:
        return False
    first = mean.values[0]
    last = median(mean.last(run.window).values)
    return first <= run.max_logp_diff < last and last > STALE_GROWTH * first


def _on_policy_series(run: RunData, name: str) -> MetricSeries:
    """A metric at the steps whose rollouts were all generated with the newest weights."""
    stale = {step for step, x in run("staleness") if x > 0}
    points = [(step, x) for step, x in run(name) if step not in stale]
    return MetricSeries(tuple(step for step, _ in points), tuple(x for _, x in points))


def _worst_action(run: RunData, largest: MetricSeries) -> list[Location]:
    """The action with the largest difference; its step if the action is not known."""
    step = largest.steps[largest.values.index(max(largest.values))] if largest.values else -1
    metrics = next((m for m in run.steps if m["step"] == step), {})
    trained = [(g.task, i) for g in run.groups if g.step == step for i in g.trained_rollouts]
    rollout = int(metrics.get("sampler_mismatch/max_rollout", -1))
    if not 0 <= rollout < len(trained):
        return step_locations([step] * (step >= 0))
    action = int(metrics["sampler_mismatch/max_action"])
    token = int(metrics["sampler_mismatch/max_token"])
    return [Location(step, *trained[rollout], action, token)]
