"""Fast transformer execution: native kernels, tree attention, the prefix cache, behind one interface."""
