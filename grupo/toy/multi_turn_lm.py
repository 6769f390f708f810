"""From nothing to a small language model that was shown how to go about in a world of turns."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import torch

from grupo.algo.advantages import identity
from grupo.algo.losses import Likelihood
from grupo.core.batch import Batch, PerAction
from grupo.core.component import piece
from grupo.core.interfaces import Act, Env
from grupo.core.schedules import Cosine, Warmup
from grupo.core.types import Group, Observation, Rollout, Task
from grupo.method import Method
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Adam, Recipe, Source
from grupo.toy.tokenizers import END, word_tokenizer
from grupo.toy.untrained_llama import Llama

# what somebody says of a task who has heard all this, by random numbers
Speaker = Callable[[Task, Sequence[Observation], Random], str]
TEMPLATE = (
    "{% for m in messages %}{{ m.role }}: {{ m.content }}"
    "{% if m.role == 'assistant' %}" + END + "{% endif %}{{ '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)
ROLES = ("user: ", "assistant: ", "tool: ")


@piece
class Shown:
    """A rollout in which `speaker` says every turn in the policy's place, for reward 1."""

    speaker: Speaker

    async def __call__(self, task: Task, env: Env, act: Act) -> Group:
        rollout, heard, rng = Rollout(source="worked"), list[Observation](), act.chance("speaker")
        while (seen := await env.reply(task, rollout)) is not None:
            heard.append(seen)
            said = await act.recite(rollout, seen, self.speaker(task, heard, rng))
            rollout = rollout.then(seen, said)
        return Group(task, (replace(rollout, reward=1.0),))


@piece
class Later:
    """Every token counts the same, but `times` as much after the first turn.

    There a word answers what was heard; it would be lost among all the words of a call.

    >>> from grupo.testing.batches import batch_of
    >>> Later(2.0)(batch_of(group=[0], length=[3], turn=[[0, 0, 1]])).tolist()
    [[0.25, 0.25, 0.5]]
    """

    times: float = 8.0

    def __call__(self, batch: Batch) -> PerAction:
        share = batch.mask * torch.where(batch.turn > 0, self.times, 1.0).to(batch.old_logp)
        return share / share.sum()


@piece
class Apprentice:
    """A Llama of a quarter of a million parameters, and what it is shown.

    In `world` it hears what `speaker` says of `tasks`. Its tokenizer lays out chats, and knows the
    words of `texts` and each of `whole` as one token.
    """

    name: str
    world: Env
    tasks: Source
    speaker: Speaker
    texts: tuple[str, ...]
    whole: tuple[str, ...] = ()
    size: Llama = Llama(width=96, inner=256)
    batch: int = 32
    steps: int = 900
    lr: float = 6e-3
    seed: int = 0

    def recipe(self, start: Path) -> Recipe:
        """Supervision is the same trainer: what was shown as rollouts, a likelihood loss."""
        return Recipe(
            policy=CausalLM(str(start), chat=True, budget=8192),
            env=self.world,
            tasks=self.tasks,
            held_out=0,
            method=Method(
                sample=Shown(self.speaker), credit=identity, loss=Likelihood(), weigh=Later()
            ),
            steps=self.steps,
            prompts=self.batch,
            lr=Warmup(0.05, Cosine(self.lr, self.lr / 20)),
            optimizer=Adam(decay=0.01),
            save_every=self.steps,
            seed=self.seed,
        )

    def plant(self, folder: Path) -> None:
        """An untrained model and its tokenizer, as transformers saves them."""
        tokenizer = word_tokenizer((*ROLES, *self.texts), self.whole)
        tokenizer.chat_template = TEMPLATE
        self.size.plant(folder, tokenizer, self.seed)

    @property
    def home(self) -> Path:
        """Where the grown model is kept, by its name: another one needs another name."""
        return Path(os.environ.get("GRUPO_HOME", ".grupo")) / "models" / self.name
