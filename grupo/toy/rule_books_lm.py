"""A toy language model that looks up rules in a document of its prompt."""

from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from grupo.core.component import component
from grupo.core.ranges import PositiveFloat, PositiveInt
from grupo.core.units import RolloutSteps
from grupo.envs import RewardTerm, SingleTurn
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Recipe
from grupo.rewards import ExactMatch
from grupo.rollouts.samplers import SolutionColumn
from grupo.tasks.document_questions import (
    DIGITS,
    OBJECTS,
    QUESTION,
    RULES_PREFIX,
    RuleBooks,
    rule_text,
)
from grupo.toy.model_dir import model_dir_of
from grupo.toy.sft import sft_recipe
from grupo.toy.tokenizers import word_tokenizer
from grupo.toy.untrained_llama import LlamaArchitecture

ENV = SingleTurn((RewardTerm("correct", ExactMatch()),))


@component
class ToyRuleBooksLM:
    """A small Llama, fine-tuned on questions about random documents, half of which it is shown.

    It finds rules in a document that is shown; otherwise it answers in the right form, with random
    codes.

    Args:
        tasks: Training tasks.
        eval_tasks: Evaluation tasks.
        hidden_size: Size of the hidden state.
        num_layers: Number of layers.
        num_heads: Number of attention heads.
        max_new_tokens: Longest answer in tokens.
        prompts_per_step: Tasks of a step.
        max_steps: Most steps.
        learning_rate: Peak learning rate.
        target_accuracy: Fraction of solved evaluation tasks that ends the training.
        eval_every: Rollout steps between two evaluations.
        seed: Seed of weights and training.
    """

    tasks: RuleBooks = RuleBooks(size=200_000, seed=500)
    eval_tasks: RuleBooks = RuleBooks(40, 40, max_objects=4, size=100, seed=501, shown_share=1.0)
    hidden_size: PositiveInt = 64
    num_layers: PositiveInt = 2
    num_heads: PositiveInt = 2
    max_new_tokens: PositiveInt = 14
    prompts_per_step: PositiveInt = 64
    max_steps: PositiveInt = 900
    learning_rate: PositiveFloat = 3e-3
    target_accuracy: float = 0.98
    eval_every: RolloutSteps = 100
    seed: int = 0

    def recipe(self, model_path: Path) -> Recipe:
        """The recipe that trains the model, from the untrained one at `model_path`."""
        policy = CausalLM(
            str(model_path), max_new_tokens=self.max_new_tokens, tokens_per_microbatch=16384
        )
        return sft_recipe(self, policy, ENV, SolutionColumn())

    def save_untrained(self, folder: Path) -> None:
        """Save an untrained model and its tokenizer for transformers.

        A rule is one token. Its embedding begins as the sum of those of its object and its code, so
        that the rule of an object is found within some hundred steps.
        """
        rules = {rule_text(x, code): (x, code) for x in OBJECTS for code in range(DIGITS)}
        questions = [QUESTION.format(name) for name in OBJECTS]
        tokenizer = word_tokenizer([*questions, RULES_PREFIX, ". "], rules)
        architecture = LlamaArchitecture(
            self.hidden_size,
            3 * self.hidden_size,
            self.num_layers,
            self.num_heads,
            initializer_range=0.08,
        )
        architecture.save_untrained(folder, tokenizer, self.seed)
        tied = LlamaForCausalLM.from_pretrained(folder)
        model = LlamaForCausalLM(LlamaConfig.from_pretrained(folder, tie_word_embeddings=False))
        model.load_state_dict(tied.state_dict())
        token = tokenizer.get_vocab()
        with torch.no_grad():
            embedding = model.model.embed_tokens.weight
            for rule, (name, code) in rules.items():
                embedding[token[rule]] = embedding[token[f"{name} "]] + embedding[token[str(code)]]
        model.save_pretrained(folder)

    @property
    def model_dir(self) -> Path:
        """The folder of the trained model; equal specifications share it."""
        return model_dir_of(self, "rule_books")
