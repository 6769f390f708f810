"""The options of TRL's quick start: a model by name, a hub data set, one reward of its own."""

from datasets import load_dataset
from trl import GRPOTrainer


def vowels(completions, **columns):
    return [float(sum(letter in "aeiou" for letter in text)) for text in completions]


if __name__ == "__main__":
    GRPOTrainer(
        model="owner/small-model",
        reward_funcs=vowels,
        train_dataset=load_dataset("owner/short-texts", split="train"),
    ).train()
