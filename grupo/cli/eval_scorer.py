"""`grupo eval` of a run whose method trains a head: how well the head scores held-out answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from grupo.cli.build_recipe import parse_option
from grupo.cli.eval_args import EvalArgs
from grupo.config.scorers import answer_sampler, check_unseen, head_output, scorer_head
from grupo.core.demonstration import Demonstration
from grupo.core.task_validator import RowValidator
from grupo.core.types import Task
from grupo.core.validation import DemonstrationLimit
from grupo.models.base import Policy
from grupo.recipe import Recipe
from grupo.rollouts.samplers import GivenAnswerSampler
from grupo.rollouts.scorer_result import ScorerResult, scorer_result
from grupo.tasks import parse_task_source, split_tasks
from grupo.tasks.base import LazyTasks
from grupo.tasks.overlong import fit_prompts
from grupo.tasks.split import held_out_rows
from grupo.tasks.table_tasks import task_keys
from grupo.training.resume.load_run import load_policy
from grupo.training.score_answers import score_answers
from grupo.util.console import print_error
from grupo.util.errors import ConfigError


@dataclass(frozen=True)
class ScorerArgs:
    """Arguments of `grupo eval` for a head.

    Args:
        args: The run, its checkpoint and the source of the answers.
        head: Name of the head; "" for the only one of the run's method.
        calibration: Source of answers to which a logistic map is fitted; "" for none.
    """

    args: EvalArgs
    head: str
    calibration: str

    def __call__(self, count: int) -> ScorerResult:
        """Score the answers to at most `count` tasks."""
        args = self.args
        policy, recipe = load_policy(args.run_folder, args.checkpoint, args.weights)
        head = scorer_head(recipe.method, self.head)
        test, calibration = self._test(recipe, count), self._calibration(recipe)
        check_unseen("calibration", calibration, {task.key for task in test}, "is evaluated")
        sampler = answer_sampler(recipe.method, test)
        sources = _readable(policy, recipe, sampler, [test, calibration])
        answers, fitted = (
            score_answers(policy, sampler, recipe.env, tasks, head) for tasks in sources
        )
        return scorer_result(head, head_output(recipe.method, head), answers, fitted)

    def _test(self, recipe: Recipe, count: int) -> list[Task]:
        """All answers to the first `count` held-out tasks, or tasks of the given source."""
        if self.args.tasks:
            rows = self._unseen(recipe, "tasks", self.args.tasks)
        else:
            rows = held_out_rows(recipe.tasks, recipe.eval_tasks, recipe.seed)
        if not rows:
            raise ConfigError("tasks: the recipe holds none out. Choose some with --tasks.")
        kept = set(islice(dict.fromkeys(task.key for task in rows), count))
        return [task for task in rows if task.key in kept]

    def _calibration(self, recipe: Recipe) -> list[Task]:
        return self._unseen(recipe, "calibration", self.calibration) if self.calibration else []

    def _unseen(self, recipe: Recipe, option: str, text: str) -> list[Task]:
        """The rows of a source, of which the run has trained on no task."""
        rows = list(parse_option(parse_task_source, option, text).load())
        training, _ = split_tasks(recipe.tasks, recipe.eval_tasks, recipe.seed)
        if not isinstance(training.tasks, LazyTasks):  # tasks that are made are endless
            keys = set(task_keys(training.tasks)) - training.excluded_keys
            check_unseen(option, rows, keys, "was trained on")
        return rows


def _readable(
    policy: Policy, recipe: Recipe, sampler: GivenAnswerSampler, sources: Sequence[Sequence[Task]]
) -> Sequence[Sequence[Task]]:
    """The tasks whose answers are checked, without those that the context does not hold.

    Answers that are too long are an error, unless the run has dropped such answers.
    """
    for tasks in sources:
        if isinstance(sampler, RowValidator):
            sampler.validate_every_task(tasks)
    if not policy.prompt_limit:
        return sources

    def read(task: Task) -> list[Demonstration]:
        return [answer for answer in sampler.solve(task) if isinstance(answer, Demonstration)]

    limit = DemonstrationLimit(policy.prompt_limit, read)
    sources, message = fit_prompts(recipe.overlong, limit, *sources)
    if message:
        print_error(message)
    return sources
