"""Training of flow models: a random model learns red images, unless advantages are negated."""

import json
from dataclasses import replace
from statistics import fmean

import pytest
import torch

from grupo.algo.advantages import chain
from grupo.algo.advantages.tree import BestOfSiblings, OutsideWindow
from grupo.algo.minibatches import Updates
from grupo.core.types import Task
from grupo.envs import RewardTerm
from grupo.envs.image_generation import ImageGeneration
from grupo.methods.branch_grpo import branch_grpo
from grupo.methods.flow_grpo import flow_grpo
from grupo.methods.grpo_guard import grpo_guard
from grupo.methods.intuitor import intuitor
from grupo.methods.pref_grpo import pref_grpo
from grupo.methods.tempflow_grpo import tempflow_grpo
from grupo.models.lora import Lora
from grupo.recipe import Evaluation, Recipe
from grupo.report.image_samples import train_and_compare
from grupo.rewards.image_shapes import ColourMatch
from grupo.rewards.pairwise import PairwiseWinRate
from grupo.tasks import FromFunction
from grupo.tasks.shape_captions import CaptionTasks
from grupo.training.callbacks import NullCallback
from grupo.training.learner import Learner
from grupo.training.resume.load_run import load_policy
from grupo.training.start import resume_training, run_training
from grupo.util.errors import ConfigError
from tests.helpers import tiny_flow
from tests.helpers.fast_cases import fast_cases


def is_redder(task, first, second):
    return float(tiny_flow.redness(task, first) > tiny_flow.redness(task, second))


ENV = ImageGeneration(
    (RewardTerm("red", tiny_flow.redness), RewardTerm("win_rate", PairwiseWinRate(is_redder), 0.0))
)


@pytest.fixture
def recipe(flow):
    return Recipe(
        policy=flow,
        env=ENV,
        tasks=CaptionTasks(("a red square", "a blue circle")),
        eval_tasks=0,
        method=flow_grpo(group_size=8, kl_coef=0.0, minibatches=1),
        max_steps=12,
        prompts_per_step=2,
        learning_rate=3e-3,
        evaluation=Evaluation(attempts=1),
        save_every=4,
    )


def rewards(run):
    lines = [json.loads(line) for line in (run / "rollouts.jsonl").read_text().splitlines()]
    steps = max(line["step"] for line in lines)
    return [fmean(x["reward"] for x in lines if x["step"] == step) for step in range(1, steps + 1)]


def gain(recipe, run):
    """Mean reward of the last four steps less that of the first two."""
    run_training(recipe, run)
    means = rewards(run)
    return fmean(means[-4:]) - fmean(means[:2])


# in the second update of a step, ratios differ from 1 and are clipped
TWO_MINIBATCHES = Updates(minibatches=2)
METHODS = {
    "flow_grpo": flow_grpo(group_size=8, kl_coef=0.0),
    "grpo_guard": grpo_guard(group_size=8),
    "tempflow_grpo": tempflow_grpo(branches_per_step=4, kl_coef=0.0),
    "branch_grpo": branch_grpo(split_steps=(0, 1, 2)),
    "branch_grpo, pruned": branch_grpo(
        split_steps=(0, 1, 2),
        sibling_correlation=1 / 17,
        logp_coef=1.0,
        masks=(BestOfSiblings(), OutsideWindow(1, 1)),
    ),
    "pref_grpo": pref_grpo(group_size=8),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", fast_cases(1, METHODS))
def test_method_learns_and_with_negated_advantages_it_does_not(name, recipe, tmp_path):
    method = METHODS[name].replace(updates=TWO_MINIBATCHES)
    negated = method.replace(advantage=chain(method.advantage, tiny_flow.negate))
    assert gain(recipe.replace(method=method), tmp_path / "run") > 0.05
    assert gain(recipe.replace(method=negated), tmp_path / "negated") < 0.0


def clipped(recipe):
    """Mean clip fractions, low and high, over all steps of three runs."""
    learners = [Learner(recipe.replace(seed=seed)) for seed in range(3)]
    metrics = [learner.step().metrics for learner in learners for _ in range(recipe.max_steps)]
    return [
        fmean(numbers[name] for numbers in metrics) for name in ("clip_frac/low", "clip_frac/high")
    ]


@pytest.mark.slow
def test_grpo_guard_clips_symmetrically_and_flow_grpo_clips_low_more(recipe):
    low, high = clipped(recipe.replace(method=METHODS["grpo_guard"]))
    assert 0.2 < low + high < 0.5  # at most half: of two updates the first is on policy
    assert high / low == pytest.approx(1.0, abs=0.2)
    low, high = clipped(recipe.replace(method=METHODS["flow_grpo"]))
    assert high / low < 0.75


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        {"method": flow_grpo(group_size=8, kl_coef=0.04, minibatches=2)},
        {"max_staleness": 1},
    ],
    ids=["reference", "stale"],
)
def test_it_learns_with_a_reference_and_with_stale_rollouts(recipe, tmp_path, change):
    assert gain(recipe.replace(**change), tmp_path / "run") > 0.05


