"""Masked diffusion language models: an action is a token that was unmasked."""

from collections.abc import Collection, Iterator, Mapping, Sequence

import torch
from torch import Tensor
from transformers import PreTrainedModel

from grupo.core.aux_heads import Helper
from grupo.core.batch import Batch, Signals
from grupo.core.component import piece
from grupo.core.reference_update import Follow
from grupo.core.signal_names import COMPARISONS, compares, split
from grupo.core.types import Rollout, Task
from grupo.core.validation import Rule, check, check_prompts, check_room, of_answers
from grupo.inference.sampling_params import Sampling
from grupo.models import loading
from grupo.models.aux_heads import Helpers
from grupo.models.aux_models import Company, Other
from grupo.models.chat_tokenizer import Language
from grupo.models.detokenize import spelled
from grupo.models.masked.actor import MaskedAct
from grupo.models.masked.aux_models import accompany
from grupo.models.masked.canvas import Size, laid_out, row_of
from grupo.models.masked.denoiser import Denoiser, specials
from grupo.models.masked.logp_estimators import Coupled, Estimate, Looks
from grupo.models.masked.sampler import Unmasking
from grupo.models.masked.unmask_order import LeftToRight, Order
from grupo.models.scorers import laid
from grupo.models.spec import OTHERS
from grupo.models.token_statistics import MEASURES, Spoken, measure
from grupo.models.trainable import Trained
from grupo.models.weight_sync import Apart, Own, Speaking


@piece
class MaskedDiffusion:
    """A bidirectional language model of transformers with a mask token, by folder or hub name.

    It writes answers over `limit` masks, in an `order`; `estimate` is how likely it says that they
    are. `stop` are the texts that end an answer early; `chat` wraps plain prompts as a user's
    message; `budget` is how many tokens are read at once, every masked copy of a text counted.
    """

    model: str
    device: str = "auto"
    sampling: Sampling = Sampling()
    order: Order = LeftToRight()
    estimate: Estimate = Coupled()
    limit: int = 64
    stop: tuple[str, ...] = ()
    chat: bool = False
    budget: int = 16384

    @property
    def signals(self) -> tuple[str, ...]:
        """What is said of an action."""
        return (*MEASURES, *COMPARISONS)

    @property
    def others(self) -> tuple[str, ...]:
        """Who is always there to be compared with."""
        return OTHERS

    @property
    def field_rules(self) -> Sequence[Rule]:
        """What its fields may be; an estimate has to fit the order."""
        fits = not self.estimate.exact or self.order == LeftToRight()
        order = ("order", self.order, fits, f"LeftToRight() with {self.estimate}")
        return [*of_answers(self.limit, self.budget, self.stop), order]

    def check(self) -> None:
        """Refuse fields that cannot be, and a device that is not here."""
        check(self.field_rules)
        loading.device_of(self.device)

    def build(self) -> "MaskedPolicy":
        """Load the model and its tokenizer; raises `Refused` when they cannot be used."""
        self.check()
        return MaskedPolicy(self)


