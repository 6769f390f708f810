"""The digest of a run's code: a stored run is used again as long as its digest is the same."""

import hashlib
import sys
from dataclasses import replace
from functools import cache

from grupo.core.component import to_code
from grupo.core.module_code import code_of, module_names
from grupo.evidence.claims import metrics, policy, rollouts, train
from grupo.evidence.claims.claim import Arm, Setting
from grupo.evidence.claims.environments import tabular

COMMON_MODULES = (metrics, policy, rollouts, tabular, train)


@cache
def run_digest(setting: Setting, arm: Arm) -> str:
    """Digest of everything that a run's result depends on within the claims and the method.

    These are setting and arm without their description, the method's code, and the modules of the
    environment, of the training of claims and of the method's components, without comments,
    docstrings, imports and the records of papers. The trainer's own functions, which are imported,
    are left out: they are tested to compute the same.
    """
    method = arm.build()
    conditions = replace(setting, description="")
    names = module_names((method, setting)) | {module.__name__ for module in COMMON_MODULES}
    modules = (sys.modules[name] for name in sorted(names) if name.startswith("grupo."))
    text = "\n".join([repr(conditions), arm.label, to_code(method), *map(code_of, modules)])
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()
