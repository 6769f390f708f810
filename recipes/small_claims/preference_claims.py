"""LN-DPO, MODPO, OP-GFN, GroCo, GEPO: a claim each, for `docs/comparisons/preferences.md`.

`python recipes/small_claims/preference_claims.py ln_dpo` trains the arms of one claim and prints
its table. Each has one comparison, which was named before its arms were run.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from math import exp
from statistics import fmean

import numpy as np
import torch

from grupo.algo.aggregation import group_mean
from grupo.algo.filters import keep_nonzero_std
from grupo.algo.losses import Logistic, LogRatio, Preference, all_ordered_pairs
from grupo.algo.losses.contrastive import mean_logp
from grupo.core.component import component
from grupo.core.types import Group, Rollout, Task
from grupo.evidence.claims.claim import Setting
from grupo.evidence.claims.environments import ManyModes
from grupo.evidence.claims.environments.key_positions import SHOWY_ITEM
from grupo.evidence.claims.judged import (
    HigherQuality,
    JudgedArm,
    JudgedRun,
    given_answers,
    judged_metrics,
    preferred_items,
    train_judged,
)
from grupo.evidence.claims.paired_table import Runs, paired_table
from grupo.evidence.claims.settings import KEYS, PADDED
from grupo.method import Method
from grupo.methods.dpo import dpo
from grupo.methods.gepo import gepo
from grupo.methods.groco import groco
from grupo.methods.grpo import grpo
from grupo.methods.ln_dpo import ln_dpo
from grupo.methods.modpo import modpo
from grupo.methods.op_gfn import op_gfn
from grupo.rewards.noisy_preferences import pair_rng

SEEDS = range(8)


# LN-DPO: shorter answers than DPO at an equal rate of correct ones
def correct(rollout: Rollout) -> float:
    """1 for a correct answer."""
    return rollout.reward_terms["correct"]


def verbose_quality(rollout: Rollout) -> float:
    """Correct answers first, and of equally correct ones the longer."""
    return correct(rollout) + 0.001 * rollout.length


def ln_dpo_runs() -> tuple[Runs, Sequence[str], str]:
    """DPO and LN-DPO on pairs of a judge that likes long answers; `win_rate` is of correctness."""
    setting = Setting("padded", "", PADDED, steps=120, learning_rate=0.05)
    judge = HigherQuality(verbose_quality)
    arms = {
        name: given_answers(name, m, judge) for name, m in (("DPO", dpo()), ("LN-DPO", ln_dpo()))
    }
    runs = {
        name: [judged_metrics(train_judged(setting, arm, seed), correct) for seed in SEEDS]
        for name, arm in arms.items()
    }
    return runs, ["length", "win_rate"], "DPO"


# MODPO: the front of two objectives that compete at the key positions
WEIGHTS = (0.2, 0.35, 0.5, 0.65, 0.8)  # of the second objective


def right_items(rollout: Rollout) -> float:
    """Right items at the key positions and at the end: the first objective, which pairs order."""
    return float(sum(x > 0 for x in rollout.step_values["preferred"]))


def showy_items(rollout: Rollout) -> float:
    """Showy items: the second objective, whose reward is known."""
    return float(
        sum(item == SHOWY_ITEM for _, response in rollout.turns for item in response.items)
    )


@component
class BradleyTerry:
    """A judge that prefers the first rollout with probability sigmoid(difference of quality).

    Args:
        quality: Quality of a rollout.
    """

    quality: Callable[[Rollout], float]

    def __call__(self, task: Task, first: Rollout, second: Rollout) -> float:
        lower, higher = sorted((first, second), key=lambda r: [a.items for _, a in r.turns])
        odds = exp(self.quality(lower) - self.quality(higher))
        lower_wins = pair_rng(0, task, first, second).random() < odds / (1 + odds)
        return float(lower_wins == (first is lower))


@component
class Scalarised:
    """Rewards each rollout by the weighted sum of both objectives.

    Args:
        weight: Weight of the second objective; that of the first is 1 - weight.
    """

    weight: float

    def __call__(self, groups: Sequence[Group]) -> Sequence[Group]:
        def rewarded(rollout: Rollout) -> Rollout:
            reward = (1 - self.weight) * right_items(rollout) + self.weight * showy_items(rollout)
            return replace(rollout, reward=reward)

        return [replace(g, rollouts=tuple(map(rewarded, g.rollouts))) for g in groups]


def modpo_runs() -> tuple[Runs, Sequence[str], str]:
    """The hypervolume of five weights, of MODPO and of GRPO on the weighted sum of the rewards."""
    setting = Setting("keys", "", KEYS, steps=60, learning_rate=0.05)

    def modpo_arm(weight: float) -> JudgedArm:
        terms = (("showy", showy_items),)
        method = modpo((("showy", weight),))
        return given_answers(f"modpo {weight}", method, BradleyTerry(right_items), terms=terms)

    def grpo_arm(weight: float) -> JudgedArm:
        return JudgedArm(f"grpo {weight}", built=grpo().replace(filter=Scalarised(weight)))

    def front(arm_of: Callable[[float], JudgedArm], seed: int) -> Mapping[str, float]:
        points = [_objectives(train_judged(setting, arm_of(w), seed)) for w in WEIGHTS]
        ends = {"right": points[0][0] - points[-1][0], "showy": points[-1][1] - points[0][1]}
        return {"hypervolume": hypervolume(points), **{f"{k} span": v for k, v in ends.items()}}

    arms = {"GRPO on the sum": grpo_arm, "MODPO": modpo_arm}
    runs = {name: [front(arm_of, seed) for seed in SEEDS] for name, arm_of in arms.items()}
    return runs, ["hypervolume", "right span", "showy span"], "GRPO on the sum"


def _objectives(run: JudgedRun) -> tuple[float, float]:
    """Fractions of the right and of the showy items that are possible."""
    rollouts = [rollout for group in run.answers("own") for rollout in group.rollouts]
    possible = fmean(sum(x != 0 for x in r.step_values["preferred"]) for r in rollouts)
    return fmean(map(right_items, rollouts)) / possible, fmean(map(showy_items, rollouts)) / 10


def hypervolume(points: Sequence[tuple[float, float]]) -> float:
    """Area that points of two objectives dominate, from the origin.

    >>> hypervolume([(1.0, 0.5), (0.5, 1.0), (0.4, 0.4)])
    0.75
    """
    area, height = 0.0, 0.0
    for x, y in sorted(points, reverse=True):
        area += x * max(0.0, y - height)
        height = max(height, y)
    return area


# OP-GFN: both modes of two objectives
@component
class OneModePerObjective:
    """Objective j is 1 for answers that are mode j of their task; the reward is their sum."""

    def __call__(self, groups: Sequence[Group]) -> Sequence[Group]:
        return [replace(g, rollouts=tuple(map(self._scored, g.rollouts))) for g in groups]

    def _scored(self, rollout: Rollout) -> Rollout:
        # of the two accepted answers the one with the even number, and the one with the odd number
        odd = rollout.reward_terms["cluster"] % 2
        right = rollout.reward_terms["correct"]
        terms = {"even": right * (1 - odd), "odd": right * odd}
        return replace(rollout, reward=right, reward_terms={**rollout.reward_terms, **terms})


def op_gfn_runs() -> tuple[Runs, Sequence[str], str]:
    """Entropy over the modes, of OP-GFN and of GRPO on the sum of the objectives."""
    env = ManyModes(num_tasks=32, num_items=4, num_modes=2, trap_fraction=0.0, preference=0.5)
    setting = Setting("two modes", "", env, steps=100, learning_rate=0.05)
    methods = {
        "GRPO on the sum": grpo(kl_coef=0.0),
        "OP-GFN": op_gfn(objectives=("even", "odd")),
    }
    arms = {
        name: JudgedArm(name, built=method.replace(filter=OneModePerObjective()))
        for name, method in methods.items()
    }
    runs = {
        name: [_mode_metrics(train_judged(setting, arm, seed)) for seed in SEEDS]
        for name, arm in arms.items()
    }
    return runs, ["mode entropy", "correct"], "GRPO on the sum"


def _mode_metrics(run: JudgedRun) -> Mapping[str, float]:
    """Entropy of the correct answers of a task over its modes, in nats, and their fraction."""
    entropies, rates = [], []
    for group in run.answers("own"):
        modes = [r.reward_terms["cluster"] for r in group.rollouts if correct(r)]
        share = np.unique(modes, return_counts=True)[1] / max(len(modes), 1)
        entropies.append(float(-(share * np.log(share)).sum()))
        rates.append(len(modes) / len(group.rollouts))
    return {"mode entropy": fmean(entropies), "correct": fmean(rates)}


# GroCo: a list at once orders answers at least as well as its pairs
def groco_runs() -> tuple[Runs, Sequence[str], str]:
    """Accuracy on pairs of unseen answers, of GroCo and of a logistic loss of all pairs."""
    setting = Setting("keys", "", KEYS, steps=60, learning_rate=0.05)
    pairs = Preference(mean_logp, Logistic(1.0), all_ordered_pairs)
    methods = {"all pairs": Method(loss=pairs, aggregation=group_mean), "GroCo": groco()}
    judge = HigherQuality(preferred_items)
    arms = {name: given_answers(name, m, judge, group_size=8) for name, m in methods.items()}
    runs = {
        name: [{"pair accuracy": _pair_accuracy(train_judged(setting, a, seed))} for seed in SEEDS]
        for name, a in arms.items()
    }
    return runs, ["pair accuracy"], "all pairs"


@torch.no_grad()
def _pair_accuracy(run: JudgedRun) -> float:
    """Pairs of reference answers to a task in which the better one has the higher mean log pi."""
    table = run.policy.logp_table().numpy()
    right = []
    for group in run.answers("unseen", of_reference=True):
        scored = [(preferred_items(r), _mean_logp(table, r)) for r in group.rollouts]
        right += [
            (a[0] > b[0]) == (a[1] > b[1]) for a, b in combinations(scored, 2) if a[0] != b[0]
        ]
    return fmean(right)


def _mean_logp(table: np.ndarray, rollout: Rollout) -> float:
    cells = np.array(rollout.step_values["cell"], dtype=int)
    items = [item for _, response in rollout.turns for item in response.items]
    return float(table[cells, items].mean())


# GEPO: equivalent answers get equal implicit rewards
def gepo_runs() -> tuple[Runs, Sequence[str], str]:
    """Variance of the log-ratios of correct answers, of GEPO and of DPO on all pairs."""
    env = ManyModes(num_tasks=32, num_items=4, num_modes=4, trap_fraction=0.0, preference=0.5)
    setting = Setting("four modes", "", env, steps=60, learning_rate=0.05)
    pairs = Preference(LogRatio(), Logistic(0.1), all_ordered_pairs)
    methods = {"DPO on all pairs": Method(loss=pairs, aggregation=group_mean), "GEPO": gepo()}
    judge = HigherQuality(correct)
    arms = {
        name: given_answers(name, method, judge, group_size=16, kept=LabelledCorrect())
        for name, method in methods.items()
    }
    runs = {
        name: [_equivalence(train_judged(setting, arm, seed)) for seed in SEEDS]
        for name, arm in arms.items()
    }
    return runs, ["variance", "ordered pairs"], "DPO on all pairs"


@component
class LabelledCorrect:
    """Rewards correct answers 1 and others 0, and drops groups without both."""

    def __call__(self, groups: Sequence[Group]) -> Sequence[Group]:
        return keep_nonzero_std(
            [
                replace(g, rollouts=tuple(replace(r, reward=correct(r)) for r in g.rollouts))
                for g in groups
            ]
        )


@torch.no_grad()
def _equivalence(run: JudgedRun) -> Mapping[str, float]:
    """Variance of h over a task's different correct answers, and pairs in which they lead."""
    tables = run.policy.logp_table().numpy(), run.reference.logp_table().numpy()
    variances, ordered = [], []
    for group in run.answers("unseen", of_reference=True):
        answers = {r.reward_terms["cluster"]: r for r in group.rollouts}.values()
        own, ref = ([r.length * _mean_logp(table, r) for r in answers] for table in tables)
        h = np.subtract(own, ref)
        right = np.array([correct(r) for r in answers]) > 0
        if right.sum() > 1:
            variances.append(float(h[right].var()))
        ordered += (h[right][:, None] > h[~right]).ravel().tolist()
    return {"variance": fmean(variances), "ordered pairs": fmean(ordered)}


CLAIMS = {
    "ln_dpo": ln_dpo_runs,
    "modpo": modpo_runs,
    "op_gfn": op_gfn_runs,
    "groco": groco_runs,
    "gepo": gepo_runs,
}


def main() -> None:
    """Train the arms of the named claims and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("claims", nargs="+", choices=CLAIMS)
    torch.set_num_threads(1)
    for name in parser.parse_args().claims:
        print(f"{name}\n{paired_table(*CLAIMS[name]())}", flush=True)


if __name__ == "__main__":
    main()
