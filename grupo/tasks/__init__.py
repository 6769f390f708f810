"""Task sources, and the split of their tasks into training and evaluation tasks."""

from grupo.tasks.base import LazyTasks, TaskSource, task_key
from grupo.tasks.columns import Columns
from grupo.tasks.countdown import CountdownTasks
from grupo.tasks.dataset import DatasetTasks
from grupo.tasks.digit_sums import DigitSums
from grupo.tasks.in_memory import InMemoryTasks, as_task_source
from grupo.tasks.inverted_questions import InvertedQuestions
from grupo.tasks.length_budget import BudgetedTasks
from grupo.tasks.mixture import TaskMixture
from grupo.tasks.parse import parse_task_source
from grupo.tasks.prior_prompt import (
    CODE,
    EXAMPLES,
    KNOWLEDGE,
    PLAN,
    PRIOR_STYLES,
    THINK,
    Prior,
    PriorStyle,
)
from grupo.tasks.production_plans import ProductionPlans
from grupo.tasks.puzzles import TREE, AlphameticTasks, SudokuTasks
from grupo.tasks.python import FromFunction, FromImportPath
from grupo.tasks.reasoning_gym import ReasoningGym
from grupo.tasks.repeated import Repeated
from grupo.tasks.selected import Between, Highest, Lowest, Selected, ThinnedAbove
from grupo.tasks.split import EvalShare, TrainingTasks, check_disjoint, split_tasks
from grupo.tasks.stitched_goals import StitchedGoals
from grupo.util.importing import import_function

__all__ = [
    "CODE",
    "EXAMPLES",
    "KNOWLEDGE",
    "PLAN",
    "PRIOR_STYLES",
    "THINK",
    "TREE",
    "AlphameticTasks",
    "Between",
    "BudgetedTasks",
    "Columns",
    "CountdownTasks",
    "DatasetTasks",
    "DigitSums",
    "EvalShare",
    "FromFunction",
    "FromImportPath",
    "Highest",
    "InMemoryTasks",
    "InvertedQuestions",
    "LazyTasks",
    "Lowest",
    "Prior",
    "PriorStyle",
    "ProductionPlans",
    "ReasoningGym",
    "Repeated",
    "Selected",
    "StitchedGoals",
    "SudokuTasks",
    "TaskMixture",
    "TaskSource",
    "ThinnedAbove",
    "TrainingTasks",
    "as_task_source",
    "check_disjoint",
    "import_function",
    "parse_task_source",
    "split_tasks",
    "task_key",
]
