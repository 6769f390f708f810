"""A toy language model, trained from scratch on demonstrations in a multi-turn environment."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import torch

from grupo.algo.advantages import identity
from grupo.algo.losses import NLL
from grupo.algo.optimizers.decay import all_parameters
from grupo.core.batch import Batch, PerAction
from grupo.core.component import component
from grupo.core.interfaces import Actor, Env, EnvSpec
from grupo.core.schedules import Cosine, Warmup
from grupo.core.types import Group, Observation, Rollout, Task
from grupo.method import Method
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Adam, Recipe, TaskSource
from grupo.toy.model_dir import model_dir_of
from grupo.toy.tokenizers import END_TOKEN, word_tokenizer
from grupo.toy.untrained_llama import LlamaArchitecture

# the next text of a demonstration, given the task, the observations so far and random numbers
Demonstrator = Callable[[Task, Sequence[Observation], Random], str]
CHAT_TEMPLATE = (
    "{% for m in messages %}{{ m.role }}: {{ m.content }}"
    "{% if m.role == 'assistant' %}" + END_TOKEN + "{% endif %}{{ '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)
ROLE_PREFIXES = ("user: ", "assistant: ", "tool: ")


@component
class MultiTurnDemonstrations:
    """Sampler of one demonstration per task: a demonstrator answers every turn, for reward 1.

    Args:
        demonstrator: Returns the next text, given the task, the observations and random numbers.
    """

    demonstrator: Demonstrator

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        rollout = Rollout(source="demonstration")
        observations: list[Observation] = []
        rng = actor.rng("speaker")
        while (observation := await env.reply(task, rollout)) is not None:
            observations.append(observation)
            text = self.demonstrator(task, observations, rng)
            response = await actor.append_unsampled(rollout, observation, text)
            rollout = rollout.append_turn(observation, response)
        return Group(task, (replace(rollout, reward=1.0),))


@component
class LaterTurnsWeighted:
    """Token mean in which tokens after the first turn have a larger weight.

    The answer to a tool's result is a few tokens, which the tokens of the call would outweigh.

    Args:
        weight: Weight of a token after the first turn, relative to one of the first turn.

    >>> from grupo.testing.batches import make_batch
    >>> LaterTurnsWeighted(2.0)(make_batch(group=[0], length=[3], turn=[[0, 0, 1]])).tolist()
    [[0.25, 0.25, 0.5]]
    """

    weight: float = 8.0

    def __call__(self, batch: Batch) -> PerAction:
        weights = batch.mask * torch.where(batch.turn > 0, self.weight, 1.0).to(batch.old_logp)
        return weights / weights.sum()


@component
class ToyMultiTurnLM:
    """A Llama of 0.25 million parameters with a chat template, fine-tuned on demonstrations.

    Args:
        name: First part of the folder's name.
        env: Environment of the demonstrations.
        tasks: Training tasks.
        demonstrator: Answers every turn of a demonstration.
        texts: Texts whose words become tokens.
        single_token_texts: Texts that become one token each.
        architecture: Size of the model.
        prompts_per_step: Tasks of a step.
        max_steps: Number of steps.
        learning_rate: Peak learning rate.
        seed: Seed of weights and training.
    """

    name: str
    env: EnvSpec
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
        """Supervised fine-tuning as a recipe: demonstrations as rollouts, the NLL as the loss."""
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
            optimizer=Adam(weight_decay=0.01, decayed=all_parameters),
            save_every=self.max_steps,
            seed=self.seed,
        )

    def save_untrained(self, folder: Path) -> None:
        """Save an untrained model and its tokenizer for transformers."""
        tokenizer = word_tokenizer((*ROLE_PREFIXES, *self.texts), self.single_token_texts)
        tokenizer.chat_template = CHAT_TEMPLATE
        self.architecture.save_untrained(folder, tokenizer, self.seed)

    @property
    def model_dir(self) -> Path:
        """The folder of the trained model; equal specifications share it."""
        return model_dir_of(self, self.name)
