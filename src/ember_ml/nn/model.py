"""The base class of whole networks."""

from __future__ import annotations

from ember_ml.nn.modules.module import Module

__all__ = ["Model"]


class Model(Module):
    """A whole network: subclasses make their layers in ``__init__`` and define ``forward``.

    >>> from ember_ml import nn, ops
    >>> class Classifier(nn.Model):
    ...     def __init__(self, hidden):
    ...         super().__init__()
    ...         self.inner = nn.Linear(hidden)
    ...         self.outer = nn.Linear(10)
    ...     def forward(self, x):
    ...         return self.outer(ops.relu(self.inner(x)))
    >>> ops.shape(Classifier(32)(ops.ones((5, 4))))
    (5, 10)
    """
