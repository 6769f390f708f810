"""The heads of a method that score answers, what their numbers mean, and the rows to judge them."""

from collections.abc import Iterator, Mapping, Sequence, Set

from grupo.algo.losses import OutcomeValueLoss, Preference, StepCrossEntropy, StepValueLoss
from grupo.algo.losses.critic import QualityLoss
from grupo.algo.losses.scores import HeadAtEnd
from grupo.config.supervised import column_sampler
from grupo.core.aux_heads import LearnedScalar
from grupo.core.component import walk
from grupo.core.head_output import HeadOutput
from grupo.core.types import Task
from grupo.core.validation import describe_task
from grupo.method import Method
from grupo.rollouts.samplers import (
    GivenAnswerSampler,
    LabelledAnswers,
    LabelledSteps,
    PreferencePairs,
)
from grupo.tasks.preference_rows import CHOSEN, LABEL
from grupo.util.errors import ConfigError, suggest


def scorer_head(method: Method, name: str) -> str:
    """The name of the head to evaluate.

    Args:
        method: Trains the heads.
        name: Name of one of them; "" for the only one.

    Raises:
        ConfigError: The method trains no head, none of this name, or several and `name` is "".
    """
    heads = method.requires.heads
    names = sorted({head.name for head in heads if not isinstance(head, LearnedScalar)})
    if not names:
        raise ConfigError(
            f"head: {name!r}, and the run's method trains no head. Allowed: a run of a method that"
            " trains one, such as bradley_terry, ovm or prm_lessons."
        )
    if name in names:
        return name
    if name or len(names) > 1:
        raise ConfigError(f"head: {name!r}. {suggest(name, names)}")
    return names[0]


def has_scorer(method: Method) -> bool:
    """True for a method that trains a head on given answers, such as a reward model."""
    heads = [head for head in method.requires.heads if not isinstance(head, LearnedScalar)]
    return bool(heads) and column_sampler(method) is not None


def head_output(method: Method, name: str) -> HeadOutput:
    """The meaning of a head's number, by the loss that trains it; a margin if no loss is known."""
    return dict(_outputs(method)).get(name, "margin")


def _outputs(method: Method) -> Iterator[tuple[str, HeadOutput]]:
    for part in walk(method.loss):
        match part:
            case Preference(score=HeadAtEnd(head=head)):
                yield head.name, "margin"
            case OutcomeValueLoss():
                yield "value", "probability"
            case StepValueLoss(head=head):
                yield head.name, "probability"
            case StepCrossEntropy(head=head):
                yield head.name, "logit"
            case QualityLoss():
                yield "quality", "logit"


def answer_sampler(method: Method, tasks: Sequence[Task]) -> GivenAnswerSampler:
    """The sampler that reads the answers of held-out tasks: the method's, or by their columns.

    Raises:
        ConfigError: The tasks have no column of answers.
    """
    if sampler := column_sampler(method):
        return sampler
    by_column: Mapping[str, GivenAnswerSampler] = {
        LabelledSteps().labels: LabelledSteps(),
        CHOSEN: PreferencePairs(),
        LABEL: LabelledAnswers(),
    }
    columns = tasks[0].columns
    for column, sampler in by_column.items():
        if column in columns:
            return sampler
    raise ConfigError(
        f"tasks: the columns {', '.join(sorted(columns)) or '(none)'} hold no answers to score."
        " Allowed: completion and label, completion and step_labels, or chosen and rejected."
    )


def check_unseen(option: str, tasks: Sequence[Task], keys: Set[str], use: str) -> None:
    """Raise `ConfigError` for the first task that is used elsewhere, too.

    Args:
        option: Option that names the tasks.
        tasks: The tasks.
        keys: Keys of the tasks that must not be among them.
        use: How these are used, for the message.
    """
    if shared := next((task for task in tasks if task.key in keys), None):
        raise ConfigError(
            f"{option}: {describe_task(shared)} is a task that {use}, too. Allowed: other tasks."
            " Another answer to the same prompt is the same task."
        )
