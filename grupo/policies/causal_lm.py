"""Causal language models: an action is a token."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from grupo.batch import Batch, Signals
from grupo.engines.local import Engine, Reply, Request
from grupo.engines.queue import Queue
from grupo.errors import Refused, nearest
from grupo.piece import piece
from grupo.policies import loading
from grupo.policies.loading import Lora
from grupo.policies.logits import Sampling, logp_and_entropy
from grupo.randomness import derive
from grupo.rollout import Action, Observation, Rollout


@piece
class CausalLM:
    """Any causal language model of transformers, by folder or hub name.

    `limit` is how many tokens an answer may have and `stop` the texts that end one early; `chat`
    wraps plain prompts as a user's message; `budget` is how many tokens, padding included, a
    micro-batch holds.
    """

    model: str
    lora: Lora | None = None
    dtype: str = "float32"
    device: str = "auto"
    sampling: Sampling = Sampling()
    limit: int = 256
    stop: tuple[str, ...] = ()
    chat: bool = False
    budget: int = 16384
    checkpointing: bool = False

    def build(self) -> "CausalPolicy":
        """Load the model and its tokenizer; raises `Refused` when they cannot be used."""
        if self.dtype not in loading.DTYPES:
            raise Refused(
                f"dtype: {self.dtype!r} is not known. {nearest(self.dtype, loading.DTYPES)}"
            )
        if self.sampling.temperature <= 0:
            raise Refused("temperature: must be above 0; for greedy decoding use top_k=1.")
        return CausalPolicy(self)


class CausalPolicy:
    """A loaded causal language model."""

    def __init__(self, spec: CausalLM) -> None:
        self.spec = spec
        self.tokenizer = loading.load_tokenizer(spec.model)
        frozen = loading.DTYPES[spec.dtype] if spec.lora else torch.float32
        self.plain = loading.load_model(spec.model, frozen, _device(spec.device))
        self.ends = loading.end_tokens(self.plain, self.tokenizer)
        if not self.ends and not spec.stop:
            raise Refused(f"model: {spec.model!r} has no end token; name a `stop` text.")
        self.head = loading.head_of(self.plain)
        self.module: nn.Module = loading.adapted(self.plain, spec.lora) if spec.lora else self.plain
        if spec.checkpointing:
            self.plain.gradient_checkpointing_enable({"use_reentrant": False})
        self.thread = ThreadPoolExecutor(1, "policy")

    @property
    def context(self) -> int:
        """How many tokens the model can read."""
        return int(getattr(self.plain.config.get_text_config(), "max_position_embeddings", 1 << 30))

    def act(self, key: int, sampling: Sampling | None = None) -> "CausalAct":
        """How samplers use the policy; evaluation samples with a `sampling` of its own."""
        spec = self.spec
        engine = Engine(
            self.plain, self.tokenizer, sampling or spec.sampling, spec.limit, self.ends, spec.stop
        )

        def answer(requests: Sequence[Request]) -> list[Reply]:
            self.plain.eval()
            with self._autocast():
                return engine(requests)

        return CausalAct(self, Queue(answer, self.thread), key)

    def read(self, rollout: Rollout, seen: Observation) -> tuple[int, ...]:
        """What the world says next, as tokens; only the first thing said begins a text."""
        first = not rollout.turns
        if isinstance(seen, str) and not (self.spec.chat and first):
            return tuple(self.tokenizer(seen, add_special_tokens=first)["input_ids"])
        if not first:
            raise Refused(
                "prompt: messages after the first turn are not supported; say plain text."
            )
        said = ({"role": "user", "content": seen},) if isinstance(seen, str) else seen
        return self._chat([dict(message) for message in said])

    def _chat(self, messages: list[dict[str, Any]]) -> tuple[int, ...]:
        if not self.tokenizer.chat_template:
            raise Refused(
                f"prompt: it is a list of messages, and the tokenizer of {self.spec.model!r} has no"
                " chat template; give plain text."
            )
        text = self.tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, tokenize=False
        )
        return tuple(self.tokenizer(str(text), add_special_tokens=False)["input_ids"])

    def encode(self, rollouts: Sequence[Rollout]) -> Mapping[str, Tensor]:
        """The tokens of every row (N, L), right-padded; where its first action is; its length."""
        rows = [[x for _, a in r.turns for x in (*a.seen, *a.parts)] for r in rollouts]
        width = max(map(len, rows), default=0)
        return {
            "token": torch.tensor([row + [0] * (width - len(row)) for row in rows]),
            "start": torch.tensor([len(r.turns[0][1].seen) if r.turns else 0 for r in rollouts]),
            "length": torch.tensor([len(row) for row in rows]),
        }

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals:
        """`logp` and `entropy` (nats) of every action, (N, T), 0 where masked."""
        device = self.plain.device
        token = batch.inputs["token"][:, : int(batch.inputs["length"].max())].to(device)
        row, column = (x.to(device) for x in batch.mask.nonzero(as_tuple=True))
        place = batch.inputs["start"].to(device)[row] + column
        with self._autocast():
            hidden, drawn = self._body(token)[row, place - 1], token[row, place]
            logp, entropy = logp_and_entropy(hidden, drawn, self.head, self.spec.sampling)
        blank = torch.zeros(batch.mask.shape, device=device, dtype=logp.dtype)
        said = {"logp": logp, "entropy": entropy}
        asked = dict.fromkeys(("logp", *(name for name in names if name in said)))
        return Signals({name: blank.index_put((row, column), said[name]) for name in asked})

    def micro(self, batch: Batch) -> Iterator[Tensor]:
        """Row indices whose padded tokens fit the budget, rows of one length together."""
        length = batch.inputs["length"]
        order = length.argsort(descending=True, stable=True)
        while len(order):
            take = max(1, self.spec.budget // max(1, int(length[order[0]])))
            yield order[:take].sort().values
            order = order[take:]

    def parameters(self) -> Sequence[nn.Parameter]:
        """What the optimizer updates."""
        return [p for p in self.module.parameters() if p.requires_grad]

    def weights(self) -> dict[str, Tensor]:
        """Everything that training changes, by name."""
        return {n: p.detach() for n, p in self.module.named_parameters() if p.requires_grad}

    @torch.no_grad()
    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Take over what `weights` returned."""
        for name, parameter in self.weights().items():
            parameter.copy_(weights[name])

    def reference(self) -> "CausalPolicy | Adapterless":
        """The policy as it is now, frozen: the base with adapters off, or a copy."""
        return Adapterless(self) if self.spec.lora else CausalPolicy(self.spec)

    def export(self, folder: Path, *, merge: bool = True) -> None:
        """Write a folder that transformers loads; adapters merged into the model, or apart."""
        module: Any = self.module
        if self.spec.lora and merge:
            import copy

            module = copy.deepcopy(module).merge_and_unload()
        module.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)

    def _body(self, token: Tensor) -> Tensor:
        """Last hidden states; rows are padded on the right, which causal attention never sees."""
        # transformers checkpoints in training mode only, and then keeps no cache; dropout is off
        self.plain.train(self.spec.checkpointing and torch.is_grad_enabled())
        return self.plain.base_model(input_ids=token, use_cache=False).last_hidden_state

    def _autocast(self) -> AbstractContextManager[Any]:
        dtype = loading.DTYPES[self.spec.dtype]
        return (
            nullcontext()
            if dtype == torch.float32
            else torch.autocast(self.plain.device.type, dtype)
        )


