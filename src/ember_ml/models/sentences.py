"""Vectors of sentences: folders as the library Sentence Transformers writes them.

``modules.json`` names what a text goes through: an encoder of tokens, a pooling of its vectors (``1_Pooling``), and
maybe linear maps (``2_Dense``) and a division by the length (``2_Normalize``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from ember_ml import ops
from ember_ml.core.atomic_files import replaced
from ember_ml.errors import ConfigError
from ember_ml.models.folder import Folder, write_json
from ember_ml.models.generation import TextGenerator
from ember_ml.models.hub import open_folder
from ember_ml.models.loading import load_from
from ember_ml.models.names import Names
from ember_ml.models.pooling import pool_tokens
from ember_ml.models.pretrained import PretrainedModel
from ember_ml.models.settings import Settings
from ember_ml.models.tokenizers import Tokenizer
from ember_ml.nn.layers.base import empty
from ember_ml.nn.layers.channel_mixing import Linear
from ember_ml.nn.modules.module import Module
from ember_ml.typing import DeviceLike, DTypeLike, IndexLike, MaskLike, Tensor

__all__ = ["SentenceEncoder", "load_sentence_encoder"]

_MODULES, _LENGTH = "modules.json", "sentence_bert_config.json"
_POOLINGS = {
    "pooling_mode_cls_token": ("cls", "first"),
    "pooling_mode_max_tokens": ("max", "max"),
    "pooling_mode_mean_tokens": ("mean", "mean"),
    "pooling_mode_mean_sqrt_len_tokens": ("mean_sqrt_len_tokens", "mean_by_root"),
    "pooling_mode_weightedmean_tokens": ("weightedmean", "rising_mean"),
    "pooling_mode_lasttoken": ("lasttoken", "last"),
}
"""By their keys: their names where there is one key for all, and those of :func:`pool_tokens`; in the order in which
several are joined."""
_ACTIVATIONS: dict[str, Callable[[Any], Any]] = {"Identity": lambda x: x, "Tanh": ops.tanh, "ReLU": ops.relu}
_ACTIVATIONS.update({"GELU": lambda x: ops.gelu(x, approximate=False), "SiLU": ops.silu})


class _Dense(PretrainedModel):
    """``act(linear(x))``"""

    linear: Linear

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.names = Names({"linear": "linear"})
        width = settings.integer("in_features"), settings.integer("out_features")
        self.linear = Linear(*width, bias=settings.flag("bias", True))
        name = str(settings.get("activation_function", "Tanh")).rpartition(".")[2]
        if name not in _ACTIVATIONS:
            raise ConfigError(
                f"{settings.where} has activation_function = {name!r:.80}; Ember ML has {', '.join(_ACTIVATIONS)}"
            )
        self._activation = _ACTIVATIONS[name]

    def forward(self, x: Tensor) -> Tensor:
        return self._activation(self.linear(x))


class SentenceEncoder(Module):
    """A model that makes one vector of a text; :func:`load_sentence_encoder` opens one.

    Called with (batch, length) tokens and a ``mask`` that is false, or 0, at padding, it returns (batch, width)
    vectors; :meth:`encode` takes texts.

    Args:
        encoder: The model whose vectors of tokens are pooled.
        poolings: How they are pooled, such as "mean" or "first"; the results of several are joined.
        maps: Modules that the pooled vector goes through.
        is_normalized: Whether the vectors get length 1.
        longest: The most tokens of a text, the rest of which is cut off; None: as many as there are.
    """

    encoder: Any
    poolings: list[str]
    """Those of :func:`ember_ml.models.pooling.pool_tokens` that are joined."""
    maps: list[Any]
    is_normalized: bool
    longest: int | None
    """The most tokens of a text, the rest of which is cut off; None: as many as there are."""

    def __init__(
        self,
        encoder: PretrainedModel,
        poolings: Sequence[str] = ("mean",),
        maps: Sequence[Module] = (),
        is_normalized: bool = False,
        longest: int | None = None,
    ) -> None:
        self.encoder, self.poolings, self.maps = encoder, list(poolings), list(maps)
        self.is_normalized, self.longest = is_normalized, longest
        self._source: Folder | None = None
        self._tokenizer: Tokenizer | None = None

    def forward(self, tokens: IndexLike, mask: MaskLike | None = None) -> Tensor:
        vectors = self.encoder.hidden_states(tokens, mask)
        x = ops.concatenate([pool_tokens(vectors, mask, pooling) for pooling in self.poolings], -1)
        for step in self.maps:
            x = step(x)
        if not self.is_normalized:
            return x
        return ops.divide(x, ops.maximum(ops.sqrt(ops.sum(ops.square(x), -1, keepdims=True)), 1e-12))

    def encode(self, texts: str | Sequence[str], batch_size: int = 32) -> Tensor:
        """Return the vector of a text, (width,), or of each of several, (count, width).

        Texts of similar lengths are computed together, ``batch_size`` at a time.
        """
        if self._tokenizer is None:
            if self._source is None:
                raise ValueError("this encoder came without a tokenizer; call it with tokens")
            self._tokenizer = Tokenizer(self._source)
        several = [texts] if isinstance(texts, str) else list(texts)
        if not several:
            raise ValueError("encode takes at least one text")
        rows = [self._tokenizer.encode(text) for text in several]
        if self.longest is not None:
            rows = [self._cut(row, self.longest) for row in rows]
        order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
        parts = [self._compute([rows[i] for i in order[j : j + batch_size]]) for j in range(0, len(order), batch_size)]
        places = sorted(range(len(order)), key=lambda i: order[i])
        found = ops.take(ops.concatenate(parts, 0), ops.array(places, dtype="int64"), 0)
        return ops.get_item(found, 0) if isinstance(texts, str) else found

    def _cut(self, row: list[int], longest: int) -> list[int]:
        """Return the first tokens of a row, and its last one where a special token ends each text."""
        assert self._tokenizer is not None
        if len(row) <= longest:
            return row
        alone = self._tokenizer.encode("")
        ends_alike = len(alone) > 1 and row[-1] == alone[-1]
        return [*row[: longest - 1], row[-1]] if ends_alike else row[:longest]

    def _compute(self, rows: list[list[int]]) -> Tensor:
        width, filler = max(map(len, rows)), self.encoder.settings.integer("pad_token_id", 0, least=0)
        if not all(rows):
            raise ValueError("a text has no tokens, so that there is nothing to make a vector of")
        mask = [[True] * len(row) + [False] * (width - len(row)) for row in rows]
        return self(ops.array([row + [filler] * (width - len(row)) for row in rows], dtype="int64"), ops.array(mask))

    def save(self, path: str | PathLike[str]) -> None:
        """Write a folder that Sentence Transformers opens."""
        folder = Path(path)
        self.encoder.save(folder)
        kinds = [("", "Transformer"), ("1_Pooling", "Pooling")]
        kinds += [(f"{i}_Dense", "Dense") for i in range(2, 2 + len(self.maps))]
        kinds += [(f"{len(kinds)}_Normalize", "Normalize")] if self.is_normalized else []
        for name, _ in kinds:
            (folder / name).mkdir(exist_ok=True)
        for step, (name, _) in zip(self.maps, kinds[2:], strict=False):
            step.save(folder / name)
        width = self.maps[0].linear.inputs // len(self.poolings) if self.maps else self._width()
        chosen = {key: ours in self.poolings for key, (_, ours) in _POOLINGS.items()}
        write_json(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": width, **chosen})
        listed = [
            {"idx": i, "name": str(i), "path": name, "type": f"sentence_transformers.models.{kind}"}
            for i, (name, kind) in enumerate(kinds)
        ]
        with replaced(folder / _MODULES, follow_links=False) as file:
            file.write(json.dumps(listed, indent=2).encode() + b"\n")
        write_json(folder / _LENGTH, {"max_seq_length": self.longest, "do_lower_case": False})

    def _width(self) -> int:
        """Return the width of the encoder's vectors."""
        return self.encoder.embedding.width


