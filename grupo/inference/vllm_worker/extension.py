"""The methods of the extension, which load weights and adapters into a worker of vLLM."""

import json
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from .digest import WeightDigest, Weights
from .shared_memory import place_of, shared_tensors
from .transfer import InterruptedTransfer, read_tensors, receive_tensors

EXTENSION_VERSION = "4"  # of the methods below
CHUNKED_PREFILL_ERROR = (
    "on a CPU vLLM cannot sample with seeds during chunked prefill; start it with "
    "--no-enable-chunked-prefill"
)
KEPT_ADAPTERS = 2  # the last one may be asked for by requests that a client has given up
NO_LORA_ERROR = "it runs without --enable-lora"
NO_UPDATING_ERROR = "it runs without VLLM_ALLOW_RUNTIME_LORA_UPDATING=1"

TensorSource = Callable[[WeightDigest], Weights]


class WeightLoaderExtension:
    """Methods that vLLM adds to its workers, called by name over HTTP."""

    model_runner: Any
    model_config: Any
    vllm_config: Any
    device: torch.device
    grupo_version = ""  # checksum of the loaded weights; "" before the first load
    grupo_adapter = ""  # checksum of the adapter that requests can name; "" before the first one
    grupo_adapters: dict[str, tuple[Any, dict[str, torch.Tensor]]]  # settings, tensors by checksum

    def grupo_facts(self) -> dict[str, str]:
        """Versions of weights and adapter, model, dtype, mode of log-probabilities, problems."""
        return {
            "extension": EXTENSION_VERSION,
            "version": self.grupo_version,
            "adapter": self.grupo_adapter,
            "model": str(self.model_config.model),
            "max_model_len": str(self.model_config.max_model_len),
            "dtype": str(self.model_config.dtype).removeprefix("torch."),
            "place": place_of(self.device),
            "logprobs": str(self.model_config.logprobs_mode),
            "unsupported": self._grupo_unsupported(),
        }

    def grupo_load(self, path: str, version: str) -> dict[str, str]:
        """Loads the weights in a file, unless they are loaded already.

        Returns:
            {"version": checksum} or {"error": message}.
        """
        return self._grupo_replace(version, lambda digest: read_tensors(path, digest))

    def grupo_receive(self, address: str, port: int, version: str) -> dict[str, str]:
        """Receives weights over a process group, unless they are loaded already.

        Returns:
            As `grupo_load`, or {"interrupted": message}.
        """

        def receive(digest: WeightDigest) -> Weights:
            return receive_tensors(address, port, version, self.device, digest)

        return self._grupo_replace(version, receive)

    def grupo_import(self, handles: str, version: str) -> dict[str, str]:
        """Takes weights from memory that another process of this machine shares.

        Args:
            handles: those of `shared_handles`.
            version: of the weights.

        Returns:
            As `grupo_load`.
        """
        return self._grupo_replace(version, lambda d: shared_tensors(handles, self.device, d))

    def grupo_discard(self) -> dict[str, str]:
        """Forgets the versions before the weights are discarded."""
        self.grupo_version = self.grupo_adapter = ""
        return {"version": ""}

    def grupo_adapter_problem(self, config: str, modules: Sequence[str]) -> dict[str, str]:
        """Whether vLLM can apply an adapter: {"problem": reason}, "" if it can.

        Args:
            config: JSON of peft's settings, by their names in `adapter_config.json`.
            modules: names of the adapted modules in transformers.
        """
        from vllm import envs
        from vllm.lora.peft_helper import PEFTHelper

        if self.vllm_config.lora_config is None:
            return {"problem": NO_LORA_ERROR}
        if not envs.VLLM_ALLOW_RUNTIME_LORA_UPDATING:
            return {"problem": NO_UPDATING_ERROR}
        try:
            PEFTHelper.from_dict(json.loads(config)).validate_legal(self.vllm_config.lora_config)
        except ValueError as error:
            return {"problem": str(error)}
        unknown = self._grupo_unknown_modules(modules)
        return {"problem": f"vLLM adapts no module {unknown[0]}" if unknown else ""}

    def grupo_load_adapter(self, config: str, path: str, version: str) -> dict[str, str]:
        """Reads an adapter in a file, for a request to vLLM to load the adapter of this version.

        Args:
            config: JSON of peft's settings, and the version of the weights under "base".
            path: of the file.
            version: of the adapter, and of its settings.

        Returns:
            As `grupo_load`.
        """
        return self._grupo_keep_adapter(config, version, lambda d: read_tensors(path, d))

    def grupo_receive_adapter(
        self, config: str, address: str, port: int, version: str
    ) -> dict[str, str]:
        """Receives an adapter over a process group, as `grupo_load_adapter` reads one."""

        def receive(digest: WeightDigest) -> Weights:
            # vLLM copies its part of each tensor to the device
            return receive_tensors(address, port, version, torch.device("cpu"), digest)

        return self._grupo_keep_adapter(config, version, receive)

    def grupo_import_adapter(self, config: str, handles: str, version: str) -> dict[str, str]:
        """Takes an adapter from shared memory, as `grupo_load_adapter` reads one."""

        def copies(digest: WeightDigest) -> Weights:
            for name, tensor in shared_tensors(handles, self.device, digest):
                yield name, tensor.to("cpu", copy=True)  # the other process replaces its own

        return self._grupo_keep_adapter(config, version, copies)

    def _grupo_replace(self, version: str, tensors: TensorSource) -> dict[str, str]:
        if self.grupo_version == version:  # another process has asked for it
            return {"version": version}
        # a failed load leaves a mixture of old and new weights
        self.grupo_version = self.grupo_adapter = ""
        digest = WeightDigest()

        def load() -> str:
            self._grupo_load(tensors(digest))
            self.grupo_version = digest.hexdigest()
            return self.grupo_version

        return _outcome(load)

    def _grupo_keep_adapter(
        self, config: str, version: str, tensors: TensorSource
    ) -> dict[str, str]:
        settings = json.loads(config)
        if settings["base"] != self.grupo_version:
            held = f"weights {self.grupo_version or 'of an unknown version'}"
            return {"interrupted": f"the worker holds {held}, not {settings['base']}"}
        digest = WeightDigest(config)

        def keep() -> str:
            adapter = settings, dict(tensors(digest))
            loaded = digest.hexdigest()
            others = [item for item in self._grupo_kept().items() if item[0] != loaded]
            self.grupo_adapters = dict([*others, (loaded, adapter)][-KEPT_ADAPTERS:])
            return loaded

        return _outcome(keep)

    def _grupo_kept(self) -> dict[str, Any]:
        """The adapters in memory; from the first call on vLLM takes adapters from there."""
        if "grupo_adapters" not in vars(self):
            self.grupo_adapters = {}
            self.model_runner.lora_manager._load_adapter = self._grupo_adapter_model
        return self.grupo_adapters

    def _grupo_adapter_model(self, request: Any) -> Any:
        """The adapter that vLLM asks for by its version, as vLLM's own loader of files makes it."""
        from vllm.lora.lora_model import LoRAModel
        from vllm.lora.peft_helper import PEFTHelper

        settings, tensors = self.grupo_adapters[request.lora_name]
        lora = LoRAModel.from_lora_tensors(
            request.lora_int_id,
            tensors,
            PEFTHelper.from_dict(settings),
            device="cpu",
            dtype=self.vllm_config.lora_config.lora_dtype,
            weights_mapper=self._grupo_name_mapper(),
        )
        self.grupo_adapter = request.lora_name
        return lora

    def _grupo_unknown_modules(self, modules: Sequence[str]) -> list[str]:
        """Modules that vLLM would leave unadapted without an error."""
        from vllm.lora.utils import parse_fine_tuned_lora_name

        manager = self.model_runner.lora_manager._adapter_manager
        packed = (name for names in manager.packed_modules.values() for name in names)
        known = {*manager.modules, *packed}
        mapper = self._grupo_name_mapper()
        names = {m: parse_fine_tuned_lora_name(f"{m}.lora_A.weight", mapper)[0] for m in modules}
        return [module for module, name in names.items() if name not in known]

    def _grupo_name_mapper(self) -> Any:
        """From transformers' names of modules to those of vLLM; None if they are the same."""
        mapper = getattr(self.model_runner.get_model(), "hf_to_vllm_mapper", None)
        return mapper.get_rename_mapper() if mapper is not None else None

    def _grupo_unsupported(self) -> str:
        """Why requests would crash this worker, or "" if they would not."""
        chunked = self.vllm_config.scheduler_config.enable_chunked_prefill
        return CHUNKED_PREFILL_ERROR if self.device.type == "cpu" and chunked else ""

    @torch.inference_mode()
    def _grupo_load(self, weights: Weights) -> None:
        from vllm.config import set_current_vllm_config
        from vllm.model_executor.model_loader import reload

        model = self.model_runner.get_model()
        with set_current_vllm_config(self.vllm_config), without_adapters(model):
            parameters = {name for name, _ in model.named_parameters()}
            # layer by layer, as vLLM's own reload does: some backends repack loaded tensors
            if self.device.type == "cpu":
                pack_experts_again(model)
            reload.initialize_layerwise_reload(model)
            loaded = model.load_weights(weights)
            reload.finalize_layerwise_reload(model, self.model_config)
        missing = sorted(parameters - loaded)
        if missing:
            raise ValueError(f"{len(missing)} parameters of vLLM are missing, first {missing[0]}")


def pack_experts_again(model: torch.nn.Module) -> None:
    """Lets vLLM pack the experts of the next load for a CPU, as it does at the first one only."""
    for layer in model.modules():
        method: Any = getattr(layer, "quant_method", None)
        if getattr(method, "moe_kernel", None) is not None:
            method.moe_kernel = None


@contextmanager
def without_adapters(model: torch.nn.Module) -> Generator[None]:
    """Puts the layers below vLLM's LoRA layers in their place, as weights are named after them."""
    layers = [
        (parent, name, child)
        for parent in list(model.modules())
        for name, child in parent.named_children()
        if hasattr(child, "base_layer")
    ]
    for parent, name, child in layers:
        parent._modules[name] = child.base_layer  # pyrefly: ignore[unsupported-operation]
    try:
        yield
    finally:
        for parent, name, child in layers:
            parent._modules[name] = child


def _outcome(load: Callable[[], str]) -> dict[str, str]:
    """The version that was loaded, or why none was, as the methods above return it."""
    try:
        return {"version": load()}
    except InterruptedTransfer as error:
        return {"interrupted": str(error)}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
