"""What samplers do of a step's groups, each in a run of its own."""

from collections.abc import Mapping
from typing import Any

from grupo.algo.advantages.budget_relative import BudgetRelative
from grupo.core.schedules import Switch, varying
from grupo.envs import ManyTurns, Part
from grupo.methods.arrol import arrol
from grupo.methods.critique_grpo import critique_grpo
from grupo.methods.knapsack_rl import knapsack_rl
from grupo.methods.r3 import r3
from grupo.methods.scaf_grpo import scaf_grpo
from grupo.methods.spo import spo
from grupo.methods.vade import vade
from grupo.rollouts.samplers import (
    Anytime,
    BranchWhenUnsure,
    EarlyExits,
    Guided,
    Independent,
    Refined,
    Reflected,
    Scaffolded,
    SegmentTree,
    Tree,
    UntilInformative,
)
from grupo.rollouts.turns import Budgeted, Chunked
from grupo.tasks import FromFunction
from tests.helpers.training_components import (
    METHOD,
    Echoing,
    brief,
    coarse,
    few_tasks,
    hinted_tasks,
    judged_by,
    late,
)

SAMPLED: Mapping[str, Mapping[str, Any]] = {
    "again": {
        "method": METHOD.but(sample=UntilInformative(Independent(4), 3)),
        "env": judged_by(late),
        "prompts": 6,
    },
    "tree": {"method": METHOD.but(sample=Tree(2, 2))},
    "budgets": {"method": METHOD.but(sample=Independent(4, Budgeted(2, 3, "P")))},
    "chunks": {"method": METHOD.but(sample=Independent(4, Chunked(3, 1, 1, 3)))},
    "exits": {
        "method": METHOD.but(sample=UntilInformative(EarlyExits(3, ",", "."), 3)),
        "env": judged_by(late),
    },
    "anytime": {
        "method": METHOD.but(
            sample=Anytime(2, (1, 3), 2, 2, ",", ".", ""), credit=BudgetRelative((1.0, 1.0), 2)
        )
    },
    "pruned": {"method": arrol(4, at=2, rest=4, spared=1), "env": judged_by(late)},
    "segments": {"method": METHOD.but(sample=SegmentTree(4, 2, 3)), "env": judged_by(late)},
    "unsure": {
        "method": METHOD.but(sample=BranchWhenUnsure(4, 2)),
        "env": ManyTurns(Echoing, (Part("part", late),), turns=3),
    },
    "hinted": {
        "method": METHOD.but(sample=Guided(Independent(4), lead="!")),
        "env": judged_by(coarse),
        "tasks": FromFunction(hinted_tasks),
    },
    "scaffolded": {
        "method": scaf_grpo(4, warmup=0.3).but(
            sample=Scaffolded(Independent(4), varying(Switch(0.3, 0.0, 3.0)), lead="!")
        ),
        "env": judged_by(coarse),
        "tasks": FromFunction(hinted_tasks),
    },
    "criticised": {
        "method": critique_grpo(6).but(sample=Refined(Independent(4), brief, "?")),
        "env": judged_by(late),
    },
    "reflected": {
        "method": r3(6, 4).but(sample=Reflected(Independent(4), 0.9, "!", "?")),
        "env": judged_by(coarse),
        "tasks": FromFunction(few_tasks),
    },
    "knapsack": {
        "method": knapsack_rl(4, high=8),
        "env": judged_by(coarse),
        "tasks": FromFunction(few_tasks),
    },
    "bandit": {
        "method": vade(4, candidates=4),
        "env": judged_by(coarse),
        "tasks": FromFunction(few_tasks),
    },
    "single": {"method": spo(2), "env": judged_by(coarse), "tasks": FromFunction(few_tasks)},
}
