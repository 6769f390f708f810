"""Does it get better, and in the way that was meant?"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from grupo.report.checks.finding import (
    Finding,
    FindingTemplate,
    Location,
    format_steps,
    rollout_locations,
    step_locations,
)
from grupo.report.checks.run_data import MIN_STEPS, RunData

COLLAPSE_RATIO = 0.1  # of the entropy at the beginning
MIN_ENTROPY = 0.01  # nats an action: about one token in a thousand is still a choice
MAX_TRUNCATED_FRAC = 0.2  # of the answers: with more, what is learned is to be brief
MIN_WINDOWS = 3  # widths of the beginning: shorter runs have no course
MIN_STANDARD_ERRORS = (
    5.0  # standard errors: a peak is picked from hundreds of windows, two would be luck
)
MIN_LOST_GAIN_FRAC = 0.2  # of what had been gained
LENGTH_GROWTH_FACTOR = 1.5  # times the length of the beginning
MAX_FAILED_FRAC = 0.2  # of the rollouts: the groups that are left are too small to compare

ENTROPY_COLLAPSE = FindingTemplate(
    "entropy collapse",
    "warning",
    ("The policy repeats what first paid.", "`lr` is too high, or the data too few."),
    (
        "Clip(clip_low=0.2, clip_high=0.28), which leaves rare answers more room.",
        "A lower `lr`, or a loss `+ (-0.001) * Entropy()`.",
    ),
)
TRUNCATED_COMPLETIONS = FindingTemplate(
    "answers cut off",
    "warning",
    ("`policy.max_new_tokens` is too small for the tasks.", "The policy does not end its answers."),
    (
        "A larger `policy.max_new_tokens`.",
        "A `policy.stop_strings` text.",
        "A prompt that asks for brevity.",
    ),
)
FAILED_REWARDS = FindingTemplate(
    "failed rewards",
    "warning",
    ("The reward raises, hangs or returns no number for some answers.",),
    ("`grupo rollouts --failed` shows them.", "Try the reward on such an answer by hand."),
)
REWARD_DROPPED = FindingTemplate(
    "reward fell back",
    "warning",
    ("`lr` is too high, or an update went too far.", "The tasks became harder."),
    ("A lower `lr`, or a schedule that falls.", "A KL to the reference."),
)
LENGTH_GROWTH = FindingTemplate(
    "longer without reward",
    "warning",
    (
        "`sequence_mean` punishes an action of a long wrong answer less than one of a short one.",
        "The reward pays for length.",
    ),
    ("A token mean or a fixed length in its place: `dapo`, `dr_grpo`.",),
)
EVAL_SCORE_FELL = FindingTemplate(
    "held-out share fell",
    "error",
    (
        "The reward in training is not what the evaluation counts as solved.",
        "The policy was damaged: `lr` is too high.",
    ),
    ("Compare `evaluation.solved` with the reward.", "A lower `lr`."),
)


def entropy_collapse(run: RunData) -> Iterator[Finding]:
    """The policy became certain before it became right."""
    begin, end = run.first_window("entropy"), run.last_window("entropy")
    low = end.mean < MIN_ENTROPY or end.mean < COLLAPSE_RATIO * begin.mean
    if len(run("entropy").values) >= MIN_STEPS and low and not run.is_near_best:
        yield ENTROPY_COLLAPSE(
            f"Entropy was {begin.mean:.3g} nats at {format_steps(begin.steps)} and is {end.mean:.3g} at"
            f" {format_steps(end.steps)}, at a reward of {run.last_window('reward/mean').mean:.3g}.",
            locations=step_locations(end.steps),
        )


def truncated_completions(run: RunData) -> Iterator[Finding]:
    """Answers end at their limit, not at their end."""
    cut, longest = (
        run.last_window("completions/truncated_frac"),
        run.last_window("completions/length_max").mean,
    )
    if cut.mean > MAX_TRUNCATED_FRAC:
        yield TRUNCATED_COMPLETIONS(
            f"{cut.mean:.0%} of the answers of {format_steps(cut.steps)} were cut off; the longest have"
            f" {longest:.0f} actions.",
            locations=rollout_locations(run.recent_groups, "cut"),
        )


def failed_rewards(run: RunData) -> Iterator[Finding]:
    """Rollouts that could not be judged, left out or given a reward all the same."""
    total, covered = (
        sum(g.num_rollouts for g in run.groups),
        sum(g.fallback_count for g in run.groups),
    )
    why = Counter(
        _without_rollout_prefix(failure) for group in run.groups for failure in group.errors
    )
    count = why.total() + covered
    if count:
        steps = list(dict.fromkeys(g.step for g in run.groups if g.errors or g.fallback_count))
        given = f" {covered} of them were given a reward all the same." * bool(covered)
        often = "".join(f" Most often ({n} x): {text}" for text, n in why.most_common(1))
        yield replace(
            FAILED_REWARDS, severity="error" if count > MAX_FAILED_FRAC * total else "warning"
        )(
            f"{count} of {total} rollouts ({count / total:.1%}) could not be judged, at"
            f" {format_steps(steps)}.{given}{often}",
            locations=[
                Location(g.step, g.task) for g in run.groups if g.errors or g.fallback_count
            ],
        )


def reward_dropped(run: RunData) -> Iterator[Finding]:
    """The reward was higher once, by more than its noise."""
    values, width = run("reward/mean").values, run.window
    course = [sum(values[i : i + width]) / width for i in range(len(values) - width + 1)]
    peak, fall = max(course, default=0.0), max(course, default=0.0) - sum(course[-1:])
    enough = len(values) >= MIN_WINDOWS * width and fall > MIN_STANDARD_ERRORS * run.standard_error(
        "reward/mean"
    )
    if enough and fall > MIN_LOST_GAIN_FRAC * (peak - course[0]):
        step = run("reward/mean").steps[course.index(peak) + width // 2]
        yield REWARD_DROPPED(
            f"The reward was {peak:.3g} around step {step} and is {course[-1]:.3g} now.",
            locations=step_locations([step]),
        )


def length_growth(run: RunData) -> Iterator[Finding]:
    """Answers grow and earn no more."""
    begin, end = (
        run.first_window("completions/length_mean"),
        run.last_window("completions/length_mean"),
    )
    grown = (
        len(run("completions/length_mean").values) >= MIN_WINDOWS * run.window
        and end.mean > LENGTH_GROWTH_FACTOR * begin.mean
    )
    gain = run.last_window("reward/mean").mean - run.first_window("reward/mean").mean
    if grown and gain <= 2 * run.standard_error("reward/mean"):
        yield LENGTH_GROWTH(
            f"Answers grew from {begin.mean:.0f} to {end.mean:.0f} actions while the reward changed"
            f" by {gain:+.3g}."
        )


def eval_score_fell(run: RunData) -> Iterator[Finding]:
    """Held-out tasks are solved less often than before, beyond chance."""
    scores = list(run.summary.get("held_out", {}).values())
    for name in ("greedy", "sampled") if scores else ():
        first, last = scores[0], scores[-1]
        if last["intervals"][name][1] < first["intervals"][name][0]:
            seen = f"{first[name]:.1%} of the held-out tasks at first, {last[name]:.1%} now."
            yield EVAL_SCORE_FELL(seen, name)


def _without_rollout_prefix(error: str) -> str:
    """Why, without which task and which rollout it was."""
    head, _, rest = error.partition(": ")
    return rest if rest and head.startswith("task ") else error
