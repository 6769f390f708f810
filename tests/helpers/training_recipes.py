"""Recipes of five-step runs of a tiny language model, one for each kind of configuration."""

from collections.abc import Mapping
from typing import Any

from grupo.algo.advantages import Center, chain
from grupo.algo.ema import EMA
from grupo.algo.filters import Replay, keep_nonzero_std
from grupo.algo.losses import KL, Clip, Entropy
from grupo.algo.minibatches import SingleUpdate, Updates
from grupo.algo.optimizers import Adam
from grupo.algo.replay_rules import FillFromBuffer
from grupo.core.controllers import AdaptiveKL
from grupo.core.reference_update import ReferenceUpdate
from grupo.core.schedules import Cosine, Linear, Warmup
from grupo.envs import MultiTurn, RewardTerm, Unscored
from grupo.envs.image_generation import ImageGeneration
from grupo.inference.soft_tokens import SoftThinkingConfig
from grupo.method import Method
from grupo.methods.arpo_gui_replay import arpo_gui_replay
from grupo.methods.branch_grpo import branch_grpo
from grupo.methods.coupled_grpo import coupled_grpo
from grupo.methods.dapo import dapo
from grupo.methods.flow_grpo import flow_grpo
from grupo.methods.gigpo import gigpo
from grupo.methods.hill import hill
from grupo.methods.sft import sft
from grupo.methods.soft_grpo import soft_grpo
from grupo.methods.tempflow_grpo import tempflow_grpo
from grupo.models.base import AuxModel
from grupo.models.causal_lm import CausalLM
from grupo.models.flow import Flow
from grupo.models.lora import Lora
from grupo.models.masked.unmask_order import ConfidenceOrder
from grupo.models.masked_diffusion import MaskedDiffusion
from grupo.models.multi_policy_spec import MultiPolicy, RolePolicy
from grupo.models.soft_thinking_lm import SoftThinkingLM
from grupo.recipe import EarlyStopping, Evaluation, Recipe
from grupo.rollouts.evaluate import SuccessCriterion
from grupo.rollouts.samplers import GroupSampler, ReviewPairs, with_self_hints
from grupo.rollouts.samplers.self_hint import prompt_without_hint
from grupo.rollouts.turns import ThinkingBudget
from grupo.storage.keep import KeepCheckpoints
from grupo.tasks import FromFunction
from tests.helpers.blind_policy import BlindLM, PictureGame, pictured_tasks
from tests.helpers.training_components import (
    MASKED,
    METHOD,
    WIDE,
    HeadsAndReverseKL,
    LetterGame,
    MinusTaskMean,
    ToolLetters,
    bright,
    coarse,
    demonstrated,
    env_with_reward,
    extract_hint,
    failing,
    few_tasks,
    fine,
    hint_prompt,
    late,
    prompt_with_exclamation,
    same,
    talkative,
    tasks,
)
from tests.helpers.training_samplers import SAMPLED


def base(model: str) -> Recipe:
    """Plain GRPO."""
    return Recipe(
        policy=CausalLM(model, max_new_tokens=6, device="cpu"),
        env=env_with_reward(fine),
        tasks=FromFunction(tasks),
        eval_tasks=3,
        method=Method(sampler=GroupSampler(4)),
        max_steps=5,
        prompts_per_step=2,
        learning_rate=1e-2,
        evaluation=Evaluation(attempts=2, every=2, success=SuccessCriterion(min_reward=0.5)),
        save_every=2,
    )


