"""The size of a small model, with which estimates are computed by hand."""

from grupo.models.model_size import LinearLayer, ModelSize

MODEL = ModelSize(
    num_parameters=1_000_000,
    num_layers=2,
    hidden_size=10,
    vocab_size=50,
    kv_size=8,
    context_length=100,
    linear_layers=(LinearLayer("0.q_proj", 10, 10), LinearLayer("1.q_proj", 10, 10)),
)
