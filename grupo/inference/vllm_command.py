"""The command, the environment variables and the worker extension of a vLLM server."""

import shutil
from pathlib import Path

from grupo.inference import vllm_worker
from grupo.inference.vllm import Vllm

LOGPROBS_MODE = "processed_logprobs"  # after temperature and truncation
SERVER_ENVIRONMENT = {
    "VLLM_SERVER_DEV_MODE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1",
}
MAX_LORA_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)  # that vLLM knows


def server_environment(spec: Vllm) -> dict[str, str]:
    """Variables of a started server."""
    return SERVER_ENVIRONMENT | ({"CUDA_VISIBLE_DEVICES": spec.devices} if spec.devices else {})


def lora_options(rank: int) -> tuple[str, ...]:
    """Options of a server that applies adapters of a rank; none for 0, or for a larger rank.

    >>> lora_options(12)
    ('--enable-lora', '--max-lora-rank', '16')
    """
    allowed = [str(limit) for limit in MAX_LORA_RANKS if limit >= rank > 0]
    return ("--enable-lora", "--max-lora-rank", allowed[0]) if allowed else ()


def server_command(
    spec: Vllm, model: str, max_model_len: int, host: str = "127.0.0.1", lora_rank: int = 0
) -> tuple[str, ...]:
    """The command that starts a server; `{port}` stands for the port.

    Args:
        spec: the settings of the server.
        model: folder or hub name.
        max_model_len: context length, in tokens.
        host: address that the server listens on.
        lora_rank: largest rank of adapters; 0: none.
    """
    options = {
        "--model": model,
        "--host": host,
        "--port": "{port}",
        "--dtype": spec.dtype,
        "--load-format": "safetensors",  # "auto" would fall back to pickles
        **({"--max-model-len": str(max_model_len)} if max_model_len < 1 << 30 else {}),
        "--gpu-memory-utilization": str(spec.gpu_memory_utilization),
        "--generation-config": "vllm",
        "--logprobs-mode": LOGPROBS_MODE,
        "--worker-extension-cls": "vllm_worker.WeightLoaderExtension",
    }
    return (
        *(spec.python, "-m", "vllm.entrypoints.openai.api_server"),
        *(word for option in options.items() for word in option),
        "--disable-uvicorn-access-log",
        *(("--enable-sleep-mode",) if spec.sleep else ()),
        *lora_options(lora_rank),
        *spec.server_options,
    )


def copy_worker(folder: Path) -> None:
    """Copy the extension of vLLM's workers into a folder from which a server imports it."""
    source = Path(vllm_worker.__file__).parent
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(source, folder / source.name, ignore=ignored, dirs_exist_ok=True)
