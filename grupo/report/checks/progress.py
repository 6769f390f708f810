"""Checks of training progress: entropy, truncation, failed rewards, reward and length trends."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from grupo.report.checks.finding import (
    Finding,
    FindingTemplate,
    Location,
    format_steps,
    rollout_locations,
    step_locations,
)
from grupo.report.checks.run_data import MIN_STEPS, RunData

COLLAPSE_RATIO = 0.1  # of the entropy in the first window
MIN_ENTROPY = 0.01  # nats per action: about one token in a thousand is still random
MAX_TRUNCATED_FRAC = 0.2  # of the rollouts: above, the policy mainly learns to be brief
MIN_WINDOWS = 3  # shorter runs show no trend
# the peak is the maximum over hundreds of windows: two standard errors would be chance
MIN_STANDARD_ERRORS = 5.0
MIN_LOST_GAIN_FRAC = 0.2  # of the gain since the first window
LENGTH_GROWTH_FACTOR = 1.5  # times the length in the first window
MAX_FAILED_FRAC = 0.2  # of the rollouts: above, the remaining groups are too small

ENTROPY_COLLAPSE = FindingTemplate(
    "entropy collapse",
    "warning",
    (
        "The policy repeats the first answers that were rewarded.",
        "`learning_rate` is too high, or there are too few tasks.",
    ),
    (
        "Use Clip(clip_low=0.2, clip_high=0.28), which lets rare tokens gain more probability.",
        "Use a lower `learning_rate`, or add `(-0.001) * Entropy()` to the loss.",
    ),
)
TRUNCATED_COMPLETIONS = FindingTemplate(
    "truncated answers",
    "warning",
    (
        "`policy.max_new_tokens` is too small for the tasks.",
        "The policy does not generate the end token.",
    ),
    (
        "Use a larger `policy.max_new_tokens`.",
        "Set `policy.stop_strings`.",
        "Ask for short answers in the prompt.",
    ),
)
FAILED_REWARDS = FindingTemplate(
    "failed rewards",
    "warning",
    ("The reward function raises, hangs or returns NaN for some rollouts.",),
    (
        "List them with `grupo rollouts RUN --failed`.",
        "Call the reward function on such an answer.",
    ),
)
EVAL_NOT_SCORED = FindingTemplate(
    "evaluation not scored",
    "error",
    ("The reward function raises, hangs or returns NaN for every held-out rollout.",),
    ("Call the reward function on a held-out task.",),
)
REWARD_DROPPED = FindingTemplate(
    "reward dropped",
    "warning",
    ("`learning_rate` is too high, or one update was too large.", "The tasks became harder."),
    (
        "Use a lower `learning_rate`, or a decreasing schedule.",
        "Add a KL penalty to the reference policy.",
    ),
)
LENGTH_GROWTH = FindingTemplate(
    "length growth without reward",
    "warning",
    (
        "`sequence_mean` penalises each token of a long incorrect answer less.",
        "The reward increases with length.",
    ),
    ("Use `token_mean` or `constant_length` instead, as in `dapo` and `dr_grpo`.",),
)
EVAL_SCORE_FELL = FindingTemplate(
    "held-out score fell",
    "error",
    (
        "The training reward does not match the success criterion of the evaluation.",
        "The policy has degraded: `learning_rate` is too high.",
    ),
    ("Compare `evaluation.success` with the reward.", "Use a lower `learning_rate`."),
)


def entropy_collapse(run: RunData) -> Iterator[Finding]:
    """The entropy fell near 0 before the reward became high."""
    begin = run.first_window("policy/entropy")
    end = run.last_window("policy/entropy")
    is_low = end.mean < MIN_ENTROPY or end.mean < COLLAPSE_RATIO * begin.mean
    if len(run("policy/entropy").values) >= MIN_STEPS and is_low and not run.is_near_best:
        yield ENTROPY_COLLAPSE(
            f"Entropy was {begin.mean:.3g} nats at {format_steps(begin.steps)} and is"
            f" {end.mean:.3g} at {format_steps(end.steps)}, with a mean reward of"
            f" {run.last_window('reward/mean').mean:.3g}.",
            locations=step_locations(end.steps),
        )


def truncated_completions(run: RunData) -> Iterator[Finding]:
    """Many rollouts end at the length limit."""
    truncated = run.last_window("completions/truncated_frac")
    longest = run.last_window("completions/length_max").mean
    if truncated.mean > MAX_TRUNCATED_FRAC:
        yield TRUNCATED_COMPLETIONS(
            f"{truncated.mean:.0%} of the rollouts of {format_steps(truncated.steps)} were"
            f" truncated; the longest have {longest:.0f} actions.",
            locations=rollout_locations(run.recent_groups, "truncated_rollouts"),
        )


def failed_rewards(run: RunData) -> Iterator[Finding]:
    """Rollouts that could not be scored: left out, or given a fallback reward."""
    total = sum(g.num_rollouts for g in run.groups)
    fallbacks = sum(g.fallback_count for g in run.groups)
    errors = Counter(_without_rollout_prefix(e) for group in run.groups for e in group.errors)
    count = errors.total() + fallbacks
    if count:
        failing = [g for g in run.groups if g.errors or g.fallback_count]
        steps = list(dict.fromkeys(g.step for g in failing))
        fallback_note = f" {fallbacks} of them got a fallback reward." * bool(fallbacks)
        top = "".join(f" Most frequent ({n} x): {text}" for text, n in errors.most_common(1))
        severity = "error" if count > MAX_FAILED_FRAC * total else "warning"
        yield replace(FAILED_REWARDS, severity=severity)(
            f"{count} of {total} rollouts ({count / total:.1%}) could not be scored, at"
            f" {format_steps(steps)}.{fallback_note}{top}",
            locations=[Location(g.step, g.task) for g in failing],
        )


def reward_dropped(run: RunData) -> Iterator[Finding]:
    """The reward fell from its peak by more than its noise."""
    values = run("reward/mean").values
    width = run.window
    means = [sum(values[i : i + width]) / width for i in range(len(values) - width + 1)]
    peak = max(means, default=0.0)
    drop = peak - sum(means[-1:])
    noise = MIN_STANDARD_ERRORS * run.standard_error("reward/mean")
    is_significant = len(values) >= MIN_WINDOWS * width and drop > noise
    if is_significant and drop > MIN_LOST_GAIN_FRAC * (peak - means[0]):
        step = run("reward/mean").steps[means.index(peak) + width // 2]
        yield REWARD_DROPPED(
            f"The reward was {peak:.3g} around step {step} and is {means[-1]:.3g} now.",
            locations=step_locations([step]),
        )


def length_growth(run: RunData) -> Iterator[Finding]:
    """Rollouts become longer while the reward does not rise."""
    name = "completions/length_mean"
    begin = run.first_window(name)
    end = run.last_window(name)
    is_long_enough = len(run(name).values) >= MIN_WINDOWS * run.window
    has_grown = is_long_enough and end.mean > LENGTH_GROWTH_FACTOR * begin.mean
    gain = run.last_window("reward/mean").mean - run.first_window("reward/mean").mean
    if has_grown and gain <= 2 * run.standard_error("reward/mean"):
        yield LENGTH_GROWTH(
            f"Rollouts grew from {begin.mean:.0f} to {end.mean:.0f} actions while the reward"
            f" changed by {gain:+.3g}."
        )


def eval_score_fell(run: RunData) -> Iterator[Finding]:
    """The held-out score fell below the interval of the first evaluation."""
    scores = list(run.summary.get("held_out", {}).values())
    for name in ("greedy", "sampled"):
        scored = [score for score in scores if name in score]
        if not scored:
            continue
        first = scored[0]
        last = scored[-1]
        if last["intervals"][name][1] < first["intervals"][name][0]:
            details = f"{first[name]:.1%} of the held-out tasks solved first, {last[name]:.1%} now."
            yield EVAL_SCORE_FELL(details, name)


def eval_not_scored(run: RunData) -> Iterator[Finding]:
    """An evaluation of which no rollout could be scored: its score is unknown, and not 0."""
    scores: dict[str, Any] = run.summary.get("held_out", {})
    for label, score in scores.items():
        missing = [name for name in ("greedy", "sampled") if name not in score]
        if missing:
            yield EVAL_NOT_SCORED(
                f"Held-out {label}: {' and '.join(missing)} not scored; {score['failed']} rollouts"
                " could not be scored.",
            )


def _without_rollout_prefix(error: str) -> str:
    """The error message without the task and the rollout."""
    head, _, rest = error.partition(": ")
    return rest if rest and head.startswith("task ") else error
