"""Runs of five steps of a language model of a few thousand numbers, in every way that differs."""

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random, SystemRandom
from typing import Any

import torch
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

from grupo.batch import Batch, Signals
from grupo.controllers import AdaptiveKL
from grupo.credit import Center, chain
from grupo.credit.budgets import BudgetRelative
from grupo.curate import Replay, informative
from grupo.envs import ManyTurns, Part, SingleTurn
from grupo.envs.images import Images
from grupo.evaluation import Solved
from grupo.grow import MaskedSeedling
from grupo.grow.tokenizers import phrase_tokenizer
from grupo.helpers import Head
from grupo.losses import KL, Clip, Entropy, Loss
from grupo.method import Method
from grupo.methods.arrol import arrol
from grupo.methods.coupled_grpo import coupled_grpo
from grupo.methods.dapo import dapo
from grupo.methods.flow_grpo import flow_grpo
from grupo.methods.gigpo import gigpo
from grupo.methods.hill import hill
from grupo.methods.soft_grpo import soft_grpo
from grupo.optimize import Adam
from grupo.piece import piece
from grupo.plans import Passes
from grupo.policies.causal_lm import CausalLM
from grupo.policies.company import Other
from grupo.policies.flow import Flow
from grupo.policies.flows.small import SmallFlow
from grupo.policies.loading import Lora
from grupo.policies.masked.orders import Confident
from grupo.policies.masked_diffusion import MaskedDiffusion
from grupo.policies.several import Role, Several
from grupo.policies.soft_lm import SoftLM
from grupo.policies.thoughts import Thoughts
from grupo.recipe import Evaluation, Recipe, Until
from grupo.references import Follow
from grupo.rewards.image import pixels
from grupo.rollout import Group, Rollout, Task
from grupo.sampling import (
    Anytime,
    BranchWhenUnsure,
    Budgeted,
    Chunked,
    Coached,
    EarlyExits,
    Independent,
    SegmentTree,
    Tree,
    UntilInformative,
)
from grupo.sampling.coached import unhinted
from grupo.schedules import Cosine, Linear, Warmup
from grupo.tasks import FromFunction

LETTERS = "abcdefg"
MASKED = "masked"  # where in the folder of the model the one lies that is not causal


def plant(folder: Path) -> None:
    """A model with peaked distributions over characters, as transformers saves it, and a masked."""
    torch.manual_seed(1)
    tokenizer = phrase_tokenizer([])
    wide = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 32}
    ends = {"bos_token_id": None, "eos_token_id": 0, "pad_token_id": 0}
    config = LlamaConfig(
        vocab_size=len(tokenizer), tie_word_embeddings=True, **wide, **heads, **ends
    )
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        for parameter in (p for p in model.parameters() if p.ndim > 1):
            parameter.normal_(0, 0.4)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    painter = SmallFlow(tuple(letter * n for letter in LETTERS for n in (1, 2, 3)), 8, 8)
    torch.nn.init.normal_(painter.out.weight, std=0.1)
    painter.save_pretrained(folder / "flow")
    MaskedSeedling(width=16, layers=1, heads=2).plant(folder / MASKED)


def tasks() -> Iterator[Task]:
    for i in range(23):
        yield Task(f"task {i}", LETTERS[i % 7] * (1 + i % 3))


def few_tasks() -> Iterator[Task]:
    yield from list(tasks())[:7]


def fine(task: Task, rollout: Rollout) -> float:
    """The share of characters that come before P: a reward of many values."""
    return sum(c < "P" for c in rollout.text) / 6


def coarse(task: Task, rollout: Rollout) -> float:
    """Right or wrong, mostly wrong: many groups are of one kind."""
    return float(ord(rollout.text[:1] or " ") % 4 == 0)


def same(task: Task, rollout: Rollout) -> float:
    """Always as good: there is nothing to learn."""
    return 0.5


async def late(task: Task, rollout: Rollout) -> float:
    """As `coarse`, after a time that nobody knows beforehand."""
    await asyncio.sleep(SystemRandom().random() * 0.004)
    return coarse(task, rollout)


def failing(task: Task, rollout: Rollout) -> float:
    """As `fine`, but fails every third time."""
    if sum(map(ord, rollout.text)) % 3 == 0:
        raise ValueError(f"no mark for {rollout.text!r}")
    return fine(task, rollout)


def bright(task: Task, rollout: Rollout) -> float:
    """How light a picture is."""
    return pixels(rollout).mean().item()


def talkative(task: Task, rollout: Rollout) -> Mapping[str, float]:
    """As `fine`, with many more numbers: the journal outgrows the weights."""
    return {"score": fine(task, rollout), **{f"number {i}": i / 7 for i in range(60)}}


class Echoing:
    """A world of several turns: it says a letter that it draws, and pays for others."""

    def reset(self, task: Task) -> str:
        self.letters = Random(task.key)
        return str(task.prompt)

    def step(self, text: str) -> tuple[str, float, bool]:
        wanted = self.letters.choice("abcdefg")
        return wanted, sum(c < "P" for c in text) / 6, text.startswith("Z")


@piece
class Surprise:
    """The reward less the mean of what its task earned before: a credit that remembers."""

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        before = [sum(past.means) / max(1, len(past.means)) for past in batch.past]
        return x - torch.tensor(before).to(x)[batch.group]


def louder(group: Group, rollout: Rollout) -> str:
    """A view: the prompt, louder."""
    return f"{group.task.prompt}!"


def asked(task: Task, attempt: Rollout) -> str:
    """What who hints is shown."""
    return f"{task.prompt}{attempt.text[:2]}"


def begun(text: str) -> str:
    """The hint in what was said."""
    return text[:2].strip()


@piece
class Valued(Loss):
    """Learns a value of each state, and compares the policy with itself in another view."""

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"value", "reverse_kl@hot"})

    @property
    def live(self) -> frozenset[str]:
        return self.needs

    @property
    def helpers(self) -> tuple[Head, ...]:
        return (Head("value"),)

    def __call__(self, pi: Signals, batch: Batch) -> Tensor:
        return (pi["value"] - batch.advantage) ** 2 + 0.1 * pi["reverse_kl@hot"]


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


def judged_by(reward) -> SingleTurn:
    return SingleTurn((Part("part", reward),))


METHOD = Method(sample=Independent(4))
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
    "turns": {"method": gigpo(4, kl=0.0), "env": ManyTurns(Echoing, turns=3)},
    "unsure": {
        "method": METHOD.but(sample=BranchWhenUnsure(4, 2)),
        "env": ManyTurns(Echoing, (Part("part", late),), turns=3),
    },
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
    "unheld": {"held_out": 0, "evaluation": Evaluation()},
    "long": {"steps": 12},
    "talkative": {"env": judged_by(talkative)},
    "other seed": {"seed": 1},
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
    return made.but(policy=others.get(name.removesuffix(" ahead"), policy), **CHANGES[name])


def masked(model: str) -> MaskedDiffusion:
    """One that unmasks the likeliest places of three first."""
    return MaskedDiffusion(model, device="cpu", order=Confident(3), limit=6)
