"""Checks of the learning signal: rewards that differ within groups, groups that are trained on."""

from collections.abc import Iterator
from dataclasses import replace

from grupo.report.checks.finding import Finding, FindingTemplate, Location, format_steps
from grupo.report.checks.run_data import MIN_STEPS, RunData
from grupo.report.step_line import format_count, no_group_ended

# Some groups agree by chance; below this fraction, nine tenths of the generated tokens are unused.
MIN_NONZERO_STD_FRAC = 0.1
MAX_IDENTICAL_FRAC = 0.5  # of the groups have one distinct text: sampling hardly explores
_NOT_REWARD_TERMS = frozenset({"reward/mean", "reward/std", "reward/failed", "reward/answer_error"})
TOO_FEW_STEPS = FindingTemplate(
    "too few steps",
    "note",
    ("The run has just started, or stopped at once.",),
    ("Check again after some steps.",),
)
ZERO_REWARD = FindingTemplate(
    "reward always zero",
    "error",
    (
        "The reward does not recognise correct answers: it expects another format.",
        "The tasks are too hard for the policy.",
        "The rollouts are truncated before the final answer.",
    ),
    (
        "Read a few rollouts with `grupo rollouts RUN`.",
        "Call the reward function on a correct answer written by hand.",
        "Start with easier tasks, or with a reward term that is sometimes positive.",
    ),
)
CONSTANT_REWARD = FindingTemplate(
    "constant reward",
    "error",
    (
        "The reward function ignores the answer.",
        "It catches an exception and returns a default.",
        "Every task was solved before the run started.",
    ),
    (
        "Call the reward function on a correct and on an incorrect answer written by hand.",
        "Use harder tasks if `grupo eval RUN` shows that all are solved.",
    ),
)
ALL_SOLVED = FindingTemplate(
    "all tasks solved",
    "note",
    ("Nearly every rollout gets the highest reward of the run.",),
    ("Stop here, or use harder tasks.",),
)
NO_SPREAD_ALL_CORRECT = FindingTemplate(
    "no reward spread, all correct",
    "error",
    (
        "The tasks are too easy: every rollout gets the same reward.",
        "The policy always gets one reward term in full and never the others.",
    ),
    ("Use harder tasks.", "Use a finer-grained reward."),
)
NO_SPREAD_ALL_INCORRECT = FindingTemplate(
    "no reward spread, all incorrect",
    "error",
    (
        "The tasks are too hard for this group size.",
        "The reward recognises only some correct answers.",
        "The policy has collapsed.",
    ),
    (
        "Use easier tasks, or a larger `group_size`.",
        "Use a reward with partial credit.",
        "Read the rollouts: `grupo rollouts RUN`.",
    ),
)
NO_TRAINED_GROUPS = FindingTemplate(
    "no trained groups",
    "warning",
    ("The method's `filter` drops the groups.", "Too few rollouts could be scored."),
    (
        "Use more prompts per step, or a filter that keeps more groups.",
        "Fix failed rewards first.",
    ),
)
CONSTANT_REWARD_TERM = FindingTemplate(
    "constant reward term",
    "warning",
    ("It does not depend on these answers.", "The policy never reaches it."),
    ("Call that reward function on answers that should differ.",),
)
CONSTANT_POSITIVE_TERM = FindingTemplate(
    "constant reward term",
    "note",
    ("Every answer already gets it.", "It does not depend on these answers."),
    ("Remove it, or make it stricter.",),
)
IDENTICAL_ANSWERS = FindingTemplate(
    "identical answers",
    "warning",
    (
        "The temperature is too low, or top_k or top_p keep one token.",
        "The policy has collapsed to one answer per task.",
        "Answers are so short that few can differ.",
    ),
    (
        "Use a temperature of 1.0 without top_k and top_p.",
        "Use more tasks, or a lower `learning_rate`.",
    ),
)


def too_few_steps(run: RunData) -> Iterator[Finding]:
    """Too few steps for most checks."""
    if len(run.steps) < MIN_STEPS:
        yield TOO_FEW_STEPS(
            f"Logged: {format_count(len(run.steps), 'step')}; most checks need {MIN_STEPS}."
        )


def zero_reward(run: RunData) -> Iterator[Finding]:
    """Every reward of the run is 0."""
    if _rewards_always_zero(run):
        yield ZERO_REWARD(f"Every rollout of all {len(run.steps)} steps has the reward 0.")


