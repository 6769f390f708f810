"""Language models of 0.1 million parameters or fewer, trained within a test by the trainer."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from grupo.algo.advantages import identity
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import NLL
from grupo.core.schedules import Cosine
from grupo.core.types import Rollout, Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.method import Method
from grupo.models.causal_lm import CausalLM
from grupo.models.causal_policy import CausalPolicy
from grupo.recipe import Recipe
from grupo.rollouts.samplers import Sampler
from grupo.tasks import InMemoryTasks
from grupo.toy.tokenizers import word_tokenizer
from grupo.toy.untrained_llama import LlamaArchitecture
from grupo.training.start import create_trainer
from grupo.util.event_loop import run_coroutine


def zero(task: Task, rollout: Rollout) -> float:
    """A reward for runs that learn from demonstrations."""
    return 0.0


def untrained(
    folder: Path, texts: Sequence[str], whole: Sequence[str] = (), seed: int = 0, **size: int
) -> Path:
    """Save a small Llama with random weights, whose tokens are words of texts and whole texts."""
    architecture = LlamaArchitecture(**{"hidden_size": 32, "intermediate_size": 64, **size})
    architecture.save_untrained(folder, word_tokenizer(texts, whole), seed)
    return folder


def sft(sampler: Sampler) -> Method:
    """Likelihood of the sampler's rollouts."""
    return Method(sampler=sampler, advantage=identity, loss=NLL(), aggregation=token_mean)


def trained(model: Path, run: Path, tasks: Sequence[Task], method: Method, **recipe: Any) -> Any:
    """The policy after a run in the new folder `run`."""
    fields = {
        "max_steps": 100,
        "prompts_per_step": 32,
        "max_new_tokens": 8,
        "learning_rate": Cosine(2e-2, 1e-3),
    }
    fields |= recipe
    policy = CausalLM(str(model), max_new_tokens=fields.pop("max_new_tokens"), device="cpu")
    whole = {
        "policy": policy,
        "env": SingleTurn((RewardTerm("zero", zero),)),
        "tasks": InMemoryTasks(list(tasks)),
        "eval_tasks": 0,
        "method": method,
        "save_every": fields["max_steps"],
        **fields,
    }
    trainer = create_trainer(Recipe(**whole), run)
    with trainer.lock:
        trainer()
    policy = trainer.policy
    policy.sync_weights(policy.weight_sync.snapshot(), 0)
    return policy


def answers(policy: CausalPolicy, prompts: Sequence[str], attempts: int, key: int = 0) -> list[str]:
    """Texts of sampled answers, `attempts` of each prompt in turn."""

    async def generate() -> list[Any]:
        actor = policy.actor(key)
        return await asyncio.gather(
            *(
                actor.fork(p, i)(Rollout(), prompt)
                for p, prompt in enumerate(prompts)
                for i in range(attempts)
            )
        )

    return [action.text for action in run_coroutine(generate())]
