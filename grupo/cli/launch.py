"""Commands that start runs on clusters: `grupo launch slurm`."""

from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from grupo.cli.single_value import SingleValueCommand
from grupo.util.console import print_line
from grupo.util.errors import ConfigError

if TYPE_CHECKING:
    from grupo.models.causal_lm import CausalLM
    from grupo.recipe import Recipe

launch_app = typer.Typer(no_args_is_help=True, help="Print the script of a job on a cluster.")

RecipeArgument = Annotated[str, Argument(metavar="FILE.py:NAME", help="The recipe.")]
RunOption = Annotated[str, Option(help="Folder of the run, which all machines see.")]
NodesOption = Annotated[int, Option(help="Machines of the job.")]
GpusOption = Annotated[int, Option(help="GPUs of each machine.")]
ServersOption = Annotated[int, Option(help="Machines that run vLLM servers; the others train.")]
TimeOption = Annotated[str, Option(help="Time limit, such as 24:00:00.")]
TensorParallelOption = Annotated[int, Option(help="GPUs of each server.")]


@launch_app.callback()
def launch() -> None:
    """Print the script of a job on a cluster; submitting it is yours."""


@launch_app.command("slurm", cls=SingleValueCommand)
def slurm(
    recipe: RecipeArgument,
    run: RunOption,
    nodes: NodesOption = 1,
    gpus: GpusOption = 8,
    servers: ServersOption = 0,
    time: TimeOption = "24:00:00",
    tensor_parallel: TensorParallelOption = 1,
) -> None:
    """Print a job for SLURM: `grupo launch slurm … > job.sh`, then `sbatch job.sh`."""
    from grupo.cli.build_recipe import RecipeArgs
    from grupo.distributed.slurm import SlurmJob
    from grupo.inference.vllm_command import lora_options

    job = SlurmJob(nodes, gpus, servers, time, tensor_parallel)
    arguments = [recipe, "--run", run]
    model, dtype, lora_rank = "", "", 0
    if servers:
        policy = _served_policy(RecipeArgs(recipe)())
        model = str(policy.model)
        dtype = policy.engine.dtype if policy.engine else _server_dtype(policy)
        if policy.lora and (not policy.engine or policy.engine.adapters):
            lora_rank = policy.lora.rank if lora_options(policy.lora.rank) else 0
        if not policy.engine:
            engine = f"Vllm(dtype={dtype!r}, weight_transfer='gloo')"
            arguments += ["--policy.engine", engine]
    print_line(job.script(model, dtype, arguments, lora_rank).rstrip())


def _served_policy(recipe: "Recipe") -> "CausalLM":
    """The policy of a recipe, or ConfigError if servers cannot generate for it."""
    from grupo.models.causal_lm import CausalLM

    policy = recipe.policy
    if not isinstance(policy, CausalLM) or not isinstance(policy.model, str):
        raise ConfigError(
            f"policy: {type(policy).__name__}. Allowed with servers: CausalLM of a model's folder."
        )
    engine = policy.engine
    if engine and engine.python:
        raise ConfigError(f"policy.engine.python: {engine.python!r}. Allowed with servers: ''.")
    if engine and engine.weight_transfer == "file" and not engine.folder:
        raise ConfigError(
            "policy.engine.folder: ''. Allowed with servers on other machines: a folder that all"
            " of them see, or weight_transfer='gloo'."
        )
    return policy


def _server_dtype(policy: "CausalLM") -> str:
    return "bfloat16" if policy.dtype == "bfloat16" else "float32"
