"""A causal language model, loaded: it speaks, is measured, and learns."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from grupo.core.aux_heads import Helper
from grupo.core.batch import Batch, Signals
from grupo.core.errors import Refused
from grupo.core.reference_update import Follow
from grupo.core.signal_names import compares, split
from grupo.core.types import Observation, Rollout, Task
from grupo.core.validation import check_prompts, check_room
from grupo.inference.base import Bounds, Engine
from grupo.kernels.lm_head import head_of
from grupo.models import loading, padding
from grupo.models.aux_head_engine import Foreseeing
from grupo.models.aux_heads import Helpers
from grupo.models.aux_models import Company, Other
from grupo.models.aux_models_load import accompany
from grupo.models.causal_actor import CausalAct, reread
from grupo.models.chat_tokenizer import Language
from grupo.models.detokenize import spelled
from grupo.models.evaluator import Reader, reader_of
from grupo.models.scorers import Speaker, laid
from grupo.models.token_statistics import MEASURES, Spoken, disagreement, measure
from grupo.models.trainable import Trained
from grupo.models.weight_sync import Apart, Own, Remote, Speaking

if TYPE_CHECKING:
    from grupo.models.causal_lm import CausalLM


class CausalPolicy(Trained):
    """A loaded causal language model."""

    def __init__(self, spec: "CausalLM") -> None:
        self.spec, device = spec, loading.device_of(spec.device)
        # masters are float32 where they are trained; `dtype` is what is computed in
        dtype = loading.computed_in(spec.dtype, device)
        kept = dtype if spec.lora else torch.float32
        self.plain, tokenizer = loading.load(spec.model, kept, device)
        self.language = self._language(tokenizer)
        module = loading.adapted(self.plain, spec.lora) if spec.lora else self.plain
        adapted, budget = spec.lora is not None, spec.budget
        super().__init__(spec.model, module, tokenizer, adapted=adapted, budget=budget, dtype=dtype)
        self.head = head_of(self.plain)
        self.reader = self._reader()
        self.voice: Speaking = self._voice()
        if spec.checkpointing:
            loading.checkpointed(self.plain)
        self.others: Mapping[str, Speaker[Spoken]] = {}  # whom it can be compared with, by name
        self.helpers = self.helped(())

    @property
    def context(self) -> int:
        """How many tokens the model can read."""
        return int(getattr(self.plain.config.get_text_config(), "max_position_embeddings", 1 << 30))

    @property
    def bounds(self) -> Bounds:
        """When an answer ends."""
        return Bounds(self.spec.limit, self.language.ends, self.spec.stop, self.context)

    def speak_apart(self) -> None:
        """Have weights of its own to speak with, so that it can learn meanwhile."""
        if not self.spec.engine:
            self.voice = Apart(self.plain, self.engine_of)

    def engine_of(self, model: PreTrainedModel) -> Engine:
        """How to sample from the model, or from a copy of it."""
        head = replace(self.head, output=model.get_output_embeddings())
        return self.reader.of(model).engine(head, self.language.tokenizer, self.bounds)

    def act(self, key: int) -> CausalAct:
        """How samplers use the policy."""
        queue = self.queue(Foreseeing(self.voice.engine(), self.reader, self.helpers, self.budget))
        return CausalAct(self.language, queue, key, self.spec.sampling, self.version)

    @property
    def remarks(self) -> Sequence[str]:
        """What is slower here than one might expect, a line each."""
        imitates = loading.imitates(self.spec.dtype, self.plain.device)
        return [line for line in (self.reader.remark, imitates) if line]

    def read(self, rollout: Rollout, seen: Observation) -> tuple[int, ...]:
        """What the world says next, as tokens."""
        return self.language.read(rollout, seen)

    def encode(self, rollouts: Sequence[Rollout]) -> Mapping[str, Tensor]:
        """The tokens of every row (N, L), right-padded; where its first action is; its length."""
        return padding.encode(rollouts)

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals:
        """`logp` and what else is asked for of every action, (N, T), 0 where masked."""
        own = self.spoken(batch)
        known = (n for n in names if n in MEASURES or compares(n))
        compared = dict.fromkeys(split(name)[1] for name in names if compares(name))
        with torch.no_grad():
            others = {who: self.others[who].spoken(batch) for who in compared}
        said = measure(own, dict.fromkeys(("logp", *known)), others)
        helping = self.helpers.names.intersection(names)
        said |= {name: self.helpers.say(name, own.hidden) for name in sorted(helping)}
        if "disagreement" in names:
            column = batch.mask.nonzero()[:, 1].to(own.hidden.device)
            said["disagreement"] = disagreement(own, column, len(batch.mask))
        return laid(batch, said)

    def spoken(self, batch: Batch) -> Spoken:
        """What the actions of a batch are drawn from, in the order of its mask."""
        token, start, length = (batch.inputs[name] for name in ("token", "start", "length"))
        row, column = batch.mask.nonzero(as_tuple=True)
        place = start[row] + column
        # transformers checkpoints in training mode only; dropout is off
        self.plain.train(self.spec.checkpointing and torch.is_grad_enabled())
        with self.autocast():
            hidden, record = self.reader.states(token, length, row, place - 1)
            chosen = self.reader.chosen(self.head, record)
        said = token[row, place].to(hidden.device)
        return Spoken(hidden, said, self._logits, self.spec.sampling, chosen)

    def accompanied(
        self, needs: Collection[str], follow: Follow, others: Sequence[Other]
    ) -> Company:
        """Everybody whom `needs` names, loaded."""
        company, self.others = accompany(self, needs, follow, others)
        return company

    def spell(self, rollout: Rollout) -> Sequence[Sequence[str]]:
        """The text that each token adds."""
        return [spelled(self.language.tokenizer, action) for _, action in rollout.turns]

    def admit(self, tasks: Sequence[Task]) -> None:
        """Refuse prompts that leave no room for an answer."""
        check_prompts(tasks, self.read, self.context, self.spec.limit)

    def helped(self, helpers: Collection[Helper]) -> Helpers:
        """Take on helpers, new ones: they are the policy's, and not among its parameters."""
        features = self.plain.config.get_text_config().hidden_size
        self.helpers = Helpers(helpers, features, self.plain.device)
        return self.helpers

    def micro(self, batch: Batch) -> Iterator[Tensor]:
        """Row indices whose tokens fit the budget, those that they share counted once."""
        token, length = batch.inputs["token"], batch.inputs["length"]
        self.most = 0
        for several in self.reader.together(token, length, self.budget):
            self.most = max(self.most, len(several))
            yield several

    def copy(self) -> "CausalPolicy":
        """Another policy as training found this one, frozen."""
        start = CausalPolicy(self.spec)
        start.module.requires_grad_(False)
        return start

    def reread(self, rollout: Rollout, seen: Observation) -> Rollout:
        """The rollout as if `seen` had been its prompt."""
        return reread(self.language, rollout, seen)

    def check_teacher(self, name: str, teacher: Any) -> None:
        """Refuse a model of another vocabulary."""
        language = getattr(teacher, "language", None)
        theirs = language.tokenizer.get_vocab() if language else {}
        mine = self.language.tokenizer.get_vocab()
        if mine != theirs:
            raise Refused(
                f"others: {name!r} has {len(theirs)} tokens, and they are not the policy's"
                f" {len(mine)}. Allowed: a model with the vocabulary of {self.spec.model!r}."
            )

    def _language(self, tokenizer: PreTrainedTokenizerBase) -> Language:
        """Refuses answers that would have no end, or no room."""
        spec, ends = self.spec, loading.end_tokens(self.plain, tokenizer)
        if not ends and not spec.stop:
            raise Refused(f"stop: empty, and {spec.model!r} has no end token. Allowed: a text.")
        check_room(spec.limit, self.context)
        return Language(tokenizer, ends, spec.stop, spec.chat)

    def _reader(self) -> Reader:
        return reader_of(self.plain)

    def _voice(self) -> Speaking:
        if not self.spec.engine:
            return Own(self.plain, self.engine_of)
        server = self.spec.engine.build(self.spec.model, self.bounds)
        return Remote(self, server)

    def _logits(self, hidden: Tensor) -> Tensor:
        with self.autocast():
            return self.head(hidden)
