"""Surveys of tasks: how often a policy solves each, before or during training."""

from grupo.evidence.survey.family import FamilyTasks, TaskFamily
from grupo.evidence.survey.family_survey import FamilySurvey, ShownAnswer, survey_family
from grupo.evidence.survey.measure import TaskSurvey, survey_tasks
from grupo.evidence.survey.parquet import write_survey
from grupo.evidence.survey.prompt_concentration import PromptConcentration
from grupo.evidence.survey.run_history import TaskVisits, visits_of, write_history_survey

__all__ = [
    "FamilySurvey",
    "FamilyTasks",
    "PromptConcentration",
    "ShownAnswer",
    "TaskFamily",
    "TaskSurvey",
    "TaskVisits",
    "survey_family",
    "survey_tasks",
    "visits_of",
    "write_history_survey",
    "write_survey",
]
