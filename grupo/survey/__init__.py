"""Surveys of tasks: how often a policy solves each, before or during training."""

from grupo.survey.family import FamilyTasks, TaskFamily
from grupo.survey.family_survey import FamilySurvey, ShownAnswer, survey_family
from grupo.survey.measure import TaskSurvey, survey_tasks
from grupo.survey.parquet import write_survey
from grupo.survey.prompt_concentration import PromptConcentration
from grupo.survey.run_history import TaskVisits, visits_of, write_history_survey

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