class MaskedPolicy(Trained):
    """A loaded masked diffusion language model."""

    remarks: Sequence[str] = ()

    def __init__(self, spec: MaskedDiffusion) -> None:
        self.spec = spec
        device = loading.device_of(spec.device)
        self.plain, tokenizer = loading.load(spec.model, torch.float32, device, loading.MASKED)
        super().__init__(spec.model, self.plain, tokenizer, adapted=False, budget=spec.budget)
        end, mask = specials(tokenizer)
        context = min(self.plain.config.max_position_embeddings, tokenizer.model_max_length)
        check_room(spec.limit, context)
        self.size = Size(spec.limit, context)
        self.language = Language(tokenizer, (end,), spec.stop, spec.chat)
        self.denoiser = Denoiser(self.plain, mask)
        self.voice: Speaking = Own(self.plain, self._engine)
        self.reference: MaskedPolicy = self
        self.helpers = self.helped(())

    def speak_apart(self) -> None:
        """Have weights of its own to speak with, so that it can learn meanwhile."""
        self.voice = Apart(self.plain, self._engine)

    def act(self, key: int) -> MaskedAct:
        """How samplers use the policy."""
        queue, block = self.queue(self.voice.engine()), self.spec.order.block
        return MaskedAct(self.language, queue, key, self.spec.sampling, self.version, block=block)

    def spell(self, rollout: Rollout) -> Sequence[Sequence[str]]:
        """The text that each token adds."""
        return [spelled(self.language.tokenizer, action) for _, action in rollout.turns]

    def admit(self, tasks: Sequence[Task]) -> None:
        """Refuse prompts that leave no room for an answer."""
        check_prompts(tasks, self.language.read, self.size.context, self.spec.limit)

    def encode(self, rollouts: Sequence[Rollout]) -> Mapping[str, Tensor]:
        """The tokens of every row, and of each answer its place, its canvas, its masks' stream."""
        return laid_out([row_of(rollout, self.size) for rollout in rollouts])

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals:
        """`logp` and what else is asked for of every action, (N, T), 0 where masked."""
        return self.said(batch, names, self.spec.sampling)

    def said(self, batch: Batch, names: Collection[str], sampling: Sampling) -> Signals:
        """The signals of tokens that are drawn by `sampling`."""
        looks, token = self._looks(batch)
        own, states = self._spoken(looks, token, sampling)
        known = dict.fromkeys(("logp", *(n for n in names if n in MEASURES or compares(n))))
        compared = dict.fromkeys(split(name)[1] for name in names if compares(name))
        with torch.no_grad():
            others = {who: self.reference._spoken(looks, token, sampling)[0] for who in compared}
        said = {n: looks.fold(n, x) for n, x in measure(own, known, others).items()}
        first = states.unflatten(0, looks.view.shape)[:, 0]  # with the most of the answer masked
        helping = self.helpers.names.intersection(names)
        said |= {name: self.helpers.say(name, first) for name in sorted(helping)}
        return laid(batch, said)

    def micro(self, batch: Batch) -> Iterator[Tensor]:
        """Row indices whose masked copies fit the budget."""
        width = batch.inputs["canvas"].amax(1)
        count = self.spec.estimate.count(batch)
        order = width.argsort(descending=True, stable=True)
        while len(order):
            tokens = count[order].cumsum(0) * width[order[0]]
            take = max(1, int((tokens <= self.budget).sum()))
            yield order[:take].sort().values
            order = order[take:]

    def accompanied(
        self, needs: Collection[str], follow: Follow, others: Sequence[Other]
    ) -> Company:
        """Everybody whom `needs` names: a reference, and the policy at other temperatures."""
        return accompany(self, needs, follow)

    def helped(self, helpers: Collection[Helper]) -> Helpers:
        """Take on helpers, new ones: they are the policy's, and not among its parameters."""
        self.helpers = Helpers(helpers, self.plain.config.hidden_size, self.plain.device)
        return self.helpers

    def copy(self) -> "MaskedPolicy":
        """Another policy as training found this one, frozen."""
        start = MaskedPolicy(self.spec)
        start.module.requires_grad_(False)
        return start

    def _engine(self, model: PreTrainedModel) -> Unmasking:
        spec, denoiser = self.spec, Denoiser(model, self.denoiser.mask)
        how = (self.language, spec.order, spec.estimate)
        return Unmasking(denoiser, *how, self.size, spec.budget)

    def _looks(self, batch: Batch) -> tuple[Looks, Tensor]:
        """Where the actions of a batch are looked at, in the order of its mask; which they are."""
        row, column = batch.mask.nonzero(as_tuple=True)
        place = batch.inputs["start"][row] + column
        looks = self.spec.estimate(batch.inputs, row, place, self.denoiser.mask)
        return looks, batch.inputs["token"][row, place]

    def _spoken(self, looks: Looks, token: Tensor, sampling: Sampling) -> tuple[Spoken, Tensor]:
        """What every look says, and the states it says so from."""
        self.most = min(len(looks.token), self.denoiser.size(looks, self.budget))
        return self.denoiser.spoken(looks, token, sampling, self.budget)
