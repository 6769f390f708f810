"""Methods on comparisons by a noisy and by the true judge: `docs/comparisons/preferences.md`.

Every arm generates the same number of answers of the same length, so that tokens are equal, and
every arm has the learning rate of the setting `keys` of the claims.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import correlation, fmean

import torch

from grupo.catalogue.parse import parse_method
from grupo.compare.table_formats import markdown
from grupo.evidence.claims.claim import Setting
from grupo.evidence.claims.judged import (
    HigherQuality,
    JudgedArm,
    given_answers,
    judged_metrics,
    keep_winners,
    own_answers,
    preferred_items,
    train_judged,
)
from grupo.evidence.claims.paired_table import signed
from grupo.evidence.claims.settings import KEYS
from grupo.rewards.noisy_preferences import Compare, NoisyPreferences
from grupo.util.statistics import student_t_mean

FLIP = 0.25
SETTING = Setting("keys", "", KEYS, steps=60, learning_rate=0.05)
OWN = ("grpo(kl_coef=0.0)", "raft_pp(group_size=8)")
GIVEN = (
    "sft()",
    "dpo()",
    "ipo()",
    "simpo()",
    "orpo()",
    "hinge(gamma=0.1)",
    "ln_dpo()",
    "nca(beta=0.1)",
    "bco()",
    "cdpo(label_smoothing=0.25)",
    "robust_dpo(flip_rate=0.25)",
)
TEN = (*OWN, *GIVEN[:8])
TRUTH = HigherQuality(preferred_items)
JUDGES: Mapping[str, Compare] = {"noisy": NoisyPreferences((TRUTH,), FLIP), "true": TRUTH}


def arm(call: str, judge: str) -> JudgedArm:
    """The arm of a method under a judge."""
    method, compare = parse_method(call), JUDGES[judge]
    if call in OWN:
        return own_answers(call, method, compare)
    if call == "sft()":
        return given_answers(call, method, compare, kept=keep_winners)
    return given_answers(call, method, compare)


def main() -> None:
    """Run what the file of runs lacks, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path, help="file of runs, one JSON object a line")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(8)))
    options = parser.parse_args()
    torch.set_num_threads(1)
    lines = options.runs.read_text().splitlines() if options.runs.exists() else []
    runs = {(r["arm"], r["judge"], r["seed"]): r["win_rate"] for r in map(json.loads, lines)}
    keys = [
        (call, judge, seed) for seed in options.seeds for call in (*OWN, *GIVEN) for judge in JUDGES
    ]
    for call, judge, seed in keys:
        if (call, judge, seed) not in runs:
            run = train_judged(SETTING, arm(call, judge), seed)
            rate = judged_metrics(run, preferred_items)["win_rate"]
            runs[call, judge, seed] = rate
            record = {"arm": call, "judge": judge, "seed": seed, "win_rate": round(rate, 5)}
            with options.runs.open("a") as file:
                file.write(json.dumps(record) + "\n")
    print(table(runs, options.seeds))


def table(runs: Mapping[tuple[str, str, int], float], seeds: list[int]) -> str:
    """Win rates under both judges, their paired difference, and the rank correlations."""
    rows = [["method", "answers", "noisy judge", "true judge", "noisy minus true"]]
    means: dict[str, tuple[float, float]] = {}
    for call in (*OWN, *GIVEN):
        noisy, true = ([runs[call, judge, seed] for seed in seeds] for judge in JUDGES)
        difference = student_t_mean([a - b for a, b in zip(noisy, true, strict=True)])
        means[call] = fmean(noisy), fmean(true)
        answers = "own" if call in OWN else "given"
        rows.append([f"`{call}`", answers, *(f"{x:.3f}" for x in means[call]), signed(difference)])
    ten, every = (
        rank_correlation([means[call] for call in calls]) for calls in (TEN, (*OWN, *GIVEN))
    )
    return f"{markdown(rows)}\nrank correlation: {ten:.3f} of ten methods, {every:.3f} of all"


def rank_correlation(pairs: Sequence[tuple[float, float]]) -> float:
    """Spearman's correlation of two columns without ties.

    >>> rank_correlation([(0.1, 5.0), (0.2, 7.0), (0.3, 6.0)])
    0.5
    """
    ranks = [[sorted(column).index(x) for x in column] for column in zip(*pairs, strict=True)]
    return correlation(*map(list[float], ranks))


if __name__ == "__main__":
    main()
