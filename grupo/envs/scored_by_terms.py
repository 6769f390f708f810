"""The environments whose rewards are their reward terms and no others."""

from grupo.envs.single_turn import SingleTurn
from grupo.envs.sql.questions import SqlQuestions

ScoredByTerms = SingleTurn | SqlQuestions
