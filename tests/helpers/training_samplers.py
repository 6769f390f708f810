"""Recipes with every sampler, curriculum and turn strategy, as changes of the basic recipe."""

from collections.abc import Mapping
from math import inf
from typing import Any

from grupo.algo.advantages.budget_relative import BudgetRelativeAdvantage
from grupo.algo.minibatches import Updates
from grupo.core.controllers import Quantile
from grupo.core.elites import Axis
from grupo.core.schedules import Switch
from grupo.envs import MultiTurn, RewardTerm
from grupo.methods.arrol import arrol
from grupo.methods.critique_grpo import critique_grpo
from grupo.methods.gfpo import KeepBestByDifficulty, gfpo
from grupo.methods.knapsack_rl import knapsack_rl
from grupo.methods.r3 import r3
from grupo.methods.scaf_grpo import scaf_grpo
from grupo.methods.spo_single_stream import spo_single_stream
from grupo.methods.t_ppo import t_ppo
from grupo.methods.vade import vade
from grupo.rollouts.curricula import SourceBandit
from grupo.rollouts.samplers import (
    AnytimeBudgets,
    EarlyExits,
    EntropyBranching,
    Evolved,
    FirstTurnTree,
    GroupPart,
    GroupSampler,
    ResampleUntilInformative,
    Rescue,
    RescueAttempt,
    SegmentTree,
    SolvedExamples,
    SplitGroup,
    WithReflection,
    with_critique,
    with_hint,
    with_scaffold,
)
from grupo.rollouts.samplers.merge_rules import replace_all
from grupo.rollouts.turns import ChunkedThinking, ThinkingBudget
from grupo.tasks import FromFunction
from tests.helpers.training_components import (
    METHOD,
    LetterGame,
    brief,
    coarse,
    env_with_reward,
    few_tasks,
    hinted_tasks,
    late,
    similar_tasks,
    sourced_tasks,
)

QUARTILES = tuple(Quantile("group/reward", q, inf, min_values=2) for q in (0.25, 0.5, 0.75))
SAMPLED: Mapping[str, Mapping[str, Any]] = {
    "again": {
        "method": METHOD.replace(sampler=ResampleUntilInformative(GroupSampler(4), 3)),
        "env": env_with_reward(late),
        "prompts_per_step": 6,
    },
    "tree": {"method": METHOD.replace(sampler=FirstTurnTree(2, 2))},
    "budgets": {"method": METHOD.replace(sampler=GroupSampler(4, ThinkingBudget(2, 3, "P")))},
    "chunks": {"method": METHOD.replace(sampler=GroupSampler(4, ChunkedThinking(3, 1, 1, 3)))},
    "exits": {
        "method": METHOD.replace(sampler=ResampleUntilInformative(EarlyExits(3, ",", "."), 3)),
        "env": env_with_reward(late),
    },
    "anytime": {
        "method": METHOD.replace(
            sampler=AnytimeBudgets(2, (1, 3), 2, 2, ",", ".", ""),
            advantage=BudgetRelativeAdvantage((1.0, 1.0), 2),
        )
    },
    "windows": {
        "method": t_ppo(4, window=2, max_length=6),
        "env": env_with_reward(late),
    },
    "split": {
        "method": METHOD.replace(
            sampler=SplitGroup(4, parts=(GroupPart(0.0, ","), GroupPart(1.0, ".", "!")))
        )
    },
    "quartiles": {
        "method": gfpo(4, 2).replace(filter=KeepBestByDifficulty((4, 3, 2, 1), QUARTILES)),
        "env": env_with_reward(late),
    },
    "pruned": {
        "method": arrol(4, prune_at=2, max_new_tokens_after=4, always_keep=1),
        "env": env_with_reward(late),
    },
    "segments": {
        "method": METHOD.replace(sampler=SegmentTree(4, 2, 3)),
        "env": env_with_reward(late),
    },
    "sources": {
        "method": METHOD.replace(curriculum=SourceBandit(recent_rollouts=8)),
        "env": env_with_reward(late),
        "tasks": FromFunction(sourced_tasks),
    },
    "unsure": {
        "method": METHOD.replace(sampler=EntropyBranching(4, 2)),
        "env": MultiTurn(LetterGame, (RewardTerm("part", late),), max_turns=3),
    },
    "hinted": {
        "method": METHOD.replace(sampler=with_hint(GroupSampler(4), prefix_text="!")),
        "env": env_with_reward(coarse),
        "tasks": FromFunction(hinted_tasks),
    },
    "scaffolded": {
        "method": scaf_grpo(4, warmup_fraction=0.3).replace(
            sampler=with_scaffold(GroupSampler(4), Switch(0.3, 0.0, 3.0), prefix_text="!"),
            updates=Updates(minibatches=2),  # a step has two groups
        ),
        "env": env_with_reward(coarse),
        "tasks": FromFunction(hinted_tasks),
    },
    "criticised": {
        "method": critique_grpo(6).replace(sampler=with_critique(GroupSampler(4), brief, "?")),
        "env": env_with_reward(late),
    },
    "exemplified": {
        "method": METHOD.replace(
            sampler=Rescue(GroupSampler(4), (RescueAttempt(SolvedExamples(2), replace_all),))
        ),
        "env": env_with_reward(coarse),
        "tasks": FromFunction(similar_tasks),
    },
    "reflected": {
        "method": r3(6, 4).replace(sampler=WithReflection(GroupSampler(4), 0.9, "!", "?")),
        "env": env_with_reward(coarse),
        "tasks": FromFunction(few_tasks),
    },
    "evolved": {
        "method": METHOD.replace(
            sampler=Evolved(
                GroupSampler(4),
                cells=(Axis("part", 0.0, 1.0, 3),),
                score_text="",
                parent_text="!",
                instruction="?",
            )
        ),
        "env": env_with_reward(coarse),
        "tasks": FromFunction(few_tasks),
    },
    "knapsack": {
        "method": knapsack_rl(4, max_group_size=8).replace(updates=Updates(minibatches=2)),
        "env": env_with_reward(coarse),
        "tasks": FromFunction(few_tasks),
    },
    "bandit": {
        "method": vade(4, pool_factor=4),
        "env": env_with_reward(coarse),
        "tasks": FromFunction(few_tasks),
    },
    "single": {
        "method": spo_single_stream(2).replace(updates=Updates(minibatches=2)),
        "env": env_with_reward(coarse),
        "tasks": FromFunction(few_tasks),
    },
}
