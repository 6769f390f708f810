"""What a masked diffusion language model is made of: it writes by unmasking a canvas."""
