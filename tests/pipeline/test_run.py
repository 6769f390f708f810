"""Pipelines that run: starts, merges, rounds, conditions, and the memory of finished stages."""

import gc
import json
import shutil
import weakref
from pathlib import Path

import pytest
import torch

from grupo.algo.losses import KL, Clip
from grupo.methods.sft import sft
from grupo.models.aux_heads import HEADS_FILE, head_weights
from grupo.pipeline import (
    CollectedTasks,
    CollectStage,
    ConditionFailedError,
    MetricAtLeast,
    MetricAtMost,
    Pipeline,
    Stage,
    WeightMerge,
    linear,
    resume_pipeline,
    run_pipeline,
    solved,
)
from grupo.pipeline.collect import NothingCollectedError
from grupo.pipeline.stage_recipe import recipe_of_round
from grupo.storage.checkpoint import CorruptRun
from grupo.storage.safetensors import load_tensors
from grupo.tasks import split_tasks
from grupo.training.callbacks import NullCallback
from grupo.training.resume.load_run import load_policy
from grupo.training.resume.run_folder import RunFolder
from grupo.util.errors import ConfigError
from grupo.util.run_files import MERGED_FILE
from tests.helpers.fast_cases import fast_cases
from tests.helpers.pipelines import LORA, exported, short, with_lora
from tests.helpers.training_components import env_with_reward, same
from tests.helpers.training_recipes import METHOD


@pytest.fixture
def recipe(model):
    return short(model)


class Messages(NullCallback):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def on_message(self, message: str) -> None:
        self.lines.append(message)


def start_weights(run: Path) -> dict[str, torch.Tensor]:
    """The weights that the policy of a run started from."""
    return dict(RunFolder.open(run).recipe.policy.build().merged_model().state_dict())


def final_weights(run: Path, choice: str = "last") -> dict[str, torch.Tensor]:
    return dict(load_policy(run, choice)[0].merged_model().state_dict())


def assert_equal(first, second) -> None:
    assert set(first) == set(second)
    assert [name for name in first if not torch.equal(first[name], second[name])] == []


@pytest.mark.slow
@pytest.mark.parametrize(("start", "run", "choice"), [(None, "b", "last"), ("a@1", "a", "1")])
def test_a_stage_starts_from_the_stage_before_or_from_the_one_that_it_names(
    start, run, choice, recipe, tmp_path
):
    stages = Stage("a", recipe), Stage("b", recipe.replace(seed=1)), Stage("c", recipe, start)
    root = run_pipeline(Pipeline(stages), tmp_path / "run")
    assert_equal(start_weights(root / "c"), final_weights(root / run, choice))


@pytest.mark.slow
def test_adapters_of_an_earlier_stage_are_merged_or_trained_further(recipe, tmp_path):
    stages = Stage("a", with_lora(recipe)), Stage("b", with_lora(recipe)), Stage("c", recipe)
    root = run_pipeline(Pipeline(stages), tmp_path / "run")
    assert RunFolder.open(root / "b").recipe.policy.start.lora == LORA
    assert_equal(start_weights(root / "b"), final_weights(root / "a"))
    assert_equal(start_weights(root / "c"), final_weights(root / "b"))
    assert RunFolder.open(root / "c").recipe.policy.lora is None


@pytest.mark.slow
def test_the_reference_policy_of_a_stage_is_its_start(recipe, tmp_path):
    kl = recipe.replace(method=METHOD.replace(loss=Clip() + 0.5 * KL()))
    root = run_pipeline(Pipeline((Stage("a", recipe), Stage("b", kl))), tmp_path / "run")
    lines = (root / "b" / "metrics.jsonl").read_text().splitlines()
    first, second = (json.loads(line)["policy/kl_ref"] for line in lines)
    assert abs(first) < 1e-6 < second


@pytest.mark.slow
def test_a_value_model_starts_from_the_model_that_a_stage_exported(model, tmp_path):
    root = run_pipeline(exported(model), tmp_path / "run")
    head = RunFolder.open(root / "rl").recipe.method.advantage.value_head
    folder = Path(head.start.folder)
    assert folder == root / "exported" / "model"
    policy, _ = load_policy(root / "scores")
    heads = load_tensors(folder / HEADS_FILE)
    assert_equal({f"heads.{name}": x for name, x in heads.items()}, head_weights(policy.aux_heads))
    assert heads["score.weight"].abs().sum() > 0


@pytest.mark.slow
def test_rollouts_are_scored_by_the_model_that_a_stage_exported(model, tmp_path):
    root = run_pipeline(exported(model), tmp_path / "run")
    learned = RunFolder.open(root / "rl").recipe.env.rewards[-1].fn
    assert learned.model == str(root / "exported" / "model")
    lines = map(json.loads, (root / "rl" / "metrics.jsonl").read_text().splitlines())
    assert all(line["reward/learned"] != 0 for line in lines)