def constant_reward(run: RunData) -> Iterator[Finding]:
    """Every reward of the run is the same number, other than 0."""
    has_groups = any(group.num_rollouts > 1 for group in run.groups)
    if has_groups and _rewards_never_differed(run) and not _rewards_always_zero(run):
        texts = sum(group.distinct_texts for group in run.groups)
        yield CONSTANT_REWARD(
            f"Every rollout of all {len(run.steps)} steps has the reward"
            f" {run('reward/mean').mean:g}; the {len(run.groups)} groups have {texts} different"
            " texts.",
            locations=[Location(g.step, g.task) for g in run.groups if g.distinct_texts > 1],
        )


def no_reward_spread(run: RunData) -> Iterator[Finding]:
    """The rewards differ in (almost) no group."""
    nonzero_std = run.last_window("groups/nonzero_std_frac")
    flat = [g for g in run.recent_groups if len(g.rewards) > 1 and len(set(g.rewards)) == 1]
    is_low = len(run.steps) >= MIN_STEPS and nonzero_std.mean <= MIN_NONZERO_STD_FRAC
    if is_low and flat and not _rewards_never_differed(run):
        low, high = run.reward_range
        middle = (low + high) / 2 if high > low else 0.0  # of the rewards of the whole run
        correct = sum(g.rewards[0] > middle for g in flat)
        failing = NO_SPREAD_ALL_CORRECT if 2 * correct > len(flat) else NO_SPREAD_ALL_INCORRECT
        yield (ALL_SOLVED if run.is_near_best else failing)(
            f"Rewards differ in {nonzero_std.mean:.0%} of the groups of"
            f" {format_steps(nonzero_std.steps)}. Of {len(flat)} recent groups with equal rewards,"
            f" {correct} are all correct and {len(flat) - correct} all incorrect.",
            locations=[Location(g.step, g.task) for g in flat],
        )


def no_trained_groups(run: RunData) -> Iterator[Finding]:
    """Steps that trained on no group although rewards differed."""
    nonzero_std = dict(run("groups/nonzero_std_frac"))
    trained = run("groups/trained")
    waiting = {int(metrics["step"]) for metrics in run.steps if no_group_ended(metrics)}
    empty = [
        step
        for step, count in trained
        if count == 0 and nonzero_std.get(step, 1.0) > 0 and step not in waiting
    ]
    if empty:
        is_majority = len(empty) > len(trained.steps) / 2
        yield replace(NO_TRAINED_GROUPS, severity="error" if is_majority else "warning")(
            f"No group was trained on at {format_steps(empty)} of {len(run.steps)}, although"
            " rewards differed.",
            locations=[Location(step) for step in empty],
        )


def constant_reward_terms(run: RunData) -> Iterator[Finding]:
    """Reward terms with the same mean at every step."""
    for name in (n for n in run.metric_names("reward/") if n not in _NOT_REWARD_TERMS):
        values = run(name).values
        if len(values) >= MIN_STEPS and len(set(values)) == 1 and not _rewards_always_zero(run):
            details = f"Its mean was {values[0]:g} at each of {len(values)} steps."
            # a term that every answer gets, such as a correct format, does no harm
            template = CONSTANT_POSITIVE_TERM if values[0] > 0 else CONSTANT_REWARD_TERM
            yield template(details, name.removeprefix("reward/"))


def identical_answers(run: RunData) -> Iterator[Finding]:
    """Groups in which every rollout has the same text."""
    groups = [g for g in run.recent_groups if g.num_rollouts > 1]
    identical = [g for g in groups if g.distinct_texts == 1]
    if groups and len(identical) >= MAX_IDENTICAL_FRAC * len(groups) and not run.is_near_best:
        yield IDENTICAL_ANSWERS(
            f"In {len(identical)} of {len(groups)} groups of the last steps all texts are equal.",
            locations=[Location(g.step, g.task) for g in identical],
        )


def _rewards_never_differed(run: RunData) -> bool:
    means = set(run("reward/mean").values)
    spreads = run("reward/std").values
    return len(run.steps) >= MIN_STEPS and len(means) == 1 and {*spreads} == {0.0}


def _rewards_always_zero(run: RunData) -> bool:
    values = run("reward/mean").values + run("reward/std").values
    return len(run.steps) >= MIN_STEPS and bool(values) and not any(values)
