"""The command `grupo serve`."""

import shlex
import sys
from collections.abc import Mapping
from dataclasses import replace
from inspect import signature
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from grupo.util.console import print_error, print_line
from grupo.util.errors import ConfigError
from grupo.util.run_files import RECIPE_JSON
from grupo.util.user_paths import parse_path

if TYPE_CHECKING:
    from grupo.inference.serve import ServeOptions

ModelArgument = Annotated[
    str, Argument(metavar="MODEL", help="Folder, .gguf file or hub name; or a run, with --openai.")
]
OpenAIOption = Annotated[
    bool,
    Option(
        "--openai",
        help="Serve the model, or a run, to clients of OpenAI, from this process and without vLLM.",
    ),
]
MaxNewTokensOption = Annotated[
    int | None, Option(min=1, help="With --openai: the most tokens of an answer.")
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
OPENAI_ARGUMENTS = ("model", "port", "openai", "max_new_tokens")
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
    openai: OpenAIOption = False,
    max_new_tokens: MaxNewTokensOption = None,
) -> None:
    """Run vLLM servers that generate for runs, `Vllm(urls=…)`; or serve a model to agents."""
    given = locals()
    if openai:
        _check_openai_options(given)
        _serve_openai(model, port, max_new_tokens)
        return
    if max_new_tokens is not None:
        raise ConfigError("max-new-tokens: vLLM takes it from each request. Allowed: --openai.")
    from grupo.inference.serve import ServeOptions

    _check_no_run(model)
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
    _serve_here(options, dry_run)


def _check_openai_options(given: Mapping[str, object]) -> None:
    """Raise `ConfigError` for an option that `--openai` does not take.

    Args:
        given: All options of the command by name.
    """
    for name, parameter in signature(serve).parameters.items():
        if name not in OPENAI_ARGUMENTS and given[name] != parameter.default:
            option = f"options {given[name]}" if name == "more" else name.replace("_", "-")
            raise ConfigError(f"{option}: of vLLM only. Leave it out, or leave --openai out.")


def _check_no_run(model: str) -> None:
    """Raise `ConfigError` for the folder of a run, which vLLM cannot load."""
    if (parse_path(model) / RECIPE_JSON).is_file():
        raise ConfigError(
            f"model: {model!r} is a run. Allowed: the folder of `grupo export {shlex.quote(model)}"
            " FOLDER`. --openai serves runs, without vLLM."
        )


def _serve_here(options: "ServeOptions", dry_run: bool) -> None:
    """Print the command of each server, and run the servers on this machine."""
    from grupo.inference.serve import check_interpreter, command_line, run_servers
    from grupo.models.model_folder import model_folder

    options = replace(options, model=model_folder(options.model))
    commands = [command_line(*parts) for parts in options.commands("WORKER_FOLDER")]
    if not dry_run:
        check_interpreter(options.python)
    if options.warning:
        print_error(options.warning)
    for line in commands:
        print_line(line)
    if not dry_run:
        run_servers(options)


def _serve_openai(model: str, port: int, max_new_tokens: int | None) -> None:
    """Serve a model or a run to clients of OpenAI until Ctrl-C."""
    from grupo.cli.ask_args import AskArgs
    from grupo.models.causal_actor import CausalActor
    from grupo.util.event_loop import run_coroutine
    from grupo.util.optional_deps import optional_dependency

    with optional_dependency("aiohttp", "proxy"):
        from grupo.envs.proxy.served_policy import serve_policy
    policy, name, _ = AskArgs(model, max_new_tokens=max_new_tokens or 0).load()
    actor = policy.actor(0)
    if not isinstance(actor, CausalActor):
        raise ConfigError(f"model: {model} is no language model. Allowed: a causal one.")

    def announce(variables: Mapping[str, str]) -> None:
        print_line(f"{name} answers at {variables['OPENAI_BASE_URL']} until Ctrl-C. For clients:")
        print_line(f"export {' '.join(f'{name}={value}' for name, value in variables.items())}")

    run_coroutine(serve_policy(actor, port, announce))


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
