"""Extension of vLLM's workers: loads weights and adapters, and reports their checksums.

It runs in vLLM's environment and imports nothing of grupo. vLLM imports a copy of this package, so
its modules import each other by relative names.
"""

from .extension import WeightLoaderExtension

__all__ = ["WeightLoaderExtension"]
