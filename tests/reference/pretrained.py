"""Small random models that Transformers writes and computes on PyTorch: what ours are compared with."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_OFFLINE", "1")
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")

__all__ = [
    "CASES",
    "DECODERS",
    "WRITERS",
    "Case",
    "Written",
    "check_close",
    "generate",
    "gradients",
    "last_vectors",
    "make",
    "open_folder",
    "open_with",
    "quietly",
    "read_weights",
    "result_of_folder",
    "store_twice",
    "transformers",
    "write",
    "write_mixed",
    "write_weights",
]


class Case(NamedTuple):
    """A model of Transformers: its class, its settings, and the length of the texts that it is asked about."""

    kind: str
    config: str
    settings: dict[str, Any]
    length: int = 9


_TINY = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 61}
_GROUPED = {**_TINY, "num_key_value_heads": 2, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}


def _decoder(name: str, config: str = "", length: int = 9, **settings: Any) -> Case:
    return Case(f"{name}ForCausalLM", config or f"{name}Config", {**_GROUPED, **settings}, length)


def _gpt2(**settings: Any) -> Case:
    sizes = {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 61, "n_positions": 32}
    return Case("GPT2LMHeadModel", "GPT2Config", {**sizes, "bos_token_id": 1, "eos_token_id": 2, **settings})


def _rope(kind: str, **settings: Any) -> dict[str, Any]:
    return {"rope_parameters": {"rope_type": kind, "rope_theta": 10000.0, **settings}}


_YARN = {"factor": 4.0, "original_max_position_embeddings": 16, "beta_fast": 32.0, "beta_slow": 1.0}
_LLAMA3 = {
    **{"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0},
    "original_max_position_embeddings": 64,
}
_LONG = {"short_factor": [1.0, 1.1, 1.3, 1.7], "long_factor": [1.5, 2.0, 3.0, 4.0]}
_QWEN_EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16, "head_dim": 8}
_BOTH = ["sliding_attention", "full_attention"]
_THREE = {"num_hidden_layers": 3}

DECODERS: dict[str, Case] = {
    "gpt2": _gpt2(),
    "gpt2-untied": _gpt2(tie_word_embeddings=False),
    "gpt2-inner": _gpt2(n_inner=40, activation_function="gelu"),
    "gpt2-unscaled": _gpt2(scale_attn_weights=False),
    "gpt2-by-layer": _gpt2(scale_attn_by_inverse_layer_idx=True, layer_norm_epsilon=1e-3),
    "llama": _decoder("Llama"),
    "llama-tied": _decoder("Llama", tie_word_embeddings=True, num_key_value_heads=1),
    "llama-biases": _decoder("Llama", attention_bias=True, mlp_bias=True, num_key_value_heads=4),
    "llama-wide-heads": _decoder("Llama", head_dim=16, rms_norm_eps=1e-3),
    "llama3": _decoder("Llama", **_rope("llama3", **_LLAMA3), max_position_embeddings=512),
    "llama-linear": _decoder("Llama", **_rope("linear", factor=2.0)),
    "llama-dynamic": _decoder("Llama", **_rope("dynamic", factor=2.0), max_position_embeddings=8, length=12),
    "llama-yarn": _decoder("Llama", **_rope("yarn", **_YARN), max_position_embeddings=64),
    "mistral": _decoder("Mistral", sliding_window=None),
    "mistral-window": _decoder("Mistral", sliding_window=4, length=13),
    "mistral-window-tied": _decoder("Mistral", sliding_window=3, tie_word_embeddings=True, length=13),
    "mistral-wide-heads": _decoder("Mistral", head_dim=12, sliding_window=5, length=13),
    "mistral-one-group": _decoder("Mistral", num_key_value_heads=1, sliding_window=64),
    "qwen2": _decoder("Qwen2"),
    "qwen2-tied": _decoder("Qwen2", tie_word_embeddings=True, num_key_value_heads=1),
    "qwen2-window": _decoder("Qwen2", use_sliding_window=True, sliding_window=4, max_window_layers=1, length=13),
    "qwen2-yarn": _decoder("Qwen2", **_rope("yarn", **_YARN), max_position_embeddings=64),
    "qwen2-gelu": _decoder("Qwen2", hidden_act="gelu", num_key_value_heads=4),
    "qwen3": _decoder("Qwen3", head_dim=16),
    "qwen3-tied": _decoder("Qwen3", head_dim=8, tie_word_embeddings=True),
    "qwen3-bias": _decoder("Qwen3", head_dim=8, attention_bias=True),
    "qwen3-window": _decoder(
        "Qwen3", head_dim=8, use_sliding_window=True, sliding_window=4, max_window_layers=0, length=13
    ),
    "qwen3-linear": _decoder("Qwen3", head_dim=8, **_rope("linear", factor=4.0), num_key_value_heads=1),
    "gemma2": _decoder("Gemma2", head_dim=16, sliding_window=4, layer_types=_BOTH, length=13),
    "gemma2-uncapped": _decoder("Gemma2", head_dim=8, attn_logit_softcapping=None, final_logit_softcapping=None),
    "gemma2-caps": _decoder("Gemma2", head_dim=8, attn_logit_softcapping=0.5, final_logit_softcapping=1.0),
    "gemma2-scalar": _decoder("Gemma2", head_dim=8, query_pre_attn_scalar=16, attn_logit_softcapping=None),
    "gemma2-biases": _decoder("Gemma2", head_dim=8, attention_bias=True, tie_word_embeddings=False),
    "gemma3": _decoder("Gemma3", "Gemma3TextConfig", 13, head_dim=16, sliding_window=4, layer_types=_BOTH),
    "gemma3-full": _decoder("Gemma3", "Gemma3TextConfig", head_dim=8, layer_types=["full_attention"] * 2),
    "gemma3-pattern": _decoder("Gemma3", "Gemma3TextConfig", 13, head_dim=8, sliding_window=4, **_THREE),
    "gemma3-ropes": _decoder(
        "Gemma3",
        "Gemma3TextConfig",
        13,
        head_dim=8,
        sliding_window=4,
        layer_types=_BOTH,
        rope_parameters={
            "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
            "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
        },
    ),
    "gemma3-caps": _decoder("Gemma3", "Gemma3TextConfig", head_dim=8, final_logit_softcapping=2.0),
    "phi3": _decoder("Phi3"),
    "phi3-window": _decoder("Phi3", sliding_window=4, num_key_value_heads=4, length=13),
    "phi3-tied": _decoder("Phi3", tie_word_embeddings=True),
    "phi3-partial": _decoder("Phi3", **_rope("default", partial_rotary_factor=0.5)),
    "phi3-long": _decoder(
        "Phi3",
        **_rope("longrope", **_LONG),
        max_position_embeddings=64,
        original_max_position_embeddings=32,
    ),
    "phi3-longer": _decoder(
        "Phi3",
        **_rope("longrope", **_LONG),
        max_position_embeddings=64,
        original_max_position_embeddings=6,
        length=12,
    ),
    "mixtral": _decoder("Mixtral", num_local_experts=4),
    "mixtral-one": _decoder("Mixtral", num_local_experts=3, num_experts_per_tok=1, tie_word_embeddings=True),
    "mixtral-all": _decoder("Mixtral", num_local_experts=3, num_experts_per_tok=3, num_key_value_heads=4),
    "mixtral-window": _decoder("Mixtral", num_local_experts=4, sliding_window=4, length=13),
    "mixtral-heads": _decoder("Mixtral", num_local_experts=4, head_dim=12, hidden_act="gelu"),
    "qwen3-moe": _decoder("Qwen3Moe", **_QWEN_EXPERTS),
    "qwen3-moe-scaled": _decoder("Qwen3Moe", **_QWEN_EXPERTS, norm_topk_prob=True),
    "qwen3-moe-dense": _decoder("Qwen3Moe", **_QWEN_EXPERTS, mlp_only_layers=[0], attention_bias=True),
    "qwen3-moe-step": _decoder("Qwen3Moe", **_QWEN_EXPERTS, decoder_sparse_step=2, tie_word_embeddings=True),
    "qwen3-moe-window": _decoder("Qwen3Moe", **_QWEN_EXPERTS, use_sliding_window=True, sliding_window=4, length=13),
    "smollm3": _decoder("SmolLM3", no_rope_layer_interval=2),
    "smollm3-untied": _decoder("SmolLM3", tie_word_embeddings=False, no_rope_layers=[0, 1]),
    "smollm3-all": _decoder("SmolLM3", no_rope_layers=[1, 1], attention_bias=True),
    "smollm3-window": _decoder(
        "SmolLM3", use_sliding_window=True, sliding_window=4, max_window_layers=0, length=13, layer_types=_BOTH
    ),
    "smollm3-biases": _decoder("SmolLM3", mlp_bias=True, num_key_value_heads=1),
}
_TYPED = {"type_vocab_size": 2, "max_position_embeddings": 24, "pad_token_id": 0}
_LABELS = {"num_labels": 5}
_DISTIL = {"dim": 32, "hidden_dim": 48, "n_layers": 2, "n_heads": 4, "vocab_size": 61, "max_position_embeddings": 24}


def _encoder(name: str, head: str, **settings: Any) -> Case:
    sizes = _DISTIL if name == "DistilBert" else {**_TINY, **_TYPED}
    return Case(f"{name}{head}", f"{name}Config", {**sizes, **settings})


def _modern(head: str, length: int = 9, **settings: Any) -> Case:
    sizes = {**_TINY, "num_hidden_layers": 3, "pad_token_id": 0, "local_attention": 8}
    if "layer_types" in settings:
        sizes["num_hidden_layers"] = len(settings["layer_types"])
    return Case(f"ModernBert{head}", "ModernBertConfig", {**sizes, **settings}, length)


ENCODERS: dict[str, Case] = {
    "bert": _encoder("Bert", "Model"),
    "bert-words": _encoder("Bert", "ForMaskedLM"),
    "bert-untied": _encoder("Bert", "ForMaskedLM", tie_word_embeddings=False, hidden_act="relu"),
    "bert-sequence": _encoder("Bert", "ForSequenceClassification", **_LABELS, layer_norm_eps=1e-3),
    "bert-tokens": _encoder("Bert", "ForTokenClassification", num_attention_heads=2, hidden_act="gelu_new"),
    "roberta": _encoder("Roberta", "Model", pad_token_id=1),
    "roberta-words": _encoder("Roberta", "ForMaskedLM", pad_token_id=1, type_vocab_size=1),
    "roberta-padding": _encoder("Roberta", "ForMaskedLM", pad_token_id=2, hidden_act="silu"),
    "roberta-sequence": _encoder("Roberta", "ForSequenceClassification", pad_token_id=1, **_LABELS),
    "roberta-tokens": _encoder("Roberta", "ForTokenClassification", pad_token_id=1, **_LABELS),
    "xlm-roberta": _encoder("XLMRoberta", "ForMaskedLM", pad_token_id=1),
    "xlm-roberta-untied": _encoder("XLMRoberta", "ForMaskedLM", pad_token_id=1, tie_word_embeddings=False),
    "xlm-roberta-vectors": _encoder("XLMRoberta", "Model", pad_token_id=2, type_vocab_size=1),
    "xlm-roberta-sequence": _encoder("XLMRoberta", "ForSequenceClassification", pad_token_id=1, **_LABELS),
    "xlm-roberta-tokens": _encoder("XLMRoberta", "ForTokenClassification", pad_token_id=1, hidden_act="relu"),
    "modernbert": _modern("Model"),
    "modernbert-words": _modern("ForMaskedLM", length=13),
    "modernbert-biases": _modern(
        "ForMaskedLM",
        13,
        **{"attention_bias": True, "mlp_bias": True, "norm_bias": True, "decoder_bias": False},
        tie_word_embeddings=False,
    ),
    "modernbert-sequence": _modern("ForSequenceClassification", 13, **_LABELS, norm_eps=1e-3),
    "modernbert-mean": _modern(
        "ForSequenceClassification", 13, classifier_pooling="mean", classifier_bias=True, classifier_activation="relu"
    ),
    "modernbert-tokens": _modern(
        "ForTokenClassification", 13, layer_types=["sliding_attention"] * 2, hidden_activation="silu"
    ),
    "distilbert": _encoder("DistilBert", "Model"),
    "distilbert-words": _encoder("DistilBert", "ForMaskedLM"),
    "distilbert-relu": _encoder("DistilBert", "ForMaskedLM", activation="relu", tie_word_embeddings=False),
    "distilbert-sequence": _encoder("DistilBert", "ForSequenceClassification", **_LABELS),
    "distilbert-tokens": _encoder("DistilBert", "ForTokenClassification", n_heads=2, n_layers=1),
}


def _t5(length: int = 9, **settings: Any) -> Case:
    sizes = {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4, "vocab_size": 61}
    return Case("T5ForConditionalGeneration", "T5Config", {**sizes, "decoder_start_token_id": 0, **settings}, length)


TRANSLATORS: dict[str, Case] = {
    "t5": _t5(),
    "t5-gated": _t5(feed_forward_proj="gated-gelu", tie_word_embeddings=False),
    "t5-layers": _t5(num_decoder_layers=1, num_layers=3, feed_forward_proj="gated-silu"),
    "t5-buckets": _t5(40, relative_attention_num_buckets=8, relative_attention_max_distance=20),
    "t5-heads": _t5(d_kv=12, num_heads=2, layer_norm_epsilon=1e-3),
}


def _mamba(length: int = 9, **settings: Any) -> Case:
    sizes = {"hidden_size": 16, "state_size": 8, "num_heads": 4, "head_dim": 8, "n_groups": 2, "num_hidden_layers": 2}
    more = {"vocab_size": 61, "chunk_size": 4, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    return Case("Mamba2ForCausalLM", "Mamba2Config", {**sizes, **more, **settings}, length)


RECURRENT: dict[str, Case] = {
    "mamba2": _mamba(),
    "mamba2-tied": _mamba(tie_word_embeddings=True, n_groups=1),
    "mamba2-biases": _mamba(use_bias=True, use_conv_bias=False, conv_kernel=3),
    "mamba2-limits": _mamba(12, time_step_limit=[0.3, 0.6], n_groups=4),
    "mamba2-chunk": _mamba(chunk_size=64, state_size=4, expand=4, num_heads=8, residual_in_fp32=False),
}
WRITERS: dict[str, Case] = {
    "gpt2-positions": _gpt2(n_positions=256),
    **{name: DECODERS[name] for name in ("llama3", "mistral-window", "qwen2", "qwen3", "gemma2", "gemma3-ropes")},
    **{name: DECODERS[name] for name in ("phi3", "smollm3", "mixtral", "qwen3-moe")},
    "mamba2": RECURRENT["mamba2"],
    "t5": TRANSLATORS["t5"],
}
"""One of each architecture that writes texts, with room for long ones."""
CASES: dict[str, Case] = {**DECODERS, **RECURRENT, **ENCODERS, **TRANSLATORS, **WRITERS}


class Written(NamedTuple):
    """A model in a folder, and what Transformers computes with it."""

    folder: Path
    tokens: list[list[int]]
    mask: list[list[int]]
    """1 at tokens, 0 at padding: the first three of the second row, or the last three of encoders."""
    result: np.ndarray
    """Without the mask."""
    masked: np.ndarray
    """With the mask, and positions that count tokens."""


@cache
def transformers() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import transformers

        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
    return transformers


def quietly(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args, **kwargs)


def make(case: Case, seed: int) -> Any:
    """Return a model with random weights that are larger than usual, so that every part of it is felt."""
    import torch

    library = transformers()
    torch.manual_seed(seed)
    model = getattr(library, case.kind)(getattr(library, case.config)(**case.settings)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * (0.3 if parameter.ndim > 1 else 0.2))
            if parameter.ndim == 1:
                parameter.add_(0.5)
        for key, buffer in model.named_buffers():  # of batch norms
            if key.endswith(("running_mean", "running_var")):
                buffer.copy_(torch.rand_like(buffer) + 0.5)
            elif key.endswith("num_batches_tracked"):
                buffer.fill_(3)
    model.tie_weights()
    return model


def check_close(found: Any, wanted: np.ndarray) -> None:
    """Check that an array is within 1e-5 of the largest absolute value of the other."""
    assert tuple(found.shape) == wanted.shape
    error, largest = abs(np.asarray(found, np.float32) - wanted).max(), abs(wanted).max()
    assert error <= 1e-5 * largest, f"an error of {error} beside {largest}"


def write(name: str, folder: Path) -> Written:
    """Write a model, and compute with it."""
    import torch

    case = CASES[name]
    model = quietly(make, case, len(name))
    quietly(model.save_pretrained, folder)
    stream = np.random.default_rng(7)
    tokens = stream.integers(3, case.settings["vocab_size"], (2, case.length))
    mask = np.ones_like(tokens)
    given = {"input_ids": torch.tensor(tokens)}
    if name in TRANSLATORS:
        given["decoder_input_ids"] = torch.tensor(tokens[:, ::-1].copy())
    if name in DECODERS or name == "gpt2-positions":
        mask[1, :3] = 0
        more = {"position_ids": torch.tensor(np.maximum(np.cumsum(mask, 1) - 1, 0))}
    elif name in RECURRENT:
        mask[1, :3] = 0
        more = {}
    else:
        mask[1, -3:] = 0
        more = {}
    with torch.no_grad():
        plain = quietly(model, **given)[0]
        masked = quietly(model, **given, **more, attention_mask=torch.tensor(mask))[0]
    return Written(folder, tokens.tolist(), mask.tolist(), plain.numpy(), masked.numpy())


def pooled(name: str, folder: Path, tokens: list[list[int]], types: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the vectors, with types of tokens, and those of the pooler."""
    import torch

    with torch.no_grad():
        found = quietly(open_folder(name, folder), torch.tensor(tokens), token_type_ids=torch.tensor(types))
    return found.last_hidden_state.numpy(), found.pooler_output.numpy()


