"""What a policy that draws is made of: a model, its denoising steps, how they are taken."""
