"""Toy models: small models trained from scratch in minutes, without a model hub."""

from grupo.toy.arithmetic_lm import ToyArithmeticLM, ensure_trained, train_toy_model
from grupo.toy.masked_lm import ReversalTasks, ToyMaskedLM

__all__ = ["ReversalTasks", "ToyArithmeticLM", "ToyMaskedLM", "ensure_trained", "train_toy_model"]