def open_with(kind: str, folder: Path) -> Any:
    """Open a folder with a class of Transformers."""
    return quietly(getattr(transformers(), kind).from_pretrained, folder).eval()


def open_folder(name: str, folder: Path) -> Any:
    """Open a folder with the class of Transformers that a case names."""
    return open_with(CASES[name].kind, folder)


def result_of_folder(name: str, folder: Path, tokens: list[list[int]]) -> np.ndarray:
    """Open a folder with Transformers and return what it computes."""
    import torch

    with torch.no_grad():
        given = torch.tensor(tokens)
        more = {"decoder_input_ids": given} if name in TRANSLATORS else {}
        return quietly(open_folder(name, folder), given, **more)[0].float().numpy()


def generate(name: str, folder: Path, tokens: list[list[int]], count: int, **settings: Any) -> list[list[int]]:
    """Generate greedily with Transformers; return the new tokens."""
    import torch

    given = torch.tensor(tokens)
    model = open_folder(name, folder)
    found = quietly(
        model.generate, given, attention_mask=torch.ones_like(given), max_new_tokens=count, do_sample=False, **settings
    )
    return found[:, 1 if name in TRANSLATORS else given.shape[1] :].tolist()


def read_weights(folder: Path) -> dict[str, Any]:
    """Return the bytes of each tensor in the safetensors files of a folder, read by the safetensors library."""
    from safetensors import safe_open

    found: dict[str, Any] = {}
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, "pt") as file:
            for key in file.keys():  # noqa: SIM118  it is no mapping
                tensor = file.get_tensor(key)
                import torch

                found[key] = (
                    str(tensor.dtype),
                    tuple(tensor.shape),
                    tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes(),
                )
    return found


