"""Is there anything to learn from?"""

from collections.abc import Iterator
from dataclasses import replace

from grupo.report.checks.finding import Finding, FindingTemplate, Location, format_steps
from grupo.report.checks.run_data import MIN_STEPS, RunData

# Answers are drawn, so that some groups agree by chance; where fewer than this differ, nine tenths
# of the sampling are wasted.
MIN_NONZERO_STD_FRAC = 0.1
MAX_IDENTICAL_FRAC = 0.5  # of the groups hold one text only: sampling hardly explores
_NOT_REWARD_TERMS = frozenset({"reward/mean", "reward/std", "reward/failed"})
TOO_FEW_STEPS = FindingTemplate(
    "too short",
    "note",
    ("The run has just begun, or stopped at once.",),
    ("Look again after some steps.",),
)
ZERO_REWARD = FindingTemplate(
    "reward always zero",
    "error",
    (
        "The reward does not recognise right answers: their form is not the one it reads.",
        "The tasks are too hard for the policy.",
        "Answers are cut off before they end.",
    ),
    (
        "Read a few answers with `grupo rollouts` and judge them by eye.",
        "Call the reward on an answer written by hand that must be right.",
        "Begin with easier tasks, or with a part of the reward that is earned at times.",
    ),
)
CONSTANT_REWARD = FindingTemplate(
    "reward never differs",
    "error",
    (
        "The reward returns the same whatever the answer is.",
        "It raises inside and falls back to a number.",
        "Every task was solved before the run began.",
    ),
    (
        "Call the reward on a right and on a wrong answer written by hand.",
        "Harder tasks, if `grupo eval` says that all are solved.",
    ),
)
ALL_SOLVED = FindingTemplate(
    "nothing left to learn", "note", ("The tasks are learned.",), ("Stop here, or harder tasks.",)
)
NO_SPREAD_ALL_CORRECT = FindingTemplate(
    "no signal, all right",
    "error",
    (
        "The tasks are too easy: every answer earns the same.",
        "The policy earns all it can of one part of the reward and never the rest.",
    ),
    ("Harder tasks.", "A reward that tells good from better."),
)
NO_SPREAD_ALL_INCORRECT = FindingTemplate(
    "no signal, all wrong",
    "error",
    (
        "The tasks are too hard for so few attempts.",
        "Only some of what is right is recognised by the reward.",
        "The policy has forgotten how to answer.",
    ),
    (
        "Easier tasks, or more rollouts for each task.",
        "A reward with steps between wrong and right.",
        "Read the answers: `grupo rollouts`.",
    ),
)
NO_TRAINED_GROUPS = FindingTemplate(
    "nothing learned from",
    "warning",
    ("The method's `curate` drops what was sampled.", "Too few rollouts could be judged."),
    ("More prompts a step, or a curation that keeps more.", "See to failed rewards first."),
)
CONSTANT_REWARD_TERM = FindingTemplate(
    "reward part never changes",
    "warning",
    ("It measures nothing of these answers.", "It is out of the policy's reach."),
    ("Try that reward by hand on answers that ought to differ.",),
)
CONSTANT_POSITIVE_TERM = FindingTemplate(
    "reward part never changes",
    "note",
    ("Every answer earns it already.", "It measures nothing of these answers."),
    ("Leave it out, or let it ask for more.",),
)
IDENTICAL_ANSWERS = FindingTemplate(
    "identical answers",
    "warning",
    (
        "The temperature is too low, or top_k or top_p leave one token.",
        "The policy has collapsed to one answer for each task.",
        "Answers are very short, so that few differ.",
    ),
    ("A temperature of 1.0 without top_k and top_p.", "More data, or a lower `lr`."),
)


def too_few_steps(run: RunData) -> Iterator[Finding]:
    """Too few steps to judge."""
    if len(run.steps) < MIN_STEPS:
        yield TOO_FEW_STEPS(f"{len(run.steps)} steps are logged; most checks need {MIN_STEPS}.")


def zero_reward(run: RunData) -> Iterator[Finding]:
    """No rollout ever earned anything."""
    if _rewards_always_zero(run):
        yield ZERO_REWARD(f"Every rollout of all {len(run.steps)} steps earned 0.")


