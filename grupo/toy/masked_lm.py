"""From nothing to a small masked diffusion model that writes a share of its answers right."""

from collections.abc import Sequence
from pathlib import Path

from transformers import BertConfig, BertForMaskedLM
from transformers.utils import logging

from grupo.core.component import piece
from grupo.core.rng import generator, seed_torch
from grupo.core.types import Task
from grupo.envs import Part, SingleTurn
from grupo.models.masked.logp_estimators import Coupled
from grupo.models.masked.unmask_order import Confident
from grupo.models.masked_diffusion import MaskedDiffusion
from grupo.recipe import Recipe
from grupo.rewards import Exact
from grupo.toy.arithmetic_lm import home_of, lessons
from grupo.toy.tokenizers import END, phrase_tokenizer

REVERSED = SingleTurn((Part("correct", Exact()),))


@piece
class Reversals:
    """Digits, to be written backwards.

    >>> task = Reversals(size=1).load()[0]
    >>> task.prompt, task.answer
    ('3805>', '5083')
    """

    size: int
    digits: int = 4
    seed: int = 0

    def load(self) -> Sequence[Task]:
        random = generator(self.seed, "reversals", self.digits)
        texts = ["".join(random.choices("0123456789", k=self.digits)) for _ in range(self.size)]
        return [Task(text, f"{text}>", text[::-1], "reversals") for text in texts]


def told(task: Task) -> Sequence[str]:
    """The answer, as it is to be recited."""
    return [str(task.answer)]


@piece
class MaskedSeedling:
    """A BERT of a few ten thousand parameters that is taught to write digits backwards.

    It is taught until it is right about `share` of held-out tasks when sampling, at most `steps`
    steps.
    """

    tasks: Reversals = Reversals(4000, seed=1)
    held_out: Reversals = Reversals(100, seed=2)
    width: int = 64
    layers: int = 2
    heads: int = 4
    batch: int = 64
    steps: int = 600
    lr: float = 1e-3
    share: float = 0.3
    check_every: int = 10
    seed: int = 0

    @property
    def limit(self) -> int:
        """Tokens of an answer: its digits and an end."""
        return self.tasks.digits + 1

    def recipe(self, start: Path) -> Recipe:
        """How it is taught: by the likelihood of answers under masks of any share."""
        policy = MaskedDiffusion(
            str(start),
            order=Confident(self.limit),
            estimate=Coupled(0.05, 0.95),
            limit=self.limit,
        )
        return lessons(self, policy, REVERSED, told)

    def plant(self, folder: Path) -> None:
        """An untrained model and its tokenizer, as transformers saves them."""
        tokenizer = phrase_tokenizer(())
        tokenizer.add_special_tokens({"mask_token": "<mask>"})
        logging.disable_progress_bar()
        seed_torch(self.seed, "plant")
        end = tokenizer.get_vocab()[END]
        config = BertConfig(
            vocab_size=len(tokenizer),
            hidden_size=self.width,
            intermediate_size=4 * self.width,
            num_hidden_layers=self.layers,
            num_attention_heads=self.heads,
            max_position_embeddings=32,
            pad_token_id=end,
        )
        BertForMaskedLM(config).save_pretrained(folder)
        tokenizer.save_pretrained(folder)

    @property
    def home(self) -> Path:
        """Where this seedling's grown model is kept: equal seedlings share it."""
        return home_of(self, "reversals")
