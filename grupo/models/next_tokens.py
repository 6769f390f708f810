"""The likeliest next tokens of a reply, as responses of one token each."""

from collections.abc import Sequence

from grupo.core.types import Response
from grupo.inference.base import Reply, StopConditions
from grupo.inference.stop_conditions import StopChecker
from grupo.models.chat_tokenizer import ChatTokenizer


def next_token_responses(
    chat_tokenizer: ChatTokenizer,
    stop_conditions: StopConditions,
    reply: Reply,
    open_tokens: Sequence[int],
) -> list[Response]:
    """A response of one token for each next token of `reply`; none is sampled.

    Args:
        chat_tokenizer: Decodes the tokens.
        stop_conditions: Decide whether the response ends with the token.
        reply: The next tokens and their log-probabilities.
        open_tokens: Tokens of the response that they continue.
    """
    decode = chat_tokenizer.decode
    checker = StopChecker(stop_conditions, chat_tokenizer.tokenizer)
    reasons = checker.finish_reasons([(*open_tokens, token) for token in reply.next_tokens])
    return [
        Response(
            (token,),
            (logp,),
            text=decode((token,), open_tokens),
            finish_reason=reason or "length",
            sampled=False,
        )
        for token, logp, reason in zip(reply.next_tokens, reply.logp, reasons, strict=True)
    ]
