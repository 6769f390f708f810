"""The table of forty rules: prompts and ratios of trained rollouts, and what the arms share."""

from dataclasses import replace

import pytest
import torch

from grupo.algo.losses import RatioToCurrent
from grupo.rollouts.samplers import GroupSampler
from grupo.tasks.document_questions import RULES_PREFIX, DocumentQuestions
from grupo.toy.rule_books_lm import ToyRuleBooksLM
from grupo.training.learner import Learner
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT

RULES = load_module_file(ROOT / "recipes" / "guidance" / "forty_rules.py")


@pytest.fixture
def first_step(tmp_path):
    """PoRo's first step with an untrained model, on two questions."""
    ToyRuleBooksLM().save_untrained(tmp_path)
    recipe = RULES.RECIPE
    policy = replace(recipe.policy, model=str(tmp_path))
    return Learner(recipe.replace(policy=policy, prompts_per_step=2)).step()


@pytest.mark.slow
def test_half_of_poros_rollouts_read_the_rules_and_all_are_trained_without(first_step):
    groups = first_step.collected.kept_groups
    assert len(groups) == 2
    for group in groups:
        sources = [rollout.source for rollout in group.rollouts]
        assert sources == ["policy"] * 8 + ["with_rules"] * 8
        plain, *others = (rollout.turns[0][1].observation for rollout in group.rollouts)
        assert len(plain) < 12  # tokens; a document has 120
        assert {*others} == {plain}


@pytest.mark.slow
def test_ratios_of_poros_first_update_are_1(first_step):
    log_ratios = first_step.batch.signals["logp@current"] - first_step.batch.old_logp
    assert {*first_step.action_signals} == {*range(32)}
    for row, signals in first_step.action_signals.items():
        to_sampler = torch.tensor(signals["ratio"])  # log pi - log pi_old
        expected = log_ratios[row, : len(to_sampler)]
        assert torch.allclose(to_sampler, expected, atol=1e-3)
        assert (row % 16 >= 8) == (expected.abs().max().item() > 1e-3)


def test_poro_differs_from_grpo_in_sampler_and_ratio_only():
    grpo, poro = RULES.METHODS["GRPO"], RULES.METHODS["PoRo"]
    assert poro.sampler.inner.group_size * 2 == grpo.sampler.group_size
    loss = poro.loss
    assert isinstance(loss.left, RatioToCurrent)
    plain = poro.replace(sampler=GroupSampler(16), loss=replace(loss, left=loss.left.loss))
    assert plain == grpo


def test_the_shown_question_ends_with_the_document():
    task = DocumentQuestions().load()[0]
    shown = RULES.with_rules(task)
    assert shown.prompt == str(task.prompt) + RULES_PREFIX + task.columns["rules"]


def test_evaluated_questions_are_not_trained_on():
    trained = RULES.RECIPE.tasks.load()
    held_out = DocumentQuestions(
        size=100, seed=RULES.EVAL_SEED, document_seed=RULES.RECIPE.seed
    ).load()
    assert {task.columns["rules"] for task in (trained[0], held_out[0])} == {
        held_out[0].columns["rules"]
    }
    assert not {task.prompt for task in trained} & {task.prompt for task in held_out}
