"""Runs of five steps of a language model of a few thousand numbers, in every way that differs."""

from collections.abc import Mapping
from typing import Any

from grupo.algo.advantages import Center, chain
from grupo.algo.filters import Replay, informative
from grupo.algo.losses import KL, Clip, Entropy
from grupo.algo.minibatches import Passes
from grupo.algo.optimizer import Adam
from grupo.core.controllers import AdaptiveKL
from grupo.core.reference_update import Follow
from grupo.core.schedules import Cosine, Linear, Warmup
from grupo.envs import ManyTurns, Part
from grupo.envs.image_generation import Images
from grupo.inference.soft_tokens import Thoughts
from grupo.method import Method
from grupo.methods.branch_grpo import branch_grpo
from grupo.methods.coupled_grpo import coupled_grpo
from grupo.methods.dapo import dapo
from grupo.methods.flow_grpo import flow_grpo
from grupo.methods.gigpo import gigpo
from grupo.methods.hill import hill
from grupo.methods.soft_grpo import soft_grpo
from grupo.methods.tempflow_grpo import tempflow_grpo
from grupo.models.aux_models import Other
from grupo.models.causal_lm import CausalLM
from grupo.models.flow import Flow
from grupo.models.loading import Lora
from grupo.models.masked.unmask_order import Confident
from grupo.models.masked_diffusion import MaskedDiffusion
from grupo.models.multi_policy_spec import Role, Several
from grupo.models.soft_thinking_lm import SoftLM
from grupo.recipe import Evaluation, Recipe, Until
from grupo.rollouts.evaluate import Solved
from grupo.rollouts.samplers import Coached, Independent
from grupo.rollouts.samplers.self_hint import unhinted
from grupo.rollouts.turns import Budgeted
from grupo.tasks import FromFunction
from tests.helpers.training_components import (
    MASKED,
    METHOD,
    Echoing,
    Surprise,
    Valued,
    asked,
    begun,
    bright,
    coarse,
    failing,
    few_tasks,
    fine,
    judged_by,
    late,
    louder,
    same,
    talkative,
    tasks,
)
from tests.helpers.training_samplers import SAMPLED


def base(model: str) -> Recipe:
    """Plain GRPO."""
    return Recipe(
        policy=CausalLM(model, limit=6, device="cpu"),
        env=judged_by(fine),
        tasks=FromFunction(tasks),
        held_out=3,
        method=Method(sample=Independent(4)),
        steps=5,
        prompts=2,
        lr=1e-2,
        evaluation=Evaluation(attempts=2, every=2, solved=Solved(at_least=0.5)),
        save_every=2,
    )


COACHED = hill(2, 2).but(
    sample=Coached(Independent(2), 2, ask=asked, read=begun, lead="", right=2.0),
    loss=Clip() + 0.5 * KL() + Valued(),
    reference=Follow(0.5, 2),
)
ROLES: Mapping[str, Any] = {
    "method": COACHED,
    "env": judged_by(late),
    "others": (Other("hot", view=louder), Other("unhinted", view=unhinted)),
}
CHANGES: Mapping[str, Mapping[str, Any]] = {
    "grpo": {},
    "kl": {"method": METHOD.but(loss=Clip() + 0.5 * KL() + -0.01 * Entropy()), "tolerance": 0.0},
    "ahead": {"staleness": 2},
    "lora": {"method": METHOD.but(loss=Clip() + 0.5 * KL())},
    "bfloat16": {},
    "dapo": {"method": dapo(limit=6, margin=4, group=4, rounds=3), "env": judged_by(coarse)},
    "passes": {"method": METHOD.but(plan=Passes(2, 2)), "optimizer": Adam(decay=0.1)},
    "schedules": {
        "method": METHOD.but(loss=Clip(Linear(0.02, 0.3), 0.28), plan=Passes(2, 1)),
        "lr": Warmup(0.5, Cosine(2e-2)),
    },
    "past": {"method": METHOD.but(credit=Surprise()), "tasks": FromFunction(few_tasks)},
    "replay": {
        "method": METHOD.but(sample=Independent(2), curate=Replay(2)),
        "env": judged_by(coarse),
        "tasks": FromFunction(few_tasks),
    },
    "replay ahead": {
        "method": METHOD.but(sample=Independent(2), curate=Replay(2)),
        "env": judged_by(coarse),
        "tasks": FromFunction(few_tasks),
        "staleness": 1,
    },
    "late": {"env": judged_by(late)},
    "failing": {
        "method": METHOD.but(credit=chain(Surprise(), Center())),
        "env": judged_by(failing),
        "tasks": FromFunction(few_tasks),
    },
    "turns": {"method": gigpo(4, kl=0.0), "env": ManyTurns(Echoing, turns=3)},
    "idle": {"method": METHOD.but(curate=informative), "env": judged_by(same)},
    "company": {
        "method": METHOD.but(
            loss=Clip() + AdaptiveKL(0.5, 0.01) * KL() + Valued(), reference=Follow(0.5, 2)
        ),
        "others": (Other("hot", view=louder),),
    },
    "lora company": {
        "method": METHOD.but(loss=Clip() + 0.5 * KL(), reference=Follow(1.0, 2)),
    },
    "masked": {"method": coupled_grpo(group=4, epochs=2)},
    "masked ahead": {"method": coupled_grpo(group=4), "staleness": 1},
    "soft": {"method": soft_grpo(group=4)},
    "soft ahead": {"method": soft_grpo(group=4), "staleness": 1},
    "held to budgets": {
        "evaluation": Evaluation(2, 2, Solved(at_least=0.5), turn=Budgeted(2, 3, "P"))
    },
    "roles": ROLES,
    "roles ahead": {**ROLES, "staleness": 1},
    "until": {"until": Until(0.9), "steps": 20},
    "flow": {
        "method": flow_grpo(group=4, clip=1e-3),
        "env": Images((Part("part", bright),)),
    },
    "flow branches": {
        "method": branch_grpo(at=(0, 1), clip=1e-3),
        "env": Images((Part("part", bright),)),
    },
    "flow deviations": {
        "method": tempflow_grpo(branches=2, at=(0, 1)),
        "env": Images((Part("part", bright),)),
    },
    "unheld": {"held_out": 0, "evaluation": Evaluation()},
    "long": {"steps": 12},
    "talkative": {"env": judged_by(talkative)},
    "other seed": {"seed": 1},
    **SAMPLED,
}


def recipe(name: str, model: str) -> Recipe:
    """One of the recipes that differ."""
    made = base(model)
    adapted = {"lora": Lora(2, 4.0)}
    more = {"lora": adapted, "lora company": adapted, "bfloat16": {"dtype": "bfloat16"}}.get(
        name, {}
    )
    cpu = {"device": "cpu"}
    policy = CausalLM(model, limit=6, **cpu, **more)
    others = {
        "flow": Flow(f"{model}/flow", steps=3, **cpu),
        "masked": masked(f"{model}/{MASKED}"),
        "soft": SoftLM(policy, Thoughts(2, "!", 3)),
        "roles": Several(policy, (Role("hinter", CausalLM(model, Lora(2, 4.0), limit=4, **cpu)),)),
    }
    return made.but(policy=others.get(name.split()[0], policy), **CHANGES[name])


def masked(model: str) -> MaskedDiffusion:
    """One that unmasks the likeliest places of three first."""
    return MaskedDiffusion(model, device="cpu", order=Confident(3), limit=6)
