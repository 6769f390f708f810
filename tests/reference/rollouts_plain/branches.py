"""Groups that share beginnings by fixed rules: trees of steps, single deviations, early pruning.

Compared: what is generated once, the leaves with their order, which steps are trained, and which
rollouts go on. A denoising step is a letter here.
"""

from collections.abc import Callable
from itertools import pairwise
from math import ceil

from tests.reference.rollouts_plain.record import (
    Part,
    Policy,
    Question,
    Reward,
    Trained,
    merged,
    reference,
)

Rollouts = list[Trained]


@reference(
    "branch_grpo",
    "arXiv:2509.06040 and Fredreic1849/BranchGRPO by the record: every path splits in two before"
    " the given steps, and all leaves are trained",
)
def branch_grpo(
    q: Question, policy: Policy, reward: Reward, *, splits: tuple[int, ...], ways: int = 2
) -> Rollouts:
    paths = [policy(q.prompt, splits[0]).text]
    for here, following in pairwise((*splits, 10_000)):
        paths = [
            path + policy(q.prompt + path, following - here).text
            for path in paths
            for _ in range(ways)
        ]
    return [Trained(q.prompt, merged([Part(path)]), reward(path)) for path in paths]


@reference(
    "tempflow_grpo",
    "arXiv:2508.04324 and Shredded-Pork/TempFlow-GRPO by the record: one path without noise, and"
    " others that leave it by the noise of one step alone, which alone is trained",
)
def tempflow_grpo(
    q: Question,
    policy: Policy,
    reward: Reward,
    *,
    steps: tuple[int, ...],
    greedy: Callable[[str], str],
    count: int = 6,
) -> Rollouts:
    path = greedy(q.prompt)
    group = []
    for step in steps:
        for _ in range(count):
            sampled = policy(q.prompt + path[:step], 1).text
            rest = greedy(q.prompt + path[:step] + sampled)
            parts = [Part(path[:step], trained=False), Part(sampled), Part(rest, trained=False)]
            score = reward(path[:step] + sampled + rest)
            group.append(Trained(q.prompt, merged(parts), score, {"branch_step": float(step)}))
    return group


@reference(
    "arrol",
    "arXiv:2603.24840 by the record and the method's own account: the first two go on. Of the"
    " others that reach the length a share goes on, likely and unlikely ones, about half of which"
    " will be right; p = (s + 1) / (n + 2) of the score's bin",
)
def arrol(
    q: Question,
    policy: Policy,
    reward: Reward,
    *,
    score: Callable[[str], float],
    bins: list[tuple[float, float]],
    size: int = 16,
    share: float = 0.5,
    always: int = 2,
    length: int = 512,
) -> Rollouts:
    """`bins`: correct and all earlier rollouts of each bin of the score."""
    begun = [policy(q.prompt, length) for _ in range(size)]
    p = {}
    for i, text in enumerate(begun):
        if text.reason == "length" and i >= always:
            correct, count = bins[min(int(score(text.text) * len(bins)), len(bins) - 1)]
            p[i] = (correct + 1) / (count + 2)
    kept = ceil(share * len(p))
    ordered = sorted(p, key=lambda i: p[i])
    choices = [ordered[:low] + ordered[len(p) - (kept - low) :] for low in range(kept + 1)]
    best = min(choices, key=lambda s: abs(sum(p[i] for i in s) - kept / 2))
    group = []
    for i, text in enumerate(begun):
        if i in p and i not in best:
            continue
        whole = text.text + (policy(q.prompt + text.text).text if text.reason == "length" else "")
        group.append(Trained(q.prompt, merged([Part(whole)]), reward(whole)))
    return group
