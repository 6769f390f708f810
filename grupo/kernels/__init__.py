"""Fast transformer execution: native kernels, tree attention, prefix cache, backends."""
