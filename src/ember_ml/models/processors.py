"""Make of images and sounds what models take, by the settings in ``preprocessor_config.json``."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, NamedTuple

from ember_ml import ops
from ember_ml.errors import ConfigError
from ember_ml.models.folder import Folder
from ember_ml.models.hub import open_folder
from ember_ml.models.settings import Settings
from ember_ml.typing import Tensor, TensorLike

__all__ = ["AudioProcessor", "ImageProcessor", "processor"]

_FILE, _NEW_FILE = "preprocessor_config.json", "processor_config.json"
_SUFFIXES = ("ImageProcessorFast", "ImageProcessorPil", "ImageProcessor", "FeatureExtractor")


class _Kind(NamedTuple):
    """What a processor does where its settings do not say it."""

    resample: int
    is_cropped: bool
    keeps_shape: bool
    """Whether a size of one number is that of the shorter side."""


_KINDS = {
    "Bit": _Kind(3, True, True),
    "CLIP": _Kind(3, True, True),
    "ConvNext": _Kind(3, False, True),
    "Siglip": _Kind(3, False, False),
    "ViT": _Kind(2, False, False),
}
_INTERPOLATIONS = {0: "nearest", 1: "lanczos3", 2: "bilinear", 3: "bicubic"}
"""By their numbers in Pillow."""
_DISTORTED_FROM = 384
"""From this size on, ConvNeXt's images are resized to squares and not cropped."""


class ImageProcessor:
    """Resizes, crops, scales and normalizes images; :func:`processor` reads one from a folder."""

    def __init__(self, settings: Settings, kind: str) -> None:
        self._settings, self._usual, self._is_convnext = settings, _KINDS[kind], kind == "ConvNext"
        self._crop = self._read_size("crop_size") if settings.flag("do_center_crop", self._usual.is_cropped) else None
        self._size = self._read_size("size") if settings.flag("do_resize", True) else None
        number = settings.integer("resample", self._usual.resample, least=0)
        if number not in _INTERPOLATIONS:
            raise ConfigError(
                f"{settings.where} has resample = {number}; Ember ML has 0 (nearest), 1 (Lanczos), 2 (bilinear) and 3 "
                "(bicubic)"
            )
        self._interpolation = _INTERPOLATIONS[number]
        self._factor = settings.number("rescale_factor", 1 / 255) if settings.flag("do_rescale", True) else None
        self._moments: tuple[list[float], list[float]] | None = None
        if settings.flag("do_normalize", True):
            self._moments = self._read_numbers("image_mean"), self._read_numbers("image_std")

    def _read_size(self, key: str) -> tuple[int, int] | int:
        """Return a height and a width, or the length of the shorter side."""
        value = self._settings.get(key)
        if isinstance(value, dict):
            table = self._settings.section(key)
            if set(value) == {"shortest_edge"}:
                return table.integer("shortest_edge", most=100_000)
            return table.integer("height", most=100_000), table.integer("width", most=100_000)
        side = self._settings.integer(key, most=100_000)
        return side if self._usual.keeps_shape and key == "size" else (side, side)

    def _read_numbers(self, key: str) -> list[float]:
        value: Any = self._settings.get(key)
        if not isinstance(value, list) or not value or not all(type(x) in (int, float) for x in value):
            raise ConfigError(f"{self._settings.where} has {key} = {value!r:.80}; it must be a list of numbers")
        return value

    def __call__(self, images: TensorLike | Sequence[TensorLike]) -> Tensor:
        """Return (batch, height, width, channels) in float32, for an image or for several of any sizes.

        An image is (height, width, channels), or (height, width) with one channel, of whole numbers from 0 to 255.
        Resizing rounds to such numbers after the width and after the height, as Pillow does; where Pillow 13 takes the
        height first, its numbers differ by 1, rarely by 2.
        """
        several = list(images) if isinstance(images, list | tuple) else [images]
        found = [self._process(ops.asarray(image)) for image in several]
        shapes = {tuple(ops.shape(image)) for image in found}
        if len(shapes) != 1:
            raise ValueError(f"the images have different shapes {sorted(shapes)}, since no size is set for them")
        return ops.stack(found)

    def _process(self, x: Tensor) -> Tensor:
        if x.ndim == 2:
            x = ops.expand_dims(x, -1)
        if x.ndim != 3 or ops.dtype(x).kind not in ("int", "uint"):
            raise ValueError(
                "an image is (height, width, channels) of whole numbers from 0 to 255, not of shape "
                f"{ops.shape(x)} and {ops.dtype(x)}"
            )
        channels = 1 if self._moments is None else len(self._moments[0])
        if x.shape[-1] == 1 and channels > 1:
            x = ops.repeat(x, channels, axis=-1)
        x = x if self._size is None else self._resize(x, self._size)
        x = ops.cast(x if self._crop is None else _crop(x, self._crop), "float32")
        x = x if self._factor is None else ops.multiply(x, self._factor)
        if self._moments is None:
            return x
        mean, deviation = (ops.array(part, dtype="float32", device=ops.get_device(x)) for part in self._moments)
        return ops.divide(ops.subtract(x, mean), deviation)

    def _resize(self, x: Tensor, size: tuple[int, int] | int) -> Tensor:
        if isinstance(size, tuple):
            return self._scale(x, size)
        if not self._is_convnext:
            return self._scale(x, _keep_shape(x, size))
        if size >= _DISTORTED_FROM:
            return self._scale(x, (size, size))
        larger = int(size / self._settings.number("crop_pct", 224 / 256))
        return _crop(self._scale(x, _keep_shape(x, larger)), (size, size))

    def _scale(self, x: Tensor, size: tuple[int, int]) -> Tensor:
        """Resize the width, then the height, each rounded to whole numbers, halves up, as Pillow does.

        Pillow 13 takes the height first where that is less work.
        """
        x = ops.cast(x, "float32")
        for target in ((x.shape[0], size[1]), size):
            x = ops.resize(x, target, self._interpolation, antialias=True)
            x = ops.clip(ops.floor(ops.add(x, 0.5)), 0.0, 255.0)
        return x


