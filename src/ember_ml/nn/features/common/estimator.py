"""The base class of estimators: parameters, fitted state, and the methods that scikit-learn expects.

Parameters are what the constructor takes; they are stored as given. What ``fit`` learns ends in an underscore: tensors
are portable, so that they follow a switch of the backend; everything else is a plain Python value.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from typing import Any, Self

from ember_ml import ops
from ember_ml.backend.selection import active, chosen_by
from ember_ml.errors import NotFitted
from ember_ml.tensor import EmberTensor
from ember_ml.tensor.ember_tensor import to_native, wrap_native
from ember_ml.typing import Tensor, TensorLike

__all__ = ["Estimator", "check_readable"]

_FACTS = "facts"
"""The name under which a state keeps what is not a tensor: JSON text, as a tensor of bytes."""


_COLUMN_NAMES = "feature_names_in_"
"""The attribute that is learnt only where the columns of the data have names."""


class Estimator:
    """The base of everything that is fitted to data: subclasses take named parameters and learn in ``fit``.

    >>> from ember_ml.nn.features import Standardizer
    >>> scaler = Standardizer(with_std=False)
    >>> scaler.get_params()
    {'with_mean': True, 'with_std': False}
    >>> scaler.set_params(with_std=True)
    Standardizer()
    """

    _takes_missing = False
    """Whether NaN stands for a missing value; it is refused otherwise."""
    _needs_fit = True
    """Whether there is anything to learn before data can be transformed."""

    @classmethod
    def _parameters(cls) -> dict[str, Any]:
        """Return the names of the parameters and their defaults."""
        if cls.__init__ is object.__init__:
            return {}
        return {name: own.default for name, own in inspect.signature(cls).parameters.items()}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; ``deep`` is what scikit-learn passes, and changes nothing here."""
        return {name: getattr(self, name) for name in self._parameters()}

    def set_params(self, **params: Any) -> Self:
        """Change parameters and return the estimator; a name that is not a parameter raises ``ValueError``."""
        known = self._parameters()
        for name, value in params.items():
            if name not in known:
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(known) or 'none'}"
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        given = self.get_params().items()
        own = [f"{name}={value!r}" for name, value in given if repr(value) != repr(self._parameters()[name])]
        return f"{type(self).__name__}({', '.join(own)})"

    # learnt state

    def _get_learnt(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if _is_learnt(name)}

    def _forget(self) -> None:
        for name in self._get_learnt():
            delattr(self, name)

    def _check_fitted(self) -> None:
        if not self._get_learnt():
            name = type(self).__name__
            raise NotFitted(f"this {name} has learnt nothing yet; call fit(X) or load_state_dict(state) first")

    def _keep(self, **learnt: Any) -> None:
        """Store what was learnt: tensors become portable, without the gradients and the data they came from."""
        vars(self).update({name: _make_portable(x) if ops.is_tensor(x) else x for name, x in learnt.items()})

    def _get_state(self, name: str, x: Tensor) -> Tensor:
        """Return the learnt value ``name``; a tensor as a native one of the active backend on the device of ``x``."""
        learnt = getattr(self, name)
        if type(learnt) is not EmberTensor:
            return learnt
        backend = active()
        native = to_native(learnt, backend, None, ops.get_device(x))
        # keep the converted tensor, so that it is converted once; inside a scope only a copy is converted
        if learnt.backend != backend.name and chosen_by() != "use_backend":
            setattr(self, name, wrap_native(native, backend))
        return native

    def state_dict(self) -> dict[str, EmberTensor]:
        """Return all that was learnt, as a dict of tensors, which :func:`ember_ml.ops.save` can write.

        >>> from ember_ml.nn import features
        >>> scaler = features.standardize_features().fit([[1.0], [3.0]])
        >>> features.standardize_features().load_state_dict(scaler.state_dict()).mean_.tolist()
        [2.0]
        """
        self._check_fitted()
        learnt = self._get_learnt()
        tensors = {name: value for name, value in learnt.items() if ops.is_tensor(value)}
        facts = {name: value for name, value in learnt.items() if name not in tensors}
        text = json.dumps({"class": type(self).__name__, **facts}, ensure_ascii=False)
        return {**tensors, _FACTS: EmberTensor(list(text.encode()), dtype="uint8")}

    def load_state_dict(self, state: Mapping[str, TensorLike]) -> Self:
        """Take what another estimator of this class learnt from its :meth:`state_dict`; return this estimator.

        A state of another class, or one that is damaged, raises ``ValueError``.
        """
        facts = self._read_facts(state)
        learnt = facts | {name: ops.convert_to_tensor(value) for name, value in state.items() if name != _FACTS}
        self._check_names(set(learnt))
        self._forget()
        self._keep(**learnt)
        return self

    def _check_names(self, names: set[str]) -> None:
        """Raise where names are unknown or missing; a class without annotations may learn anything."""
        annotated = [name for cls in type(self).__mro__ for name in inspect.get_annotations(cls)]
        known = {name for name in annotated or names if _is_learnt(name)}
        unknown, missing = sorted(names - known), sorted(known - names - {_COLUMN_NAMES})
        if unknown:
            raise ValueError(f"this is no state of a {type(self).__name__}, which learns no {unknown[0]!r}")
        if missing:
            raise ValueError(f"this is no whole state of a {type(self).__name__}: {missing[0]!r} is missing")

    def _read_facts(self, state: Mapping[str, TensorLike]) -> dict[str, Any]:
        wanted = type(self).__name__
        try:
            facts = json.loads(bytes(ops.to_numpy(state[_FACTS]).tolist()))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"this is no state of a {wanted}: it has no readable tensor {_FACTS!r}") from error
        found = facts.pop("class", None) if isinstance(facts, dict) else None
        if found != wanted:
            raise ValueError(f"this is the state of a {found}, not of a {wanted}")
        return facts

    # scikit-learn's protocol

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags of this estimator; only scikit-learn calls this."""
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(preserves_dtype=["float64", "float32"]),
            input_tags=InputTags(allow_nan=self._takes_missing),
            requires_fit=self._needs_fit,
        )


def _is_learnt(name: str) -> bool:
    return name.isidentifier() and name.endswith("_") and not name.startswith("_")


def _make_portable(value: Tensor) -> EmberTensor:
    check_readable(value)  # also makes MLX evaluate, so that the graph no longer holds the data
    return EmberTensor(ops.stop_gradient(value))


def check_readable(x: Tensor) -> None:
    """Raise ``TypeError`` where ``x`` has no values to learn from, because a function is being compiled."""
    if active().is_traced(x.native if type(x) is EmberTensor else x):
        raise TypeError("fit reads values, which a function that is being compiled does not have; fit outside of it")