def constant_reward(run: RunData) -> Iterator[Finding]:
    """Every rollout of every step earned the same, and that is not 0."""
    comparing = any(group.num_rollouts > 1 for group in run.groups)
    if comparing and _rewards_never_differed(run) and not _rewards_always_zero(run):
        texts = sum(group.distinct_texts for group in run.groups)
        yield CONSTANT_REWARD(
            f"Every rollout of all {len(run.steps)} steps earned {run('reward/mean').mean:g};"
            f" their {len(run.groups)} groups hold {texts} different answers.",
            locations=[Location(g.step, g.task) for g in run.groups if g.distinct_texts > 1],
        )


def no_reward_spread(run: RunData) -> Iterator[Finding]:
    """In (almost) no group do the rewards differ."""
    signal = run.last_window("groups/nonzero_std_frac")
    flat = [g for g in run.recent_groups if len(g.rewards) > 1 and len(set(g.rewards)) == 1]
    few = len(run.steps) >= MIN_STEPS and signal.mean <= MIN_NONZERO_STD_FRAC
    if few and flat and not _rewards_never_differed(run):
        low, high = run.reward_range
        middle = (low + high) / 2 if high > low else 0.0  # of all that was ever earned
        right = sum(g.rewards[0] > middle for g in flat)
        failing = NO_SPREAD_ALL_CORRECT if 2 * right > len(flat) else NO_SPREAD_ALL_INCORRECT
        yield (ALL_SOLVED if run.is_near_best else failing)(
            f"Rewards differ in {signal.mean:.0%} of the groups of {format_steps(signal.steps)}. Of"
            f" {len(flat)} recent groups that are flat, {right} are all right and"
            f" {len(flat) - right} all wrong.",
            locations=[Location(g.step, g.task) for g in flat],
        )


def no_trained_groups(run: RunData) -> Iterator[Finding]:
    """Steps whose groups were all left out although rewards differed."""
    signal, learned = dict(run("groups/nonzero_std_frac")), run("groups/trained")
    empty = [step for step, count in learned if count == 0 and signal.get(step, 1.0) > 0]
    if empty:
        most = len(empty) > len(learned.steps) / 2
        yield replace(NO_TRAINED_GROUPS, severity="error" if most else "warning")(
            f"No group was learned from at {format_steps(empty)} of {len(run.steps)}, though rewards"
            " differed.",
            locations=[Location(step) for step in empty],
        )


def constant_reward_terms(run: RunData) -> Iterator[Finding]:
    """Parts of the reward that come to the same at every step."""
    for name in (n for n in run.metric_names("reward/") if n not in _NOT_REWARD_TERMS):
        values = run(name).values
        if len(values) >= MIN_STEPS and len(set(values)) == 1 and not _rewards_always_zero(run):
            seen = f"It was {values[0]:g} on average at each of {len(values)} steps."
            # what is always earned, as a right form may be, does no harm
            kind = CONSTANT_POSITIVE_TERM if values[0] > 0 else CONSTANT_REWARD_TERM
            yield kind(seen, name.removeprefix("reward/"))


def identical_answers(run: RunData) -> Iterator[Finding]:
    """Rollouts of a group that say the same."""
    groups = [g for g in run.recent_groups if g.num_rollouts > 1]
    alike = [g for g in groups if g.distinct_texts == 1]
    if groups and len(alike) >= MAX_IDENTICAL_FRAC * len(groups) and not run.is_near_best:
        yield IDENTICAL_ANSWERS(
            f"In {len(alike)} of {len(groups)} groups of the last steps all answers are one text.",
            locations=[Location(g.step, g.task) for g in alike],
        )


def _rewards_never_differed(run: RunData) -> bool:
    means, spreads = set(run("reward/mean").values), run("reward/std").values
    return len(run.steps) >= MIN_STEPS and len(means) == 1 and {*spreads} == {0.0}


def _rewards_always_zero(run: RunData) -> bool:
    values = run("reward/mean").values + run("reward/std").values
    return len(run.steps) >= MIN_STEPS and bool(values) and not any(values)
