"""Pipelines of short runs of a tiny language model, one for each shape of a pipeline."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from grupo.core.aux_heads import ExportedHead, OwnModelHead
from grupo.envs import RewardTerm, SingleTurn
from grupo.methods.bradley_terry import bradley_terry
from grupo.methods.dpo import dpo
from grupo.methods.ppo import ppo
from grupo.models.lora import Lora
from grupo.pipeline import (
    CollectedTasks,
    CollectStage,
    ExportStage,
    MetricAtLeast,
    Pipeline,
    Stage,
    SurveyedTasks,
    SurveyStage,
    WeightMerge,
    answers_against_rejected,
    spherical,
)
from grupo.pipeline.data_stage import read_data_file
from grupo.recipe import Recipe
from grupo.rewards import LearnedReward
from grupo.rollouts.turns import Vote
from grupo.storage.pipeline_dirs import stage_folders
from grupo.tasks import FromFunction, Lowest
from tests.helpers import training_recipes
from tests.helpers.run_outcomes import outcome
from tests.helpers.training_components import few_tasks, fine

LORA = Lora(2, 4.0)


def short(model: str) -> Recipe:
    """Two steps of plain GRPO with a checkpoint after each."""
    recipe = training_recipes.base(model).replace(max_steps=2, save_every=1, eval_tasks=3)
    return recipe.replace(evaluation=replace(recipe.evaluation, every=0))


def with_lora(recipe: Recipe) -> Recipe:
    return recipe.replace(policy=replace(recipe.policy, lora=LORA))


def chain(model: str) -> Pipeline:
    """Two stages, of which the second starts from the first, with other seeds."""
    first = short(model)
    return Pipeline((Stage("first", first), Stage("second", first.replace(seed=1))))


def merged(model: str) -> Pipeline:
    """A merge of a run of all weights and of one of adapters."""
    recipe = short(model)
    return Pipeline(
        (
            Stage("a", recipe),
            Stage("b", with_lora(recipe.replace(seed=1)), start=""),
            Stage("soup", recipe, start=WeightMerge({"a@1": 0.25, "b": 0.75}, spherical)),
        )
    )


def surveyed(model: str) -> Pipeline:
    """A survey of the first stage's policy selects the tasks of the last one."""
    recipe = short(model)
    tasks = SurveyedTasks("survey", Lowest("reward_mean", 4))
    held_out = FromFunction(few_tasks)
    later = recipe.replace(tasks=tasks, eval_tasks=held_out)
    return Pipeline(
        (
            Stage("first", recipe),
            SurveyStage("survey", recipe, attempts=2),
            Stage("hard", later, when=MetricAtLeast("eval/sampled", 0.0)),
        )
    )


def collected(model: str) -> Pipeline:
    """Two rounds of a collection and a run on the collected tasks."""
    recipe = short(model)
    later = recipe.replace(tasks=CollectedTasks("pairs"), eval_tasks=2)
    return Pipeline((CollectStage("pairs", recipe, attempts=4), Stage("train", later)), rounds=2)


def distilled(model: str) -> Pipeline:
    """Preferences for the answers of a vote over those that it outvotes, in two rounds."""
    recipe = short(model)
    pairs = recipe.replace(method=dpo(beta=0.1), tasks=CollectedTasks("voted"), eval_tasks=2)
    voted = CollectStage(
        "voted", recipe, attempts=1, rows=answers_against_rejected, strategy=Vote(3, first_letter)
    )
    return Pipeline((voted, Stage("dpo", pairs)), rounds=2)


def first_letter(text: str) -> str:
    """The answer of a text, for votes."""
    return text[:1]


def exported(model: str) -> Pipeline:
    """A reward model on collected pairs, whose exported model is a reward and a value model."""
    recipe = short(model)
    pairs = recipe.replace(tasks=CollectedTasks("pairs"), eval_tasks=0)
    head = OwnModelHead("value", start=ExportedHead("stage:exported"))
    learned = RewardTerm("learned", LearnedReward("stage:exported"))
    env = SingleTurn((RewardTerm("part", fine), learned))
    rl = recipe.replace(method=ppo(value_head=head), env=env)
    return Pipeline(
        (
            CollectStage("pairs", recipe, attempts=4),
            Stage("scores", pairs.replace(method=bradley_terry())),
            ExportStage("exported"),
            Stage("rl", rl, start=""),
        )
    )


PIPELINES: Mapping[str, Callable[[str], Pipeline]] = {
    "chain": chain,
    "merged": merged,
    "surveyed": surveyed,
    "collected": collected,
    "distilled": distilled,
    "exported": exported,
}


def pipeline_outcome(root: Path) -> dict[str, object]:
    """The outcome of each stage: of a run its bits, of a data set its bytes.

    The fingerprint of a recipe depends on the folder, which its start weights are in.
    """
    outcomes: dict[str, object] = {
        "unfinished": sorted(path.name for path in root.rglob("tmp.*")),
    }
    for stage in stage_folders(root):
        parts = outcome(stage.folder) if stage.is_run else {}
        parts.pop("fingerprint", None)
        if "summary" in parts:  # it has the method, which may name a folder of the pipeline
            parts["summary"] = str(parts["summary"]).replace(str(root), "ROOT")
        data = b"" if stage.is_run else _bytes_of(read_data_file(stage.folder))
        outcomes[f"{stage.round_number}/{stage.name}"] = parts or data
    return outcomes


def _bytes_of(path: Path) -> bytes:
    """The content of a file; of a folder, that of its files with their names."""
    if path.is_file():
        return path.read_bytes()
    files = sorted(file for file in path.rglob("*") if file.is_file())
    return b"".join(str(x.relative_to(path)).encode() + x.read_bytes() for x in files)
