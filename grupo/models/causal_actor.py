"""Actor of a causal language model: encodes observations and requests answers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from math import log
from random import Random
from typing import Any

from transformers import PreTrainedTokenizerBase

from grupo.core.decoding import Decoding
from grupo.core.demonstration import Demonstration
from grupo.core.interfaces import TokenLogprobs
from grupo.core.model_call import ModelCall
from grupo.core.types import Observation, Response, Rollout
from grupo.inference.base import Reply, Request, StopConditions
from grupo.inference.continued_replies import ReplyBatcher, StreamingBatcher
from grupo.inference.reply_record import RecordingBatcher, ReplyRecord
from grupo.inference.routes import routes_after
from grupo.inference.sampling_params import Sampling
from grupo.models.chat_history import as_fork
from grupo.models.chat_tokenizer import ChatTokenizer
from grupo.models.context import context_tokens, open_response_tokens, replace_prompt
from grupo.models.demonstrations import demonstration_rollout
from grupo.models.model_calls import answer_call
from grupo.models.next_tokens import next_token_responses
from grupo.models.text_choice import draw_text
from grupo.util.errors import ConfigError
from grupo.util.rng import derive_key, make_rng


@dataclass(frozen=True)
class CausalActor:
    """A causal language model with a random stream of its own.

    Args:
        chat_tokenizer: converts observations and answers.
        batcher: batches the requests of many actors for the inference engine.
        rng_key: key of the random stream.
        sampling: temperature and truncation of the token distribution.
        policy_version: update steps of the weights that generate.
        stop_strings: strings that end an answer, besides those of the policy.
        max_new_tokens: limit of an answer, besides that of the policy.
        stop_conditions: those of the policy, for answers that are generated in several steps.
    """

    chat_tokenizer: ChatTokenizer
    batcher: ReplyBatcher
    rng_key: int
    sampling: Sampling
    policy_version: int = 0
    stop_strings: tuple[str, ...] = ()
    max_new_tokens: int = 1 << 30
    stop_conditions: StopConditions = StopConditions(1 << 30, ())

    @property
    def generated_tokens(self) -> Mapping[str, int]:
        return self.batcher.generated_tokens

    @property
    def read_tokens(self) -> Mapping[str, int]:
        return self.batcher.read_tokens

    async def __call__(self, rollout: Rollout, observation: Observation) -> Response:
        if isinstance(observation, ModelCall):
            return await self._answer_call(rollout, observation)
        tokens, rewrites = self.chat_tokenizer.encode_turn(rollout, observation)
        open_tokens = () if tokens else open_response_tokens(rollout)
        context = () if rewrites else context_tokens(rollout)
        response = await self._generate(rollout.role, context, tokens, open_tokens)
        return as_fork(response) if rewrites else response

    async def restart_context(
        self,
        rollout: Rollout,
        observation: Observation,
        suffix_tokens: int = 0,
        prefix_tokens: int = 0,
    ) -> Response:
        generated = [item for _, response in rollout.turns for item in response.items]
        suffix_start = max(prefix_tokens, len(generated) - suffix_tokens)
        carried = (*generated[:prefix_tokens], *generated[suffix_start:])
        tokens = (*self.chat_tokenizer.encode_observation(Rollout(), observation), *carried)
        response = await self._generate(rollout.role, (), tokens, carried)
        return replace(response, resets_context=True)

    async def append_unsampled(
        self, rollout: Rollout, observation: Observation, text: str
    ) -> Response:
        items = self.chat_tokenizer.encode_answer(text)
        return self._unsampled_response(rollout, observation, text, items)

    def demonstrate(self, demonstration: Demonstration) -> Rollout:
        return demonstration_rollout(self.chat_tokenizer, demonstration)

    async def prefill_forced(
        self, rollout: Rollout, observation: Observation, text: str
    ) -> Response:
        items = self.chat_tokenizer.encode_forced(text)
        response = self._unsampled_response(rollout, observation, text, items)
        return replace(response, in_loss=False)

    async def choose(
        self, rollout: Rollout, observation: Observation, probabilities: Mapping[str, float]
    ) -> Response:
        encode = self.chat_tokenizer.encode_forced
        text, tokens, logp = draw_text(probabilities, encode, self.rng("choose"))
        response = self._unsampled_response(rollout, observation, text, tokens)
        drawn = {"logp": logp, "sampled": True, "off_context": True}
        return replace(response, **drawn, rng_key=self.rng_key)

    async def logprobs(self, rollout: Rollout) -> TokenLogprobs:
        num_scored = len(rollout.last_response.items)
        if not num_scored:
            return TokenLogprobs()
        tokens = context_tokens(rollout)
        key, sampling = self.rng_key, self.sampling
        request = Request(tokens, key, sampling, num_scored=num_scored, role=rollout.role)
        reply = await self.batcher(request)
        return TokenLogprobs(reply.logp, reply.entropy, log(len(self.chat_tokenizer.tokenizer)))

    async def next_tokens(
        self, rollout: Rollout, observation: Observation, k: int
    ) -> Sequence[Response]:
        tokens, rewrites = self.chat_tokenizer.encode_turn(rollout, observation)
        open_tokens = () if tokens else open_response_tokens(rollout)
        if len(open_tokens) >= min(self.max_new_tokens, self.stop_conditions.max_new_tokens):
            return ()
        context = () if rewrites else context_tokens(rollout)
        request = Request(
            (*context, *tokens),
            self.rng_key,
            Sampling(self.sampling.temperature),
            self.stop_strings,
            1,
            num_likeliest=k,
            role=rollout.role,
        )
        reply = await self.batcher(request)
        responses = next_token_responses(
            self.chat_tokenizer, self.stop_conditions.for_request(request), reply, open_tokens
        )
        responses = [
            replace(
                response,
                observation=tokens,
                rng_key=self.rng_key,
                policy_version=self.policy_version,
            )
            for response in responses
        ]
        return [as_fork(response) if rewrites else response for response in responses]

    async def decode(
        self, rollout: Rollout, observation: Observation, decoding: Decoding
    ) -> Sequence[Response]:
        tokens, rewrites = self.chat_tokenizer.encode_turn(rollout, observation)
        open_tokens = () if tokens else open_response_tokens(rollout)
        context = () if rewrites else context_tokens(rollout)
        request = replace(self._request((*context, *tokens), rollout.role), decoding=decoding)
        reply = await self.batcher(request)
        responses = [
            replace(self._response(part, tokens, open_tokens), off_context=True)
            for part in reply.split()
        ]
        return [as_fork(response) if rewrites else response for response in responses]

    async def predict_head(self, rollout: Rollout, head: str) -> float:
        tokens = context_tokens(rollout)
        if not all(isinstance(token, int) for token in tokens):
            raise ConfigError(
                f"sampler: it needs predictions of the auxiliary head {head!r} during a rollout."
                " Allowed: rollouts of tokens."
            )
        request = Request(tokens, self.rng_key, aux_head=head, role=rollout.role)
        return (await self.batcher(request)).head_value

    def truncate(self, rollout: Rollout, num_items: int) -> Rollout:
        *turns, (observation, response) = rollout.turns
        before = replace(rollout, turns=tuple(turns))
        items = response.items[:num_items]
        prefix = () if response.observation else open_response_tokens(before)
        truncated = replace(
            response,
            items=items,
            logp=response.logp[:num_items],
            text=self.chat_tokenizer.decode(items, prefix),
            finish_reason="length",
        )
        return before.append_turn(observation, truncated)

    def with_prompt(self, rollout: Rollout, prompt: Observation) -> Rollout:
        return replace_prompt(self.chat_tokenizer, rollout, prompt, off_context=True)

    def for_group(self, key: int, record: ReplyRecord) -> "CausalActor":
        return replace(self, rng_key=key, batcher=RecordingBatcher(*self._continuing, record))

    def streaming(self, on_text: Callable[[str], None]) -> "CausalActor":
        """The same policy, whose answers are passed on while they are generated.

        The tokens are those of the same actor without streaming.

        Args:
            on_text: receives the text of the answer so far, whenever there is more.
        """

        def on_tokens(tokens: tuple[int, ...]) -> None:
            on_text(self.chat_tokenizer.decode(tokens))

        return replace(self, batcher=StreamingBatcher(*self._continuing, on_tokens))

    @property
    def _continuing(self) -> tuple[ReplyBatcher, StopConditions, PreTrainedTokenizerBase, int]:
        """The fields of a batcher whose replies are generated in several requests."""
        tokenizer = self.chat_tokenizer.tokenizer
        return self.batcher, self.stop_conditions, tokenizer, self.policy_version

    def fork(self, *label: object) -> "CausalActor":
        return replace(self, rng_key=derive_key(self.rng_key, *label))

    def rng(self, *label: object) -> Random:
        return make_rng(self.rng_key, *label)

    def with_sampling(self, temperature: float = 1.0, top_k: int = 0) -> "CausalActor":
        return replace(self, sampling=self.sampling.adjust(temperature, top_k))

    def with_stop(self, *stop_strings: str, max_new_tokens: int = 0) -> "CausalActor":
        return replace(self, stop_strings=stop_strings, max_new_tokens=max_new_tokens or 1 << 30)

    async def _answer_call(self, rollout: Rollout, call: ModelCall) -> Response:
        # positions repeat in another context, so each call has a random stream of its own
        actor = replace(
            self.fork("call", len(rollout.turns)),
            stop_strings=(*self.stop_strings, *call.stop_strings),
            max_new_tokens=min(self.max_new_tokens, call.max_new_tokens),
        )
        generate = partial(actor._generate, rollout.role, open_tokens=())
        return await answer_call(self._call_tokenizer, rollout, call, generate)

    @property
    def _call_tokenizer(self) -> ChatTokenizer:
        """The chat tokenizer for texts of agents: it refuses long ones, and keeps no tokens."""
        return replace(self.chat_tokenizer, context_length=self.stop_conditions.context_length)

    async def _generate(
        self,
        role: str,
        context: tuple[int, ...],
        observation_tokens: tuple[int, ...],
        open_tokens: tuple[int, ...],
    ) -> Response:
        reply = await self.batcher(self._request((*context, *observation_tokens), role))
        response = self._response(reply, observation_tokens, open_tokens)
        return replace(response, routes=routes_after(reply.routes, max(0, len(context) - 1)))

    def _request(self, tokens: tuple[int, ...], role: str) -> Request:
        """A request to continue `tokens`."""
        return Request(
            tokens, self.rng_key, self.sampling, self.stop_strings, self.max_new_tokens, role=role
        )

    def _response(
        self, reply: Reply, observation_tokens: tuple[int, ...], open_tokens: tuple[int, ...]
    ) -> Response:
        """The response that a reply holds, without routes."""
        return Response(
            reply.tokens,
            reply.logp,
            # an observation that leaves no room for an answer is not part of the context
            observation_tokens if reply.tokens else (),
            self.chat_tokenizer.decode(reply.tokens, open_tokens),
            reply.finish_reason,
            rng_key=self.rng_key,
            **self._versions(reply),
        )

    def _versions(self, reply: Reply) -> Mapping[str, Any]:
        """The weights that generated a reply, as fields of its response."""
        version, *later = [version for version, _ in reply.parts] or [self.policy_version]
        starts = accumulate(count for _, count in reply.parts)
        parts = tuple(zip(starts, later, strict=False))  # the last part has no part after it
        return {"policy_version": version, "later_parts": parts}

    def _unsampled_response(
        self, rollout: Rollout, observation: Observation, text: str, items: tuple[int, ...]
    ) -> Response:
        tokens, rewrites = self.chat_tokenizer.encode_turn(rollout, observation)
        response = Response(
            items,
            (0.0,) * len(items),
            tokens,
            text,
            sampled=False,
            policy_version=self.policy_version,
        )
        return as_fork(response) if rewrites else response
