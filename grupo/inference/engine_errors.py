"""Errors of inference servers."""


class EngineError(RuntimeError):
    """A permanent failure of a server, which ends the run."""


class TransientServerError(Exception):
    """A server died, hung, or returned an invalid response; a retry may succeed."""