SELF_HINT = hill(2, 2).replace(
    sampler=with_self_hints(
        GroupSampler(2),
        2,
        hint_prompt=hint_prompt,
        extract_hint=extract_hint,
        prefix_text="",
        success_threshold=2.0,
    ),
    loss=Clip() + 0.5 * KL() + HeadsAndReverseKL(),
    reference=ReferenceUpdate(0.5, 2),
)
ROLES: Mapping[str, Any] = {
    "method": SELF_HINT,
    "env": env_with_reward(late),
    "aux_models": (
        AuxModel("hot", prompt_override=prompt_with_exclamation),
        AuxModel("unhinted", prompt_override=prompt_without_hint),
    ),
}
REPLAY_BUFFER: Mapping[str, Any] = {
    "method": METHOD.replace(sampler=GroupSampler(4), replay=FillFromBuffer(4)),
    "env": env_with_reward(coarse),
    "tasks": FromFunction(few_tasks),
    "max_steps": 6,
}
PICTURES: Mapping[str, Any] = {
    "env": MultiTurn(PictureGame, max_turns=3),
    "tasks": FromFunction(pictured_tasks),
}
CHANGES: Mapping[str, Mapping[str, Any]] = {
    "grpo": {},
    "kl": {
        "method": METHOD.replace(loss=Clip() + 0.5 * KL() + -0.01 * Entropy()),
        "old_logp_tolerance": 0.0,
    },
    "async": {"max_staleness": 2},
    "tokens per step": {"max_staleness": 2, "tokens_per_step": 2},
    "tokens per step async": {"max_staleness": 3, "tokens_per_step": 2},
    "tokens per step refilled": {
        "method": dapo(
            max_length=6, overlong_buffer=4, group_size=4, max_resample_rounds=3
        ).replace(updates=SingleUpdate()),
        "env": env_with_reward(coarse),
        "max_staleness": 1,
        "tokens_per_step": 4,
    },
    "tokens per step turns": {
        "env": MultiTurn(ToolLetters, (RewardTerm("part", fine),), max_turns=3),
        "max_staleness": 3,
        "tokens_per_step": 5,
    },
    "lora": {"method": METHOD.replace(loss=Clip() + 0.5 * KL())},
    "bfloat16": {},
    "dapo": {
        "method": dapo(
            max_length=6, overlong_buffer=4, group_size=4, max_resample_rounds=3
        ).replace(updates=SingleUpdate()),  # a step has two groups
        "env": env_with_reward(coarse),
    },
    "epochs": {
        "method": METHOD.replace(updates=Updates(2, 2)),
        "optimizer": Adam(weight_decay=0.1),
    },
    "schedules": {
        "method": METHOD.replace(loss=Clip(Linear(0.02, 0.3), 0.28), updates=Updates(2, 1)),
        "learning_rate": Warmup(0.5, Cosine(2e-2)),
    },
    "task history": {
        "method": METHOD.replace(advantage=MinusTaskMean()),
        "tasks": FromFunction(few_tasks),
    },
    "replay": {
        "method": METHOD.replace(sampler=GroupSampler(2), filter=Replay(2)),
        "env": env_with_reward(coarse),
        "tasks": FromFunction(few_tasks),
    },
    "replay async": {
        "method": METHOD.replace(sampler=GroupSampler(2), filter=Replay(2)),
        "env": env_with_reward(coarse),
        "tasks": FromFunction(few_tasks),
        "max_staleness": 1,
    },
    "replaced": {
        "method": arpo_gui_replay(2, capacity=3, reward_term="part"),
        "env": env_with_reward(coarse),
        "tasks": FromFunction(few_tasks),
        "max_steps": 8,
    },
    "replay_buffer": REPLAY_BUFFER,
    "replay buffer async": {**REPLAY_BUFFER, "max_staleness": 1},
    "late": {"env": env_with_reward(late)},
    "sft": {
        "method": sft(),
        "env": Unscored(),
        "tasks": FromFunction(demonstrated),
        "evaluation": Evaluation(attempts=0, every=2),
    },
    "failing": {
        "method": METHOD.replace(advantage=chain(MinusTaskMean(), Center())),
        "env": env_with_reward(failing),
        "tasks": FromFunction(few_tasks),
    },
    "turns": {"method": gigpo(4, kl_coef=0.0), "env": MultiTurn(LetterGame, max_turns=3)},
    "tools": {
        "env": MultiTurn(ToolLetters, (RewardTerm("part", fine),), max_turns=3),
    },
    "no signal": {"method": METHOD.replace(filter=keep_nonzero_std), "env": env_with_reward(same)},
    "aux models": {
        "method": METHOD.replace(
            loss=Clip() + AdaptiveKL(0.5, 0.01) * KL() + HeadsAndReverseKL(),
            reference=ReferenceUpdate(0.5, 2),
        ),
        "aux_models": (AuxModel("hot", prompt_override=prompt_with_exclamation),),
    },
    "lora aux models": {
        "method": METHOD.replace(loss=Clip() + 0.5 * KL(), reference=ReferenceUpdate(1.0, 2)),
    },
    "masked": {"method": coupled_grpo(group_size=4, epochs=2)},
    "masked async": {"method": coupled_grpo(group_size=4), "max_staleness": 1},
    "soft": {"method": soft_grpo(group_size=4)},
    "soft async": {"method": soft_grpo(group_size=4), "max_staleness": 1},
    "evaluation budget": {
        "evaluation": Evaluation(
            2, 2, SuccessCriterion(min_reward=0.5), turn_strategy=ThinkingBudget(2, 3, "P")
        )
    },
    "roles": ROLES,
    "frozen main policy": {
        "method": METHOD.replace(
            sampler=ReviewPairs(4, "{answer}", "{review}"),
            loss=Clip() + 0.5 * KL(),
            reference=ReferenceUpdate(0.5, 2),
        )
    },
    "roles async": {**ROLES, "max_staleness": 1},
    "roles tokens per step": {**ROLES, "max_staleness": 2, "tokens_per_step": 3},
    "ema": {"ema": EMA(0.75), "method": METHOD.replace(updates=Updates(2, 1))},
    "best checkpoint": {
        "evaluation": Evaluation(2, 1, SuccessCriterion(min_reward=0.5)),
        "keep": KeepCheckpoints(last=1, best=1),
        "save_every": 3,
    },
    "patience": {
        "early_stopping": EarlyStopping(patience=1, min_delta=0.6),
        "max_steps": 20,
    },
    "kl limit": {
        "method": METHOD.replace(loss=Clip() + 0.5 * KL()),
        "early_stopping": EarlyStopping(max_kl=1e-4),
        "max_steps": 20,
    },
    "early stopping": {"early_stopping": EarlyStopping(0.9), "max_steps": 20},
    "flow": {
        "method": flow_grpo(group_size=4, clip_eps=1e-3),
        "env": ImageGeneration((RewardTerm("part", bright),)),
    },
    "flow branches": {
        "method": branch_grpo(split_steps=(0, 1), clip_eps=1e-3),
        "env": ImageGeneration((RewardTerm("part", bright),)),
    },
    "flow deviations": {
        "method": tempflow_grpo(branches_per_step=2, branch_steps=(0, 1)),
        "env": ImageGeneration((RewardTerm("part", bright),)),
    },
    "no evaluation": {"eval_tasks": 0, "evaluation": Evaluation()},
    "long": {"max_steps": 12},
    "wide": {
        "method": METHOD.replace(sampler=GroupSampler(8)),
        "prompts_per_step": 4,
        "max_steps": 3,
    },
    "pictures": {**PICTURES, "max_staleness": 1},
    "pictures replayed": {
        **PICTURES,
        "method": METHOD.replace(sampler=GroupSampler(2), filter=Replay(2)),
        "env": env_with_reward(coarse),
    },
    "pictures replay buffer": {
        **PICTURES,
        **{x: REPLAY_BUFFER[x] for x in ("method",)},
        "env": env_with_reward(coarse),
    },
    "pictures tokens per step": {**PICTURES, "max_staleness": 3, "tokens_per_step": 5},
    "talkative": {"env": env_with_reward(talkative)},
    "other seed": {"seed": 1},
    **SAMPLED,
}

