"""``ember-ml demo``: one computation on every backend, then one training run that changes backends."""

from __future__ import annotations
