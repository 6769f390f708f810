"""Recognition of errors that mean a lack of memory, without importing torch."""

import errno
from collections.abc import Iterator

_TEXTS = (  # as torch, C++ libraries and the system word them
    "out of memory",
    "not enough memory",
    "can't allocate memory",
    "cannot allocate memory",
    "std::bad_alloc",
    "status_alloc_failed",  # of cuBLAS, cuDNN, cuSPARSE and cuSOLVER
    "failed to cuda calloc",  # of NCCL
    "failed to cuda malloc",
)
_GPU_TEXTS = ("CUDA", "Cuda", "CUBLAS", "CUDNN", "CUSPARSE", "CUSOLVER", "HIP", "XPU", "MPS")
_TYPE_NAMES = (
    *("RuntimeError", "OutOfMemoryError", "AcceleratorError", "DistBackendError"),
    "SafetensorError",
)
HOST_ADVICE = (
    "This machine's memory does not suffice. Stop other processes, or start a run with"
    " a smaller model, policy.lora, or fewer prompts_per_step, a smaller group_size"
    " or policy.max_new_tokens."
)
GPU_ADVICE = (
    "The GPU's memory does not suffice, in the smallest micro-batches too. Stop other"
    " processes on it, or start a run with policy.gradient_checkpointing=True, policy.lora,"
    ' policy.dtype="bfloat16", a smaller policy.max_new_tokens or a smaller model.'
)


def is_out_of_memory(error: BaseException) -> bool:
    """True for an error that means a lack of memory, of this machine or of a GPU.

    >>> is_out_of_memory(MemoryError()), is_out_of_memory(RuntimeError("CUDA out of memory"))
    (True, True)
    >>> is_out_of_memory(KeyError("out of memory"))
    False
    """
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    text = str(error).lower()
    return type(error).__name__ in _TYPE_NAMES and any(words in text for words in _TEXTS)


def out_of_memory_message(error: BaseException) -> str:
    """The message for an error that a lack of memory caused; "" for other errors."""
    causes = [cause for cause in _causes(error) if is_out_of_memory(cause)]
    if not causes:
        return ""
    text = (str(causes[0]).strip() or type(causes[0]).__name__).splitlines()[0].rstrip(". ")
    is_gpu = any(word in text for word in _GPU_TEXTS)
    return f"Out of memory: {text}. {GPU_ADVICE if is_gpu else HOST_ADVICE}"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error, the errors of a group, and the errors that caused them."""
    if error is None:
        return
    yield error
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _causes(inner)
    yield from _causes(error.__cause__)
