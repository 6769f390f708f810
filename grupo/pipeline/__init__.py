"""Pipelines of stages, which start from the weights and read the rows of earlier stages.

Stages: `Stage` trains a policy by a recipe. `CollectStage` samples rollouts and writes rows for
training. `SurveyStage` samples rollouts of every task and writes the task's pass rate, without
training. `ProgramStage` lets the policy write instructions for all tasks of a kind, and keeps the
best ones. `ExportStage` writes a model folder.

`CollectStage.rows` makes rows of a group: `solved` and `answers` make supervised rows of the right
and of all answers; `best_against_worst`, `best_against_worst_in_context` (the prompt is that of the
rollouts), `answers_against_rejected` (a turn strategy rejected the others) and `VerifiedPairs` make
preference pairs; `JoinedRoleChains` joins the thoughts of several roles in one row. A later recipe
reads them as `CollectedTasks`, and a survey's tasks as `SurveyedTasks`. `verified_loop` is a whole
pipeline: RL, DPO on pairs of a verifier, RL.
"""

from grupo.pipeline.conditions import ConditionFailedError, MetricAtLeast, MetricAtMost
from grupo.pipeline.merge import WeightMerge, linear, spherical
from grupo.pipeline.pipeline import Pipeline
from grupo.pipeline.program_stage import ProgramStage
from grupo.pipeline.role_chains import JoinedRoleChains
from grupo.pipeline.rows import (
    answers,
    answers_against_rejected,
    best_against_worst,
    best_against_worst_in_context,
    solved,
)
from grupo.pipeline.run import resume_pipeline, run_pipeline
from grupo.pipeline.sources import CollectedTasks, SurveyedTasks
from grupo.pipeline.stages import CollectStage, ExportStage, Stage, SurveyStage
from grupo.pipeline.verified_loop import verified_loop
from grupo.pipeline.verified_pairs import VerifiedPairs

__all__ = [
    "CollectStage",
    "CollectedTasks",
    "ConditionFailedError",
    "ExportStage",
    "JoinedRoleChains",
    "MetricAtLeast",
    "MetricAtMost",
    "Pipeline",
    "ProgramStage",
    "Stage",
    "SurveyStage",
    "SurveyedTasks",
    "VerifiedPairs",
    "WeightMerge",
    "answers",
    "answers_against_rejected",
    "best_against_worst",
    "best_against_worst_in_context",
    "linear",
    "resume_pipeline",
    "run_pipeline",
    "solved",
    "spherical",
    "verified_loop",
]
