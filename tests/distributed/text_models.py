"""Small models of texts, trained on a mesh or by one process."""

from __future__ import annotations

from typing import Any

from ember_ml import distributed, get_backend, nn, ops
from ember_ml.distributed import Mesh
from ember_ml.distributed.strategy import MeshStrategy, SingleProcess
from ember_ml.models.gpt2 import GPT2
from ember_ml.models.llama import CausalDecoder
from ember_ml.models.settings import Settings
from ember_ml.training import Trainer, optimizers
from tests.distributed.comparing import plain

LLAMA = {
    **{"model_type": "llama", "vocab_size": 32, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1},
    **{"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 16},
}
QWEN = {**LLAMA, "model_type": "qwen3", "head_dim": 4, "tie_word_embeddings": True}
MISTRAL = {**LLAMA, "model_type": "mistral", "sliding_window": 3}
PHI = {**LLAMA, "model_type": "phi3", "pad_token_id": 0}
GPT = {
    **{"model_type": "gpt2", "vocab_size": 32, "n_embd": 16, "n_head": 4, "n_layer": 1, "n_positions": 16},
    **{"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0},
}


class Reader(nn.Module):
    """A transformer of our layers, whose result has a width that no part divides."""

    def __init__(self) -> None:
        self.embedding = nn.Embedding(32, 16)
        self.body = nn.blocks.Transformer(16, 1, heads=4, causal=True, gated=True, rotary=True, norm="rms")
        self.output = nn.Linear(16, 5)

    def forward(self, tokens: Any) -> Any:
        return self.output(self.body(self.embedding(tokens)))


class Masked(nn.Module):
    """One in which each position sees all that are no padding."""

    def __init__(self) -> None:
        self.embedding = nn.Embedding(32, 16)
        self.body = nn.blocks.Transformer(16, 1, heads=4, rotary=True, qk_norm="rms")
        self.output = nn.Linear(16, 5)

    def forward(self, tokens: Any, mask: Any) -> Any:
        return self.output(self.body(self.embedding(tokens), mask=ops.expand_dims(mask, (1, 2))))


PLAN = {"embedding": "vocabulary", "output": "sequence, gathered"}
MODELS: dict[str, Any] = {
    "layers": Reader,
    "llama": lambda: CausalDecoder(Settings(LLAMA)),
    "qwen3": lambda: CausalDecoder(Settings(QWEN)),
    "phi3": lambda: CausalDecoder(Settings(PHI)),
    "gpt2": lambda: GPT2(Settings(GPT)),
}
OTHERS: dict[str, Any] = {
    "mistral": lambda: CausalDecoder(Settings(MISTRAL)),
    "places": lambda: nn.blocks.LanguageModel(32, 16, 1, heads=4, groups=2, length=8, cap=5.0),
    "masked": Masked,
}


def read_text(
    kind: str,
    mesh: dict[str, int] | None,
    steps: int = 3,
    folder: str | None = None,
    is_saved: bool = False,
    dtype: str = "float32",
    splits_sequence: bool = False,
    is_padded: bool = False,
) -> dict[str, Any]:
    """Train a model of texts so many steps, half of them before it is saved and restored where there is a folder.

    Where it ``is_saved`` already, only the other half. Where it ``is_padded``, texts have different lengths, padding
    has no weight, and the last batch of an epoch has fewer rows.
    """
    plan = PLAN if kind in ("layers", "masked") else None
    strategy = SingleProcess() if mesh is None else MeshStrategy(Mesh(**mesh), None, plan, splits_sequence)

    def make() -> Trainer:
        ops.seed(distributed.rank())  # the first process's parameters are those of all
        # the large epsilon makes it stable: parameters of GPT-2 that differ by 6e-8 at first change the losses of 50
        # steps by 5e-7, where with 1e-4 (and half of the rate) they change them by 3e-3, in one process too
        optimizer = optimizers.AdamW(0.02, epsilon=0.03, max_norm=0.5)
        loss, metrics = "sparse_categorical_crossentropy", ["accuracy"]
        model = (MODELS | OTHERS)[kind]().to_dtype(dtype)
        compiled = False if mesh is not None and "context" in mesh and distributed.world_size() > 1 else None
        return Trainer(model, optimizer, loss, metrics, compiled, strategy=strategy, progress=False)

    made = make()
    tokens = ops.mod(ops.multiply(ops.reshape(ops.arange(16 * 8), (16, 8)), 7), 32)
    data: list[Any] = [tokens, ops.mod(tokens, 5)]
    if is_padded:
        row = ops.reshape(ops.arange(16), (16, 1))
        is_real = ops.less(ops.expand_dims(ops.arange(8), 0), ops.add(3, ops.mod(row, 6)))
        data = [{"tokens": tokens, "mask": is_real}, data[1], ops.cast(is_real, "float32")]
    size = 6 if is_padded else 8
    if folder is not None and not is_saved:
        made.fit(tuple(data), epochs=100, batch_size=size, max_steps=steps // 2)
        made.save(folder)
    if folder is not None:
        made = make().restore(folder)
    history = made.fit(tuple(data), epochs=100, batch_size=size, max_steps=steps)
    predicted = made.predict(data[0] if is_padded else tokens)
    return {
        "losses": list(history["loss"]),
        "evaluated": made.evaluate(tuple(data), batch_size=size),
        "predicted": plain(predicted[:2]),
        "parameters": {name: plain(value) for name, value in made.model.state_dict().items()},
        "state": {name: plain(value) for name, value in strategy.gather_state(made.optimizer).items()},
        "layout": {} if mesh is None else strategy.layout,
        "bytes": sum(map(_count_bytes, made.model.named_parameters().values())),
    }


def _count_bytes(parameter: nn.Parameter) -> int:
    """The memory of a parameter on this process, or on the first device of one with several."""
    held = parameter.held
    return held.addressable_data(0).nbytes if get_backend() == "jax" else parameter.nbytes