@dataclass(frozen=True)
class Adapterless:
    """A policy with its adapters off."""

    policy: CausalPolicy

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals:
        with self.policy.module.disable_adapter():  # pyright: ignore[reportCallIssue, reportGeneralTypeIssues]
            return self.policy.signals(batch, names)


@dataclass(frozen=True)
class CausalAct:
    """The policy speaking, with a random stream of its own."""

    policy: CausalPolicy
    queue: Queue[Request, Reply]
    key: int

    async def __call__(self, rollout: Rollout, seen: Observation) -> Action:
        read = self.policy.read(rollout, seen)
        before = tuple(x for _, action in rollout.turns for x in (*action.seen, *action.parts))
        reply = await self.queue(Request(before + read, self.key))
        text = self.policy.tokenizer.decode(list(reply.tokens), skip_special_tokens=True)
        return Action(reply.tokens, reply.logp, read, str(text), reply.stopped)

    async def recite(self, rollout: Rollout, seen: Observation, text: str) -> Action:
        tokens = self.policy.tokenizer(text, add_special_tokens=False)["input_ids"]
        parts = (*tokens, *sorted(self.policy.ends)[:1])
        read = self.policy.read(rollout, seen)
        return Action(parts, (0.0,) * len(parts), read, text, sampled=False)

    def fork(self, *label: object) -> "CausalAct":
        return CausalAct(self.policy, self.queue, derive(self.key, *label))


def _device(name: str) -> torch.device:
    return torch.device(
        ("cuda" if torch.cuda.is_available() else "cpu") if name == "auto" else name
    )
