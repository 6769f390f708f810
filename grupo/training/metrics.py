"""The numbers of a step. `docs/metrics.md` says what each means, and when to worry."""

import math
from collections.abc import Mapping, Sequence

from grupo.core.batch import Batch
from grupo.core.component import walk
from grupo.core.timing import Stopwatch
from grupo.core.types import PRUNED, Group, Rollout
from grupo.method import Method
from grupo.training.collect import Gathered


def of_groups(gathered: Gathered, batch: Batch) -> dict[str, float]:
    """Rewards, lengths, and how much of what was sampled teaches something."""
    rollouts = [r for group in gathered.sampled for r in group.rollouts]
    rewards = [r.reward for r in rollouts if not r.failed]
    centre, lengths = mean(rewards), [float(r.length) for r in rollouts]
    return {
        "reward/mean": centre,
        "reward/std": mean([(r - centre) ** 2 for r in rewards]) ** 0.5,
        **_parts(rollouts),
        "groups/sampled": float(len(gathered.sampled)),
        "groups/learned": float(len(gathered.kept)),
        "groups/signal": mean([float(_differs(g)) for g in gathered.sampled if g.rollouts[1:]]),
        "rollouts/failed": float(sum(r.failed not in ("", PRUNED) for r in rollouts)),
        "rollouts/truncated": mean([float(r.truncated) for r in rollouts if r.failed != PRUNED]),
        **_pruned(rollouts),
        "length/mean": mean(lengths),
        "length/max": max(lengths, default=math.nan),
        "advantage/zero": (batch.advantage[batch.mask] == 0).double().mean().item(),
        "tokens/sampled": float(sum(map(_drawn, gathered.sampled))),
        "tokens/learned": float(batch.mask.sum()),
        "tokens/signal": float((batch.mask & (batch.advantage != 0)).sum()),
        **(_of_mask(gathered, batch) if gathered.kept else {}),
    }


def staleness(gathered: Gathered, step: int) -> float:
    """How many steps older than the policy the weights were that actions were drawn with."""
    every = (a for group in gathered.sampled for r in group.rollouts for _, a in r.turns)
    old = [(step - a.version, len(a.parts)) for a in every if a.sampled]
    return sum(age * count for age, count in old) / max(1, sum(count for _, count in old))


def of_time(watch: Stopwatch, numbers: Mapping[str, float]) -> dict[str, float]:
    """Where the time went, what was paid for in vain, and tokens in a second."""
    times = {f"time/{name}": seconds for name, seconds in watch.seconds.items()}
    step = watch.passed
    times |= {"time/rest": step - sum(times.values()), "time/step": step}
    sampled, trained = numbers["tokens/sampled"], numbers.get("tokens/trained", 0.0)
    return {
        **times,
        **{f"share/{name}": seconds / step for name, seconds in watch.seconds.items()},
        "tokens/trained": trained,
        "tokens/wasted": max(0.0, sampled - trained),
        "speed/sample": sampled / max(times["time/sample"], 1e-9),
        "speed/step": sampled / step,
    }


def of_pieces(method: Method, batch: Batch) -> dict[str, float]:
    """What the pieces that credit the batch report of it, by name."""
    reports = (getattr(part, "report", None) for part in walk(method.credit))
    said = (report(batch) for report in reports if report)
    return {name: float(number) for numbers in said for name, number in numbers.items()}


def mean(values: Sequence[float]) -> float:
    """The mean; NaN of nothing."""
    return sum(values) / len(values) if values else math.nan


def mean_of(seen: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Means by name over a step's updates; tokens add up; the mismatch is the first one's, before
    any update."""
    found = {name: [s[name] for s in seen if name in s] for name in _names(seen)}
    means = {name: mean(values) for name, values in found.items() if not _is_mismatch(name)}
    tokens = {name: sum(values) for name, values in found.items() if name.startswith("tokens/")}
    first = {name: value for name, value in seen[0].items() if _is_mismatch(name)} if seen else {}
    return means | tokens | first


def _is_mismatch(name: str) -> bool:
    return name.startswith("mismatch/")


def _names(seen: Sequence[Mapping[str, float]]) -> list[str]:
    return list(dict.fromkeys(name for s in seen for name in s))


def _differs(group: Group) -> bool:
    rewards = {r.reward for r in group.rollouts if not r.failed}
    return len(rewards) > 1


def _drawn(group: Group) -> int:
    """How many parts were drawn, those that rollouts share counted once."""
    turns = ((i, a) for r in group.rollouts for i, (_, a) in enumerate(r.turns) if a.sampled)
    return sum({(i, a.stream or id(a)): len(a.parts) for i, a in turns}.values())


def _pruned(rollouts: Sequence[Rollout]) -> dict[str, float]:
    """How many rollouts were given up on the way, and what they had cost by then."""
    lengths = [r.length for r in rollouts if r.failed == PRUNED]
    numbers = {"rollouts/pruned": float(len(lengths)), "tokens/pruned": float(sum(lengths))}
    return numbers if lengths else {}


def _parts(rollouts: Sequence[Rollout]) -> dict[str, float]:
    names = dict.fromkeys(name for r in rollouts for name in r.parts)
    return {f"reward/{name}": mean(_values(name, rollouts)) for name in names}


def _of_mask(gathered: Gathered, batch: Batch) -> dict[str, float]:
    """Of the actions to be learned, how many the batch leaves out, and what it has besides them."""
    said = [a for g in gathered.kept for r in g.rollouts for _, a in r.turns if a.learned]
    drawn = sum(len(a.parts) for a in said if a.sampled)
    recited = sum(len(a.parts) for a in said if not a.sampled)
    own = batch.mask & (batch.seen["sampled"] > 0)
    foreign = int(batch.mask.sum() - own.sum()) - recited
    whole = max(1, drawn + recited)
    return {"mask/foreign": foreign / whole, "mask/missing": (drawn - int(own.sum())) / whole}


def _values(name: str, rollouts: Sequence[Rollout]) -> list[float]:
    """A part of the reward where a rollout has it; who has no mark of failure did not fail."""
    absent = {"failed": 0.0}
    found = [{**absent, **r.parts} for r in rollouts]
    return [parts[name] for parts in found if name in parts]
