"""The command `grupo serve`."""

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from grupo.util.console import print_error, print_line
from grupo.util.errors import ConfigError

if TYPE_CHECKING:
    from grupo.inference.serve import ServeOptions

ModelArgument = Annotated[
    str, Argument(metavar="MODEL", help="Folder, .gguf file or hub name of a model.")
]
MoreArgument = Annotated[
    list[str] | None,
    Argument(metavar="-- OPTIONS", help="Further options of vLLM, such as --max-num-seqs 64."),
]
PortOption = Annotated[int, Option(help="Port of the first server.")]
TensorParallelOption = Annotated[int, Option(help="GPUs of each server.")]
DataParallelOption = Annotated[int, Option(help="Servers, on ports that follow one another.")]
BindOption = Annotated[str, Option(help="Address of this machine to listen on.")]
DtypeOption = Annotated[str, Option(help="bfloat16 or float32: that of the recipe's engine.")]
PythonOption = Annotated[str, Option(help="Interpreter with vLLM; that of grupo by default.")]
RayOption = Annotated[
    str,
    Option(
        metavar="CLUSTER",
        help="Run the servers on a Ray cluster: local, auto or HOST:PORT. Ended servers restart.",
    ),
]
GpusOption = Annotated[
    int | None, Option(help="GPUs of each server on Ray; as --tensor-parallel by default.")
]
LoraRankOption = Annotated[
    int, Option(help="Largest rank of adapters that runs send alone; 0: they send merged weights.")
]
DryRunOption = Annotated[bool, Option("--dry-run", help="Print the commands and exit.")]


def serve(
    model: ModelArgument,
    more: MoreArgument = None,
    port: PortOption = 8000,
    tensor_parallel: TensorParallelOption = 1,
    data_parallel: DataParallelOption = 1,
    bind: BindOption = "127.0.0.1",
    dtype: DtypeOption = "bfloat16",
    python: PythonOption = "",
    lora_rank: LoraRankOption = 0,
    ray: RayOption = "",
    gpus: GpusOption = None,
    dry_run: DryRunOption = False,
) -> None:
    """Print and run the commands of vLLM servers that generate for runs: `Vllm(urls=…)`."""
    from grupo.inference.serve import ServeOptions, check_interpreter, command_line, run_servers
    from grupo.models.model_folder import model_folder

    interpreter = python or sys.executable
    options = ServeOptions(
        model,
        interpreter,
        port,
        bind,
        tensor_parallel,
        data_parallel,
        dtype,
        tuple(more or ()),
        lora_rank,
    )
    if ray:
        _serve_on_ray(options, ray, tensor_parallel if gpus is None else gpus, dry_run)
        return
    if gpus is not None:
        raise ConfigError("gpus: only servers on Ray take it. Give --ray, or --tensor-parallel.")
    options = replace(options, model=model_folder(model))
    commands = [command_line(*parts) for parts in options.commands("WORKER_FOLDER")]
    if not dry_run:
        check_interpreter(interpreter)
    if options.warning:
        print_error(options.warning)
    for line in commands:
        print_line(line)
    if not dry_run:
        run_servers(options)


def _serve_on_ray(options: "ServeOptions", address: str, gpus: int, dry_run: bool) -> None:
    """Print the command of each server, and run the servers on a Ray cluster."""
    from grupo.inference.serve import command_line
    from grupo.ray_workers.serve import RayServeOptions, RayServers

    ray_options = RayServeOptions(options, address, gpus)
    one = replace(options, bind="MACHINE", data_parallel=1)
    ((environment, command),) = one.commands("WORKER_FOLDER")
    line = command_line(environment, command).replace(f"--port {one.port}", "--port PORT")
    servers = RayServers(ray_options) if not dry_run else None
    print_line(line)
    if servers:
        servers.run()
