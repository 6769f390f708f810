"""The atlas: methods compared on a pretrained model, family of tasks by family."""
