"""EmberTensor: a tensor that behaves the same whatever library computes underneath.

The class holds what a tensor is: its data, how it is read, copied and handed to other libraries. Its operators and the
methods that compute are the ops, bound from the floor above; ``tensor/operations.py`` lists them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from ember_ml.backend.contract import Backend
from ember_ml.backend.devices import resolve_device
from ember_ml.backend.host_arrays import as_host, from_bytes, keep_gradient, open_portable_with, text_of, to_python
from ember_ml.backend.selection import active, is_installed, load
from ember_ml.core.dtypes import EmberDType, as_dtype
from ember_ml.core.trees import known_leaves
from ember_ml.tensor.kinds import Kind, kind_of
from ember_ml.tensor.operations import Operations
from ember_ml.tensor.var import Var
from ember_ml.typing import DeviceLike, DTypeLike, TensorLike

__all__ = ["EmberTensor", "record_with", "to_native", "wrap", "wrap_native"]


class EmberTensor(Operations):
    """A portable tensor: holds a native tensor, and keeps working after a switch of the backend.

    Made of anything tensor-like, on the active backend. With ``dtype`` the data is cast; with ``device`` it is put
    there. ``requires_grad`` makes it a variable, by which what is computed from it can be differentiated; of a tensor
    that is being differentiated it stays a part of that computation.

    >>> from ember_ml.nn.tensor import EmberTensor
    >>> x = EmberTensor([[1.0, 2.0], [3.0, 4.0]])
    >>> (x + 1).tolist(), x.shape, x.dtype
    ([[2.0, 3.0], [4.0, 5.0]], (2, 2), float32)
    """

    # tensor/in_place.py says what _views and _base hold; a fresh tensor has no _base, and None as its _views
    __slots__ = ("__weakref__", "_array", "_base", "_kind", "_views")
    __array_ufunc__ = None  # NumPy's operators give way to ours
    __hash__ = None

    _array: Any
    _base: Any
    _kind: Kind
    _views: Any

    if TYPE_CHECKING:  # recording is of the floor above

        @property
        def grad(self) -> EmberTensor | None: ...
        @grad.setter
        def grad(self, value: TensorLike | None) -> None: ...
        def backward(self, gradient: TensorLike | None = None) -> None: ...
        def detach(self) -> EmberTensor: ...

    def __init__(
        self,
        data: TensorLike,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
        requires_grad: bool = False,
    ) -> None:
        backend = active()
        if type(data) is EmberTensor:
            data = data._array
        if type(data) is Var and data.tape.base is backend:
            backend = data.tape
        native = to_native(data, backend, None if dtype is None else as_dtype(dtype), device)
        self._array = native
        self._kind = kind_of(backend, native)
        self._views = None
        if requires_grad:
            self.requires_grad = True

    # What the tensor is

    @property
    def dtype(self) -> EmberDType:
        """The dtype of the elements."""
        return self._kind.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each dimension."""
        return tuple(self._array.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._array.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        total = 1
        for length in self._array.shape:
            total *= length
        return total

    @property
    def itemsize(self) -> int:
        """The bytes of one element."""
        return self._kind.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return self.size * self.itemsize

    @property
    def device(self) -> str:
        """The name of the device that holds the data."""
        return self._kind.backend.device_of(self._array)

    @property
    def backend(self) -> str:
        """The name of the backend that holds the data."""
        return self._kind.backend.name

    @property
    def native(self) -> Any:
        """The tensor of the backend's own library that is held; shared, so do not change it."""
        return self._array.plain() if type(self._array) is Var else self._array

    @property
    def requires_grad(self) -> bool:
        """Whether gradients are wanted with respect to this tensor."""
        array = self._array
        if type(array) is Var:
            return array.node is not None
        return bool(getattr(array, "requires_grad", False))  # emberlint: ignore[EMB502] PyTorch holds the mark

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if value and self._kind.dtype.kind not in ("float", "complex"):
            raise TypeError(f"a tensor of dtype {self.dtype} has no gradient; cast it to a float first")
        if bool(value) == self.requires_grad:
            return
        engine = self._kind.backend.gradients
        if engine is not None and engine.variable is not None:  # a library that records by itself
            self._array = engine.variable(self._array) if value else engine.stop_gradient(self._array)
        else:
            _record(self, value)

    @property
    def T(self) -> EmberTensor:
        """The transpose of a matrix."""
        if self.ndim != 2:
            raise ValueError(
                f"x.T is the transpose of a 2-D tensor, and this one has shape {self.shape}; "
                "use x.mT for the last two axes, or ops.permute_dims(x, axes)"
            )
        return self.matrix_transpose()

    @property
    def mT(self) -> EmberTensor:
        """The transpose of the last two axes."""
        if self.ndim < 2:
            raise ValueError(f"x.mT needs at least 2 dimensions, and this tensor has shape {self.shape}")
        return self.matrix_transpose()

    # Reading values

    def numpy(self) -> Any:
        """A NumPy array of the values; it may share memory, and is read-only where the tensor is immutable."""
        return self._kind.backend.to_host(self._array)

    def long(self) -> EmberTensor:
        """This tensor as int64, by PyTorch's name for it.

        >>> from ember_ml.nn.tensor import EmberTensor
        >>> EmberTensor([1.0, 2.0]).long().dtype
        int64
        """
        return self.astype("int64")

    def tolist(self) -> Any:
        """The values as nested lists of Python numbers; of a 0-d tensor, the number."""
        return to_python(self.numpy())

    def item(self) -> Any:
        """The one value as a Python number; ``ValueError`` where there is not exactly one."""
        if self.size != 1:
            raise ValueError(f"x.item() needs exactly one element, and this tensor has shape {self.shape}")
        return to_python(self.numpy().reshape(()))

    def _single(self, target: str) -> Any:
        if self.size != 1:
            self._refuse(f"{target} of a tensor of shape {self.shape} is ambiguous; use all(), any() or an element")
        return self.item()

    @staticmethod
    def _refuse(message: str) -> NoReturn:
        raise TypeError(message)

    def __bool__(self) -> bool:
        return bool(self._single("the truth value"))

    def __int__(self) -> int:
        return int(self._single("int()"))

    def __float__(self) -> float:
        return float(self._single("float()"))

    def __complex__(self) -> complex:
        keep_gradient(self._array, self._kind.backend)  # MLX's operators would take a 0-d tensor for a complex number
        return complex(self._single("complex()"))

    def __index__(self) -> int:
        if self.ndim or self.dtype.kind not in ("int", "uint"):
            self._refuse(f"only a 0-d integer tensor can be an index, not {self.dtype} of shape {self.shape}")
        return self.item()

    def __len__(self) -> int:
        if not self.ndim:
            self._refuse("len() of a 0-d tensor")
        return self._array.shape[0]

    def __iter__(self) -> Iterator[EmberTensor]:
        if not self.ndim:
            self._refuse("iteration over a 0-d tensor")
        return (self[index] for index in range(len(self)))

    def __contains__(self, value: Any) -> bool:
        found = self == value
        return bool(found.any()) if type(found) is EmberTensor else False

    def __repr__(self) -> str:
        backend = self._kind.backend
        rest = f", dtype={self.dtype}, device={self.device!r}, backend={backend.name!r}"
        if self.requires_grad:
            rest += ", requires_grad=True"
        if backend.is_traced(self._array):
            return f"EmberTensor(<traced>, shape={self.shape}{rest})"
        if not self.size:
            rest = f", shape={self.shape}{rest}"
        return f"EmberTensor({text_of(self.numpy(), 'EmberTensor(')}{rest})"

    def _repr_html_(self) -> str:
        """Return the values for notebooks, below their shape, dtype, device and backend."""
        backend = self._kind.backend
        shown = "traced" if backend.is_traced(self._array) else text_of(self.numpy(), "")
        about = f"<code>EmberTensor</code> {self.shape} {self.dtype} on {self.device}, {backend.name}"
        return f"<div>{about}</div><pre>{shown}</pre>"

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        if self.ndim:
            self._refuse(f"the format {spec!r} needs a 0-d tensor, and this one has shape {self.shape}")
        return format(self.item(), spec)

    # Copying

    def __copy__(self) -> EmberTensor:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> EmberTensor:
        """A copy that shares neither data nor recording; of a variable, a variable with the same gradient."""
        copied = self.detach().copy()
        if self.requires_grad:
            copied.requires_grad = True
            copied.grad = self.grad
        return copied

    def __reduce__(self) -> tuple[Any, ...]:
        state = (self.numpy().tobytes(), self.dtype.name, self.shape, self.backend, self.device, self.requires_grad)
        return _restore, state

    def to_device(self, device: DeviceLike, /, *, stream: Any = None) -> EmberTensor:
        """This tensor on ``device``; the nearest one, with one warning, where this machine lacks it."""
        backend = self._kind.backend
        return wrap_native(backend.to_device(self._array, resolve_device(backend, device)), backend)

    # For other libraries

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        keep_gradient(self._array, self._kind.backend)
        host = self.numpy()
        if dtype is not None and host.dtype != dtype:
            if copy is False:
                raise ValueError(f"a tensor of dtype {self.dtype} cannot become {dtype} without a copy")
            return host.astype(dtype)
        # who asks for an array may write to it, which a view of an immutable tensor does not allow
        return host.copy() if copy or (copy is None and not host.flags.writeable) else host

    def __array_namespace__(self, api_version: str | None = None) -> Any:
        namespace = importlib.import_module("ember_ml.array_api").namespace(self.backend)
        if api_version is not None and api_version != namespace.__array_api_version__:
            raise ValueError(
                f"the array API version {api_version!r} is not offered; this is {namespace.__array_api_version__}"
            )
        return namespace

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        keep_gradient(self._array, self._kind.backend)
        return self._kind.backend.to_dlpack(self._array, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[Any, int]:
        return self._kind.backend.dlpack_device(self._array)

    def __mlx_array__(self) -> Any:
        """What MLX computes with where this tensor stands to the right of one of its own and DLPack is refused."""
        return to_native(self, load("mlx"), None, None)


def to_native(data: Any, backend: Backend, dtype: EmberDType | None, device: str | None) -> Any:
    """``data`` as a native tensor of ``backend``, without a copy where that is safe."""
    native = data._array if type(data) is EmberTensor else data
    if not backend.is_native(native):
        return backend.from_host(as_host(native, dtype), resolve_device(backend, device))
    if device is not None:
        native = backend.to_device(native, resolve_device(backend, device))
    return native if dtype is None else backend.cast(native, backend.dtypes[dtype])


def _restore(
    data: bytes, dtype: str, shape: tuple[int, ...], name: str, device: str, requires_grad: bool
) -> EmberTensor:
    """A pickled tensor, on its own backend where that is installed, else on the active one."""
    backend = load(name) if is_installed(name) else active()
    there = resolve_device(backend, device if backend.name == name else None)  # another library names other devices
    native = backend.from_host(from_bytes(data, as_dtype(dtype), shape), there)
    tensor = wrap_native(native, backend)
    if requires_grad:
        tensor.requires_grad = True
    return tensor


def _opened(value: Any) -> tuple[Any, Any] | None:
    if type(value) is Var:
        return value.tape, value
    return (value._kind.backend, value._array) if type(value) is EmberTensor else None


open_portable_with(_opened)


def _record(tensor: EmberTensor, value: bool, /) -> None:
    raise NotImplementedError("ember_ml.ops records, and is not imported")


def record_with(function: Callable[[EmberTensor, bool], None]) -> None:
    """Make tensors variables by ``function`` where the library does not record by itself; the floor above brings it."""
    global _record
    _record = function


def wrap_native(native: Any, backend: Backend) -> EmberTensor:
    """A portable tensor that holds ``native``, a tensor of ``backend``."""
    tensor = object.__new__(EmberTensor)  # spelt out: torch 2.11 does not trace another name for it
    tensor._array = native
    tensor._kind = kind_of(backend, native)
    tensor._views = None
    return tensor


def wrap(result: Any, backend: Backend) -> Any:
    """Native tensors in ``result`` as portable ones, tuples and lists included; all else as it is."""
    if type(result) is backend.tensor_type or backend.is_native(result):
        return wrap_native(result, backend)
    if isinstance(result, tuple):
        parts = [wrap(part, backend) for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
    if isinstance(result, list):
        return [wrap(part, backend) for part in result]
    return result


known_leaves(EmberTensor, Var)
