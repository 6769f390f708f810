"""The numbers of a step. `docs/metrics.md` says what each means, and when to worry."""

import math
from collections.abc import Mapping, Sequence

from grupo.core.batch import Batch
from grupo.core.component import walk
from grupo.core.timing import Stopwatch
from grupo.core.types import PRUNED, Group, Rollout
from grupo.method import Method
from grupo.training.collect import CollectedGroups


def group_metrics(collected: CollectedGroups, batch: Batch) -> dict[str, float]:
    """Rewards, lengths, and how much of what was sampled teaches something."""
    rollouts = [r for group in collected.sampled_groups for r in group.rollouts]
    rewards = [r.reward for r in rollouts if not r.error]
    centre, lengths = mean(rewards), [float(r.length) for r in rollouts]
    return {
        "reward/mean": centre,
        "reward/std": mean([(r - centre) ** 2 for r in rewards]) ** 0.5,
        **_reward_term_means(rollouts),
        "groups/sampled": float(len(collected.sampled_groups)),
        "groups/trained": float(len(collected.kept_groups)),
        "groups/nonzero_std_frac": mean(
            [float(_rewards_differ(g)) for g in collected.sampled_groups if g.rollouts[1:]]
        ),
        "rollouts/failed": float(sum(r.error not in ("", PRUNED) for r in rollouts)),
        "completions/truncated_frac": mean(
            [float(r.truncated) for r in rollouts if r.error != PRUNED]
        ),
        **_pruned_metrics(rollouts),
        "completions/length_mean": mean(lengths),
        "completions/length_max": max(lengths, default=math.nan),
        "advantage/zero_frac": (batch.advantage[batch.mask] == 0).double().mean().item(),
        "tokens/generated": float(sum(map(_count_generated, collected.sampled_groups))),
        "tokens/trained": float(batch.mask.sum()),
        "tokens/nonzero_advantage": float((batch.mask & (batch.advantage != 0)).sum()),
        **(_mask_metrics(collected, batch) if collected.kept_groups else {}),
    }


def mean_staleness(collected: CollectedGroups, step: int) -> float:
    """How many steps older than the policy the weights were that actions were drawn with."""
    every = (a for group in collected.sampled_groups for r in group.rollouts for _, a in r.turns)
    old = [(step - a.policy_version, len(a.items)) for a in every if a.sampled]
    return sum(age * count for age, count in old) / max(1, sum(count for _, count in old))


def time_metrics(stopwatch: Stopwatch, metrics: Mapping[str, float]) -> dict[str, float]:
    """Where the time went, what was paid for in vain, and tokens in a second."""
    times = {f"time/{name}": seconds for name, seconds in stopwatch.seconds.items()}
    step = stopwatch.elapsed
    times |= {"time/other": step - sum(times.values()), "time/step": step}
    sampled, trained = metrics["tokens/generated"], metrics.get("tokens/backpropagated", 0.0)
    return {
        **times,
        **{f"time_frac/{name}": seconds / step for name, seconds in stopwatch.seconds.items()},
        "tokens/backpropagated": trained,
        "tokens/unused": max(0.0, sampled - trained),
        "throughput/generated_tokens_per_s": sampled / max(times["time/generate"], 1e-9),
        "throughput/tokens_per_s": sampled / step,
    }


def advantage_metrics(method: Method, batch: Batch) -> dict[str, float]:
    """What the pieces that credit the batch report of it, by name."""
    reports = (getattr(part, "metrics", None) for part in walk(method.advantage))
    said = (report(batch) for report in reports if report)
    return {name: float(number) for numbers in said for name, number in numbers.items()}


def mean(values: Sequence[float]) -> float:
    """The mean; NaN of nothing."""
    return sum(values) / len(values) if values else math.nan


def mean_over_updates(update_metrics: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Means by name over a step's updates; tokens add up; the mismatch is the first one's, before
    any update."""
    found = {
        name: [s[name] for s in update_metrics if name in s]
        for name in _metric_names(update_metrics)
    }
    means = {name: mean(values) for name, values in found.items() if not _is_mismatch(name)}
    tokens = {name: sum(values) for name, values in found.items() if name.startswith("tokens/")}
    first = (
        {name: value for name, value in update_metrics[0].items() if _is_mismatch(name)}
        if update_metrics
        else {}
    )
    return means | tokens | first


def _is_mismatch(name: str) -> bool:
    return name.startswith("mismatch/")


def _metric_names(seen: Sequence[Mapping[str, float]]) -> list[str]:
    return list(dict.fromkeys(name for s in seen for name in s))


def _rewards_differ(group: Group) -> bool:
    rewards = {r.reward for r in group.rollouts if not r.error}
    return len(rewards) > 1


def _count_generated(group: Group) -> int:
    """How many parts were drawn, those that rollouts share counted once."""
    turns = ((i, a) for r in group.rollouts for i, (_, a) in enumerate(r.turns) if a.sampled)
    return sum({(i, a.rng_key or id(a)): len(a.items) for i, a in turns}.values())


def _pruned_metrics(rollouts: Sequence[Rollout]) -> dict[str, float]:
    """How many rollouts were given up on the way, and what they had cost by then."""
    lengths = [r.length for r in rollouts if r.error == PRUNED]
    numbers = {"rollouts/pruned": float(len(lengths)), "tokens/pruned": float(sum(lengths))}
    return numbers if lengths else {}


def _reward_term_means(rollouts: Sequence[Rollout]) -> dict[str, float]:
    names = dict.fromkeys(name for r in rollouts for name in r.reward_terms)
    return {f"reward/{name}": mean(_term_values(name, rollouts)) for name in names}


def _mask_metrics(collected: CollectedGroups, batch: Batch) -> dict[str, float]:
    """Of the actions to be learned, how many the batch leaves out, and what it has besides them."""
    said = [a for g in collected.kept_groups for r in g.rollouts for _, a in r.turns if a.in_loss]
    drawn = sum(len(a.items) for a in said if a.sampled)
    recited = sum(len(a.items) for a in said if not a.sampled)
    own = batch.mask & (batch.signals["sampled"] > 0)
    foreign = int(batch.mask.sum() - own.sum()) - recited
    whole = max(1, drawn + recited)
    return {
        "mask/extra_frac": foreign / whole,
        "mask/dropped_frac": (drawn - int(own.sum())) / whole,
    }


def _term_values(name: str, rollouts: Sequence[Rollout]) -> list[float]:
    """A part of the reward where a rollout has it; who has no mark of failure did not fail."""
    absent = {"failed": 0.0}
    found = [{**absent, **r.reward_terms} for r in rollouts]
    return [parts[name] for parts in found if name in parts]
