"""Pipelines of stages: supervised, preference and RL training, surveys, collections, exports."""

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