def _keep_shape(x: Tensor, size: int) -> tuple[int, int]:
    """Return the height and width with a shorter side of that length."""
    height, width = x.shape[:2]
    if height <= width:
        return size, int(size * width / height)
    return int(size * height / width), size


def _crop(x: Tensor, size: tuple[int, int] | int) -> Tensor:
    height, width = size if isinstance(size, tuple) else (size, size)
    top, left = (x.shape[0] - height) // 2, (x.shape[1] - width) // 2
    if top < 0 or left < 0:
        raise ValueError(f"an image of {ops.shape(x)} is too small to be cropped to {(height, width)} (crop_size)")
    return ops.get_item(x, (slice(top, top + height), slice(left, left + width)))


class AudioProcessor:
    """Makes log-mel spectrograms of sounds, as Whisper takes them; :func:`processor` reads one from a folder."""

    rate: int
    """The number of samples of a second."""

    def __init__(self, settings: Settings) -> None:
        self.rate = settings.integer("sampling_rate", 16_000)
        self._hop, self._frame = settings.integer("hop_length", 160), settings.integer("n_fft", 400)
        self._samples = settings.integer("chunk_length", 30) * self.rate
        self._bins, self._filler = settings.integer("feature_size", 80), settings.number("padding_value", 0.0)
        if settings.number("dither", 0.0):
            raise ConfigError(f"{settings.where} has dither, which adds noise to sounds; Ember ML adds none")
        if settings.flag("do_normalize", False):
            raise ConfigError(f"{settings.where} has do_normalize, which Ember ML does not do to sounds")

    def __call__(self, sounds: TensorLike | Sequence[TensorLike], rate: int | None = None) -> Tensor:
        """Return (batch, frames, bins) for a sound or for several, each cut or padded to the length of the model.

        A sound is a vector of numbers from -1 to 1, with :attr:`rate` samples a second; ``rate`` says how many it has,
        and raises where they are others.
        """
        if rate is not None and rate != self.rate:
            raise ValueError(
                f"sounds have {self.rate} samples a second for this model, not {rate}: ops.signal resamples"
            )
        is_list = isinstance(sounds, list | tuple)
        several = list(sounds) if is_list and not isinstance(sounds[0], int | float) else [sounds]
        x = ops.stack([self._fit(ops.asarray(sound, dtype="float32")) for sound in several])
        powers = ops.spectrogram(x, self._frame, self._hop)
        powers = ops.get_item(powers, (slice(None), slice(self._samples // self._hop)))
        filters = ops.mel_filterbank(
            self._bins, self._frame // 2 + 1, self.rate, 0.0, 8000.0, "slaney", "slaney", device=ops.get_device(x)
        )
        logs = ops.log10(ops.maximum(ops.matmul(powers, filters), 1e-10))
        logs = ops.maximum(logs, ops.subtract(ops.max(logs, (1, 2), keepdims=True), 8.0))
        return ops.divide(ops.add(logs, 4.0), 4.0)

    def _fit(self, x: Tensor) -> Tensor:
        if x.ndim != 1 or not x.shape[0]:
            raise ValueError(f"a sound is a vector of samples, not of shape {ops.shape(x)}")
        x = ops.get_item(x, slice(self._samples))
        return ops.pad(x, [(0, self._samples - x.shape[0])], constant_values=self._filler)


def processor(folder: str | PathLike[str], *, revision: str | None = None) -> ImageProcessor | AudioProcessor:
    """Return what makes inputs of images or sounds for the model in a folder, by its ``preprocessor_config.json``.

    ``folder`` and ``revision`` are those of :func:`ember_ml.models.load`.

    >>> import json, pathlib, tempfile
    >>> from ember_ml import models, ops
    >>> config = {"feature_extractor_type": "WhisperFeatureExtractor", "chunk_length": 1}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "preprocessor_config.json").write_text(json.dumps(config))
    ...     process = models.processor(folder)
    >>> ops.shape(process([0.0, 0.5, -0.5], rate=16000))
    (1, 100, 80)
    """
    settings = _read(open_folder(folder, revision))
    named = settings.get("image_processor_type", settings.get("feature_extractor_type"))
    suffix = next((suffix for suffix in _SUFFIXES if isinstance(named, str) and named.endswith(suffix)), None)
    kind = "" if suffix is None else str(named).removesuffix(suffix)
    if kind == "Whisper":
        return AudioProcessor(settings)
    if kind not in _KINDS:
        raise ConfigError(
            f"{settings.where} describes a {named!r:.80}; Ember ML has those of Whisper, {', '.join(_KINDS)}"
        )
    return ImageProcessor(settings, kind)


def _read(files: Folder) -> Settings:
    """Return the settings of a processor, which today may stand in a table of another file."""
    if files.has(_FILE):
        return Settings(files.read_json(_FILE), str(files.path / _FILE))
    if files.has(_NEW_FILE):
        whole = Settings(files.read_json(_NEW_FILE), str(files.path / _NEW_FILE))
        for key in ("image_processor", "feature_extractor"):
            if whole.get(key) is not None:
                return whole.section(key)
    raise FileNotFoundError(f"{files.path} has no {_FILE}, which says how images or sounds are prepared")
