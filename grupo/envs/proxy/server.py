"""The HTTP server in front of a policy: two forms of OpenAI's API on the loopback interface."""

import asyncio
import json
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any, Protocol

from aiohttp import web
from aiohttp.http import HttpProcessingError

from grupo.envs.proxy.api_error import ApiError
from grupo.envs.proxy.chat_answer import ChatAnswer
from grupo.envs.proxy.chat_request import ChatRequest
from grupo.envs.proxy.connections import Connections
from grupo.envs.proxy.request_form import FORMS, RequestForm
from grupo.util.errors import ConfigError
from grupo.util.limits import REQUEST_SIZE

HOST = "127.0.0.1"
HOST_NAMES = (HOST, "localhost")  # allowed in the Host header
LAST_PORT = 65535
BODY_SECONDS = 30.0  # in which the body of a request must have arrived
IDLE_SECONDS = 30.0  # in which the next request of a connection must have begun, with its headers
ROLLOUTS = "rollouts"  # the path of a rollout is /rollouts/<key>/v1
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Endpoint(Protocol):
    """Answers the requests that are sent with one key."""

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        """The answer to a request; raises `ApiError` if there is none."""
        ...


class ApiServer:
    """Chat completions and Responses for several agents, each of which has a secret key.

    The key stands in the path, `/rollouts/<key>/v1`, or in the header `Authorization: Bearer <key>`
    of a request to `/v1`.

    Args:
        endpoints: The endpoint of each key; changed while the server runs.
    """

    def __init__(self, endpoints: Mapping[str, Endpoint]) -> None:
        self.endpoints = endpoints
        self.port = 0
        self._runner = web.AppRunner(
            self._application(),
            handler_cancellation=True,
            auto_decompress=False,
            keepalive_timeout=IDLE_SECONDS,
            logger=_quiet_logger(),
        )

    async def start(self, port: int = 0) -> None:
        """Listen on a port; 0 takes a free one. Raises `ConfigError` if the port is not free."""
        if not 0 <= port <= LAST_PORT:
            raise ConfigError(f"port: {port}. Allowed: 0 to {LAST_PORT}; 0 finds a free one.")
        await self._runner.setup()
        assert self._runner.server
        self._connections = Connections(self._runner.server)
        loop = asyncio.get_running_loop()
        try:
            self._listener = await loop.create_server(self._connections, HOST, port)
        except OSError as error:
            raise ConfigError(
                f"port: {port}: {error.strerror}. Allowed: a free port; 0 finds one."
            ) from error
        self.port = self._listener.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Close all connections."""
        self._listener.close()
        await self._runner.cleanup()

    def base_url(self, key: str = "") -> str:
        """The base URL of the agent with a key in the path, or without one."""
        path = f"/{ROLLOUTS}/{key}" if key else ""
        return f"http://{HOST}:{self.port}{path}/v1"

    def _application(self) -> web.Application:
        application = web.Application(
            client_max_size=REQUEST_SIZE.maximum, middlewares=[_errors_in_openai_form, _check_host]
        )
        for prefix in ("/v1", f"/{ROLLOUTS}/{{key}}/v1"):
            for path, form in FORMS.items():
                application.router.add_post(f"{prefix}/{path}", partial(self._answer, form))
            application.router.add_get(f"{prefix}/models", self._models)
        return application

    async def _models(self, request: web.Request) -> web.StreamResponse:
        self._endpoint(request)
        model = {"id": "policy", "object": "model", "created": 0, "owned_by": "grupo"}
        return web.json_response({"object": "list", "data": [model]})

    async def _answer(self, form: RequestForm, request: web.Request) -> web.StreamResponse:
        endpoint = self._endpoint(request)
        with self._connections.call(request, endpoint):
            parsed = form.parse(await _json_body(request))
            answer = await endpoint.complete(parsed)
        if not parsed.stream:
            return web.json_response(form.body(parsed, answer))
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for event in form.events(parsed, answer):
            await response.write(event.encode())
        await response.write_eof()
        return response

    def _endpoint(self, request: web.Request) -> Endpoint:
        header = request.headers.get("Authorization", "")
        key = request.match_info.get("key") or header.removeprefix("Bearer ").strip()
        sent = key.encode(errors="surrogateescape")  # a header may hold any bytes
        for known, endpoint in self.endpoints.items():
            if secrets.compare_digest(known.encode(), sent):
                return endpoint
        raise ApiError(
            "No rollout has this key: the rollout is over, or its address is incomplete. Allowed:"
            " the base URL that the agent was given, or its key as the API key.",
            code="invalid_api_key",
            status=HTTPStatus.UNAUTHORIZED,
        )


async def _json_body(request: web.Request) -> Any:
    """The JSON of a request in UTF-8, whatever codec and compression its headers name."""
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return json.loads((await request.read()).decode())
    except TimeoutError as error:
        message = f"The body is not complete after {BODY_SECONDS:g} s."
        raise ApiError(message, "timeout", status=HTTPStatus.REQUEST_TIMEOUT) from error
    except (ValueError, RecursionError) as error:
        raise ApiError(f"The body is not JSON: {error}.", code="invalid_json") from error


def _quiet_logger() -> logging.Logger:
    """A logger of errors that a client is not the cause of."""
    logger = logging.Logger(__name__)
    logger.addFilter(lambda record: not isinstance(_exception(record), HttpProcessingError))
    return logger


def _exception(record: logging.LogRecord) -> BaseException | None:
    return record.exc_info[1] if record.exc_info else None


@web.middleware
async def _check_host(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse foreign names that resolve to this machine (DNS rebinding)."""
    if request.host.rpartition(":")[0] not in HOST_NAMES:
        raise ApiError("The Host header is foreign.", "forbidden", status=HTTPStatus.FORBIDDEN)
    return await handler(request)


@web.middleware
async def _errors_in_openai_form(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except ApiError as error:
        return web.json_response(error.body, status=error.status)
    except web.HTTPException as error:
        message = f"{request.method} {request.path.rpartition('/v1')[2]}: {error.reason}."
        refusal = ApiError(message, "not_supported", status=error.status)
        return web.json_response(refusal.body, status=error.status, headers=_allow(error))


def _allow(error: web.HTTPException) -> Mapping[str, str]:
    """The header of a response that names the allowed methods."""
    return {"Allow": error.headers["Allow"]} if "Allow" in error.headers else {}
