"""The base class of optimizers: state, learning rate, clipping, and how an update reaches the parameters."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar

from ember_ml import ops
from ember_ml.backend import selection
from ember_ml.backend.capabilities import Joined, OptimizerKernels
from ember_ml.backend.contract import Backend
from ember_ml.backend.selection import active
from ember_ml.core.dtypes import HALVES
from ember_ml.core.lazy_tensors import LazyTensors
from ember_ml.dispatch.autocast import autocast
from ember_ml.nn.modules.module import Module
from ember_ml.nn.modules.parameter import Parameter
from ember_ml.tensor.variable import Variable, assign_all, values_of
from ember_ml.training.optimizers.groups import (
    Group,
    GroupsSeen,
    check_groups,
    find_groups,
    find_rate,
    make_member,
)
from ember_ml.training.optimizers.joined import JoinedVariables
from ember_ml.training.optimizers.next_scalars import WIDE, NextScalars
from ember_ml.training.optimizers.settings import Ranges, check_setting, find_arguments
from ember_ml.transforms import change_counter
from ember_ml.transforms.captured_variables import Holder
from ember_ml.typing import Tensor

__all__ = ["Optimizer", "Rate"]

_serials = count()

Rate = float | Callable[[int], float]
"""A learning rate: a number, or a function of the number of updates before this one."""


class Optimizer(Holder):
    """Changes parameters against their gradients, the same way on every backend.

    ``max_norm`` scales all gradients down together to that Euclidean norm, ``max_value`` limits each element.
    Subclasses name their ``slots``, the tensors that they keep for each parameter, and define ``rule``.

    Args:
        learning_rate: A number, or a schedule of ``training.schedules``.
        max_norm: The largest Euclidean norm of all gradients together; larger ones are scaled down.
        max_value: The largest magnitude of each element of the gradients.
        groups: Settings for some of the parameters, each a dict with a ``match``: a pattern of whole names, a module, a
            function of name and parameter, or a list of these. Beside it stand settings of the optimizer, its own
            ``learning_rate``, a ``rate_factor``, ``frozen``, or another ``optimizer``. Where several groups match a
            parameter, the later settings count, and the factors of the rate multiply. Changes of ``optimizer.groups``
            count from the next update on.
    """

    groups: list[dict[str, Any]]
    max_norm: float | None
    max_value: float | None
    step: int

    slots: tuple[str, ...] = ()
    kernel: ClassVar[str] = ""
    """The function among a backend's ``optimizer_kernels`` that applies ``rule`` to all parameters at once."""
    ranges: ClassVar[Ranges] = {}
    """The settings that are numbers, and within which limits; they are checked whenever they are set."""
    is_elementwise: ClassVar[bool] = True
    """Whether each element changes by its own gradient alone, so that parts of a parameter can be updated apart."""

    def __init__(
        self,
        learning_rate: Rate,
        max_norm: float | None = None,
        max_value: float | None = None,
        groups: Sequence[Group] = (),
    ) -> None:
        self.learning_rate = learning_rate
        self.max_norm, self.max_value = max_norm, max_value
        self.groups = check_groups(type(self), Optimizer, groups)
        self._seen = GroupsSeen(self.groups)
        self._is_grouped = bool(self.groups)
        self.step = 0
        """The number of updates that have been made."""
        self._places: dict[str, tuple[int, ...]] = {}  # the groups that each parameter is in
        self._has_placed = False  # whether a strategy has put tensors of its own into groups
        # whose rule updates those in such groups
        self._members: dict[tuple[int, ...], Optimizer | None] = {} if self.groups else {(): self}
        self.slots = self.choose_slots()
        self._state: dict[str, dict[str, Variable]] = {slot: {} for slot in self.slots}
        self._next: NextScalars | None = None  # the scalars of the next updates, while a compiled function makes them
        self._held: tuple[list[Variable], Hashable] | None = None  # what held returns, until slots or members change
        self._joined: dict[tuple[int, ...], JoinedVariables] = {}  # what is updated together, by the places of groups
        self._is_traced = False
        self._made: list[tuple[str, str]] = []  # the slots that a trace has made, and their parameters

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "rule" in vars(cls) and "kernel" not in vars(cls):
            cls.kernel = ""  # a backend's kernel computes the rule of the class above

    if not TYPE_CHECKING:  # a type checker would let any attribute be assigned

        def __setattr__(self, name: str, value: Any) -> None:
            if name[0] != "_":
                value = check_setting(name, value, self.ranges)
            is_made = "_made" in self.__dict__
            if name == "groups" and is_made:
                value = check_groups(type(self), Optimizer, value)
                self._forget_held()
            object.__setattr__(self, name, value)
            if name not in ("groups", "learning_rate", "step") and name[0] != "_" and is_made:
                # a setting: members were made with that before, and compiled programs have it as a constant
                self.__dict__["slots"] = self.choose_slots()
                self._renew_members()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_held": None, "_joined": {}, "_next": None}  # a copy has variables of its own

    @property
    def rate(self) -> float:
        """The learning rate of the next update."""
        return float(self.learning_rate(self.step)) if callable(self.learning_rate) else float(self.learning_rate)

    # what subclasses define

    def choose_slots(self) -> tuple[str, ...]:
        """Return the slots that are needed with the settings as they are now: where some are not always kept."""
        return self.slots

    def scalars(self, step: int, rate: float) -> tuple[float, ...]:
        """Return the numbers of the rule that change from step to step; ``step`` is counted from 1."""
        return (rate,)

    def settings(self, scalars: Sequence[Any]) -> dict[str, Any]:
        """Return the keyword arguments of the kernel: the scalars of this step, and the constant settings."""
        return {}

    def rule(
        self, parameter: Tensor, gradient: Tensor, state: Sequence[Tensor], scalars: Sequence[Any]
    ) -> list[Tensor]:
        """Return the new parameter, and its new slots, of native tensors of one dtype."""
        raise NotImplementedError(f"{type(self).__name__} does not define rule")

    def fresh(self, slot: str, parameter: Tensor) -> Tensor:
        """Return the value of a slot of ``parameter`` before its first update."""
        return ops.zeros_like(parameter)

    # updating

    def update(self, model: Module, gradients: Mapping[str, Tensor] | Module) -> None:
        """Change the parameters of ``model`` by their gradients by name, as ``nn.value_and_grad`` returns them.

        Parameters without a gradient stay as they are; a gradient without a parameter is an error.
        """
        named = model.trainable()
        if isinstance(gradients, Module):
            gradients = {name: x.value for name, x in gradients.named_parameters().items() if name in named}
        if gradients.keys() != named.keys():
            unknown = [name for name in gradients if name not in named]
            if unknown:
                raise ValueError(
                    f"there are gradients of {', '.join(unknown)}, which the model has no trainable parameter for"
                )
            named = {name: named[name] for name in gradients}
        self.apply(named, [gradients[name] for name in named])

    def apply(self, named: Mapping[str, Variable], gradients: Sequence[Tensor], square: Tensor | None = None) -> None:
        """Change the variables by their gradients, which are native to the active backend and in the same order.

        Where ``gradients`` are only a part, ``square`` is the sum of :meth:`square_of` over all parts.
        """
        if selection.has_scopes and selection.half_here() is not None:
            with autocast(None):
                self.apply(named, gradients, square)
            return
        backend = active()
        is_traced = backend.is_tracing()
        parts = self._split(named)
        if is_traced:
            self._is_traced = True
            scalars = self._read_scalars(parts)
        else:
            scalars = [member.scalars(self.step + 1, find_rate(self, places, self.step)) for places, member, _ in parts]
            self.__dict__["step"] += 1
        changes: list[tuple[Sequence[Variable], Sequence[Tensor]]] = []
        try:
            if self.max_norm is not None or self.max_value is not None:
                gradients = self._clip(named, gradients, square)
            by_name = None if len(parts) == 1 == len(self._members) else dict(zip(named, gradients, strict=True))
            for (places, member, part), numbers in zip(parts, scalars, strict=True):
                member.__dict__["step"] = self.step
                given = gradients if by_name is None else [by_name[name] for name in part]
                joined = None if is_traced else self._joined.get(places)
                if joined is not None and backend.optimizer_kernels is not None and joined.are(part):
                    new, *slots = joined.columns
                    kernel = backend.optimizer_kernels.kernels[member.kernel]
                    kernel(new, given, *slots, **member.settings(numbers))  # which changes them in place
                    continue
                state = self._find_slots(member, part, is_traced)
                held = [values_of(x) for x in state]
                variables = list(part.values())
                new, *slots = member._compute(backend, values_of(variables), given, held, numbers)
                changes += [(variables, new), *zip(state, slots, strict=True)]
                if isinstance(new, Joined):
                    self._joined[places] = JoinedVariables(part, state, [new, *slots])
        except BaseException:
            if not is_traced:
                self.step -= 1  # the update did not happen
            raise
        for variables, natives in changes:
            assign_all(variables, natives)

    def make_slots(self, named: Mapping[str, Variable]) -> None:
        """Make the slots of these parameters now that have none, rather than in the first update."""
        for _, member, part in self._split(named):
            if not all(part.keys() <= self._state.get(slot, {}).keys() for slot in member.slots):
                self._find_slots(member, part, False)

    def slot_variables(self) -> list[Variable]:
        """Return the variables of all slots that there are."""
        return [x for held in self._state.values() for x in held.values()]

    def _has_slots(self) -> bool:
        members = self.members()
        return any(self._state.values()) or (bool(members) and not any(member.slots for _, member in members))

    # groups of parameters

    def members(self) -> list[tuple[tuple[int, ...], Optimizer]]:
        """Return the optimizers whose rules update parameters, so far, each with the places of its groups."""
        return [(places, member) for places, member in self._members.items() if member is not None]

    def member_of(self, name: str, parameter: Variable) -> Optimizer | None:
        """Return the optimizer whose rule updates a parameter: this one, or that of its groups; None where frozen."""
        places = self._places.get(name)
        if places is None:
            places = self._places[name] = find_groups(self.groups, name, parameter) if self.groups else ()
        if places not in self._members:
            self._members[places] = make_member(self, places) if places else self
            self._forget_held()
        return self._members[places]

    def place(self, name: str, parameters: Mapping[str, Variable]) -> None:
        """Put a tensor called ``name``, which holds parts of ``parameters`` of the same groups, into their groups."""
        first = next(iter(parameters))
        self.member_of(first, parameters[first])
        self._places[name] = self._places[first]
        self._has_placed = True

    def places_of(self, name: str, parameter: Variable) -> tuple[int, ...]:
        """Return the places in ``groups`` of those that a parameter is in."""
        self.member_of(name, parameter)
        return self._places[name]

    def slots_of(self, name: str) -> tuple[str, ...]:
        """Return the slots of a parameter that has been put into its groups."""
        member = self._members[self._places[name]]
        return () if member is None else member.slots

    def _split(self, named: Mapping[str, Variable]) -> list[tuple[tuple[int, ...], Optimizer, Mapping[str, Variable]]]:
        """Return what is updated together: the places of the groups, whose rule does it, and the parameters by name."""
        if (self.groups or self._is_grouped) and not active().is_tracing():  # while traced, held has done it
            self._follow_groups()
        if not self.groups:
            return [((), self, named)]
        parts: dict[tuple[int, ...], dict[str, Variable]] = {}
        for name, parameter in named.items():
            if self.member_of(name, parameter) is not None:
                parts.setdefault(self._places[name], {})[name] = parameter
        found = [(places, self._members[places], part) for places, part in parts.items()]
        return [(places, member, part) for places, member, part in found if member is not None]

    def _follow_groups(self) -> None:
        """Take over what a program has changed in the groups, as that one is no longer frozen."""
        before = self._seen
        if before.is_current(self.groups):
            return
        check_groups(type(self), Optimizer, self.groups)
        now = GroupsSeen(self.groups)
        if not before.has_same_matches(now):
            if self._has_placed:
                raise ValueError(
                    "a strategy has laid out the parameters by their groups: which parameters a group matches can no "
                    "longer change"
                )
            self._places, self._members = {}, {} if self.groups else {(): self}
            self._forget_held()
        elif not before.has_same_settings(now):
            self._renew_members()
        self._seen, self._is_grouped = now, bool(self.groups)

    def _renew_members(self) -> None:
        """Make the optimizers of the groups again, with the settings as they are now."""
        is_grouped = bool(self.groups)
        self._members = {places: make_member(self, places) for places in self._members} if is_grouped else {(): self}
        self._forget_held()

    # compiled functions

    def uncounted(self) -> Sequence[Any]:
        return self._seen.contents

    def held(self) -> tuple[list[Variable], Hashable] | None:
        """Return the slots; the key stands for these variables alone, since a program is traced with them."""
        if self.groups or self._is_grouped:
            self._follow_groups()
        if self._held is None:
            if not self.step and not self._has_slots():
                return None  # the first update makes them
            self._held, self._next = (self.slot_variables(), next(_serials)), None
        return self._held

    def _forget_held(self) -> None:
        self._held = None
        self._joined.clear()
        change_counter.count_change()

    def renewed(self, variables: Sequence[Variable]) -> NextScalars:
        """Return the scalars of the next updates, which a compiled function takes as one tensor."""
        if self._next is None:
            self._next = NextScalars(self)
        self._next.fit([x for x in variables if isinstance(x, Parameter) and x.is_trainable])
        return self._next

    def _read_scalars(self, parts: Sequence[tuple[tuple[int, ...], Optimizer, Any]]) -> list[Sequence[Any]]:
        """Return the scalars of each part, which :meth:`held` has put into one tensor."""
        numbers, found, start = None if self._next is None else self._next.variable, {}, 0
        if numbers is not None:
            for places, member in self.members():
                end = start + len(member.scalars(1, 0.0))
                # a slice is a view, where an index of MLX gathers
                found[places] = [ops.reshape(numbers.held[k : k + 1], ()) for k in range(start, end)]
                start = end
        # nobody has told the compiler of this optimizer, or of a group
        if numbers is None or start != numbers.shape[0]:
            raise TypeError(
                f"a compiled function updates by {type(self).__name__}, which it neither takes nor closes over, as "
                "where another optimizer holds it, or it is the first to update a group of parameters: run such "
                "updates without compile"
            )
        return [found[places] for places, _, _ in parts]

    def begin_trace(self) -> None:
        self._is_traced, self._made = False, []

    def end_trace(self) -> tuple[bool, tuple[tuple[str, str], ...]]:
        return self._is_traced, tuple(self._made)

    def made_in_trace(self) -> list[Variable]:
        return [self._state[slot][name] for slot, name in self._made]

    def after_run(self, done: tuple[bool, tuple[tuple[str, str], ...]], made: Sequence[Tensor]) -> None:
        is_updated, slots = done
        self.__dict__["step"] += is_updated
        if slots:  # while it was traced, they held traced tensors
            for (slot, name), native in zip(slots, made, strict=True):
                self._state[slot][name] = Variable(native)
            self._forget_held()

    def _find_slots(self, member: Optimizer, named: Mapping[str, Variable], is_traced: bool) -> list[list[Variable]]:
        """Return for each slot its variables, in the order of the parameters; make those that are missing."""
        found = []
        for slot in member.slots:
            held = self._state.setdefault(slot, {})
            if not named.keys() <= held.keys():
                for name, parameter in named.items():
                    if name not in held:
                        self._forget_held()
                        fresh = member.fresh(slot, values_of([parameter])[0])
                        held[name] = Variable.holding(fresh) if is_traced else Variable(fresh)
                        if is_traced:
                            self._made.append((slot, name))
            found.append([held[name] for name in named])
        return found

    def _compute(
        self,
        backend: Backend,
        parameters: Sequence[Tensor],
        gradients: Sequence[Tensor],
        state: Sequence[Sequence[Tensor]],
        scalars: Sequence[Any],
    ) -> Sequence[Sequence[Tensor]]:
        """Return the new parameters and slots: the old ones, changed, where the backend changes tensors in place."""
        kernels = backend.optimizer_kernels
        if kernels is not None and self.kernel in kernels.kernels and self._serves(kernels, parameters, backend):
            return kernels.kernels[self.kernel](parameters, gradients, *state, **self.settings(scalars))
        rows = [
            self._apply_rule(p, g, slots, scalars) for p, g, *slots in zip(parameters, gradients, *state, strict=True)
        ]
        return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(len(state) + 1)]

    def _serves(self, kernels: OptimizerKernels, parameters: Sequence[Tensor], backend: Backend) -> bool:
        """Return whether to call the backend's kernel; a compiler does better with ``rule``."""
        if kernels.is_in_place and backend.is_tracing():
            return False
        if not kernels.takes_halves:
            for x in parameters:
                if backend.dtype_of(x) in HALVES:
                    return False
        return True

    def _apply_rule(
        self, parameter: Tensor, gradient: Tensor, state: Sequence[Tensor], scalars: Sequence[Any]
    ) -> list[Tensor]:
        dtype = active().dtype_of(parameter)
        if scalars and not isinstance(scalars[0], float | int):
            # those of a compiled step are tensors of one dtype, which may be wider than that of some parameters
            scalars = [ops.cast(x, "float64" if dtype in WIDE else "float32") for x in scalars]
        if dtype not in HALVES:
            return self._check_result(self.rule(parameter, gradient, state, scalars), parameter)
        wide = [ops.cast(x, "float32") for x in (parameter, gradient, *state)]
        found = self._check_result(self.rule(wide[0], wide[1], wide[2:], scalars), wide[0])
        return [ops.cast(x, dtype) for x in found]

    def _check_result(self, found: Any, parameter: Tensor) -> list[Tensor]:
        """Return what :meth:`rule` gave, which may be that of a program's own class."""
        if not isinstance(found, list | tuple) or len(found) != 1 + len(self.slots):
            slots = f" and {', '.join(self.slots)}" if self.slots else ""
            given = f"{len(found)} of them" if isinstance(found, list | tuple) else f"{type(found).__name__}"
            raise ValueError(f"{type(self).__name__}.rule returns a list of the new parameter{slots}, not {given}")
        first = found[0]
        if first.shape == parameter.shape and first.dtype == parameter.dtype:
            return list(found)
        for what, new, old in (
            ("shape", tuple(first.shape), tuple(parameter.shape)),
            ("dtype", active().dtype_of(first), active().dtype_of(parameter)),
        ):
            if new != old:
                raise ValueError(f"{type(self).__name__}.rule gave a parameter of {what} {new} for one of {what} {old}")
        return list(found)

    def _clip(self, named: Mapping[str, Variable], gradients: Sequence[Tensor], square: Tensor | None) -> list[Tensor]:
        """Return the gradients within ``max_value``, scaled down together where their norm is over ``max_norm``."""
        gradients = self._limit(gradients)
        if self.max_norm is None:
            return list(gradients)
        norm = None if square is None else ops.sqrt(square)
        if norm is None and self.groups:
            norm = global_norm(self._without_frozen(named, gradients))
        return clip_by_norm(gradients, self.max_norm, norm)

    def _without_frozen(self, named: Mapping[str, Variable], gradients: Sequence[Tensor]) -> list[Tensor]:
        pairs = zip(named.items(), gradients, strict=True)
        return [gradient for (name, parameter), gradient in pairs if self.member_of(name, parameter) is not None]

    def _limit(self, gradients: Sequence[Tensor]) -> Sequence[Tensor]:
        if self.max_value is None:
            return gradients
        return [ops.clip(g, -self.max_value, self.max_value) for g in gradients]

    def square_of(self, named: Mapping[str, Variable], gradients: Sequence[Tensor]) -> Tensor | None:
        """Return the square of the norm that ``max_norm`` limits; None where it is not needed."""
        if self.max_norm is None:
            return None
        return ops.square(global_norm(self._without_frozen(named, self._limit(gradients))))

    # state as plain data

    def state_dict(self) -> dict[str, Tensor]:
        """Return copies of the tensors that the optimizer keeps, named ``slot/parameter``."""
        return {name: ops.copy(x) for name, x in self.current_tensors().items()}

    def current_tensors(self) -> dict[str, Tensor]:
        """Return the tensors that the optimizer keeps, not copied: updates may change them."""
        return {f"{slot}/{name}": x.value for slot, held in self._state.items() for name, x in held.items()}

    def saved_tensors(self) -> dict[str, Tensor]:
        """Return what :meth:`state_dict` gives, which a subclass may have changed, not copied where it has not."""
        return self.current_tensors() if type(self).state_dict is Optimizer.state_dict else self.state_dict()

    def load_state_dict(self, state: Mapping[str, Tensor], step: int) -> None:
        """Continue from a state that :meth:`state_dict` returned after ``step`` updates.

        The tensors are copied, except those of ``LazyTensors``, which nobody else has.
        """
        make = Variable.holding if isinstance(state, LazyTensors) else Variable
        others = [self, *(group["optimizer"] for group in self.groups if "optimizer" in group)]
        made: dict[str, dict[str, Variable]] = {slot: {} for other in others for slot in other.slots}
        for key, value in state.items():
            slot, _, name = key.partition("/")
            if slot not in made and self.groups:
                made[slot] = {}  # a setting of a group may need it, as momentum does
            if slot not in made or not name:
                raise ValueError(
                    f"{type(self).__name__} keeps no {key!r}; it keeps {', '.join(self.slots) or 'nothing'}"
                )
            made[slot][name] = make(value)
        self._state, self.step = made, step
        self._forget_held()

    def config(self) -> dict[str, Any]:
        """Return the settings that it was made with, as plain values; a schedule as its own configuration."""
        plain = self.given()
        rate = plain["learning_rate"]
        plain["learning_rate"] = rate.config() if hasattr(rate, "config") else rate
        return plain

    def given(self) -> dict[str, Any]:
        """Return the settings that it was made with; ``TypeError`` where they are no attributes."""
        found = self._known_settings()
        unknown = [name for name in find_arguments(type(self)) if name not in found and name != "groups"]
        if unknown:
            raise TypeError(
                f"{type(self).__name__} takes {', '.join(unknown)}, and has no such attribute, so that no other like "
                "it can be made: keep each argument in an attribute of its name"
            )
        return found

    def _known_settings(self) -> dict[str, Any]:
        """Return the arguments of the class that are attributes; ``groups`` where there are any."""
        names = find_arguments(type(self))
        kept = {name: getattr(self, name) for name in names if hasattr(self, name)}
        return {name: value for name, value in kept.items() if name != "groups" or value}

    def __repr__(self) -> str:
        settings = ", ".join([f"{name}={value!r}" for name, value in self._known_settings().items()])
        return f"{type(self).__name__}({settings})"


def global_norm(gradients: Sequence[Tensor]) -> Tensor:
    """Return the Euclidean norm of all elements of ``gradients`` together, a 0-d float32 tensor or wider."""
    if not gradients:
        return ops.zeros((), dtype="float32")
    squares = [ops.sum(ops.square(_widen(g))) for g in gradients]
    return ops.sqrt(ops.sum(ops.stack(squares)))


def clip_by_norm(gradients: Sequence[Tensor], max_norm: float, norm: Tensor | None = None) -> list[Tensor]:
    """Scale ``gradients`` down together where their norm, or ``norm`` if given, is larger than ``max_norm``."""
    if not gradients:
        return []
    norm = global_norm(gradients) if norm is None else norm
    scale = ops.minimum(ops.divide(max_norm, ops.add(norm, 1e-6)), 1.0)
    dtype_of = active().dtype_of
    return [ops.multiply(g, ops.cast(scale, dtype_of(g))) for g in gradients]


def _widen(x: Tensor) -> Tensor:
    return ops.cast(x, "float32") if active().dtype_of(x) in HALVES else x
