"""Weights over a process group between this process and each worker of the servers."""

import json
import logging
import socket
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from threading import Event, Thread
from urllib.parse import urlsplit
from weakref import finalize

import torch
from torch import Tensor
from torch.distributed import PrefixStore, Store, TCPStore

from grupo.inference.vllm_worker.transfer import TRANSFER_TIMEOUT, byte_parts, process_group
from grupo.inference.weight_transfer import PublishedWeights, checksum, cpu_tensors

END_LIMIT = 10.0  # seconds to wait for a transfer at the end
POLL_INTERVAL = 0.02  # seconds between two looks for receivers
logger = logging.getLogger(__name__)


class ProcessGroupTransfer:
    """Sends the current weights to each worker that asks for them, in a thread per worker.

    A worker finds this process by a store on a free port, and the two form a process group of their
    own.

    Args:
        server_url: of a server, which reaches this machine where it connects from.
        dtype: of the weights on the servers.
        nccl_device: GPU to send from by NCCL, which must not be that of a worker; None: gloo, from
            the memory of this machine.
    """

    def __init__(
        self, server_url: str, dtype: torch.dtype, nccl_device: torch.device | None = None
    ) -> None:
        self.server_url = server_url
        self.dtype = dtype
        self.device = nccl_device
        self.tensors: Mapping[str, Tensor] = {}
        self.version = ""
        self.ended = Event()
        self.threads: list[Thread] = []
        # also at the end of the interpreter, which must not end a thread within gloo
        finalize(self, _end_threads, self.ended, self.threads)
        self.store: TCPStore | None = None

    def publish(self, weights: Mapping[str, Tensor], header: str = "") -> PublishedWeights:
        tensors = cpu_tensors(weights, self.dtype)
        self.tensors, self.version = tensors, checksum(tensors, header)
        if self.store is None:
            self.store = TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
            self._start(self._serve, self.store.port)
        place = (local_address(self.server_url), self.store.port)
        return PublishedWeights(self.version, "grupo_receive", place)

    def close(self) -> None:
        _end_threads(self.ended, self.threads)

    def _start(self, target: Callable[..., None], *args: int) -> None:
        self.threads[:] = [thread for thread in self.threads if thread.is_alive()]
        thread = Thread(target=target, args=args, name="weights", daemon=True)
        self.threads.append(thread)
        thread.start()

    def _serve(self, port: int) -> None:
        """Start a thread for each new receiver."""
        store = _connect(port)
        num_served = 0
        while not self.ended.wait(POLL_INTERVAL):
            while num_served < store.add("receivers", 0):
                num_served += 1
                self._start(self._send, port, num_served)

    def _send(self, port: int, number: int) -> None:
        """Send the weights to a receiver, which notices by itself if this fails."""
        try:
            self._send_all(PrefixStore(f"receiver/{number}", _connect(port)))
        except RuntimeError as error:
            logger.warning("The transfer of weights to a server broke off: %s", error)

    def _send_all(self, store: Store) -> None:
        tensors, version = self.tensors, self.version
        header = {
            "version": version,
            "backend": "nccl" if self.device else "gloo",
            "tensors": [
                (name, str(tensors[name].dtype).removeprefix("torch."), list(tensors[name].shape))
                for name in sorted(tensors)
            ],
        }
        wanted = store.get("version").decode()
        store.set("header", json.dumps(header))
        if wanted != version:
            return
        group = process_group(store, 0, self.device)
        for name in sorted(tensors):
            for part in byte_parts(tensors[name]):
                group.send([part.to(self.device) if self.device else part], 1, 0).wait()
        self._keep_until_received(store)

    def _keep_until_received(self, store: Store) -> None:
        """Wait until the receiver has read all: the end of the group closes its connection."""
        deadline = time.monotonic() + TRANSFER_TIMEOUT.total_seconds()
        while not store.check(["received"]) and time.monotonic() < deadline:
            if self.ended.wait(POLL_INTERVAL):
                return


def _end_threads(ended: Event, threads: list[Thread]) -> None:
    """Let the threads end, which a transfer may delay."""
    ended.set()
    for thread in list(threads):
        thread.join(END_LIMIT)


def _connect(port: int) -> TCPStore:
    """A connection to the store of this process; each thread needs its own."""
    return TCPStore("localhost", port, is_master=False, timeout=timedelta(seconds=60))


def local_address(server_url: str) -> str:
    """The address of this machine on its way to a server.

    >>> local_address("http://127.0.0.1:1")
    '127.0.0.1'
    """
    parts = urlsplit(server_url)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((parts.hostname or "127.0.0.1", parts.port or 80))  # sends nothing
        return probe.getsockname()[0]
