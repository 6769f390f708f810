"""Inference engines: local, transformers' generate, soft thinking, vLLM; dynamic batching."""
