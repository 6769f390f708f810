"""The command and the environment variables of a vLLM server."""

from grupo.inference.vllm import Vllm

LOGPROBS_MODE = "processed_logprobs"  # after temperature and truncation
SERVER_ENVIRONMENT = {"VLLM_SERVER_DEV_MODE": "1", "VLLM_NO_USAGE_STATS": "1"}


def server_environment(spec: Vllm) -> dict[str, str]:
    """Variables of a started server."""
    return SERVER_ENVIRONMENT | ({"CUDA_VISIBLE_DEVICES": spec.devices} if spec.devices else {})


def server_command(
    spec: Vllm, model: str, max_model_len: int, host: str = "127.0.0.1"
) -> tuple[str, ...]:
    """The command that starts a server; `{port}` stands for the port."""
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
        *spec.server_options,
    )