def gradients(name: str, folder: Path, tokens: list[list[int]]) -> dict[str, np.ndarray]:
    """Return the gradients of the mean square of the result, by the stored names of the parameters."""
    import torch

    model, given = open_folder(name, folder), torch.tensor(tokens)
    more = {"decoder_input_ids": given} if name in TRANSLATORS else {}
    quietly(model, given, **more)[0].square().mean().backward()
    return {key: x.grad.numpy() for key, x in model.named_parameters() if x.grad is not None}


def write_weights(path: Path, tensors: dict[str, np.ndarray]) -> None:
    """Write a safetensors file by the safetensors library."""
    from safetensors.numpy import save_file

    save_file(tensors, path)


def last_vectors(name: str, case: Written) -> np.ndarray:
    """Return the vectors that the last layer of a model with a head makes of the tokens, with the mask."""
    import torch

    given = {"input_ids": torch.tensor(case.tokens), "attention_mask": torch.tensor(case.mask)}
    with torch.no_grad():
        found = quietly(open_folder(name, case.folder), **given, output_hidden_states=True)
    return found.hidden_states[-1].numpy()


def write_mixed(source: Path, folder: Path, named: str) -> None:
    """Copy a model with matrices in bfloat16, vectors in float32, and ``named`` as the dtype of its settings."""
    import torch
    from safetensors.torch import load_file, save_file

    weights = load_file(source / "model.safetensors")
    mixed = {key: x.to(torch.bfloat16) if x.ndim > 1 else x for key, x in weights.items()}
    save_file(mixed, folder / "model.safetensors", {"format": "pt"})
    config = json.loads((source / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "dtype": named}))


def store_twice(folder: Path, name: str, other: str) -> None:
    """Let the weights of a folder hold a tensor under another name as well."""
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    save_file({**weights, other: weights[name].clone()}, folder / "model.safetensors", {"format": "pt"})
