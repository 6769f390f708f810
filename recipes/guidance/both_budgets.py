"""Methods that drop groups, at equal generated tokens and at equal updates.

The world is that of `dump.py`: a tabular policy solves the first source of tasks before training,
can learn the second, and never sees a success of the third. An answer has six tokens. The online
difficulty filter and VSPO generate further groups in the place of those that they drop, so that
tokens buy fewer updates. Each run is measured twice: after `UPDATES` updates, and after the tokens
that GRPO generates for them. The arm that draws from the second source alone knows what the others
must find: the upper bound, which must win first.

Named before the first run of these seeds: the success on the second source at equal updates
(`updates`) and at equal tokens (`tokens`) of each of the two methods, minus that of GRPO, expected
above 0, by the exact sequential sign-flip test with looks at 8, 12 and 16 pairs and an error of 5 %
for each of the four comparisons. `rollouts` are those that the updates took.

python recipes/guidance/both_budgets.py FILE [FIRST_SEED END]    # FILE has a line for each run
"""

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import torch

from grupo.compare.sequential_design import SequentialDesign
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.sequential_table import sequential_table
from grupo.evidence.claims.stored_runs import Metrics, stored_runs
from grupo.method import Method
from grupo.methods.grpo import grpo
from grupo.methods.online_difficulty_filtering import online_difficulty_filtering
from grupo.methods.prs_vspo import prs_vspo
from grupo.rollouts.curricula import SourceBandit
from grupo.util.importing import load_module_file

DUMP = load_module_file(Path(__file__).with_name("dump.py"))
GROUP_SIZE, UPDATES = 8, 60
GRPO = grpo(GROUP_SIZE, kl_coef=0.0)
FILTER, VSPO, BOUND = "difficulty filter", "VSPO", "learnable only"
METHODS: Mapping[str, Method] = {
    "GRPO": GRPO,
    BOUND: GRPO.replace(curriculum=SourceBandit(("learnable",))),
    FILTER: online_difficulty_filtering(group_size=GROUP_SIZE, kl_coef=0.0),
    VSPO: prs_vspo(GROUP_SIZE, kl_coef=0.0),
}
METRICS = ("updates", "tokens", "rollouts")
DESIGN = SequentialDesign(max_pairs=16, looks=(8, 12, 16))


def run(method: Method, seed: int, updates: int = UPDATES) -> Metrics:
    """Success on the second source at both budgets, and the rollouts that the updates took.

    Args:
        method: The method.
        seed: Draws the tasks and all random numbers.
        updates: Number of updates; the budget of tokens is that of GRPO's updates.
    """
    trained = DUMP.SourcedRun(method, seed)
    budget = updates * trained.setting.rollouts_per_step
    found = dict[str, float]()
    while not {"updates", "tokens"} <= found.keys():
        before = trained.solved()
        trained.step()
        if trained.num_rollouts > budget:
            found.setdefault("tokens", before)
        if trained.step_number == updates:
            found |= {"updates": trained.solved(), "rollouts": float(trained.num_rollouts)}
    return found


def main(file: str, first_seed: str = "0", end: str = "16") -> None:
    """Run what is missing in the file and print the tables."""
    torch.set_num_threads(1)
    arms = {name: partial(run, method) for name, method in METHODS.items()}
    runs = stored_runs(Path(file), arms, range(int(first_seed), int(end)))
    print(paired_table(runs, METRICS, "GRPO"))
    for metric in ("updates", "tokens"):
        tested = {name: runs[name] for name in ("GRPO", FILTER, VSPO)}
        print(sequential_table(tested, metric, "GRPO", DESIGN))


if __name__ == "__main__":
    load_module_file(Path(__file__)).main(*sys.argv[1:])
