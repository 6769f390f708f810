"""Numbers that follow the progress of the run: the share x of it that is done, 0 to 1.

Compared: the number at a series of progresses, both ends included.

Written from
    TEAM-ARM/ARM, verl/verl/trainer/ppo/core_algos.py, `cosine_decay_alpha`: the part of the scale
        of a rare format that is above 1, (1 + cos(pi t / T)) / 2;
    modelscope/Trinity-RFT, trinity/algorithm/policy_loss_fn/chord_policy_loss.py,
        `mu_schedule_function`. mu from 0.9 to 0.05, no warm-up, and a decay over the whole run are
        the record's;
    dvlab-research/Scaf-GRPO, hint_mix_grpo/trainer/ray_trainer.py, lines 1467 and 1858: hints only
        after the warm-up; 15 % of the run is the record's;
    biuboomc/CANON, verl/trainer/ppo/core_algos.py, `cosine_annealing_with_restart`, called twice
        (lines 474 to 489, 530 to 535 and 628 to 633): 150 steps, of which 30 are a warm-up, and 3
        cycles; the weight between the halves is 1 minus `mean_of_all`, which is 0 to 0.6, or 1
        minus a number from 0.4 to 1. Steps are shares of the run here, as the record states;
    kxfan2002/SophiaVL-R1, verl/workers/reward/custom.py, line 331: 0.3 exp(-step / T), with T the
        number of steps, as the record states;
    the record of thinktuning: a linear share from 0.1 to 0.01, here over the whole run;
    records of arrol, d3s, expo_self_explanation, grpo_d and kdrl, whose forms are our reading.
"""

from collections.abc import Callable
from math import cos, exp, pi


def linear(start: float, end: float) -> Callable[[float], float]:
    """A straight line over the run."""
    return lambda x: (1 - x) * start + x * end


def chord_mu(x: float, peak: float = 0.9, valley: float = 0.05, decay: float = 1.0) -> float:
    """The weight of imitation of CHORD-mu, which falls along half a cosine."""
    if x >= decay:
        return valley
    return valley + (peak - valley) * (1 + cos(pi * x / decay)) / 2


def canon_annealed(x: float, largest: float, smallest: float) -> float:
    """The annealed number of CANON: a line from 0, then three times half a cosine."""
    if x < 0.2:
        return largest * x / 0.2
    position = 3 * (x - 0.2) / 0.8
    cycle = min(int(position + 1e-12), 2)  # the end of the run ends the last cycle
    return smallest + (largest - smallest) * (1 + cos(pi * (position - cycle))) / 2


SCHEDULES: dict[str, list[Callable[[float], float]]] = {
    "ada_grpo": [lambda x: (1 + cos(pi * x)) / 2],
    "arrol": [lambda x: 1.0 if x < 0.1 else 0.5],
    "canon(between_weight=COSINE_FIRST_INTRA_LATER_INTER)": [
        lambda x: 1 - canon_annealed(x, 0.6, 0.0)
    ],
    "canon(between_weight=COSINE_FIRST_INTER_LATER_INTRA)": [lambda x: canon_annealed(x, 1.0, 0.4)],
    "chord_mu": [chord_mu],
    "chord_mu(decay_fraction=0.5)": [lambda x: chord_mu(x, decay=0.5)],
    "d3s": [linear(0.25, 1.0), linear(0.2, 1.0)],
    "expo_self_explanation": [linear(0.1, 0.0)],
    "grpo_d": [linear(0.0, 0.04)],
    "kdrl": [linear(0.005, 0.001)],
    "scaf_grpo": [lambda x: 0.0 if x < 0.15 else 12.0],
    "thinktuning": [linear(0.1, 0.01)],
    "trust_grpo": [lambda x: 0.3 * exp(-x)],
}
