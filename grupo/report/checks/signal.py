"""Is there anything to learn from?"""

from collections.abc import Iterator
from dataclasses import replace

from grupo.report.checks import advice
from grupo.report.checks.evidence import Evidence
from grupo.report.checks.finding import Finding, Place, span

FEWEST = 3  # steps: fewer are no series
# Answers are drawn, so that some groups agree by chance; where fewer than this differ, nine tenths
# of the sampling are wasted.
FEW_SIGNALS = 0.1
ALIKE = 0.5  # of the groups hold one text only: sampling hardly explores
_NOT_PARTS = frozenset({"reward/mean", "reward/std", "reward/failed"})


def too_short(run: Evidence) -> Iterator[Finding]:
    """Too few steps to judge."""
    if len(run.steps) < FEWEST:
        yield advice.TOO_SHORT(f"{len(run.steps)} steps are logged; most checks need {FEWEST}.")


def zero_reward(run: Evidence) -> Iterator[Finding]:
    """No rollout ever earned anything."""
    if _never_earned(run):
        yield advice.ZERO_REWARD(f"Every rollout of all {len(run.steps)} steps earned 0.")


def constant_reward(run: Evidence) -> Iterator[Finding]:
    """Every rollout of every step earned the same, and that is not 0."""
    comparing = any(group.count > 1 for group in run.groups)
    if comparing and _never_differed(run) and not _never_earned(run):
        texts = sum(group.texts for group in run.groups)
        yield advice.CONSTANT(
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
        failing = advice.ALL_RIGHT if 2 * right > len(flat) else advice.ALL_WRONG
        yield (advice.LEARNED if run.perfect else failing)(
            f"Rewards differ in {signal.mean:.0%} of the groups of {span(signal.steps)}. Of"
            f" {len(flat)} recent groups that are flat, {right} are all right and"
            f" {len(flat) - right} all wrong.",
            at=[Place(g.step, g.task) for g in flat],
        )


def nothing_learned(run: Evidence) -> Iterator[Finding]:
    """Steps whose groups were all left out although rewards differed."""
    signal = dict(zip(run("groups/signal").steps, run("groups/signal").values, strict=True))
    learned = run("groups/learned")
    pairs = zip(learned.steps, learned.values, strict=True)
    empty = [step for step, count in pairs if count == 0 and signal.get(step, 1.0) > 0]
    if empty:
        most = len(empty) > len(learned.steps) / 2
        yield replace(advice.NOTHING_LEARNED, severity="error" if most else "warning")(
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
            kind = advice.EARNED_PART if values[0] > 0 else advice.UNCHANGING_PART
            yield kind(seen, name.removeprefix("reward/"))


def identical_answers(run: Evidence) -> Iterator[Finding]:
    """Rollouts of a group that say the same."""
    groups = [g for g in run.recent if g.count > 1]
    alike = [g for g in groups if g.texts == 1]
    if groups and len(alike) >= ALIKE * len(groups) and not run.perfect:
        yield advice.IDENTICAL_ANSWERS(
            f"In {len(alike)} of {len(groups)} groups of the last steps all answers are one text.",
            at=[Place(g.step, g.task) for g in alike],
        )


def _never_differed(run: Evidence) -> bool:
    means, spreads = set(run("reward/mean").values), run("reward/std").values
    return len(run.steps) >= FEWEST and len(means) == 1 and {*spreads} == {0.0}


def _never_earned(run: Evidence) -> bool:
    values = run("reward/mean").values + run("reward/std").values
    return len(run.steps) >= FEWEST and bool(values) and not any(values)