# the learning rate and the end of the run depend on the time of the steps
TIMED: Mapping[str, Mapping[str, Any]] = {
    "timed": {
        "early_stopping": EarlyStopping(max_seconds=60.0),
        "learning_rate": Linear(1e-2, 0.0),
        "max_steps": 10_000,
        "save_every": 3,
    }
}

# the beginnings of runs that are extended
SHORTER: Mapping[str, Mapping[str, Any]] = {
    "grpo of 4": {"max_steps": 4},
    "schedules of 4": {**CHANGES["schedules"], "max_steps": 4},
    "odd of 3": {"max_steps": 3, "save_every": 3},
    "patient of 20": {"early_stopping": EarlyStopping(patience=1, min_delta=0.9), "max_steps": 20},
}


def recipe(name: str, model: str) -> Recipe:
    """The recipe of this name, with the models in the folder `model`."""
    lora = {"lora": Lora(2, 4.0)}
    policy_fields = {"lora": lora, "lora aux models": lora, "bfloat16": {"dtype": "bfloat16"}}
    cpu = {"device": "cpu"}
    policy = CausalLM(model, max_new_tokens=6, **cpu, **policy_fields.get(name, {}))
    policies = {
        "flow": Flow(f"{model}/flow", num_steps=3, **cpu),
        "masked": masked(f"{model}/{MASKED}"),
        "wide": CausalLM(f"{model}/{WIDE}", max_new_tokens=16, **cpu),
        "pictures": BlindLM(model, max_new_tokens=6, **cpu),
        "soft": SoftThinkingLM(policy, SoftThinkingConfig(2, "!", 3)),
        "frozen": MultiPolicy(
            policy, (RolePolicy("reviewer", CausalLM(model, max_new_tokens=4, **cpu)),), False
        ),
        "roles": MultiPolicy(
            policy, (RolePolicy("hinter", CausalLM(model, Lora(2, 4.0), max_new_tokens=4, **cpu)),)
        ),
    }
    changes = {**CHANGES, **TIMED, **SHORTER}[name]
    return base(model).replace(policy=policies.get(name.split()[0], policy), **changes)


def masked(model: str) -> MaskedDiffusion:
    """A masked diffusion policy that unmasks the most confident of three positions first."""
    return MaskedDiffusion(model, device="cpu", order=ConfidenceOrder(3), max_new_tokens=6)