@pytest.mark.slow
def test_an_exported_model_that_was_changed_is_refused(model, tmp_path):
    root = run_pipeline(exported(model), tmp_path / "run")
    (root / "exported" / "model" / "config.json").write_text("{}")
    shutil.rmtree(root / "rl")
    with pytest.raises(CorruptRun, match="is not what its stage wrote: its SHA-256 differs"):
        resume_pipeline(root)


@pytest.mark.slow
def test_a_merge_is_the_weighted_mean_of_the_full_weights(recipe, tmp_path):
    merge = WeightMerge({"a": 0.25, "b": 0.75})
    stages = (
        Stage("a", recipe),
        Stage("b", with_lora(recipe), start=""),
        Stage("c", with_lora(recipe), merge),
    )
    root = run_pipeline(Pipeline(stages), tmp_path / "run")
    a, b = final_weights(root / "a"), final_weights(root / "b")
    merged = load_tensors(root / "c" / MERGED_FILE)
    assert {name: x.shape for name, x in merged.items() if name != "lm_head.weight"} == {
        name: x.shape for name, x in a.items() if name != "lm_head.weight"
    }
    for name, tensor in merged.items():
        torch.testing.assert_close(tensor, 0.25 * a[name] + 0.75 * b[name])
    assert any(not torch.equal(a[name], b[name]) for name in merged)
    started = start_weights(root / "c")  # with new adapters, which begin at zero
    assert all(torch.equal(started[name], tensor) for name, tensor in merged.items())


@pytest.mark.slow
def test_a_merge_of_a_run_with_itself_has_its_bits(recipe, tmp_path):
    stages = Stage("a", recipe), Stage("b", recipe, WeightMerge({"a": 0.3, "a@2": 0.7}, linear))
    root = run_pipeline(Pipeline(stages), tmp_path / "run")
    assert_equal(start_weights(root / "b"), final_weights(root / "a"))


@pytest.mark.slow
def test_a_round_starts_from_the_last_stage_of_the_round_before_with_another_seed(recipe, tmp_path):
    pipeline = Pipeline((Stage("a", recipe), Stage("b", recipe)), rounds=2)
    root = run_pipeline(pipeline, tmp_path / "run")
    assert_equal(start_weights(root / "2" / "a"), final_weights(root / "1" / "b"))
    assert_equal(start_weights(root / "2" / "b"), final_weights(root / "2" / "a"))
    seeds = [RunFolder.open(root / f"{number}" / "a").recipe.seed for number in (1, 2)]
    assert seeds[0] == recipe.seed != seeds[1]


def test_rounds_hold_out_the_same_tasks(recipe):
    first, second = (recipe_of_round(recipe, number) for number in (1, 2))
    (_, held_out), (training, later) = (
        split_tasks(r.tasks, r.eval_tasks, r.seed) for r in (first, second)
    )
    keys = {task.key for task in held_out}
    assert len(keys) == 3
    assert {task.key for task in later} == keys
    assert keys.isdisjoint(task.key for task in training)


@pytest.mark.slow
def test_a_condition_that_does_not_hold_ends_the_pipeline_with_the_number(recipe, tmp_path):
    stages = Stage("a", recipe), Stage("b", recipe, when=MetricAtLeast("eval/sampled", 1.1))
    with pytest.raises(ConditionFailedError) as error:
        run_pipeline(Pipeline(stages), tmp_path / "run")
    score = json.loads((tmp_path / "run" / "a" / "summary.json").read_text())["held_out"]["after"]
    assert error.value.exit_code == 1
    assert f"does not hold: eval/sampled is {score['sampled']:.4g} after 'a'." in str(error.value)
    assert not (tmp_path / "run" / "b").exists()
    with pytest.raises(ConditionFailedError):
        resume_pipeline(tmp_path / "run")


@pytest.mark.slow
def test_a_skipped_stage_stands_for_its_start(recipe, tmp_path):
    condition = MetricAtMost("eval/sampled", -1.0)
    stages = (
        Stage("a", recipe),
        Stage("b", recipe, when=condition, otherwise="skip"),
        Stage("c", recipe, when=MetricAtLeast("eval/sampled", 0.0)),
    )
    messages = Messages()
    root = run_pipeline(Pipeline(stages), tmp_path / "run", lambda folder: messages)
    assert not (root / "b").exists()
    assert_equal(start_weights(root / "c"), final_weights(root / "a"))
    assert f"Stage 2 of 3, b: skipped, because {condition!r} does not hold." in messages.lines


class ParametersOfStages(NullCallback):
    """Counts the parameters of the first stage that are alive in each step of the second."""

    def __init__(self) -> None:
        self.first: list[weakref.ref] = []
        self.alive: list[int] = []
        self.stage = ""

    def __call__(self, folder: Path) -> "ParametersOfStages":
        self.stage = folder.name
        return self

    def on_step_end(self, step, metrics) -> None:
        if self.stage == "a":
            self.first = [weakref.ref(x) for x in gc.get_objects() if type(x) in WEIGHTS]
        else:
            self.alive.append(sum(reference() is not None for reference in self.first))


