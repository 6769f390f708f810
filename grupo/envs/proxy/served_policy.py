"""A policy behind the API without training: each request is a conversation of its own."""

import asyncio
import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count
from typing import Any, NoReturn

from grupo.core.model_call import UNREADABLE
from grupo.core.types import Rollout
from grupo.envs.proxy.api_error import ApiError
from grupo.envs.proxy.calls import as_model_call, num_prompt_tokens
from grupo.envs.proxy.chat_answer import ChatAnswer, make_answer
from grupo.envs.proxy.chat_request import ChatRequest
from grupo.envs.proxy.request_fields import SAMPLING_OPTIONS
from grupo.envs.proxy.server import ApiServer
from grupo.envs.proxy.tool_rendering import rendering_of_template
from grupo.inference.sampling_params import Sampling
from grupo.models.causal_actor import CausalActor
from grupo.models.tool_templates import tool_template
from grupo.util.errors import ConfigError


class ServedPolicy:
    """Answers requests with a policy, at the temperature, top_p, top_k and min_p that they name.

    Args:
        actor: The policy's handle for generating.
    """

    def __init__(self, actor: CausalActor) -> None:
        self.actor = actor
        self.rendering = rendering_of_template(tool_template(actor.chat_tokenizer.tokenizer))
        self.numbers = count()

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        """The answer to a request.

        Raises:
            ApiError: An option does not apply, the chat template rejects the messages, or these
                leave no room for an answer.
        """
        number = next(self.numbers)
        actor = replace(self.actor.fork(number), sampling=_sampling(self.actor.sampling, request))
        call = as_model_call(request, self.rendering)
        response = await actor(Rollout(), call)
        if response.finish_reason == UNREADABLE:
            raise ApiError(response.text, param=request.messages_field)
        if not response.items:
            raise no_room(request.messages_field)
        rollout = Rollout().append_turn(call, response)
        prompt_tokens = num_prompt_tokens(rollout)
        return make_answer(
            str(number), request, response.text, response, prompt_tokens, self.rendering
        )


def no_room(field: str) -> ApiError:
    """The error of messages, those of a field, that leave no room for an answer."""
    message = f"{field}: they fill the model's context. Allowed: shorter ones."
    return ApiError(message, "context_length_exceeded", field)


async def serve_policy(
    actor: CausalActor, port: int, announce: Callable[[Mapping[str, str]], None]
) -> NoReturn:
    """Serve a policy until the coroutine is cancelled.

    Args:
        actor: The policy's handle for generating.
        port: Port to listen on; 0 takes a free one.
        announce: Is called with the environment variables of clients, once the server listens.

    Raises:
        ConfigError: The port is not free.
    """
    key = secrets.token_urlsafe(24)
    policies: dict[str, ServedPolicy] = {}
    server = ApiServer(policies)
    await server.start(port)
    try:
        policies[key] = ServedPolicy(actor)
        announce({"OPENAI_BASE_URL": server.base_url(), "OPENAI_API_KEY": key})
        while True:
            await asyncio.sleep(3600)
    finally:
        await server.stop()


def _sampling(own: Sampling, request: ChatRequest) -> Sampling:
    """The policy's sampling parameters with those of a request; temperature 0 is greedy."""
    for name in request.not_applied:
        if name not in SAMPLING_OPTIONS:
            raise ApiError(f"{name}: it does not apply. Allowed: leave it out.", param=name)
    values: dict[str, Any] = {**request.sampling}
    if values.get("temperature") == 0:
        values |= {"temperature": own.temperature, "top_k": 1}
    try:
        return replace(own, **values)
    except ConfigError as error:
        raise ApiError(str(error), param=next(iter(values))) from error
