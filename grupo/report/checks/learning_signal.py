"""Is there anything to learn from?"""

from collections.abc import Iterator
from dataclasses import replace

from grupo.report.checks.finding import Advice, Finding, Place, span
from grupo.report.checks.run_data import FEWEST, Evidence

# Answers are drawn, so that some groups agree by chance; where fewer than this differ, nine tenths
# of the sampling are wasted.
FEW_SIGNALS = 0.1
ALIKE = 0.5  # of the groups hold one text only: sampling hardly explores
_NOT_PARTS = frozenset({"reward/mean", "reward/std", "reward/failed"})
TOO_SHORT = Advice(
    "too short",
    "note",
    ("The run has just begun, or stopped at once.",),
    ("Look again after some steps.",),
)
ZERO_REWARD = Advice(
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
CONSTANT = Advice(
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
LEARNED = Advice(
    "nothing left to learn", "note", ("The tasks are learned.",), ("Stop here, or harder tasks.",)
)
ALL_RIGHT = Advice(
    "no signal, all right",
    "error",
    (
        "The tasks are too easy: every answer earns the same.",
        "The policy earns all it can of one part of the reward and never the rest.",
    ),
    ("Harder tasks.", "A reward that tells good from better."),
)
ALL_WRONG = Advice(
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
NOTHING_LEARNED = Advice(
    "nothing learned from",
    "warning",
    ("The method's `curate` drops what was sampled.", "Too few rollouts could be judged."),
    ("More prompts a step, or a curation that keeps more.", "See to failed rewards first."),
)
UNCHANGING_PART = Advice(
    "reward part never changes",
    "warning",
    ("It measures nothing of these answers.", "It is out of the policy's reach."),
    ("Try that reward by hand on answers that ought to differ.",),
)
EARNED_PART = Advice(
    "reward part never changes",
    "note",
    ("Every answer earns it already.", "It measures nothing of these answers."),
    ("Leave it out, or let it ask for more.",),
)
IDENTICAL_ANSWERS = Advice(
    "identical answers",
    "warning",
    (
        "The temperature is too low, or top_k or top_p leave one token.",
        "The policy has collapsed to one answer for each task.",
        "Answers are very short, so that few differ.",
    ),
    ("A temperature of 1.0 without top_k and top_p.", "More data, or a lower `lr`."),
)


def too_short(run: Evidence) -> Iterator[Finding]:
    """Too few steps to judge."""
    if len(run.steps) < FEWEST:
        yield TOO_SHORT(f"{len(run.steps)} steps are logged; most checks need {FEWEST}.")


def zero_reward(run: Evidence) -> Iterator[Finding]:
    """No rollout ever earned anything."""
    if _never_earned(run):
        yield ZERO_REWARD(f"Every rollout of all {len(run.steps)} steps earned 0.")


def constant_reward(run: Evidence) -> Iterator[Finding]:
    """Every rollout of every step earned the same, and that is not 0."""
    comparing = any(group.count > 1 for group in run.groups)
    if comparing and _never_differed(run) and not _never_earned(run):
        texts = sum(group.texts for group in run.groups)
        yield CONSTANT(
            f"Every rollout of all {len(run.steps)} steps earned {run('reward/mean').mean:g};"
            f" their {len(run.groups)} groups hold {texts} different answers.",
            at=[Place(g.step, g.task) for g in run.groups if g.texts > 1],
        )


def no_signal(run: Evidence) -> Iterator[Finding]:
    """In (almost) no group do the rewards differ."""
    signal = run.end("groups/signal")
    flat = [g for g in run.recent if len(g.rewards) > 1 and len(set(g.rewards)) == 1]
    few = len(run.steps) >= FEWEST and signal.mean <= FEW_SIGNALS
    if few and flat and not _never_differed(run):
        low, high = run.earned
        middle = (low + high) / 2 if high > low else 0.0  # of all that was ever earned
        right = sum(g.rewards[0] > middle for g in flat)
        failing = ALL_RIGHT if 2 * right > len(flat) else ALL_WRONG
        yield (LEARNED if run.perfect else failing)(
            f"Rewards differ in {signal.mean:.0%} of the groups of {span(signal.steps)}. Of"
            f" {len(flat)} recent groups that are flat, {right} are all right and"
            f" {len(flat) - right} all wrong.",
            at=[Place(g.step, g.task) for g in flat],
        )


def nothing_learned(run: Evidence) -> Iterator[Finding]:
    """Steps whose groups were all left out although rewards differed."""
    signal, learned = dict(run("groups/signal")), run("groups/learned")
    empty = [step for step, count in learned if count == 0 and signal.get(step, 1.0) > 0]
    if empty:
        most = len(empty) > len(learned.steps) / 2
        yield replace(NOTHING_LEARNED, severity="error" if most else "warning")(
            f"No group was learned from at {span(empty)} of {len(run.steps)}, though rewards"
            " differed.",
            at=[Place(step) for step in empty],
        )


def unchanging_parts(run: Evidence) -> Iterator[Finding]:
    """Parts of the reward that come to the same at every step."""
    for name in (n for n in run.names("reward/") if n not in _NOT_PARTS):
        values = run(name).values
        if len(values) >= FEWEST and len(set(values)) == 1 and not _never_earned(run):
            seen = f"It was {values[0]:g} on average at each of {len(values)} steps."
            # what is always earned, as a right form may be, does no harm
            kind = EARNED_PART if values[0] > 0 else UNCHANGING_PART
            yield kind(seen, name.removeprefix("reward/"))


def identical_answers(run: Evidence) -> Iterator[Finding]:
    """Rollouts of a group that say the same."""
    groups = [g for g in run.recent if g.count > 1]
    alike = [g for g in groups if g.texts == 1]
    if groups and len(alike) >= ALIKE * len(groups) and not run.perfect:
        yield IDENTICAL_ANSWERS(
            f"In {len(alike)} of {len(groups)} groups of the last steps all answers are one text.",
            at=[Place(g.step, g.task) for g in alike],
        )


def _never_differed(run: Evidence) -> bool:
    means, spreads = set(run("reward/mean").values), run("reward/std").values
    return len(run.steps) >= FEWEST and len(means) == 1 and {*spreads} == {0.0}


def _never_earned(run: Evidence) -> bool:
    values = run("reward/mean").values + run("reward/std").values
    return len(run.steps) >= FEWEST and bool(values) and not any(values)
