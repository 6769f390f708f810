"""Pipelines among the arguments of `grupo train`, `resume` and the commands that read runs."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from grupo.cli.build_recipe import parse_option
from grupo.cli.cost_lines import cost_lines
from grupo.cli.displays import ensure_toy_model
from grupo.cli.fields import FIELD_ALIASES, Fields
from grupo.config.defaults import measure_tasks
from grupo.config.overrides import set_field
from grupo.core.component import component_fields
from grupo.distributed.exchange import broadcast_from_rank_0, exchange_json
from grupo.distributed.phase import Phase
from grupo.distributed.start import is_rank_0, launched_ranks
from grupo.pipeline import ConditionFailedError, Pipeline, resume_pipeline
from grupo.pipeline.collect import NothingCollectedError
from grupo.pipeline.data_stage import read_data_file
from grupo.pipeline.load import is_pipeline_file, load_pipeline_file
from grupo.pipeline.pipeline import stage_executions
from grupo.pipeline.pipeline_file import read_pipeline
from grupo.pipeline.run import CallbackFactory, describe_execution, run_checked_pipeline
from grupo.pipeline.sources import task_sources_from_stages
from grupo.pipeline.stages import PipelineStage, is_training_stage
from grupo.pipeline.validate import check_pipeline
from grupo.report.stages import stage_table
from grupo.storage.atomic_files import sha256_of
from grupo.storage.checkpoint import CorruptRun
from grupo.storage.pipeline_dirs import is_pipeline, stage_folders
from grupo.tasks import split_tasks
from grupo.toy.quickstart import needs_toy_model
from grupo.training.resume.run_folder import RunFolder, unused_folder
from grupo.training.resume.template_texts import stored_templates, with_template_texts
from grupo.util.console import out, print_error, print_line
from grupo.util.errors import ConfigError, suggest
from grupo.util.importing import load_module
from grupo.util.run_files import MERGED_FILE
from grupo.util.user_paths import is_recipe_file, parse_folder, shell_path

FIXED = ("name", "recipe")  # fields of a stage that no option changes


def find_pipeline(address: str) -> Pipeline | None:
    """The pipeline at `FILE.py:NAME` or in a recipe file; None if there is something else.

    Args:
        address: The address; NAME is `PIPELINE` if the file has no `RECIPE`. "" is the quickstart.
    """
    if not address:
        return None
    if is_recipe_file(address):
        return load_pipeline_file(Path(address)) if is_pipeline_file(Path(address)) else None
    location, colon, name = address.rpartition(":")
    location = location if colon else address
    if not location.endswith(".py") and not colon:
        return None
    variables = vars(load_module(location))
    default = "RECIPE" if "RECIPE" in variables else "PIPELINE"
    value = variables.get(name if colon else default)
    return value if isinstance(value, Pipeline) else None


def with_fields(pipeline: Pipeline, fields: Fields) -> Pipeline:
    """The pipeline with other fields: `sft.max_steps` of one stage, `max_steps` of every stage.

    Args:
        pipeline: The pipeline.
        fields: Dotted names of fields with the text of their values.
    """
    for field, text in fields:
        first, _, rest = field.partition(".")
        options = [stage.name.replace("-", "_") for stage in pipeline.stages]
        known = component_fields(pipeline.stages[0].recipe)
        if field == "rounds":
            pipeline = set_field(pipeline, field, text)
        elif first in options and rest:
            changed = list(pipeline.stages)
            changed[options.index(first)] = _with_field(changed[options.index(first)], rest, text)
            pipeline = replace(pipeline, stages=tuple(changed))
        elif first in known:
            stages = tuple(_with_field(stage, field, text) for stage in pipeline.stages)
            pipeline = replace(pipeline, stages=stages)
        else:
            hint = suggest(first, (*options, *known, "rounds"))
            raise ConfigError(
                f"--{field.replace('_', '-')}: there is no stage and no field {first!r}."
                f" Write --{options[0]}.max-steps 20 for one stage. {hint}"
            )
    return pipeline


def check_no_recipe_options(**options: object) -> None:
    """Raise `ConfigError` for an option that replaces parts of a single recipe."""
    for name, value in options.items():
        if value:
            raise ConfigError(
                f"--{name.replace('_', '-')}: {value!r}. Allowed with a pipeline: fields of its"
                " stages, as in --policy.model FOLDER for all of them, or --sft.max-steps 20 for"
                " the stage sft."
            )


def dry_run_lines(pipeline: Pipeline) -> Iterator[str]:
    """Each stage with its start, its steps, and estimates of its memory and time."""
    executions = list(stage_executions(pipeline, Path("RUN")))
    for execution in executions:
        yield describe_execution(execution, len(executions))
        stage, recipe = execution.stage, execution.stage.recipe
        if stage.when:
            yield f"  when {stage.when!r}, otherwise {stage.otherwise}"
        yield f"  {recipe.describe_step() if is_training_stage(stage) else stage!r:.200}"
        if task_sources_from_stages(recipe):
            yield "  its tasks are those of an earlier stage: nothing is estimated"
        elif execution.round_number == 1 and not needs_toy_model(recipe):
            tasks, eval_tasks = split_tasks(recipe.tasks, recipe.eval_tasks, recipe.seed)
            lengths = measure_tasks(tasks, held_out=len(eval_tasks))
            yield from (f"  {line}" for line in cost_lines(recipe, lengths))


@dataclass(frozen=True)
class PipelineCommand:
    """The command `grupo train` with a pipeline.

    Args:
        run: The folder; "" for a new one, named by date and time.
        resume_if_exists: Resume the pipeline if its folder holds it already.
        make_callback: The callback of a stage, from the stage's folder.
    """

    run: str
    resume_if_exists: bool
    make_callback: CallbackFactory

    def __call__(self, pipeline: Pipeline, *, dry_run: bool) -> None:
        """Check the pipeline, and print it or run it."""
        check_pipeline(pipeline)
        if dry_run:
            return print_line("\n".join(dry_run_lines(pipeline)))
        if self.resume_if_exists and not self.run:
            raise ConfigError(
                "resume-if-exists: the folder of the run is not named. Give it by --run."
            )
        folder = parse_option(parse_folder, "run", self.run) if self.run else unused_folder()
        beginning = [str(folder), self.resume_if_exists and is_pipeline(folder)]
        path, exists = broadcast_from_rank_0(
            launched_ranks(), beginning, Phase.PIPELINE_FOLDER_NAMED
        )
        if exists:
            check_same_pipeline(pipeline, Path(path))
            return resume_stages(Path(path), (), self.make_callback)
        self._begin(pipeline, Path(path))

    def _begin(self, pipeline: Pipeline, root: Path) -> None:
        if is_rank_0():
            RunFolder.check_empty(root)
            for stage in pipeline.stages:
                ensure_toy_model(stage.recipe, self.make_callback(root))
        exchange_json(launched_ranks(), None, Phase.QUICKSTART_MODEL_TRAINED)
        with _resume_hint(root):
            run_checked_pipeline(pipeline, root, self.make_callback)
        _print_stages(root)


def resume_stages(root: Path, arguments: Sequence[str], make_callback: CallbackFactory) -> None:
    """Run the unfinished stages of a pipeline, and print a table of all.

    Args:
        root: The folder of the pipeline.
        arguments: Further arguments of the command, which a pipeline does not take.
        make_callback: The callback of a stage, from the stage's folder.
    """
    if arguments:
        raise ConfigError(f"{arguments[0]!r}: a pipeline is resumed as it was begun. Leave it out.")
    with _resume_hint(root):
        resume_pipeline(root, make_callback)
    _print_stages(root)


@contextmanager
def _resume_hint(root: Path) -> Generator[None]:
    """Print how to resume a pipeline that ends with an error or Ctrl-C."""
    try:
        yield
    except (ConfigError, ConditionFailedError, NothingCollectedError):
        raise  # its message says what to do
    except BaseException:
        if is_rank_0() and is_pipeline(root):
            command = f"grupo resume {shell_path(root)}"
            print_error(f"`{command}` continues with the stages that are not finished.")
        raise


def _print_stages(root: Path) -> None:
    if is_rank_0():
        out.print(stage_table(root))
        print_line(f"The pipeline is in {root}")


def check_data_files(root: Path) -> None:
    """Print a line for each intact data set and merge of a pipeline.

    Raises:
        CorruptRun: A data set or merged weights were changed.
    """
    for stage in stage_folders(root):
        if stage.is_run and (stage.folder / MERGED_FILE).is_file():
            policy: Any = RunFolder.open(stage.folder).recipe.policy
            file = stage.folder / MERGED_FILE
            if sha256_of(file) != policy.start.sha256:
                raise CorruptRun(f"{file} is damaged: its SHA-256 differs. Put back the original.")
            print_line(f"OK      {file}")
        elif stage.is_finished and not stage.is_run:
            print_line(f"OK      {read_data_file(stage.folder)}")


def check_same_pipeline(pipeline: Pipeline, root: Path) -> None:
    """Raise `ConfigError` if a folder holds another pipeline."""
    stored = read_pipeline(root)
    if stored != with_template_texts(pipeline, stored_templates(stored)):
        raise ConfigError(
            f"run: {str(root)!r} was begun with another pipeline. Resume it as it is, or name"
            " another folder."
        )


def _with_field(stage: PipelineStage, field: str, text: str) -> PipelineStage:
    """The stage with one field of its own or of its recipe set."""
    field = FIELD_ALIASES.get(field, field)
    first = field.partition(".")[0]
    set_of: Any = partial(set_field, field=field, text=text)
    if first in component_fields(stage) and first not in FIXED:
        return set_of(stage, path=f"{stage.name}.")
    changed: Any = stage
    return replace(changed, recipe=set_of(stage.recipe, path=f"{stage.name}."))
