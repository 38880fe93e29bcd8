# Written by utils/make_tables.py: the public names, for editors and type checkers.

from ember_ml.training import callbacks as callbacks
from ember_ml.training import checkpoints as checkpoints
from ember_ml.training import collation as collation
from ember_ml.training import data as data
from ember_ml.training import losses as losses
from ember_ml.training import metrics as metrics
from ember_ml.training import optimizers as optimizers
from ember_ml.training import samplers as samplers
from ember_ml.training import schedules as schedules
from ember_ml.training import trainer as trainer
from ember_ml.training.data import DataLoader as DataLoader
from ember_ml.training.trainer import Trainer as Trainer

__all__ = [
    "DataLoader",
    "Trainer",
    "callbacks",
    "checkpoints",
    "collation",
    "data",
    "losses",
    "metrics",
    "optimizers",
    "samplers",
    "schedules",
    "trainer",
]
