"""Ember ML."""

from ember_ml import backend
from ember_ml.backend import *
