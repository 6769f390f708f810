"""Surveys of tasks: how often a policy solves each, before or during training."""

from grupo.survey.measure import TaskSurvey, survey_tasks
from grupo.survey.parquet import write_survey

__all__ = ["TaskSurvey", "survey_tasks", "write_survey"]
