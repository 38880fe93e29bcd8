"""Random numbers by short names: ``ops.random.normal`` is the same function as ``ops.random_normal``."""

from __future__ import annotations

from ember_ml.backend.random.generator import default_generator
from ember_ml.ops.random.choices import random_categorical as categorical
from ember_ml.ops.random.choices import random_choice as choice
from ember_ml.ops.random.choices import random_permutation as permutation
from ember_ml.ops.random.choices import shuffle
from ember_ml.ops.random.sampling import Generator, dropout, seed
from ember_ml.ops.random.sampling import random_bernoulli as bernoulli
from ember_ml.ops.random.sampling import random_beta as beta
from ember_ml.ops.random.sampling import random_binomial as binomial
from ember_ml.ops.random.sampling import random_exponential as exponential
from ember_ml.ops.random.sampling import random_gamma as gamma
from ember_ml.ops.random.sampling import random_gumbel as gumbel
from ember_ml.ops.random.sampling import random_integers as integers
from ember_ml.ops.random.sampling import random_laplace as laplace
from ember_ml.ops.random.sampling import random_normal as normal
from ember_ml.ops.random.sampling import random_poisson as poisson
from ember_ml.ops.random.sampling import random_truncated_normal as truncated_normal
from ember_ml.ops.random.sampling import random_uniform as uniform

__all__ = [
    "Generator",
    "bernoulli",
    "beta",
    "binomial",
    "categorical",
    "choice",
    "default_generator",
    "dropout",
    "exponential",
    "gamma",
    "gumbel",
    "integers",
    "laplace",
    "normal",
    "permutation",
    "poisson",
    "seed",
    "shuffle",
    "truncated_normal",
    "uniform",
]
