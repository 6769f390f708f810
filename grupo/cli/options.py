"""Arguments and options that several commands have."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from grupo.cli.paths import run_folder_argument

Strings = list[str] | None

RunArgument = Annotated[
    Path, Argument(metavar="RUN", parser=run_folder_argument, help="Folder of a run.")
]
OptionalRunArgument = Annotated[
    Path | None, Argument(metavar="RUN", parser=run_folder_argument, help="Folder of a run.")
]
RecipeArguments = Annotated[
    Strings,
    Argument(
        metavar="FILE.py:NAME --FIELD VALUE",
        help="A recipe, the quickstart's by default, and changes to its fields.",
    ),
]
RewardOption = Annotated[Strings, Option(help="[name=][weight*]module:function; may be repeated.")]
StrategiesOption = Annotated[
    Strings,
    Option(
        metavar="STRATEGY",
        help="How a turn is answered: single, Vote(16), file.py:name; repeat it to compare.",
    ),
]
EvalTasksOption = Annotated[
    str, Option(help="Number of tasks to hold out for evaluation, or their source.")
]
TensorboardOption = Annotated[bool, Option("--tensorboard", help="Also write TensorBoard events.")]
TrackioOption = Annotated[bool, Option("--trackio", help="Also log to trackio.")]
VerboseOption = Annotated[
    bool, Option("--verbose", help="Print all main metrics of a step, not only one short line.")
]
WandbOption = Annotated[bool, Option("--wandb", help="Also log to Weights & Biases.")]
