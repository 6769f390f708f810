"""Settings of a vLLM server as inference engine; `grupo.inference.vllm_engine` uses it."""

import os
from importlib import import_module
from pathlib import Path
from typing import Annotated, Literal

from annotated_types import Ge

from grupo.core.component import check_field, component
from grupo.core.dtypes import DtypeName
from grupo.core.ranges import PositiveInt, PositiveProbability, Seconds
from grupo.util.errors import ConfigError
from grupo.util.optional_deps import optional_dependency

SERVERS_VARIABLE = "GRUPO_SERVERS"  # addresses, separated by spaces
WeightTransferName = Literal["file", "gloo", "nccl", "ipc"]


@component
class Vllm:
    """vLLM servers: the running ones at `urls`, or one that is started with `python`.

    Args:
        urls: of running servers, which share the requests; ignored with `python`.
        python: interpreter of an environment with vLLM, to start a server with.
        port: of a started server, on 127.0.0.1; 0 takes any free port.
        dtype: in which vLLM computes and weights are transferred.
        max_model_len: context length of vLLM, in tokens; 0: that of the model.
        devices: numbers of the GPUs of a started server, such as "1" or "2,3"; "": those of this
            process.
        sleep: release the server's memory while the policy is updated.
        gpu_memory_utilization: fraction of the device's memory for a started server.
        server_options: more command line options of a started server.
        weight_transfer: "file" in `folder`; "gloo" or "nccl": from memory to memory; "ipc": in
            memory that a server on the policy's own device opens.
        adapters: send the adapters of a policy with LoRA alone, where the servers can apply them;
            False: merged into all weights.
        folder: of the file; "": the system's folder for temporary files. All servers must see it.
        max_concurrency: requests in flight at each server.
        request_timeout: longest time without any answer before the server counts as failed, in
            seconds.
        startup_timeout: longest time for starting and for loading weights, in seconds.
        max_failures: failures in a row, without an answer between them, after which a server is
            given up; the run ends when none is left.
    """

    urls: tuple[str, ...] = ("http://127.0.0.1:8000",)
    python: str = ""
    port: int = 0
    dtype: DtypeName = "float32"
    max_model_len: Annotated[int, Ge(0), "0: as the model"] = 0
    devices: str = ""
    sleep: bool = False
    gpu_memory_utilization: PositiveProbability = 0.5
    server_options: tuple[str, ...] = ()
    weight_transfer: WeightTransferName = "file"
    folder: str = ""
    max_concurrency: PositiveInt = 128
    request_timeout: Seconds = 600.0
    startup_timeout: Seconds = 900.0
    max_failures: PositiveInt = 3
    adapters: bool = True

    def __post_init__(self) -> None:
        check_field(self, "urls", bool(self.urls or self.python), "an address, or python")
        distinct = {url.rstrip("/") for url in self.urls}
        check_field(self, "urls", len(distinct) == len(self.urls), "each server once")
        is_list = all(number.isdecimal() for number in self.devices.split(",") if self.devices)
        check_field(self, "devices", is_list, 'numbers of GPUs, such as "1" or "2,3"')
        is_used = bool(self.python or not self.devices)
        check_field(self, "devices", is_used, "with python; a running server has its own GPUs")

    @property
    def server_urls(self) -> tuple[str, ...]:
        """Addresses of the running servers: `urls`, or those in the variable GRUPO_SERVERS.

        A scheduler places a job that is resumed on other machines; its recipe stays the same.
        """
        return tuple(os.environ.get(SERVERS_VARIABLE, "").split()) or self.urls

    def check(self) -> None:
        """Raise `ConfigError` for a missing HTTP client or folder, or a server named twice."""
        urls = self.server_urls
        if len({url.rstrip("/") for url in urls}) < len(urls):
            raise ConfigError(f"{SERVERS_VARIABLE}: {' '.join(urls)!r}. Allowed: each server once.")
        is_there = not self.folder or Path(self.folder).is_dir()
        check_field(self, "folder", is_there, "an existing folder")
        with optional_dependency("aiohttp", "vllm"):
            import_module("aiohttp")
