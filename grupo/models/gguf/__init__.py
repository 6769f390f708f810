"""Models in GGUF, the file format of llama.cpp: read, checked, and converted for transformers."""
