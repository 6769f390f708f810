"""The metrics of a step as texts for the display, and the alarms that the metrics raise."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Metrics = Mapping[str, float]

# In nats. The ratios before any update are then about 1.05, which uses up a quarter of PPO's clip
# range. Rounding to bfloat16 causes smaller differences.
MAX_LOGP_DIFF_MEAN = 0.05
MAX_TRUNCATED_FRAC = 0.5  # of a step's rollouts; `grupo doctor` has a lower limit for all steps
_AGGREGATES = frozenset({"reward/mean", "reward/std"})


@dataclass(frozen=True)
class MetricCell:
    """A metric with its label and number format in the line of a step."""

    name: str
    label: str
    format_value: Callable[[float], str]


def format_percent(value: float) -> str:
    """A fraction in percent; "-" for NaN.

    >>> format_percent(0.125)
    '12%'
    """
    return f"{100 * value:.0f}%" if math.isfinite(value) else "-"


def format_number(value: float) -> str:
    """A number with three significant digits.

    >>> format_number(0.33054), format_number(7458.4), format_number(9e-8)
    ('0.331', '7458', '9e-08')
    """
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def format_count(number: float, noun: str) -> str:
    """A number with its noun in singular or plural.

    >>> format_count(1, "step"), format_count(1200, "step")
    ('1 step', '1,200 steps')
    """
    return f"{number:,.0f} {noun}{'s' * (number != 1)}"


METRIC_CELLS = (
    MetricCell("groups/nonzero_std_frac", "nonzero std", format_percent),
    MetricCell("completions/length_mean", "length", format_number),
    MetricCell("completions/truncated_frac", "truncated", format_percent),
    MetricCell("policy/entropy", "entropy", format_number),
    MetricCell("policy/kl_ref", "kl", format_number),
    MetricCell("sampler_mismatch/logp_diff_mean", "mismatch", format_number),
    MetricCell("grad_norm", "grad norm", format_number),
    MetricCell("time_frac/generate", "generate", format_percent),
    MetricCell("time_frac/update", "update", format_percent),
    MetricCell("throughput/tokens_per_s", "tokens/s", format_number),
)


def step_summary(metrics: Metrics) -> list[str]:
    """The rewards and the main metrics of a step as text; missing metrics are left out."""
    cells = [
        f"{cell.label} {cell.format_value(metrics[cell.name])}"
        for cell in METRIC_CELLS
        if cell.name in metrics
    ]
    return [_reward_summary(metrics), *cells]


def _reward_summary(metrics: Metrics) -> str:
    terms = {n: v for n, v in metrics.items() if n.startswith("reward/") and n not in _AGGREGATES}
    listed_terms = ", ".join(
        f"{n.removeprefix('reward/')} {format_number(v)}" for n, v in terms.items()
    )
    mean = format_number(metrics.get("reward/mean", math.nan))
    return f"reward {mean}" + f" ({listed_terms})" * bool(terms)


def format_duration(seconds: float) -> str:
    """Seconds as hours, minutes and seconds.

    >>> format_duration(3725.2), format_duration(59.6)
    ('1:02:05', '1:00')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _failed_rollouts(metrics: Metrics) -> str:
    failed = metrics.get("rollouts/failed", 0.0)
    verb = "was" if failed == 1 else "were"
    return (
        f"{format_count(failed, 'rollout')} could not be scored and {verb} left out."
        if failed
        else ""
    )


def _forked_rollouts(metrics: Metrics) -> str:
    forked = metrics.get("rollouts/forked", 0.0)
    if not forked:
        return ""
    rows = format_number(metrics.get("rollouts/fork_rows", math.nan))
    return (
        f"The chat template rewrote earlier answers: {format_count(forked, 'rollout')} became"
        f" {rows} rows each, on average. A template that keeps answers avoids it:"
        " docs/chat_templates.md."
    )


def _nonfinite_gradient(metrics: Metrics) -> str:
    is_nonfinite = metrics.get("grad_nonfinite", 0.0) > 0
    return "The gradient is not finite; that update was skipped." if is_nonfinite else ""


def _sampler_mismatch(metrics: Metrics) -> str:
    mean = metrics.get("sampler_mismatch/logp_diff_mean", 0.0)
    if mean <= MAX_LOGP_DIFF_MEAN or math.isnan(mean):
        return ""
    size = format_number(mean)
    return f"Sampler and trainer disagree: log-probabilities differ by {size} on average."


def _truncated_answers(metrics: Metrics) -> str:
    share = metrics.get("completions/truncated_frac", 0.0)
    if share <= MAX_TRUNCATED_FRAC or math.isnan(share):
        return ""
    return (
        f"The token limit ended {format_percent(share)} of the rollouts, some perhaps before their"
        " answer. Raise policy.max_new_tokens, or set policy.stop_strings."
    )


def no_group_ended(metrics: Metrics) -> bool:
    """Whether all groups of a step are continued in the next one, as in the first steps of a run.

    >>> no_group_ended({"groups/sampled": 0.0, "groups/continued": 8.0})
    True
    """
    return not metrics.get("groups/sampled", 1.0) and metrics.get("groups/continued", 0.0) > 0


def _no_trained_groups(metrics: Metrics) -> str:
    trained = metrics.get("groups/trained", 1.0) or no_group_ended(metrics)
    return "" if trained else "No group was trained on: this step changed nothing."


def _no_reward_spread(metrics: Metrics) -> str:
    no_spread = metrics.get("groups/nonzero_std_frac", 1.0) == 0
    return "The rewards differ in no group: every advantage is 0." if no_spread else ""


ALARMS = (
    _failed_rollouts,
    _forked_rollouts,
    _nonfinite_gradient,
    _sampler_mismatch,
    _truncated_answers,
    _no_trained_groups,
    _no_reward_spread,
)


def active_alarms(metrics: Metrics) -> dict[str, str]:
    """The messages of the alarms that a step raises, by name, in the order of `ALARMS`."""
    messages = {alarm.__name__.strip("_"): alarm(metrics) for alarm in ALARMS}
    return {name: message for name, message in messages.items() if message}
