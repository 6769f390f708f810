"""Parts of a masked diffusion language model: canvas, denoiser, sampler, log-prob estimators."""