WEIGHTS = (torch.nn.Parameter, torch.optim.Adam, torch.optim.AdamW)


@pytest.mark.slow
@pytest.mark.parametrize("changes", fast_cases(1, [{"max_staleness": 1}, {}, {"lora": LORA}]))
def test_models_of_finished_stages_are_released(changes, recipe, tmp_path):
    changes = dict(changes)
    recipe = with_lora(recipe) if changes.pop("lora", None) else recipe
    recipe = recipe.replace(method=METHOD.replace(loss=Clip() + 0.5 * KL()), **changes)
    gc.collect()
    before = {id(x) for x in gc.get_objects() if type(x) in WEIGHTS}
    parameters = ParametersOfStages()
    run_pipeline(Pipeline((Stage("a", recipe), Stage("b", recipe))), tmp_path / "run", parameters)
    own = [ref for ref in parameters.first if ref() is None or id(ref()) not in before]
    assert len(own) > 5
    assert parameters.alive[-1] == len(parameters.first) - len(own)


def test_solved_rollouts_are_collected_for_supervised_training(recipe, tmp_path):
    collect = CollectStage("star", recipe, attempts=4, count=5, rows=solved)
    root = run_pipeline(Pipeline((collect,)), tmp_path / "run")
    rows = [json.loads(line) for line in (root / "star" / "tasks.jsonl").read_text().splitlines()]
    assert len({row["prompt"] for row in rows}) <= 5
    solves = [sum(c < "P" for c in row["completion"]) / 6 >= 0.5 for row in rows]
    assert rows
    assert all(solves)


@pytest.mark.slow
def test_rounds_of_star_train_the_own_policy_on_its_solved_rollouts(recipe, tmp_path):
    """STaR: each round fine-tunes the first policy on what the newest one solves."""
    tasks = CollectedTasks("solved")
    tuned = recipe.replace(method=sft(), tasks=tasks, eval_tasks=1, prompts_per_step=1)
    stages = (
        CollectStage("solved", recipe, attempts=4, rows=solved),
        Stage("sft", tuned, start=""),
    )
    root = run_pipeline(Pipeline(stages, rounds=2), tmp_path / "run")
    assert_equal(start_weights(root / "1" / "sft"), start_weights(root / "2" / "sft"))
    texts = [(root / number / "solved" / "tasks.jsonl").read_text() for number in "12"]
    assert texts[0] != texts[1]


@pytest.mark.slow
def test_pairs_are_the_best_and_the_worst_rollout(recipe, tmp_path):
    root = run_pipeline(Pipeline((CollectStage("pairs", recipe),)), tmp_path / "run")
    rows = [json.loads(line) for line in (root / "pairs" / "tasks.jsonl").read_text().splitlines()]
    assert rows
    for row in rows:
        best, worst = (sum(c < "P" for c in row[name]) / 6 for name in ("chosen", "rejected"))
        assert best == row["chosen_reward"] > row["rejected_reward"] == worst


def test_a_collection_without_rows_ends_the_pipeline(recipe, tmp_path):
    stages = (CollectStage("pairs", recipe.replace(env=env_with_reward(same))),)
    with pytest.raises(
        NothingCollectedError, match="best_against_worst made no row from any of the 20 groups"
    ):
        run_pipeline(Pipeline(stages), tmp_path / "run")


@pytest.mark.slow
def test_a_collection_that_was_changed_is_not_read(recipe, tmp_path):
    later = Stage("b", recipe.replace(tasks=CollectedTasks("pairs"), eval_tasks=2))
    pairs = CollectStage("pairs", recipe)
    condition = MetricAtLeast("eval/sampled", 2.0)
    stages = Stage("a", recipe), pairs, Stage("stop", recipe, when=condition), later
    with pytest.raises(ConditionFailedError):
        run_pipeline(Pipeline(stages), tmp_path / "run")
    file = tmp_path / "run" / "pairs" / "tasks.jsonl"
    file.write_text(file.read_text() + "\n")
    from grupo.pipeline.data_stage import read_data_file

    with pytest.raises(CorruptRun, match="its SHA-256 differs"):
        read_data_file(file.parent)


@pytest.mark.slow
def test_a_pipeline_in_a_used_folder_is_refused(recipe, tmp_path):
    pipeline = Pipeline((Stage("a", recipe),))
    run_pipeline(pipeline, tmp_path / "run")
    with pytest.raises(ConfigError, match=r"exists\. Name another folder, or continue this run"):
        run_pipeline(pipeline, tmp_path / "run")
    file = tmp_path / "run" / "pipeline.json"
    file.write_text(file.read_text().replace('"max_steps": 2', '"max_steps": 3'))
    with pytest.raises(ConfigError, match="was edited or damaged since the pipeline began"):
        resume_pipeline(tmp_path / "run")
