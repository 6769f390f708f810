"""All servers of an engine: works with those that answer, and returns to the others."""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from typing import Protocol

from grupo.inference.engine_errors import EngineError, TransientServerError
from grupo.inference.http_client import HTTPClient, open_session
from grupo.inference.vllm import Vllm
from grupo.inference.vllm_server import VllmServer, check_same_settings
from grupo.inference.weight_transfer import PublishedWeights
from grupo.util.errors import ConfigError

RETRY_INTERVAL = 0.25  # seconds between a failure and the next attempt; doubled by each further one
LONGEST_RETRY_INTERVAL = 30.0  # seconds
logger = logging.getLogger(__name__)


class Job(Protocol):
    """Work that servers share."""

    complete: asyncio.Event  # nothing is left to do

    async def work(self, server: VllmServer, client: HTTPClient) -> None:
        """The part of a server that holds the weights; returns when nothing is left for it."""
        ...

    def leave_out(self, server: VllmServer) -> None:
        """Go on without a server that does not answer, until it does."""
        ...

    def status(self) -> str:
        """The part that is unfinished, for messages."""
        ...


class ServerPool:
    """Runs a job with several servers, until it is complete or all of them have failed.

    Args:
        spec: the settings of the engine.
        servers: of the engine.
    """

    def __init__(self, spec: Vllm, servers: Sequence[VllmServer]) -> None:
        self.spec = spec
        self.servers = servers
        self.has_loaded = False  # whether every server has held the weights of this run

    async def run(self, job: Job, weights: PublishedWeights | None) -> None:
        """Let each server work on the job once it holds the weights; None: any weights.

        Raises:
            EngineError: every server has failed `max_failures` times in a row, or one of them
                rejected a request.
            ConfigError: before the first weights were loaded, a server had other settings.
        """
        working: set[VllmServer] = set()
        tasks = {
            server: asyncio.create_task(self._serve(server, job, weights, working))
            for server in self.servers
        }
        completion = asyncio.create_task(job.complete.wait())
        try:
            pending = {completion, *tasks.values()}
            while completion in pending:
                done, pending = await asyncio.wait(pending, return_when="FIRST_COMPLETED")
                for task in done:
                    task.result()  # raises its error
            # servers that are not back by now are not waited for
            await asyncio.gather(*(tasks[server] for server in working))
        finally:
            for task in (completion, *tasks.values()):
                task.cancel()
            await asyncio.gather(completion, *tasks.values(), return_exceptions=True)

    async def _serve(
        self,
        server: VllmServer,
        job: Job,
        weights: PublishedWeights | None,
        working: set[VllmServer],
    ) -> None:
        """Let a server work; after each failure, wait until it is back with the right weights."""
        while True:
            try:
                await self._wait_until_up(server, job)
                async with open_session(self.spec.max_concurrency) as session:
                    client = HTTPClient(server.url, session)
                    await self._ensure_ready(server, client, weights)
                    working.add(server)
                    await job.work(server, client)
                return
            except TransientServerError as error:
                working.discard(server)
                server.failures += 1
                pause = RETRY_INTERVAL * 2 ** min(server.failures - 1, 16)
                job.leave_out(server)
                await self._report_failure(server, job, error, bool(working))
                await asyncio.sleep(min(pause, LONGEST_RETRY_INTERVAL))

    async def _wait_until_up(self, server: VllmServer, job: Job) -> None:
        if not await server.process.is_up():
            job.leave_out(server)
            if self.has_loaded and len(self.servers) > 1 and not server.is_missing:
                logger.warning("vllm at %s does not answer; the other servers go on.", server.url)
            server.is_missing = True
            await server.process.wait_ready()
        server.is_missing = False

    async def _ensure_ready(
        self, server: VllmServer, client: HTTPClient, weights: PublishedWeights | None
    ) -> None:
        try:
            await server.ensure_ready(client, weights)
            check_same_settings(self.servers)
        except (EngineError, ConfigError) as error:
            # at first it is a mistake of the user; later, one of several servers may be broken
            if not self.has_loaded or len(self.servers) == 1:
                raise
            raise TransientServerError(str(error).rstrip(".")) from error

    async def _report_failure(
        self, server: VllmServer, job: Job, error: Exception, others_work: bool
    ) -> None:
        """Log the failure; raise EngineError if it was the last one that is allowed."""
        line = f"{error}; {job.status()}.{await server.process.handle_failure()}"
        if self._has_failed():
            raise EngineError(
                f"{line} Gave up after {server.failures} failures in a row."
            ) from error
        logger.warning("%s %s", line, "Other servers go on." if others_work else "Retrying.")

    def _has_failed(self) -> bool:
        """Whether no server is left; before the first weights are loaded, all are needed."""
        failed: Iterator[bool] = (s.failures >= self.spec.max_failures for s in self.servers)
        return all(failed) if self.has_loaded else any(failed)
