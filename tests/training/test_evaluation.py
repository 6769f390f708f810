"""Evaluation of supervised training: held-out NLL and token accuracy, in runs without a reward."""

import json
import math

import pytest
import torch
from transformers import AutoModelForCausalLM

from grupo.core.types import Rollout
from grupo.envs import Unscored
from grupo.methods.sft import sft
from grupo.models.causal_lm import CausalLM
from grupo.recipe import EarlyStopping, Evaluation, Recipe
from grupo.rollouts.demonstration_scores import DemonstrationScores
from grupo.rollouts.eval_scores import best_steps
from grupo.storage.keep import KeepCheckpoints
from grupo.training.learner import Learner
from grupo.training.start import run_training
from grupo.training.stopping import StopInputs, stop_reason
from tests.helpers.tiny_lm import save_model

ROWS = [{"prompt": f"{i:02}", "completion": "ab" * (1 + i % 3)} for i in range(12)]


def recipe(folder, **changes):
    base = Recipe(
        policy=CausalLM(str(save_model(folder / "model")), max_new_tokens=6, device="cpu"),
        env=Unscored(),
        tasks=ROWS,
        eval_tasks=4,
        method=sft(),
        max_steps=6,
        prompts_per_step=4,
        learning_rate=1e-2,
        evaluation=Evaluation(attempts=0, every=2),
    )
    return base.replace(**changes)


def test_scores_are_means_over_the_tokens_of_held_out_answers(tmp_path):
    learner = Learner(recipe(tmp_path))
    scores = learner.evaluate("before").demonstration_scores
    plain = AutoModelForCausalLM.from_pretrained(tmp_path / "model").eval()
    logp, correct = [], []
    for task in learner.eval_tasks:
        context = learner.policy.encode_observation(Rollout(), task.prompt)
        answer = learner.policy.chat_tokenizer.encode_answer(task.columns["completion"])
        with torch.no_grad():
            logits = plain(torch.tensor([[*context, *answer]])).logits[0]
        table = logits.log_softmax(-1)[len(context) - 1 : -1]
        logp += table.gather(1, torch.tensor(answer)[:, None])[:, 0].tolist()
        correct += (table.argmax(1) == torch.tensor(answer)).tolist()
    assert scores.num_tokens == len(logp)
    assert scores.nll == pytest.approx(-sum(logp) / len(logp), abs=1e-5)
    assert scores.token_accuracy == pytest.approx(sum(correct) / len(correct))
    assert scores.perplexity == pytest.approx(math.exp(scores.nll))


@pytest.mark.slow
def test_run_without_a_reward_learns_and_keeps_its_best_checkpoint(tmp_path):
    chosen = recipe(tmp_path, keep=KeepCheckpoints(last=1, best=1, metric="eval/nll"))
    summary = run_training(chosen, tmp_path / "run")
    held_out = summary["held_out"]
    assert list(held_out) == ["before", "step 2", "step 4", "after"]
    assert held_out["after"]["nll"] < held_out["before"]["nll"]
    assert "sampled" not in held_out["after"]
    assert summary["tokens"] == 0
    best = min((s["nll"], n) for n, s in zip((2, 4, 6), list(held_out.values())[1:], strict=True))
    assert summary["best_steps"] == [best[1]]
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert json.loads(lines[-1])["loss"] > 0


def test_step_evaluates_each_row_once(tmp_path, monkeypatch):
    learner = Learner(recipe(tmp_path))
    passes = []
    signals = learner.policy.signals

    def counted(batch, names=("logp",)):
        passes.append(len(batch.mask))
        return signals(batch, names)

    monkeypatch.setattr(learner.policy, "signals", counted)
    learner.step()
    assert sum(passes) == 4  # rows of the step: one forward pass, which has a gradient


def test_lower_nll_is_better():
    scores = {"step 1": {"nll": 2.0}, "step 2": {"nll": 1.0}, "after": {"nll": 3.0}}
    assert best_steps(scores, 3, "eval/nll", 2) == [2, 1]
    assert best_steps(scores, 3, "eval/token_accuracy", 2) == []


def test_patience_ends_a_run_whose_nll_rises(tmp_path):
    stopping = EarlyStopping(patience=1, metric="eval/nll")
    chosen = recipe(tmp_path, early_stopping=stopping)

    def reason(*values):
        scores = {f"step {i}": {"nll": x} for i, x in enumerate(values, 1)}
        return stop_reason(chosen, StopInputs(2, scores, 0, 0.0, math.nan))

    assert reason(2.0, 1.5) == ""
    assert reason(1.5, 2.0).startswith("eval/nll has not fallen below 1.5, its value at step 1")


def test_scores_in_words():
    scores = DemonstrationScores(math.log(2), 0.25, 8)
    assert str(scores) == "nll 0.6931, perplexity 2, token accuracy 25.0 %"
    assert DemonstrationScores(1e4, 0.0, 1).perplexity == math.inf