def load_sentence_encoder(
    folder: str | PathLike[str],
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    revision: str | None = None,
) -> SentenceEncoder:
    """Return the model in a folder as Sentence Transformers writes it, for the active backend and in the mode of use.

    The arguments are those of :func:`ember_ml.models.load`. A folder without ``modules.json``, of an encoder
    alone, gets the mean of the tokens.

    Args:
        folder: The folder, or the id of a model of the Hub.
        dtype: The dtype of the parameters; None: that of the files.
        device: Where the parameters are; None: the default device.
        revision: The branch, tag or commit of a model of the Hub.

    >>> import tempfile
    >>> from ember_ml import models, ops
    >>> sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     models.from_config({"model_type": "bert", "vocab_size": 9, **sizes}).save(folder)
    ...     encoder = models.load_sentence_encoder(folder)
    >>> ops.shape(encoder([[3, 1, 4], [5, 0, 0]], mask=[[1, 1, 1], [1, 0, 0]]))
    (2, 8)
    """
    files = open_folder(folder, revision, has_folders=True)
    if not files.has(_MODULES):
        found = SentenceEncoder(_load_encoder(files, dtype, device))
    else:
        found = _assemble(files, dtype, device)
    where = found._source if found._source is not None else files
    if where.has(_LENGTH):
        settings = Settings(where.read_json(_LENGTH), str(where.path / _LENGTH))
        if settings.get("do_lower_case"):
            raise ConfigError(f"{settings.where} has do_lower_case, which tokenizer.json must say instead")
        if settings.get("max_seq_length") is not None:
            found.longest = settings.integer("max_seq_length")
    found._source = where
    return found.eval()


