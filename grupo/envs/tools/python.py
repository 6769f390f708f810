"""A tool that runs Python programs in a sandbox."""

from grupo.core.component import component
from grupo.envs.tools.sandbox import Sandbox


@component
class Python:
    """Run a Python program and read what it prints; it has the standard library, no network."""

    # The docstring is the tool's description in the policy's prompt.
    sandbox: Sandbox = Sandbox()

    def __call__(self, code: str) -> str:
        return self.sandbox.run(code)