@pytest.mark.slow
def test_sde_window_learns(recipe, flow, tmp_path):
    policy = replace(flow, sde_window=(0, 1))
    assert gain(recipe.replace(policy=policy), tmp_path / "run") > 0.05


@pytest.mark.slow
def test_only_adapters_are_trained(recipe, flow, tmp_path):
    policy = replace(flow, lora=Lora(rank=4))
    run_training(recipe.replace(policy=policy, max_steps=2), tmp_path / "run")
    trained, start = load_policy(tmp_path / "run")[0], policy.build()
    own = start.weights()
    assert any(not torch.equal(x, own[name]) for name, x in trained.weights().items())
    assert all("lora" in name for name in own)


@pytest.mark.slow
def test_report_shows_images_before_and_after_training(recipe, tmp_path):
    pytest.importorskip("PIL")
    table = train_and_compare(recipe.replace(max_steps=1), ENV, recipe.tasks, tmp_path / "run")
    assert (tmp_path / "run" / "table.md").read_text() == table
    before, _, after, _ = table.splitlines()[2].split("|")[2:-1]
    assert before != after
    assert {"before.png", "after.png"} <= {x.name for x in (tmp_path / "run").iterdir()}


class StopAfterThreeSteps(NullCallback):
    """Interrupts a run after its third step."""

    def on_step_end(self, step, numbers):
        if step == 3:
            raise KeyboardInterrupt


@pytest.mark.parametrize("staleness", fast_cases(1, [0, 1]))
def test_resumed_run_matches_an_uninterrupted_run(recipe, tmp_path, staleness):
    recipe = recipe.replace(max_staleness=staleness, save_every=2, max_steps=4)
    run_training(recipe, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run_training(recipe, tmp_path / "cut", StopAfterThreeSteps())
    resume_training(tmp_path / "cut")
    assert rewards(tmp_path / "cut") == rewards(tmp_path / "whole")


def test_missing_signals_raise_before_generation(recipe, tmp_path):
    with pytest.raises(ConfigError, match="the policy has no signal 'self_certainty'"):
        run_training(recipe.replace(method=intuitor()), tmp_path / "run")


def test_invalid_captions_raise_before_generation(recipe, tmp_path):
    tasks = FromFunction(invalid_captions)
    with pytest.raises(ConfigError, match="'a red circle square' is no caption of shapes"):
        run_training(
            recipe.replace(
                tasks=tasks, env=ImageGeneration((RewardTerm("colour", ColourMatch()),))
            ),
            tmp_path / "run",
        )
    assert not (tmp_path / "run").exists()


def invalid_captions():
    yield Task("k", "a red circle square")


def test_response_records_hold_the_image_of_each_rollout(recipe, tmp_path):
    run_training(recipe.replace(max_steps=1), tmp_path / "run")
    lines = (tmp_path / "run" / "responses.jsonl").read_text().splitlines()
    last = [json.loads(line)["responses"][-1] for line in lines]
    assert last
    assert all(response["image"].startswith("data:image/png;base64,") for response in last)
    assert all(response["items"] == [""] * len(response["logp"]) for response in last)
