"""From nothing to a small language model that was shown how to go about in a world of turns."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import torch

from grupo.algo.advantages import identity
from grupo.algo.losses import NLL
from grupo.core.batch import Batch, PerAction
from grupo.core.component import component
from grupo.core.interfaces import Actor, Env
from grupo.core.schedules import Cosine, Warmup
from grupo.core.types import Group, Observation, Rollout, Task
from grupo.method import Method
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Adam, Recipe, TaskSource
from grupo.toy.tokenizers import END_TOKEN, word_tokenizer
from grupo.toy.untrained_llama import LlamaArchitecture

# what somebody says of a task who has heard all this, by random numbers
Demonstrator = Callable[[Task, Sequence[Observation], Random], str]
CHAT_TEMPLATE = (
    "{% for m in messages %}{{ m.role }}: {{ m.content }}"
    "{% if m.role == 'assistant' %}" + END_TOKEN + "{% endif %}{{ '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)
ROLE_PREFIXES = ("user: ", "assistant: ", "tool: ")


@component
class MultiTurnDemonstrations:
    """A rollout in which `speaker` says every turn in the policy's place, for reward 1."""

    demonstrator: Demonstrator

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        rollout, heard, rng = Rollout(source="worked"), list[Observation](), actor.rng("speaker")
        while (seen := await env.reply(task, rollout)) is not None:
            heard.append(seen)
            said = await actor.append_unsampled(rollout, seen, self.demonstrator(task, heard, rng))
            rollout = rollout.append_turn(seen, said)
        return Group(task, (replace(rollout, reward=1.0),))


@component
class LaterTurnsWeighted:
    """Every token counts the same, but `times` as much after the first turn.

    There a word answers what was heard; it would be lost among all the words of a call.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> LaterTurnsWeighted(2.0)(make_batch(group=[0], length=[3], turn=[[0, 0, 1]])).tolist()
    [[0.25, 0.25, 0.5]]
    """

    weight: float = 8.0

    def __call__(self, batch: Batch) -> PerAction:
        share = batch.mask * torch.where(batch.turn > 0, self.weight, 1.0).to(batch.old_logp)
        return share / share.sum()


@component
class ToyMultiTurnLM:
    """A Llama of a quarter of a million parameters, and what it is shown.

    In `world` it hears what `speaker` says of `tasks`. Its tokenizer lays out chats, and knows the
    words of `texts` and each of `whole` as one token.
    """

    name: str
    env: Env
    tasks: TaskSource
    demonstrator: Demonstrator
    texts: tuple[str, ...]
    single_token_texts: tuple[str, ...] = ()
    architecture: LlamaArchitecture = LlamaArchitecture(hidden_size=96, intermediate_size=256)
    prompts_per_step: int = 32
    max_steps: int = 900
    learning_rate: float = 6e-3
    seed: int = 0

    def recipe(self, model_path: Path) -> Recipe:
        """Supervision is the same trainer: what was shown as rollouts, a likelihood loss."""
        return Recipe(
            policy=CausalLM(str(model_path), apply_chat_template=True, tokens_per_microbatch=8192),
            env=self.env,
            tasks=self.tasks,
            eval_tasks=0,
            method=Method(
                sampler=MultiTurnDemonstrations(self.demonstrator),
                advantage=identity,
                loss=NLL(),
                aggregation=LaterTurnsWeighted(),
            ),
            max_steps=self.max_steps,
            prompts_per_step=self.prompts_per_step,
            learning_rate=Warmup(0.05, Cosine(self.learning_rate, self.learning_rate / 20)),
            optimizer=Adam(weight_decay=0.01),
            save_every=self.max_steps,
            seed=self.seed,
        )

    def save_untrained(self, folder: Path) -> None:
        """An untrained model and its tokenizer, as transformers saves them."""
        tokenizer = word_tokenizer((*ROLE_PREFIXES, *self.texts), self.single_token_texts)
        tokenizer.chat_template = CHAT_TEMPLATE
        self.architecture.save_untrained(folder, tokenizer, self.seed)

    @property
    def model_dir(self) -> Path:
        """Where the grown model is kept, by its name: another one needs another name."""
        return Path(os.environ.get("GRUPO_HOME", ".grupo")) / "models" / self.name