def _load_encoder(place: Folder, dtype: DTypeLike | None, device: DeviceLike | None) -> PretrainedModel:
    model = load_from(place, dtype, device)
    if isinstance(model, TextGenerator) or not hasattr(model, "embedding"):
        raise ConfigError(
            f"{place.path} holds a {model.settings.get('model_type')} model; sentences are encoded by those of BERT's "
            "kin"
        )
    return model


def _assemble(files: Folder, dtype: DTypeLike | None, device: DeviceLike | None) -> SentenceEncoder:
    """Make what ``modules.json`` lists."""
    encoder: PretrainedModel | None = None
    source, poolings, maps, is_normalized = files, None, [], False
    for kind, place in _read_modules(files):
        if encoder is None and kind == "Transformer":
            encoder, source = _load_encoder(place, dtype, device), place
        elif encoder is not None and poolings is None and kind == "Pooling":
            poolings = _read_poolings(Settings(place.read_json("config.json"), str(place.path / "config.json")))
        elif poolings is not None and not is_normalized and kind == "Dense":
            settings = Settings(place.read_json("config.json"), str(place.path / "config.json"))
            with empty():
                step = _Dense(settings)
            maps.append(step.fill(place, dtype, device).eval())
        elif poolings is not None and kind == "Normalize":
            is_normalized = True
        else:
            raise ConfigError(
                f"{files.path / _MODULES} lists a {kind!r:.80} at a place where Ember ML does not expect one; it reads "
                "a Transformer, a Pooling, any number of Dense, and Normalize, in this order"
            )
    if encoder is None or poolings is None:
        raise ConfigError(f"{files.path / _MODULES} lists no Transformer or no Pooling")
    found = SentenceEncoder(encoder, poolings, maps, is_normalized)
    found._source = source
    return found


def _read_modules(files: Folder) -> list[tuple[str, Folder]]:
    """Return the kind and the folder of each step."""
    try:
        listed: Any = json.loads(files.read_bytes(_MODULES, 1 << 20))
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{files.path / _MODULES} cannot be read: {error}") from error
    found = []
    for entry in listed if isinstance(listed, list) else [None]:
        path, kind = (entry.get("path"), entry.get("type")) if isinstance(entry, dict) else (None, None)
        if not isinstance(path, str) or not isinstance(kind, str):
            raise ConfigError(f"{files.path / _MODULES} must hold a list of modules, each with a path and a type")
        kind = kind.rpartition(".")[2]
        is_empty = kind == "Normalize"  # its folder may not be there
        found.append((kind, files if path in ("", ".") or is_empty else files.enter(path)))
    return found


def _read_poolings(settings: Settings) -> list[str]:
    named = settings.get("pooling_mode")
    if named is not None:
        words = named if isinstance(named, list) else [named]
        known = dict(_POOLINGS.values())
        if not words or not all(isinstance(word, str) and word in known for word in words):
            raise ConfigError(f"{settings.where} has pooling_mode = {named!r:.80}; Ember ML has {', '.join(known)}")
        chosen = [known[word] for word in words]
        return [ours for _, ours in _POOLINGS.values() if ours in chosen]
    found = [ours for key, (_, ours) in _POOLINGS.items() if settings.flag(key, False)]
    if not found:
        raise ConfigError(f"{settings.where} chooses no pooling; Ember ML has {', '.join(_POOLINGS)}")
    return found
