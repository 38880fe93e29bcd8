"""Transform random words into random numbers, by formulas for every library.

Each is a chain of operations that IEEE 754 or the integers define to the last bit (sums, products, quotients, square
roots, shifts), in an order that is spelled out, with a logarithm of its own instead of the libraries' different ones.
So every library that computes them one by one returns the same bits; a compiler that contracts a product and a sum into
one operation changes the last ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ember_ml.backend.random.threefry import MASK
from ember_ml.core.dtypes import EmberDType, bool_, float32, float64, int32, int64

if TYPE_CHECKING:
    from typing import Protocol
else:
    Protocol = object  # creating a protocol takes a millisecond, and nothing uses it at run time

__all__ = [
    "EXPONENTIAL",
    "GUMBEL",
    "LAPLACE",
    "LONG_WORD",
    "NORMAL",
    "NORMAL_CENTRE",
    "TRUNCATED_NORMAL",
    "UNIFORM",
    "WORD",
    "FloatVariate",
    "Lanes",
    "Variate",
    "bernoulli",
    "integers",
    "log",
    "normal_beyond",
]


class Lanes(Protocol):
    """The functions of a library that the formulas need besides the operators of its tensors."""

    def cast(self, x: Any, dtype: EmberDType) -> Any: ...
    def view(self, x: Any, dtype: EmberDType) -> Any:
        """Return the same bits as another dtype of the same width."""
        ...

    def where(self, condition: Any, x: Any, y: Any) -> Any: ...
    def otherwise(self, condition: Any, x: Any, compute: Callable[[Any], Any], source: Any) -> Any:
        """Return ``x`` where the condition holds, ``compute(source)``, element by element, where it does not."""
        ...

    def keep(self, x: Any) -> Any:
        """Return ``x``, which is used more than once: a compiler shall not compute it again for each use."""
        ...

    def sqrt(self, x: Any) -> Any:
        """Return the square root, correctly rounded."""
        ...


class Variate(NamedTuple):
    """One kind of random number: its name, its dtype, and its formula of one int32 word, or of two if ``wide``.

    The formula gets the library's lanes first. ``parameters`` are those that a native generator needs.
    """

    name: str
    dtype: EmberDType
    wide: bool
    formula: Callable[..., Any]
    parameters: tuple[Any, ...] = ()


class _Precision(NamedTuple):
    """The constants of the formulas in one floating dtype."""

    dtype: EmberDType
    integer: EmberDType
    bits: int
    """How many random bits a magnitude has."""
    mantissa: int
    root_half: int
    """The bits of the square root of one half."""
    ln2: tuple[float, float]
    """The logarithm of 2 as a number with so many zero bits that its multiples are exact, and the rest."""
    series: tuple[float, ...]
    """2/3, 2/5, 2/7, ...: of the series of log((1 + s) / (1 - s)) = 2 s + s (2/3 s^2 + 2/5 s^4 + ...)."""
    quantile: tuple[tuple[tuple[float, ...], tuple[float, ...]], ...]
    """The quantile of the normal distribution as quotients of polynomials, the highest power first."""


# M. J. Wichura, "Algorithm AS 241: the percentage points of the normal distribution", 1988, to seven digits; words have
# so few bits that its third part, for the far tail, is not reached.
_SEVEN_DIGITS = (
    ((59.109374720, 159.29113202, 50.434271938, 3.3871327179), (67.187563600, 78.757757664, 17.895169469, 1.0)),
    ((0.17023821103, 1.3067284816, 2.7568153900, 1.4234372777), (0.12021132975, 0.73700164250, 1.0)),
)
# The same to sixteen digits, with the far tail.
_SIXTEEN_DIGITS = (
    (
        (
            *(2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4),
            *(1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080),
        ),
        (
            *(5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4),
            *(5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0),
        ),
    ),
    (
        (
            *(7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1),
            *(1.27045825245236838258, 3.64784832476320460504, 5.76949722146069140550),
            *(4.63033784615654529590, 1.42343711074968357734),
        ),
        (
            *(1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2),
            *(1.48103976427480074590e-1, 6.89767334985100004550e-1, 1.67638483018380384940),
            *(2.05319162663775882187, 1.0),
        ),
    ),
    (
        (
            *(2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3),
            *(2.65321895265761230930e-2, 2.96560571828504891230e-1, 1.78482653991729133580),
            *(5.46378491116411436990, 6.65790464350110377720),
        ),
        (
            *(2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5),
            *(7.86869131145613259100e-4, 1.48753612908506148525e-2, 1.36929880922735805310e-1),
            *(5.99832206555887937690e-1, 1.0),
        ),
    ),
)

_SINGLE = _Precision(
    dtype=float32,
    integer=int32,
    bits=31,
    mantissa=23,
    root_half=0x3F3504F3,
    ln2=(0.693359375, -2.1219444005469057e-4),
    series=tuple(2 / n for n in (3, 5, 7, 9)),
    quantile=_SEVEN_DIGITS,
)
_DOUBLE = _Precision(
    dtype=float64,
    integer=int64,
    bits=53,
    mantissa=52,
    root_half=0x3FE6A09E667F3BCD,
    ln2=(0.6931471803691238, 1.9082149292705877e-10),
    series=tuple(2 / n for n in range(3, 23, 2)),
    quantile=_SIXTEEN_DIGITS,
)


def _magnitude(p: _Precision, lanes: Lanes, words: Sequence[Any]) -> Any:
    """Return the upper ``p.bits`` of the one or two words as an integer."""
    if p is _SINGLE:
        return lanes.keep((words[0] >> 1) & 0x7FFFFFFF)
    return lanes.keep((_join_words(lanes, words) >> 11) & (2**53 - 1))


def _join_words(lanes: Lanes, words: Sequence[Any]) -> Any:
    """Join two words to one 64-bit integer, the first as the upper half."""
    return (lanes.cast(words[0], int64) << 32) | (lanes.cast(words[1], int64) & MASK)


def _sign(p: _Precision, lanes: Lanes, words: Sequence[Any]) -> Any:
    """Return 1 or -1 by the lowest bit, which no magnitude uses."""
    return 1.0 - lanes.cast(words[-1] & 1, p.dtype) * 2.0


def _middle(p: _Precision, lanes: Lanes, k: Any, width: float) -> Any:
    """Return the middle of part ``k`` of the interval from 0 to ``width`` in ``2**p.bits`` parts."""
    return (lanes.cast(k, p.dtype) + 0.5) * (width * 2.0**-p.bits)


def _polynomial(coefficients: Sequence[float], x: Any) -> Any:
    total: Any = coefficients[0]
    for coefficient in coefficients[1:]:
        total = total * x + coefficient
    return total


def _log(p: _Precision, lanes: Lanes, x: Any) -> Any:
    """Return the natural logarithm of positive normal numbers, within one or two units in the last place."""
    bits = lanes.keep(lanes.view(x, p.integer))
    exponent = lanes.keep((bits - p.root_half) >> p.mantissa)
    f = lanes.keep(lanes.view(bits - (exponent << p.mantissa), p.dtype) - 1.0)  # x = 2**exponent * (1 + f)
    s = lanes.keep(f / (f + 2.0))
    z = lanes.keep(s * s)
    series = _polynomial(p.series[::-1], z) * z
    exponent = lanes.cast(exponent, p.dtype)
    return lanes.keep(exponent * p.ln2[0] + (exponent * p.ln2[1] + (f - s * (f - series))))


def log(x: Any, lanes: Lanes) -> Any:
    """Return the natural logarithm of positive float64 numbers, the same to the last bit on every machine."""
    return _log(_DOUBLE, lanes, x)


def _waiting_time(p: _Precision, lanes: Lanes, words: Sequence[Any]) -> Any:
    """Draw from the standard exponential distribution: minus the logarithm of a uniform number, precise at both ends.

    Near 1 the number itself has lost its last bits, but its distance to 1 has not: log(x) is then rescaled by the ratio
    of that distance to the one that x shows.
    """
    k = _magnitude(p, lanes, words)
    x = lanes.keep(_middle(p, lanes, k, 1.0))
    distance = lanes.keep(_middle(p, lanes, k ^ (2**p.bits - 1), 1.0))
    shown = lanes.keep(1.0 - x)
    time = -_log(p, lanes, x)
    is_one = shown == 0.0
    near = lanes.where(is_one, distance, time * (distance / lanes.where(is_one, distance, shown)))
    return lanes.keep(lanes.where(x > 0.5, near, time))


def _half_quantile(p: _Precision, lanes: Lanes, q: Any, tail_of: Callable[[Any], Any], source: Any) -> Any:
    """Return the positive normal number that has the probability ``q`` between 0 and itself.

    ``tail_of(source)`` is the probability above it.
    """
    numerator, denominator = p.quantile[0]
    t = lanes.keep(0.180625 - q * q)
    near = q * (_polynomial(numerator, t) / _polynomial(denominator, t))
    return lanes.keep(
        lanes.otherwise(q <= 0.425, near, lambda source: _beyond_centre(p, lanes, tail_of(source)), source)
    )


def _beyond_centre(p: _Precision, lanes: Lanes, tail: Any) -> Any:
    """Return the positive normal number that has the small probability ``tail`` above itself."""
    (numerator, denominator), *far = p.quantile[1:]
    t = lanes.keep(lanes.sqrt(-_log(p, lanes, tail)))
    u = lanes.keep(t - 1.6)
    found = _polynomial(numerator, u) / _polynomial(denominator, u)
    for numerator, denominator in far:
        u = lanes.keep(t - 5.0)
        found = lanes.where(t > 5.0, _polynomial(numerator, u) / _polynomial(denominator, u), found)
    return found


def _uniform(p: _Precision, lanes: Lanes, *words: Any) -> Any:
    if p is _SINGLE:
        return lanes.cast((words[0] >> 8) & 0xFFFFFF, float32) * 2.0**-24
    return lanes.cast(_magnitude(p, lanes, words), float64) * 2.0**-53


def _normal(p: _Precision, lanes: Lanes, *words: Any) -> Any:
    k = _magnitude(p, lanes, words)
    q = lanes.keep(_middle(p, lanes, k, 0.5))

    def tail_of(k: Any) -> Any:
        return _middle(p, lanes, k ^ (2**p.bits - 1), 0.5)

    return _sign(p, lanes, words) * _half_quantile(p, lanes, q, tail_of, k)


_WITHIN_TWO = 0.4772498680518208  # the probability of a normal number between 0 and 2


NORMAL_CENTRE = _SEVEN_DIGITS[0]
"""The polynomials of the middle 85% of float32 normal numbers."""


def normal_beyond(lanes: Lanes, k: Any) -> Any:
    """Return the positive float32 normal numbers beyond the centre, of magnitudes ``k`` of 31 bits."""
    return _beyond_centre(_SINGLE, lanes, _middle(_SINGLE, lanes, k ^ (2**31 - 1), 0.5))


def _truncated_normal(p: _Precision, lanes: Lanes, *words: Any) -> Any:
    q = lanes.keep(_middle(p, lanes, _magnitude(p, lanes, words), _WITHIN_TWO))
    x = _half_quantile(p, lanes, q, lambda q: 0.5 - q, q)
    return _sign(p, lanes, words) * lanes.where(x > 2.0, x * 0.0 + 2.0, x)


def _exponential(p: _Precision, lanes: Lanes, *words: Any) -> Any:
    return _waiting_time(p, lanes, words)


def _laplace(p: _Precision, lanes: Lanes, *words: Any) -> Any:
    return _sign(p, lanes, words) * _waiting_time(p, lanes, words)


def _gumbel(p: _Precision, lanes: Lanes, *words: Any) -> Any:
    return -_log(p, lanes, _waiting_time(p, lanes, words))


class FloatVariate(NamedTuple):
    """One kind of random number in the two floating dtypes in which numbers are drawn."""

    float32: Variate
    float64: Variate

    def within(self, dtype: EmberDType) -> Variate:
        """Return the one whose numbers are then rounded to ``dtype``."""
        return self.float64 if dtype is float64 else self.float32


def _in_both_precisions(name: str, formula: Callable[..., Any]) -> FloatVariate:
    return FloatVariate(
        Variate(name, float32, False, lambda lanes, *words: formula(_SINGLE, lanes, *words)),
        Variate(name, float64, True, lambda lanes, *words: formula(_DOUBLE, lanes, *words)),
    )


UNIFORM = _in_both_precisions("uniform", _uniform)
NORMAL = _in_both_precisions("normal", _normal)
TRUNCATED_NORMAL = _in_both_precisions("truncated_normal", _truncated_normal)
EXPONENTIAL = _in_both_precisions("exponential", _exponential)
LAPLACE = _in_both_precisions("laplace", _laplace)
GUMBEL = _in_both_precisions("gumbel", _gumbel)


def _word(lanes: Lanes, word: Any) -> Any:
    return lanes.cast(word, int64) & MASK


WORD = Variate("word", int64, False, _word)
"""The words themselves, from 0 to 2**32 - 1."""


def _long_word(lanes: Lanes, first: Any, second: Any) -> Any:
    return (_word(lanes, first) << 30) | (_word(lanes, second) >> 2)


LONG_WORD = Variate("long word", int64, True, _long_word)
"""Words of 62 bits: 2**62 is an int64 too."""


def bernoulli(p: float) -> Variate:
    """Return True where the word is below ``p * 2**32``: with probability p, rounded down to a multiple of 2**-32."""
    bound = int(p * 2.0**32)

    def formula(lanes: Lanes, word: Any) -> Any:
        if bound > MASK:
            return word == word
        return (word ^ -(2**31)) < bound - 2**31  # the order of unsigned words

    return Variate("bernoulli", bool_, False, formula, (p,))


_ONE_WORD = 2**16


def integers(minimum: int, span: int) -> Variate:
    """Return the integers from ``minimum`` on, ``span`` of them, as int64 (beyond its range they wrap).

    The upper half of word times span: of one word of 32 bits for spans up to 2**16, of two words as one of 64 bits for
    longer ones. No integer's probability differs from 1 / span by more than the 2**-16th part of it for spans up to
    2**48.
    """
    low = (minimum & (2**64 - 1)) - ((minimum & 2**63) << 1)

    def formula(lanes: Lanes, *words: Any) -> Any:
        if span <= _ONE_WORD:
            offset = (_word(lanes, words[0]) * span) >> 32
        elif span == 2**64:
            offset = _join_words(lanes, words)
        else:
            offset = _upper_product(lanes, lanes.keep(_word(lanes, words[0])), lanes.keep(_word(lanes, words[1])), span)
        return offset + low

    return Variate("integers", int64, span > _ONE_WORD, formula, (minimum, span))


def _upper_product(lanes: Lanes, high: Any, low: Any, span: int) -> Any:
    """Return the upper 64 bits of (2**32 high + low) * span, by halves; int64 wraps as uint64 would."""
    first, second = span >> 32, span & MASK
    middle = _upper(low * second) + ((high * second) & MASK)
    if not first:
        return _upper(high * second) + _upper(middle)
    middle = middle + ((low * first) & MASK)
    return high * first + _upper(high * second) + _upper(low * first) + _upper(middle)


def _upper(product: Any) -> Any:
    """Return the upper half of an unsigned 64-bit product, which int64 shows as negative where it is large."""
    return (product >> 32) & MASK
