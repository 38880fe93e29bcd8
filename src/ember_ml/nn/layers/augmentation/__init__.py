"""Random changes of samples in training: the same ones on every backend from one seed."""

from __future__ import annotations

from ember_ml.nn.layers.augmentation.colour import ColorJitter
from ember_ml.nn.layers.augmentation.erasing import RandomErasing, SpecAugment
from ember_ml.nn.layers.augmentation.geometry import RandomCrop, RandomFlip, RandomResizedCrop, RandomRotation
from ember_ml.nn.layers.augmentation.mixing import CutMix, MixUp

__all__ = [
    "ColorJitter",
    "CutMix",
    "MixUp",
    "RandomCrop",
    "RandomErasing",
    "RandomFlip",
    "RandomResizedCrop",
    "RandomRotation",
    "SpecAugment",
]
